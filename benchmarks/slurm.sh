#!/bin/bash
# The example chain on a Slurm of its own: one controller and four nodes on this machine, with a tiny random teacher.
#
#   bash benchmarks/slurm.sh [SENTENCES]
#
# One task of the teacher-embed array is queued again while it runs, as when its node fails, and the training gets the
# SIGUSR1 that precedes a time limit. The training runs a second time in two ranks on two nodes, with the same signal.
# Then the same commands run plainly in another work directory. The digests of sentences, vectors and student, and the
# weights of the student of two ranks, are compared. Needs slurm-wlm and munge (Debian), and root. Writes benchmarks/results/slurm.md.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/.." && pwd)
SENTENCES=${1:-40000}
export SHARDS=$((SENTENCES / 10000)) # each encodes one window
HERE=$(mktemp -d /tmp/sentcompress-slurm-XXXX)
export PYTHONPATH=$ROOT PATH=$HERE/bin:$PATH OMP_NUM_THREADS=1 SLURM_CONF=$HERE/slurm.conf
RESULT=$ROOT/benchmarks/results/slurm.md
PIDS=()

cleanup() {
    scancel --user root 2>/dev/null || true
    for pid in "${PIDS[@]}"; do kill "$pid" 2>/dev/null || true; done
    rm -rf "$HERE"
}
trap cleanup EXIT

start_slurm() {
    mkdir -p "$HERE"/{bin,state,spool,munge}
    printf '#!/bin/sh\nexec %s -m sentcompress --offline "$@"\n' "$(command -v python)" >"$HERE/bin/sentcompress"
    chmod +x "$HERE/bin/sentcompress"
    head -c 1024 /dev/urandom >"$HERE/munge/key"
    chmod 700 "$HERE/munge" && chmod 400 "$HERE/munge/key"
    munged --foreground --force --key-file="$HERE/munge/key" --socket="$HERE/munge.socket" \
        --pid-file="$HERE/munge/pid" --log-file="$HERE/munge/log" --seed-file="$HERE/munge/seed" &
    PIDS+=($!)
    cat >"$SLURM_CONF" <<CONF
ClusterName=benchmark
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=17000
SlurmUser=root
AuthInfo=socket=$HERE/munge.socket
StateSaveLocation=$HERE/state
SlurmdSpoolDir=$HERE/spool/%n
SlurmctldPidFile=$HERE/slurmctld.pid
SlurmdPidFile=$HERE/slurmd-%n.pid
SlurmctldLogFile=$HERE/slurmctld.log
SlurmdLogFile=$HERE/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=86400
KillWait=30
NodeName=n[1-4] NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=[17001-17004] CPUs=1
PartitionName=all Nodes=n[1-4] Default=YES State=UP
CONF
    sleep 1
    slurmctld -D -f "$SLURM_CONF" 2>/dev/null &
    PIDS+=($!)
    for node in n1 n2 n3 n4; do
        slurmd -D -N "$node" -f "$SLURM_CONF" 2>/dev/null &
        PIDS+=($!)
    done
    until [ "$(sinfo --noheader --states=idle --format=%D 2>/dev/null)" = 4 ]; do sleep 1; done
}

# field JOB NAME: what Slurm says of a job.
field() { scontrol show job "$1" | grep -o "\b$2=[^ ]*" | head -1 | cut -d= -f2; }

wait_for() { until eval "$1"; do sleep 0.5; done; }

prepare() {
    python - "$ROOT" "$HERE" "$SENTENCES" <<'CODE'
import sys
from pathlib import Path
root, here, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
sys.path.insert(0, str(root / "tests"))
from tiny_models import make_sentences, make_tiny_model
(here / "text.txt").write_text("\n".join(make_sentences(count)) + "\n", encoding="utf-8")
make_tiny_model(here / "teacher", layers=3)
CODE
}

# Without DEV the dev score is that of held-out sentences, which a training on any text improves to its end.
export AUGMENT="--wordnet 0 --back-translate 0"
export TEACHER="--teacher $HERE/teacher --dtype float32 --device cpu"
export DISTILL="--method lrn-kd --student teacher:1 --epochs 3 --dtype float32 --device cpu --checkpoint-every 3600"
export TEXT=$HERE/text.txt CPU="--partition=all" GPU="--partition=all"
export STAGE=$ROOT/docs/examples/slurm/stage.sh

# on_signal JOB STUDENT: send SIGUSR1 while the job trains, and note the time until the checkpoint is complete.
on_signal() {
    local state=$SENTCOMPRESS_WORK/students/.$2.partial
    wait_for '[ -s '"$state/log.jsonl"' ]'
    sleep 1
    sentcompress status >"$HERE/status-$2"
    echo "$2 gets SIGUSR1"
    date +%s.%N >"$HERE/sent-$2"
    scancel --signal=USR1 "$1"
    wait_for '[ -f '"$state/.scaffold/state/checkpoints/checkpoint.json"' ]'
    stat --format=%.Y "$state/.scaffold/state/checkpoints/checkpoint.json" >"$HERE/saved-$2"
}

