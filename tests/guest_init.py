"""The first process of a guest (see `guests`); all other Python processes there are forks of it.

Importing the package takes seconds in a guest. This process imports the modules, its arguments, but runs none of their
functions, so a fork of it behaves like a new process. It reads lines from the console: `start`, `go` or `kill`, and the
name of a process. What to start is in the file `<name>.cmd`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from forks import become


class Child:
    """A process that was started."""

    def __init__(self, name: str) -> None:
        self._name = name
        request = json.loads(self._file("cmd").read_text(encoding="utf-8"))
        reading, self.writing = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self.writing)
            out, err = (os.open(self._file(end), os.O_WRONLY | os.O_CREAT) for end in ("out", "err"))
            become(partial(_be, request, reading, out, err))
        os.close(reading)
        self.handle = os.pidfd_open(self._pid)
        self._tell("pid", self._pid)

    def go(self) -> None:
        """Give it a line to read."""
        with suppress(BrokenPipeError):
            os.write(self.writing, b"\n")

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)

    def ended(self) -> None:
        """Write down its exit code."""
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        os.close(self.handle)
        os.close(self.writing)
        self._tell("rc", code)

    def _file(self, ending: str) -> Path:
        return Path(f"{self._name}.{ending}")

    def _tell(self, ending: str, number: int) -> None:
        self._file("tmp").write_text(str(number), encoding="ascii")
        self._file("tmp").rename(self._file(ending))


def serve() -> NoReturn:
    """Follow the lines of the console, until it ends."""
    children: dict[str, Child] = {}
    console = sys.stdin.fileno()
    with selectors.DefaultSelector() as selector:
        selector.register(console, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd != console:
                    selector.unregister(key.fd)
                    children.pop(key.data).ended()
                    continue
                line = os.read(console, 4096)  # a terminal gives one line
                if not line:
                    sys.exit()  # the tests have ended; the kernel ends with its first process
                what, name = line.decode().split()
                if what == "start":
                    children[name] = Child(name)
                    selector.register(children[name].handle, selectors.EVENT_READ, name)
                elif name in children:
                    {"go": Child.go, "kill": Child.kill}[what](children[name])


def _be(request: dict[str, Any], *streams: int) -> None:
    """Become the process that was asked for: Python with these arguments, of which the first is -c or -m."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(len(streams), 256)  # also the ends of the pipes of others
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    os.environ.update(request["environment"])
    option, given, *sys.argv[1:] = request["words"]
    if option == "-m":
        runpy.run_module(given, run_name="__main__", alter_sys=True)
    else:
        sys.argv[0] = option
        exec(given, {"__name__": "__main__"})


if __name__ == "__main__":
    for module in sys.argv[1:]:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # a page that a fork does not write to is not copied
    Path("ready").touch()
    serve()
