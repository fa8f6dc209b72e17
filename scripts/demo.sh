#!/bin/sh
# Run the whole pipeline on the sample corpora in data/ with the embedded teacher; a few minutes on two cores.
set -eu
cd "$(dirname "$0")/.."
export SENTCOMPRESS_WORK="${SENTCOMPRESS_WORK:-demo-work}"
# The demo needs no model hub; do not wait for one.
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

The student keeps half of the teacher's layers and the whole token embedding table, which holds most of its parameters.
The scores are on generated sample sentences and do not indicate quality: see README.md for the scores of students
trained on real text, and for which student to choose.
END
