#!/bin/bash
# Submit a chain of stages to Slurm: from sentences to an exported student. Run it on a login node, or with sbatch.
#
#   TEXT=corpus.txt.zst DEV=sts-dev.tsv bash docs/examples/slurm/chain.sh      (without DEV, some sentences are held out)
#
# Each job waits for those whose results it uses. Stages on the CPU and on GPUs go to different partitions; stages that
# can be divided are job arrays of SHARDS tasks. Submitted again after a failure, finished stages end within seconds.
#SBATCH --job-name=chain --time=00:10:00
set -euo pipefail

: "${TEXT:?set TEXT to a file of sentences}"
export SENTCOMPRESS_WORK=${SENTCOMPRESS_WORK:-$PWD/work} # on a file system that all nodes share
SHARDS=${SHARDS:-16}
CPU=${CPU:---partition=cpu --cpus-per-task=8 --time=04:00:00}
GPU=${GPU:---partition=gpu --gres=gpu:1 --cpus-per-task=8 --time=04:00:00}
TRAINING=${TRAINING:-$GPU} # several ranks: add --nodes=2 --ntasks-per-node=8 --gres=gpu:8
LOGS=${LOGS:-$SENTCOMPRESS_WORK/logs}
STAGE=${STAGE:-docs/examples/slurm/stage.sh}
read -ra AUGMENT <<<"${AUGMENT:---wordnet 1}"
read -ra TEACHER <<<"${TEACHER:---teacher embedded}"
read -ra DISTILL <<<"${DISTILL:---method lrn-kd}"

mkdir -p "$LOGS"

# submit NAME AFTER OPTIONS ARGUMENT...: the number of a job that begins when the job AFTER has succeeded.
submit() {
    local name=$1 after=$2 options=$3
    shift 3
    # shellcheck disable=SC2086  # the options are several words
    sbatch --parsable --job-name="$name" --output="$LOGS/%x-%j.log" ${after:+--dependency=afterok:$after} \
        --kill-on-invalid-dep=yes $options "$STAGE" "$@"
}

job=$(submit augment "" "$CPU --array=1-$SHARDS" augment "$TEXT" "${AUGMENT[@]}" --shard auto)
job=$(submit merge-sentences "$job" "$CPU" merge sentences/main)
job=$(submit teacher-embed "$job" "$GPU --array=1-$SHARDS" teacher-embed "${TEACHER[@]}" --shard auto)
job=$(submit merge-vectors "$job" "$CPU" merge teacher-vectors/main)
job=$(submit distill "$job" "$TRAINING" distill "${DISTILL[@]}" ${DEV:+--dev "$DEV"} --name student --wait 30m)
score=$(submit eval-fidelity "$job" "$CPU" eval-fidelity --model student)
job=$(submit export "$job" "$CPU" export --model student)
echo "last jobs: $score $job; progress: sentcompress status --work $SENTCOMPRESS_WORK"
