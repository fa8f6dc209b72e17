"""The progress of a running stage as one line, for logs and for `status`, which reads it from a file of the build.

The file is replaced atomically every few seconds, so that it can be read at any time and from other machines.
"""

from __future__ import annotations

import math
import os
import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

from sentcompress.errors import InputError
from sentcompress.json_documents import read_json, write_json
from sentcompress.numeric import rate
from sentcompress.quantities import told_time
from sentcompress.store.atomic import SCAFFOLD

# Where an unfinished build keeps it.
PROGRESS = f"{SCAFFOLD}/progress.json"
# Seconds between two versions of the file; a stage that takes less writes none.
WRITE_EVERY = 5.0
# A file older than this is of a process that hangs, was killed, or lost its disk or its network. Other machines may see
# a file of NFS up to a minute late.
SILENT_SECONDS = 120.0
# The period over which speeds are measured.
WINDOW_SECONDS = 60


@dataclass(frozen=True)
class Snapshot:
    """The progress of a stage at one moment.

    Attributes:
        phase: its current activity, such as `training`; empty if unknown.
        done, total, unit: items of the phase; `unit` is empty if nothing is counted.
        per_second: items per second of the last minute.
        seconds_left: seconds to the end of the phase, at that speed.
        loss, dev, best: in training, the latest mean loss and dev score, and the best score.
        time: when, in UTC.
    """

    phase: str
    time: str
    done: int = 0
    total: int | None = None
    unit: str = ""
    per_second: float | None = None
    seconds_left: float | None = None
    loss: float | None = None
    dev: float | None = None
    best: float | None = None

    def __str__(self) -> str:
        parts = []
        if self.unit:
            share = f" of {self.total:,} {self.unit} ({self.done / self.total:.0%})" if self.total else f" {self.unit}"
            parts.append(f"{self.done:,}{share}")
        if self.per_second:
            parts.append(f"{rate(self.per_second)}/s")
        parts += [f"loss {self.loss:.4g}"] if self.loss is not None else []
        if self.dev is not None:
            parts.append(f"dev {self.dev:.2f}" + (f" (best {self.best:.2f})" if self.best is not None else ""))
        parts += [f"{told_time(self.seconds_left)} left"] if self.seconds_left is not None else []
        said = ", ".join(parts)
        return f"{self.phase}: {said}" if said else self.phase

    @property
    def age(self) -> float:
        """Seconds since then; 0 if the clock of the other machine is ahead."""
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(self.time)).total_seconds())

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Counter:
    """Items of one phase; `unit` is empty if they cannot be counted."""

    def __init__(self, phase: str, total: int | None, unit: str) -> None:
        self.phase, self.total, self.unit = phase, total, unit
        self.done = 0
        # Items and work up to the end of each stretch.
        self._work: list[tuple[int, float]] = []
        # Once a second: what an earlier run had done is counted before the first sample.
        self._samples: deque[tuple[float, int]] = deque(maxlen=WINDOW_SECONDS)

    def advance(self, amount: int = 1) -> None:
        self.done += amount

    def set_total(self, total: int | None) -> None:
        self.total = total

    def set_work(self, stretches: Sequence[tuple[int, float]]) -> None:
        items, work = (list(accumulate(column)) for column in zip(*stretches, strict=True)) if stretches else ([], [])
        self._work = list(zip(items, work, strict=True))

    def sample(self, now: float) -> None:
        """Note how far it is, for the speed."""
        self._samples.append((now, self.done))

    def per_second(self) -> float | None:
        """The speed of the last minute; None at the beginning."""
        if len(self._samples) < 2:
            return None
        (began, first), (ended, last) = self._samples[0], self._samples[-1]
        return (last - first) / (ended - began) if ended > began else None

    def seconds_left(self) -> float | None:
        """To the end of the phase, at the speed of the last minute, in work; None at the beginning."""
        if self.total is None or not self.per_second():
            return None
        (began, first), (ended, last) = self._samples[0], self._samples[-1]
        speed = (self._work_of(last) - self._work_of(first)) / (ended - began)
        return max(0.0, self._work_of(self.total) - self._work_of(self.done)) / speed if speed else None

    def _work_of(self, done: int) -> float:
        """The work of the first `done` items; that of a stretch is spread evenly over its items."""
        if not self._work:
            return done
        end = min(bisect_left(self._work, (done,)), len(self._work) - 1)
        (start, before), (stop, after) = self._work[end - 1] if end else (0, 0.0), self._work[end]
        return before + (after - before) * min(1.0, (done - start) / max(1, stop - start))


