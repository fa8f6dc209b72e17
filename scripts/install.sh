#!/bin/sh
# Create the virtual environment $1 (default .venv) and install sentcompress with the locked versions.
# Needs Python 3.11 to 3.13. If Debian's Python lacks the venv module and you are root, it is installed with apt.
set -eu
cd "$(dirname "$0")/.."
venv=${1:-.venv}

find_python() {
    for candidate in ${PYTHON:-} python3.11 python3.12 python3.13 python3; do
        if command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'; then
            echo "$candidate"
            return
        fi
    done
    echo "error: Python 3.11, 3.12 or 3.13 is required" >&2
    echo "help:  set PYTHON=/path/to/python3.11" >&2
    exit 1
}

python=$(find_python)
if [ ! -x "$venv/bin/pip" ]; then
    rm -rf "$venv"
    if ! "$python" -m venv "$venv" >/dev/null 2>&1; then
        rm -rf "$venv"
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
            echo "installing python$version-venv"
            apt-get update -qq
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "python$version-venv" >/dev/null
            "$python" -m venv "$venv"
        else
            echo "error: $python cannot create virtual environments" >&2
            echo "help:  run as root: apt-get install python$version-venv" >&2
            exit 1
        fi
    fi
fi
# The pip of Python 3.11 cannot resolve the lock file: it fails on extras of constrained packages.
"$venv/bin/pip" install --quiet --disable-pip-version-check --upgrade 'pip>=24.3'
# Nothing is compiled here: the first import does that for the fifth of the modules that are used.
# torch is installed first and alone, or the resolver may choose another build of it.
echo "installing torch (a large download)"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-compile "$(grep '^torch==' requirements.lock)"
echo "installing sentcompress and its dependencies"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-compile --constraint requirements.lock \
    --editable '.[dev]'
touch "$venv/installed"
