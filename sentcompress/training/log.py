"""The training log, and the averages over the steps since the last entry."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sentcompress.json_documents import finite
from sentcompress.store.atomic import fsync


class TrainingLog:
    """A JSON Lines file, which a resumed run continues as if it had never stopped."""

    def __init__(self, path: Path, size: int) -> None:
        """Open a log and truncate it to `size` bytes, because the later steps will be repeated."""
        new = not path.exists()
        # Refuse to write through a symbolic link.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        self._stream = os.fdopen(descriptor, "ab")
        self._stream.truncate(size)
        if new:
            fsync(path.parent)

    def write(self, values: Mapping[str, float | int | str | None]) -> None:
        shown = {key: round(value, 8) if isinstance(value, float) else value for key, value in values.items()}
        # Keys are not sorted: readers find the loss terms by their position between two other keys.
        self._stream.write(json.dumps(finite(shown), allow_nan=False).encode() + b"\n")

    def size(self) -> int:
        """Sync the log to disk and return its size in bytes, for the next checkpoint."""
        self._stream.flush()
        os.fsync(self._stream.fileno())
        return self._stream.tell()

    def close(self) -> None:
        self._stream.close()


class NoLog:
    """The log of a rank that keeps none."""

    def write(self, values: Mapping[str, float | int | str | None]) -> None:
        pass

    def size(self) -> int:
        return 0

    def close(self) -> None:
        pass


class StepMeter:
    """Mean loss terms and speed of the last `steps` steps; loss terms stay on the device until they are read."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._terms: dict[str, Tensor] = {}
        self._health: Tensor | None = None
        self._norms: Tensor | None = None
        self.steps = self._sentences = 0
        self._seconds = 0.0

    def add(self, terms: Mapping[str, Tensor], gradient_norm: Tensor, sentences: int, seconds: float) -> None:
        """Count one step."""
        # The sum of losses and gradient norms is finite if all of them are.
        health = norm = gradient_norm.detach()
        self._norms = norm if self._norms is None else self._norms + norm
        for name, term in terms.items():
            value = term.detach()
            self._terms[name] = self._terms[name] + value if name in self._terms else value
            health = health + value
        self._health = health if self._health is None else self._health + health
        self.steps += 1
        self._sentences += sentences
        self._seconds += seconds

    def finite(self) -> bool:
        """Whether all losses and gradients since the last `take` were finite."""
        return self._health is None or math.isfinite(float(self._health))

    def still(self) -> bool:
        """Whether all gradients since the last `take` were zero."""
        return self._norms is not None and float(self._norms) == 0.0

    def loss(self) -> float | None:
        """The mean loss since the last `take`, the sum of its terms; None before the first step."""
        return sum(float(total) for total in self._terms.values()) / self.steps if self.steps else None

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint, so that a resumed run averages over the same steps."""
        return dict(vars(self))

    def restore(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Restore what `state` returned."""
        tensors = {name: total.to(device) for name, total in state["_terms"].items()}
        sums = {name: total.to(device) for name, total in state.items() if isinstance(total, Tensor)}
        vars(self).update({**state, **sums, "_terms": tensors})

    def take(self) -> dict[str, float]:
        """Mean loss terms and sentences per second since the last call."""
        if not self.steps:
            return {}
        means = {name: float(total) / self.steps for name, total in self._terms.items()}
        means["sentences_per_second"] = round(self._sentences / max(self._seconds, 1e-9), 1)
        self._clear()
        return means
