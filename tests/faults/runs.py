"""Commands of sentcompress run in forked children of this process, in which everything is loaded."""

from __future__ import annotations

import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

# A run that takes longer is stuck, however busy the machine is: the slowest stage takes less than a second.
LIMIT_SECONDS = 600.0
Hook = Callable[[], None]


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit code, negative for a signal, None when it was stuck; what it wrote to stderr."""

    code: int | None
    stderr: str

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


def run(words: Sequence[str], folder: Path, output: Path, hook: Hook | None = None) -> Ended:
    """Run a command in `folder`; `hook` is called in the child before."""
    child = os.fork()
    if child == 0:
        _be(words, folder, output, hook)
    handle = os.pidfd_open(child)
    try:
        ready = select.select([handle], [], [], LIMIT_SECONDS)[0]
    finally:
        os.close(handle)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # with the workers that it may have left
    status = os.waitpid(child, 0)[1]
    stderr = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
    return Ended(os.waitstatus_to_exitcode(status) if ready else None, stderr)


def _be(words: Sequence[str], folder: Path, output: Path, hook: Hook | None) -> NoReturn:
    from sentcompress.cli.main import main

    code = 1
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        stderr = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(stderr, 2)
        if hook:
            hook()
        main(words)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
