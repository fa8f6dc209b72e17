#!/bin/bash
# One stage as a job: sbatch [options] stage.sh COMMAND [ARGUMENTS] runs `sentcompress COMMAND ARGUMENTS`.
#
# A stage that Slurm stops before its end is queued again and resumes: 90 seconds before the time limit Slurm sends
# SIGUSR1, and the stage ends with exit code 85. A preempted job is queued again by Slurm itself (PreemptMode=REQUEUE).
# A stage that fails, and a job that is cancelled, are not.
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=USR1@90
MOST_RESTARTS=${MOST_RESTARTS:-20}

srun --kill-on-bad-exit=1 sentcompress "$@"
code=$?

case $code in
    75 | 85) # busy, stopped by SIGUSR1: docs/clusters.md, "Exit codes"
        if [ "${SLURM_RESTART_COUNT:-0}" -lt "$MOST_RESTARTS" ]; then
            echo "stage.sh: exit code $code, queued again (restart $((${SLURM_RESTART_COUNT:-0} + 1)))"
            scontrol requeue "$SLURM_JOB_ID"
            sleep 60 # Slurm ends this job now
        fi
        ;;
esac
exit $code
