#!/bin/sh
# Write requirements.lock: all packages, with the versions that a fresh environment gets now.
# torch keeps its pinned version, without a local build tag (+cpu), so that any build of it satisfies the lock.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "$(grep '^torch==' requirements.lock)"
# soupsieve 3 and later need Python 3.11.5; Debian 12 has 3.11.2 (tests/test_lock.py).
"$folder/venv/bin/pip" install --quiet '.[dev]' 'soupsieve<3'
{
    echo "# Every version that make and the Dockerfile install; written by scripts/lock.sh (make lock)."
    "$folder/venv/bin/pip" freeze --all --exclude sentcompress --exclude pip | sed 's/+cpu$//'
} > "$folder/lock"
mv "$folder/lock" requirements.lock