by_slurm() {
    export SENTCOMPRESS_WORK=$HERE/by-slurm LOGS=$HERE/logs
    mkdir "$LOGS"
    sbatch --wait --quiet --partition=all --output="$LOGS/chain.log" "$ROOT/docs/examples/slurm/chain.sh"
    cat "$LOGS/chain.log"
    local embed distill
    embed=$(squeue --noheader --name=teacher-embed --format=%A | head -1)
    distill=$(squeue --noheader --name=distill --format=%A | head -1)
    wait_for 'compgen -G "$SENTCOMPRESS_WORK/teacher-vectors/.main.shards/.$SHARDS-of-$SHARDS.partial/*" >/dev/null'
    echo "task $SHARDS of teacher-embed is queued again"
    scontrol requeue "${embed}_$SHARDS"
    on_signal "$distill" student
    wait_for '[ -z "$(squeue --noheader)" ]'
    # The nodes are one host, which does not know their names.
    on_signal "$(MASTER_ADDR=127.0.0.1 sbatch --parsable --job-name=ranks --nodes=2 --ntasks-per-node=1 --partition=all \
        --output="$LOGS/%x-%j.log" "$STAGE" distill $DISTILL --name ranks)" ranks
    wait_for '[ -z "$(squeue --noheader)" ]'
}

plainly() {
    export SENTCOMPRESS_WORK=$HERE/plainly
    # shellcheck disable=SC2086
    {
        sentcompress augment "$TEXT" $AUGMENT --quiet
        sentcompress teacher-embed $TEACHER --quiet
        sentcompress distill $DISTILL --name student --quiet
    } >/dev/null
}

# told STUDENT JOB: how long a checkpoint took, and the lines of the job's log that tell of the signal.
told() {
    local seconds
    seconds=$(python -c "print(round(float(open('$HERE/saved-$1').read()) - float(open('$HERE/sent-$1').read()), 1))")
    echo "The checkpoint was complete $seconds seconds after SIGUSR1. The log of $2:"
    echo
    echo '```text'
    grep -hE "^(error: stop|help|stage.sh|distill: resuming|resuming|training in|training:)" \
        "$HERE"/logs/"$([ "$1" = student ] && echo distill || echo "$1")"-*.log
    echo '```'
    echo
}

report() {
    {
        echo "# The example chain on Slurm"
        echo
        echo "\`bash benchmarks/slurm.sh $SENTENCES\`: $(slurmctld -V), one controller and four nodes on one machine with"
        echo "$(nproc --all) cores; $SENTENCES sentences, a random teacher of 3 layers, $SHARDS shards."
        echo
        echo "| job | state | exit code | restarts | run time |"
        echo "|---|---|---|---|---|"
        scontrol show job --oneliner | while read -r line; do
            of() { grep -o "\b$1=[^ ]*" <<<"$line" | head -1 | cut -d= -f2; }
            echo "| $(of JobName)$(of ArrayTaskId | sed 's/^/ /') | $(of JobState) | $(of ExitCode) | $(of Restarts) | $(of RunTime) |"
        done
        echo
        echo "\`sentcompress status\` while the training ran:"
        echo
        echo '```text'
        grep -A 2 "students/student" "$HERE/status-student" | sed 's/ *$//; s/on [^ ]* (job/on n1 (job/'
        echo '```'
        echo
        told student distill
        told ranks "distill in two ranks"
        python - "$HERE" <<'CODE'
import json, sys
from pathlib import Path
from safetensors.torch import load_file
here, same = Path(sys.argv[1]), True
print("| result | by Slurm | plainly | |\n|---|---|---|---|")
for path in sorted((here / "plainly").glob("*/*/manifest.json")):
    name = path.relative_to(here / "plainly").parent
    kind = name.parts[0]
    if kind not in ("sentences", "teacher-vectors", "students"):
        continue
    one, other = (json.loads((here / side / name / "manifest.json").read_text()) for side in ("by-slurm", "plainly"))
    equal = one["digest"] == other["digest"]
    same = same and equal
    print(f"| {name} | {one['digest'][:16]} | {other['digest'][:16]} | {'equal' if equal else 'DIFFERENT'} |")
one, other = (load_file(here / side / "model.safetensors") for side in ("by-slurm/students/ranks/model", "plainly/students/student/model"))
# The gradient of a key's bias is 0: docs/decisions/0016-ranks.md.
largest = max(float((one[name] - other[name]).abs().max()) for name in one if "key.bias" not in name)
same = same and largest < 1e-5
print(f"\nLargest difference of a weight between two ranks and one process: {largest:.1e}.")
sys.exit(not same)
CODE
    } | tee "$RESULT"
}

start_slurm
prepare
by_slurm
plainly
report
