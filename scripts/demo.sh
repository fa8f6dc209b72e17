#!/bin/sh
# Compress the embedded teacher for the sample questions in data/, measure the result and search with it.
set -eu
cd "$(dirname "$0")/.."
export SENTCOMPRESS_WORK="${SENTCOMPRESS_WORK:-demo-work}"
# The demo needs no model hub; do not wait for one.
export HF_HUB_OFFLINE=1

run() {
    printf '\n$ %s\n' "$*"
    "$@"
}

run sentcompress compress data/quora.tsv --column question2 --time 4m --vector-bytes 128 --name small
run sentcompress eval-sts --sts data/sts --model exports/small --compare embedded
run sentcompress eval-retrieval --pairs data/quora.tsv --model exports/small --compare embedded --index flat
run sentcompress search "which metal is bronze made of" --model exports/small --compare embedded
run sentcompress report
cat <<END

$SENTCOMPRESS_WORK/report/report.html shows what the model keeps of its teacher and everything that was tried; the model
is in $SENTCOMPRESS_WORK/exports/small. It was compressed for the questions that are searched here, without their judgements.
The samples are generated sentences: README.md has scores on real text.
END
