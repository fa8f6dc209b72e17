"""Worker processes under the shim, each with a folder of its own, to which trials are handed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from faults.shim import VARIABLE, compile_shim, make_control
from faults.trials import Trial

ROOT = Path(__file__).resolve().parents[2]
# Set before torch is loaded: one thread, no hub, nothing of the user's.
QUIET = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class Pool:
    """Worker processes, each with a folder of its own."""

    def __init__(self, folder: Path, jobs: int, names: Sequence[str]) -> None:
        library = compile_shim(folder)
        self._workers = []
        for number in range(jobs):
            place = folder / f"job-{number}"
            place.mkdir()
            make_control(place / "control")
            python_path = [str(ROOT), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
            environment = (
                os.environ
                | QUIET
                | {
                    "LD_PRELOAD": str(library),
                    VARIABLE: str(place / "control"),
                    "PYTHONPATH": os.pathsep.join(python_path),
                }
            )
            command = [sys.executable, "-m", "faults.worker", str(place / "room"), json.dumps(list(names))]
            with (place / "stderr.txt").open("wb") as stderr:
                worker = subprocess.Popen(
                    command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True
                )
            self._workers.append((worker, place / "stderr.txt"))
        self.kinds: dict[str, list[str]] = {}
        self.seconds: dict[str, float] = {}
        for number in range(jobs):
            for name, counted in self._answer(number).items():
                self.kinds.setdefault(name, counted["kinds"])
                self.seconds.setdefault(name, counted["seconds"])

    def run(self, trials: Iterator[Trial], until: float) -> Iterator[tuple[Trial, dict[str, Any]]]:
        """Results as they come; no trial is begun after `until`."""
        found: list[tuple[Trial, dict[str, Any]]] = []
        errors: list[BaseException] = []
        ready = threading.Condition()
        running = len(self._workers)

        def serve(number: int) -> None:
            nonlocal running
            try:
                while time.monotonic() < until:
                    with ready:
                        trial = next(trials, None)
                    if trial is None:
                        break
                    result = self._ask(number, trial)
                    with ready:
                        found.append((trial, result))
                        ready.notify()
            except (RuntimeError, OSError) as error:
                errors.append(error)
            finally:
                with ready:
                    running -= 1
                    ready.notify()

        for number in range(len(self._workers)):
            threading.Thread(target=serve, args=(number,), daemon=True).start()
        while True:
            with ready:
                ready.wait_for(lambda: found or not running)
                taken, found[:] = list(found), []
                ended = not running
            yield from taken
            if errors:
                raise errors[0]
            if ended and not taken:
                return

    def close(self) -> None:
        for worker, _ in self._workers:
            worker.kill()
            worker.wait()

    def _ask(self, number: int, trial: Trial) -> dict[str, Any]:
        stream = self._workers[number][0].stdin
        assert stream is not None
        stream.write(trial.as_json() + "\n")
        stream.flush()
        return self._answer(number, trial.as_json())

    def _answer(self, number: int, about: str = "") -> dict[str, Any]:
        worker, stderr = self._workers[number]
        assert worker.stdout is not None
        line = worker.stdout.readline()
        if not line:
            tail = "".join(stderr.read_text(errors="replace").splitlines(keepends=True)[-12:])
            raise RuntimeError(f"a worker has ended ({worker.wait()}) {about}\n{tail}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def started(jobs: int, names: Sequence[str]) -> Iterator[Pool]:
    """A pool with folders that are removed afterwards, in memory where there is such a place."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.statvfs(memory).f_bavail * os.statvfs(memory).f_frsize > 2**29
    with ExitStack() as stack:
        place = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="sentcompress-faults-", dir=memory if roomy else None)
        )
        pool = Pool(Path(place), jobs, names)
        stack.callback(pool.close)
        yield pool
