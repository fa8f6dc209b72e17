"""The exit codes of the command line, by which a job script tells what to do next.

This module must not import anything: `signals` needs it before anything else is loaded.
"""

from __future__ import annotations

DONE = 0
FAILED = 1
USAGE = 2
# EX_TEMPFAIL of sysexits.h.
BUSY = 75
# What HTCondor's manual gives for a job that ended after a checkpoint, to be started again.
REQUEUE = 85
INTERRUPTED = 130
NO_READER = 141
TERMINATED = 143

MEANINGS = {
    DONE: "done, or already up to date",
    FAILED: "failed: an input, the disk, memory, a training that diverged",
    USAGE: "usage: an option, a name or a recipe is wrong; nothing was run, except earlier stages of a recipe",
    BUSY: "busy: another process is making the same artifact; try again later, or use --wait",
    REQUEUE: "stopped by SIGUSR1, at the request of a scheduler: run the same command again",
    INTERRUPTED: "interrupted by Ctrl-C (SIGINT)",
    NO_READER: "the program that reads the output has ended, such as `head`",
    TERMINATED: "stopped by SIGTERM",
}
