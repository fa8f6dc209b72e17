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
run sentcompress distill --method lrn-kd --student teacher:3 --set normalise=true --dev data/sts/dev.tsv --epochs 1 --name small
run sentcompress eval-fidelity --text data/quora.tsv
run sentcompress eval-sts --sts data/sts --compare teacher
run sentcompress eval-retrieval --pairs data/quora.tsv --compare teacher
run sentcompress bench --compare teacher --runtimes float32 --count 300 --rounds 2
run sentcompress export --sts data/sts
run sentcompress report
cat <<'END'

The student keeps half of the teacher's layers and all of its token table, so most of its parameters are the table. These
scores are from generated sample sentences and say nothing about quality: README.md has the scores of students that were
trained on real text, and a table of which student to take.
END
