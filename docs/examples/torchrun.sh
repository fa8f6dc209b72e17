#!/bin/bash
# The same chain on the GPUs of one or several machines, without a scheduler: torchrun starts a process for each GPU.
#
#   TEXT=corpus.txt.zst DEV=sts-dev.tsv bash docs/examples/torchrun.sh
#
# On several machines, start it on each of them, with the variables NODES, NODE (0, 1, ...) and HEAD (the first
# machine's name) set, and SENTCOMPRESS_WORK on a file system that all of them share. Stopped by SIGTERM, or by SIGUSR1 to
# the processes of a stage, it resumes when it is started again.
set -euo pipefail

: "${TEXT:?set TEXT to a file of sentences}"
: "${DEV:?set DEV to a file of graded pairs}"
export SENTCOMPRESS_WORK=${SENTCOMPRESS_WORK:-$PWD/work}
read -ra TEACHER <<<"${TEACHER:-}" # such as --teacher embedded
read -ra DISTILL <<<"${DISTILL:---method lrn-kd}"
read -ra EXPORT <<<"${EXPORT:-}"

on_gpus() {
    torchrun --nnodes "${NODES:-1}" --node-rank "${NODE:-0}" --nproc-per-node "${GPUS:-gpu}" \
        --master-addr "${HEAD:-localhost}" --master-port "${PORT:-29500}" -m sentcompress "$@"
}

# One process does what is not shared; the others wait for its result.
sentcompress augment "$TEXT" --wait 8h
on_gpus teacher-embed "${TEACHER[@]}"
on_gpus distill "${DISTILL[@]}" --dev "$DEV" --name student
sentcompress eval-fidelity --model student --wait 8h
sentcompress export --model student "${EXPORT[@]}" --wait 8h
