#!/bin/sh
# Install WordNet and a translator for `sentcompress augment`, with apt if possible.
# Usage: scripts/get_language_data.sh [PYTHON]. Never fails: reports what could not be installed.
set -u
python="${1:-python3}"

have_wordnet() {
    "$python" -c 'import sys; from sentcompress.augmentations.wordnet import find_wordnet as f; sys.exit(f() is None)'
}
have_translator() {
    "$python" -c 'import sys; from sentcompress.augmentations.apertium import find_pivots as f; sys.exit(not f())'
}
say() { echo "language data: $*" >&2; }

install_with_apt() {
    say "apt-get install $*"
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 && return 0
    # A fresh image has no package lists yet.
    apt-get update -qq >/dev/null 2>&1
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1
}

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    have_wordnet || install_with_apt wordnet-base || say "apt could not install WordNet"
    have_translator || install_with_apt apertium apertium-eng-spa || say "apt could not install apertium"
fi
if ! have_wordnet; then
    say "nltk.downloader wordnet averaged_perceptron_tagger_eng"
    folder="$("$python" -c 'import sys; print(sys.prefix + "/nltk_data")')"
    # NLTK_DATA_URL is the index.xml of a mirror, for when nltk's server cannot be reached.
    timeout 120 "$python" -m nltk.downloader -q ${NLTK_DATA_URL:+-u "$NLTK_DATA_URL"} -d "$folder" \
        wordnet averaged_perceptron_tagger_eng >/dev/null 2>&1
fi

if have_wordnet; then
    say "WordNet is installed"
else
    say "no WordNet: augment skips synonyms. As root: apt-get install wordnet-base"
fi
if have_translator; then
    say "apertium is installed"
else
    say "no translator: augment skips back-translation. As root: apt-get install apertium apertium-eng-spa"
fi
exit 0
