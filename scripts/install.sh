#!/bin/sh
# Make the virtual environment $1 (default .venv) and install sentcompress into it, at the locked versions.
# Needs Python 3.11 to 3.13; on a Debian whose Python lacks the venv module, root gets it from apt.
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
    echo "error: Python 3.11, 3.12 or 3.13 is needed" >&2
    echo "help:  name one with PYTHON=/path/to/python3.11" >&2
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
            echo "error: $python cannot make virtual environments" >&2
            echo "help:  as root: apt-get install python$version-venv" >&2
            exit 1
        fi
    fi
fi
# The pip that comes with Python 3.11 finds no way through the lock: it trips over extras of what is constrained.
"$venv/bin/pip" install --quiet --disable-pip-version-check --upgrade 'pip>=24.3'
# torch comes first and alone: a resolver that sees it later may pick another build of it.
echo "installing torch (a large download on a fresh machine)"
"$venv/bin/pip" install --quiet --disable-pip-version-check "$(grep '^torch==' requirements.lock)"
echo "installing sentcompress and what it needs"
"$venv/bin/pip" install --quiet --disable-pip-version-check --constraint requirements.lock \
    --editable '.[dev]'
touch "$venv/installed"
