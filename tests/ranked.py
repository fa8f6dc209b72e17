"""Commands in several ranks, as torchrun would start them, in forks of one warm process."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from warm import Commands

# Starts all ranks; when one fails, the others are told to end, as torchrun does.
LAUNCH = """
import json, os, runpy, signal, sys, time
from functools import partial
from forks import become

def be(variables, words, name):
    for number, stream in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{name}.{stream}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.environ.update(variables)
    sys.argv[1:] = words
    if CODE is None:
        runpy.run_module("sentcompress", run_name="__main__", alter_sys=True)
    else:
        exec(CODE, {"__name__": "__main__"})

ranks = json.loads(sys.argv.pop(1))
running = {}
for place, rank in enumerate(ranks):
    pid = os.fork()
    if pid == 0:
        become(partial(be, *rank))
    running[pid] = place
codes = [None] * len(ranks)
until = time.monotonic() + 900
while running:
    pid, status = os.waitpid(-1, os.WNOHANG)
    if pid:
        codes[running.pop(pid)] = os.waitstatus_to_exitcode(status)
        if status and KILL:
            for other in running:
                os.kill(other, signal.SIGTERM)
    elif time.monotonic() > until:
        for other in running:
            os.kill(other, signal.SIGKILL)
    else:
        time.sleep(0.01)
print(json.dumps(codes))
"""


@dataclass(frozen=True)
class Ended:
    """How one rank ended."""

    code: int
    out: str
    err: str


def free_port() -> int:
    """A port that nothing listens on, and that no connection or test beside this one will be given meanwhile.

    It is used seconds later. Ports that the kernel chooses are from 32768 on.
    """
    while True:
        port = random.SystemRandom().randrange(10_000, 32_768)
        with socket.socket() as found, suppress(OSError):
            found.bind(("", port))
            return port


def run_ranks(
    commands: Commands,
    words: Sequence[object] | Sequence[Sequence[object]],
    folder: Path,
    count: int = 2,
    *,
    start: Sequence[int] | None = None,
    port: int | None = None,
    kill: bool = True,
    code: str | None = None,
    **variables: str,
) -> dict[int, Ended]:
    """Run a command in several ranks to its end.

    Args:
        words: its arguments; for each rank, if they differ.
        folder: for what the ranks print.
        count: the number of ranks.
        start: the ranks to start, if not all.
        port: where they meet.
        kill: whether the failure of one ends the others, as under torchrun.
        code: run this in place of the command line.
        variables: more environment variables.
    """
    common = {
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port or free_port()),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        **variables,
    }
    numbers = list(range(count) if start is None else start)
    asked = []
    for number in numbers:
        own = words[number] if isinstance(words[0], list | tuple) else words
        environment = {**common, "RANK": str(number), "LOCAL_RANK": str(number)}
        asked.append((environment, [str(word) for word in own], str(folder / f"rank-{number}")))
    done: subprocess.CompletedProcess[str] = commands(
        [json.dumps(asked)], code=f"KILL, CODE = {kill}, {code!r}\n{LAUNCH}", environment=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    codes = json.loads(done.stdout.splitlines()[-1])
    texts = [[(folder / f"rank-{number}.{name}").read_text() for name in ("out", "err")] for number in numbers]
    return {number: Ended(code, *said) for number, code, said in zip(numbers, codes, texts, strict=True)}
