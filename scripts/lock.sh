#!/bin/sh
# Write requirements.lock: every package, at the version that a fresh environment gets now.
# torch keeps its pinned version; a local build tag (+cpu) is left out, so that any build of it fits.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "$(grep '^torch==' requirements.lock)"
# soupsieve 3 and later want Python 3.11.5; Debian 12 has 3.11.2 (tests/test_lock.py).
"$folder/venv/bin/pip" install --quiet '.[dev]' 'soupsieve<3'
{
    echo "# Every version that make and the Dockerfile install; written by scripts/lock.sh (make lock)."
    "$folder/venv/bin/pip" freeze --all --exclude sentcompress --exclude pip | sed 's/+cpu$//'
} > "$folder/lock"
mv "$folder/lock" requirements.lock
