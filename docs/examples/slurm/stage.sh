#!/bin/bash
# One stage as a job: sbatch [options] stage.sh COMMAND [ARGUMENTS] runs `sentcompress COMMAND ARGUMENTS`.
#
# A stage that Slurm stops before its end is queued again and resumes: 90 seconds before the time limit Slurm sends
# SIGUSR1, and the stage ends with exit code 85. A preempted job is queued again by Slurm itself (PreemptMode=REQUEUE).
# A stage that fails, and a job that is cancelled, are not.
#
# A job of several tasks (sbatch --nodes=2 --ntasks-per-node=8) runs the command in as many ranks, one for each task.
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=USR1@90
MOST_RESTARTS=${MOST_RESTARTS:-20}
# From Slurm 22.05 to 23.02, srun does not inherit --cpus-per-task: the command would get a single core.
[ -z "${SLURM_CPUS_PER_TASK:-}" ] || export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK

if [ "${SLURM_NTASKS:-1}" -gt 1 ]; then
    # Slurm starts the ranks and passes on their exit code; torchrun would end with 1.
    export MASTER_ADDR=${MASTER_ADDR:-$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)}
    export MASTER_PORT=${MASTER_PORT:-$((20000 + SLURM_JOB_ID % 10000))} # jobs on one node need different ports
    # shellcheck disable=SC2016  # each task expands its own variables
    srun --kill-on-bad-exit=1 bash -c 'export WORLD_SIZE=$SLURM_NTASKS RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID
        export LOCAL_WORLD_SIZE=$((SLURM_NTASKS / SLURM_NNODES)); exec sentcompress "$@"' rank "$@"
else
    srun --kill-on-bad-exit=1 sentcompress "$@"
fi
code=$?

case $code in
    75 | 85) # busy, stopped by SIGUSR1: docs/clusters.md, "Exit codes"
        if [ "${SLURM_RESTART_COUNT:-0}" -lt "$MOST_RESTARTS" ]; then
            echo "stage.sh: exit code $code, queued again (restart $((${SLURM_RESTART_COUNT:-0} + 1)))"
            scontrol requeue "$SLURM_JOB_ID"
            sleep 60 # Slurm ends this job now
        else
            echo "stage.sh: exit code $code, not queued again after $MOST_RESTARTS restarts (MOST_RESTARTS)"
        fi
        ;;
esac
exit $code
