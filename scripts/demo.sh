#!/bin/sh
# Compress the embedded teacher for the sample documents in data/ and measure the result; minutes on two cores.
set -eu
cd "$(dirname "$0")/.."
export SENTCOMPRESS_WORK="${SENTCOMPRESS_WORK:-demo-work}"
# The demo needs no model hub; do not wait for one.
export HF_HUB_OFFLINE=1

run() {
    printf '\n$ %s\n' "$*"
    "$@"
}

run sentcompress compress data/nli.jsonl --column sentence1 --time 3m --vector-bytes 128 --name small
run sentcompress eval-sts --sts data/sts --model exports/small --compare embedded
run sentcompress eval-retrieval --pairs data/quora.tsv --model exports/small --compare embedded --index flat
run sentcompress search "how do plants survive the winter" --model exports/small --compare embedded
run sentcompress report
cat <<END

Open $SENTCOMPRESS_WORK/report/report.html in a browser: it shows what the model keeps, and everything that was tried.
The model is in $SENTCOMPRESS_WORK/exports/small. The samples are generated sentences: for scores on real text, see README.md.
END