class Running:
    """The current activity of a stage, as reported, and the files that record it."""

    def __init__(self) -> None:
        self._counters: list[Counter] = []
        self._metrics: dict[str, float | int | str | None] = {}
        self._paths: list[Path] = []
        self._lock = threading.Lock()
        self._written = time.monotonic()

    @contextmanager
    def track(self, phase: str, total: int | None = None, unit: str = "") -> Iterator[Counter]:
        """Count the items of a phase within a `with` block."""
        counter = Counter(phase, total, unit)
        if not self._counters:
            self._metrics.clear()  # those of an earlier phase
        self._counters.append(counter)
        try:
            yield counter
        finally:
            self._counters.remove(counter)

    def metrics(self, values: Mapping[str, float | int | str | None]) -> None:
        """Note the latest figures of a training."""
        self._metrics.update({name: value for name, value in values.items() if value is not None})

    def sample(self) -> None:
        """Called once a second: note the speeds, and write the files if it is time."""
        now = time.monotonic()
        for counter in list(self._counters):
            counter.sample(now)
        with self._lock:
            if self._paths and now - self._written >= WRITE_EVERY:
                self._written = now
                snapshot = self.snapshot()
                for path in self._paths:
                    _write(path, snapshot)

    def snapshot(self) -> Snapshot:
        """What the stage is doing now; inside a phase that counts, also what it does there."""
        counters, metrics = list(self._counters), dict(self._metrics)
        time_now = datetime.now(UTC).isoformat(timespec="seconds")
        counted = [counter for counter in counters if counter.unit]
        # Several can be open at once, one after the other in turn.
        at_work = [counter for counter in counted if counter.total is None or counter.done < counter.total]
        main = next(reversed(at_work or counted), None)
        phases = [main.phase] if main else []
        phases += [counters[-1].phase] if counters and not counters[-1].unit else []
        if main is None:
            return Snapshot(phases[-1] if phases else "", time_now)
        speed, left = main.per_second(), main.seconds_left()
        given = metrics.get("seconds_left")
        return Snapshot(
            ", ".join(phases),
            time_now,
            main.done,
            main.total,
            main.unit,
            None if speed is None else round(speed, 1),
            float(given) if left is None and isinstance(given, int | float) else left,
            **{name: _number(metrics.get(name)) for name in ("loss", "dev", "best")},
        )

    @contextmanager
    def recorded(self, path: Path) -> Iterator[None]:
        """Keep the progress in the file `path` within the block; it is removed at the end."""
        with self._lock:
            self._paths.append(path)
        try:
            yield
        finally:
            with self._lock:
                self._paths.remove(path)
                path.unlink(missing_ok=True)
            with suppress(OSError):
                path.parent.rmdir()  # unless the build keeps something else there


class Heartbeat:
    """A `with` block in which `sample`, and `beat` after it, are called once a second by a thread."""

    def __init__(self, running: Running, beat: Callable[[], None]) -> None:
        self._running, self._beat = running, beat
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(1.0):
            self._running.sample()
            self._beat()


def read_snapshot(partial: Path) -> Snapshot | None:
    """The last recorded progress of an unfinished build; None if there is none."""
    try:
        said = read_json(partial / PROGRESS)
        known = {field.name for field in fields(Snapshot)}
        found = Snapshot(**{name: value for name, value in said.items() if name in known})
        # A file with odd values says nothing.
        return found if str(found) and found.age >= 0 else None
    except (InputError, OSError, TypeError, ValueError, AttributeError):
        return None


def _write(path: Path, snapshot: Snapshot) -> None:
    """Replace the file; a build does not fail because its progress cannot be told."""
    unfinished = path.with_name(f".{path.name}.tmp")
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        write_json(unfinished, snapshot.as_dict())
        os.replace(unfinished, path)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
