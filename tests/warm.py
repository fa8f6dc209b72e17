"""Commands in forks of a process that has loaded torch and transformers, as `python -m sentcompress` would run them.

To load those takes a new process three to five seconds of CPU time. The process here loads no module of sentcompress
and computes nothing itself, so a fork of it starts like a new one, with its own environment, limits and folder.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import runpy
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from forks import become

ROOT = Path(__file__).resolve().parents[1]
LIMIT_SECONDS = 1200.0
MODULE = "sentcompress"


class Commands:
    """Runs commands, one after the other."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server = server

    def __call__(
        self,
        words: Sequence[object],
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        path: Sequence[Path] = (),
        code: str | None = None,
        without: Sequence[str] = (),
        file_size: int | None = None,
        umask: int | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end.

        Args:
            words: its arguments.
            environment: all variables; by default those of this process.
            folder: the current folder.
            path: where modules are looked for first.
            code: run this in place of the command line.
            without: packages that cannot be imported, as if they were not installed.
            file_size: the limit on the size of a file, in bytes.
            umask: which permissions files do not get.
        """
        request = {
            "words": [str(word) for word in words],
            "environment": dict(os.environ if environment is None else environment),
            "folder": str(folder or Path.cwd()),
            "path": [str(place) for place in (*path, ROOT)],
            "code": code,
            "without": list(without),
            "file_size": file_size,
            "umask": umask,
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        line = self._server.stdout.readline()
        if not line:
            raise RuntimeError(f"the process that runs commands has ended ({self._server.wait()})")
        answer = json.loads(line)
        if answer["code"] is None:
            raise subprocess.TimeoutExpired(request["words"], LIMIT_SECONDS, answer["stdout"], answer["stderr"])
        return subprocess.CompletedProcess(request["words"], answer["code"], answer["stdout"], answer["stderr"])


@contextmanager
def started() -> Iterator[Commands]:
    """The process, which ends with the block."""
    with tempfile.TemporaryDirectory() as place:
        server = subprocess.Popen(
            [sys.executable, __file__],
            env={**os.environ, "HF_HOME": place},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield Commands(server)
        finally:
            server.kill()
            server.communicate()


def serve() -> None:
    """Answer each request, a line on standard input, with a line on standard output: exit code and outputs."""
    import pandas  # noqa: F401
    import rich.progress  # noqa: F401
    import safetensors.torch  # noqa: F401
    import scipy.stats  # noqa: F401
    import typer
    from pyarrow import parquet  # noqa: F401
    from transformers import AutoConfig, AutoModel, AutoTokenizer, BertModel, BertTokenizerFast  # noqa: F401

    with suppress(ImportError):  # where typer has it, parsing a command line imports it, and pydantic with it
        import typer._adapters  # noqa: F401

    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for line in sys.stdin:
        request = json.loads(line)
        pipes = {name: os.pipe() for name in ("stdout", "stderr")}
        child = os.fork()
        if child == 0:
            become(partial(_be, request, *(writing for _, writing in pipes.values())))
        for _, writing in pipes.values():
            os.close(writing)
        answer = _until_the_end(child, {reading: name for name, (reading, _) in pipes.items()})
        print(json.dumps(answer), file=answers, flush=True)


def _until_the_end(child: int, pipes: Mapping[int, str]) -> dict[str, Any]:
    """What a command says, and how it ends: its exit code, negative for a signal, None if it was stuck."""
    said = dict.fromkeys(pipes.values(), b"")
    until = time.monotonic() + LIMIT_SECONDS
    with selectors.DefaultSelector() as selector:
        handle = os.pidfd_open(child)
        for one in (handle, *pipes):
            selector.register(one, selectors.EVENT_READ)
        stuck = False
        while selector.get_map():
            ready = selector.select(until - time.monotonic())
            stuck = stuck or not ready
            for one in [key.fd for key, _ in ready] or [handle]:
                block = b"" if one == handle else os.read(one, 2**16)
                if block:
                    said[pipes[one]] += block
                    continue
                selector.unregister(one)
                os.close(one)
                if one == handle:
                    with suppress(ProcessLookupError):
                        os.killpg(child, signal.SIGKILL)  # with the workers that it may have left
    status = os.waitpid(child, 0)[1]
    code = None if stuck else os.waitstatus_to_exitcode(status)
    return {"code": code, **{name: text.decode(errors="replace") for name, text in said.items()}}


def _be(request: dict[str, Any], stdout: int, stderr: int) -> None:
    """Become the process that was asked for."""
    os.setpgid(0, 0)
    for number, stream in enumerate((os.open(os.devnull, os.O_RDONLY), stdout, stderr)):
        os.dup2(stream, number)
        os.close(stream)
    os.fsync = os.fstat  # type: ignore[assignment]  # as in the tests themselves, see conftest.py
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(request["folder"])
    _take_environment(request["environment"])
    sys.path[:0] = request["path"]
    sys.modules.update(dict.fromkeys(request["without"]))  # type: ignore[arg-type]
    if request["umask"] is not None:
        os.umask(request["umask"])
    if request["file_size"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["file_size"],) * 2)
    sys.argv = [MODULE, *request["words"]]
    if request["code"] is None:
        runpy.run_module(MODULE, run_name="__main__", alter_sys=True)
    else:
        exec(request["code"], {"__name__": "__main__"})


def _take_environment(variables: Mapping[str, str]) -> None:
    """Set the variables, also where those of the hub were read on import."""
    from huggingface_hub import constants, hf_api

    os.environ.clear()
    os.environ.update(variables)
    importlib.reload(constants)
    hf_api.api.endpoint = constants.ENDPOINT
    modules = os.environ.get("HF_MODULES_CACHE", os.path.join(constants.HF_HOME, "modules"))
    for name, module in list(sys.modules.items()):
        if name.startswith("transformers.") and "HF_MODULES_CACHE" in vars(module):
            module.HF_MODULES_CACHE = modules  # type: ignore[attr-defined]


if __name__ == "__main__":
    serve()
