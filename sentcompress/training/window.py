"""The newest steps in numbers: mean loss terms, speed, and whether all is still a number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


class Window:
    """What happened since the last look, `steps` steps ago; loss terms stay on the device until then."""

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
        """Whether all losses and gradients since the last look were finite numbers."""
        return self._health is None or math.isfinite(float(self._health))

    def still(self) -> bool:
        """Whether no step since the last look had any gradient at all."""
        return self._norms is not None and float(self._norms) == 0.0

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint, so that the next report covers the same steps after a resume."""
        return dict(vars(self))

    def restore(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Restore what `state` returned."""
        tensors = {name: total.to(device) for name, total in state["_terms"].items()}
        sums = {name: total.to(device) for name, total in state.items() if isinstance(total, Tensor)}
        vars(self).update({**state, **sums, "_terms": tensors})

    def take(self) -> dict[str, float]:
        """Mean loss terms and sentences a second since the last call."""
        if not self.steps:
            return {}
        means = {name: float(total) / self.steps for name, total in self._terms.items()}
        means["sentences_per_second"] = round(self._sentences / max(self._seconds, 1e-9), 1)
        self._clear()
        return means
