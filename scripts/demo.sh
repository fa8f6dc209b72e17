#!/bin/sh
# The whole chain on the sample corpora of data/, with the embedded teacher, in a few minutes on two cores.
set -eu
cd "$(dirname "$0")/.."
export SENTCOMPRESS_WORK="${SENTCOMPRESS_WORK:-demo-work}"
# Nothing here needs a model hub; do not wait for one.
export HF_HUB_OFFLINE=1

run() {
    printf '\n$ %s\n' "$*"
    "$@"
}

run sentcompress augment data/nli.jsonl
run sentcompress teacher-embed
run sentcompress fit-pca --dim 128
run sentcompress distill --method hpd --student teacher:3 --dev data/sts/dev.tsv --epochs 2 --eval-every 116
run sentcompress eval-sts --sts data/sts --compare teacher
run sentcompress eval-retrieval --pairs data/quora.tsv --compare teacher
run sentcompress bench --compare teacher --runtimes float32 --count 300 --rounds 2
run sentcompress export --sts data/sts
run sentcompress report
