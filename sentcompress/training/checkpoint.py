"""What a killed run needs to go on: the last state and the best weights, in the artifact that is being built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from sentcompress.artifacts import Build

State = dict[str, Any]
Weights = dict[str, dict[str, Tensor]]
LAST = "{}/last.pt"


class Checkpoints:
    """`last.pt` and `best-<step>.pt` in a folder of the build.

    `last.pt` names the best weights that belong to it, and is written after them; so the two agree whenever the
    process is killed.
    """

    def __init__(self, build: Build, folder: str) -> None:
        self._build = build
        self._folder = folder

    def save(self, state: Mapping[str, Any], best: Weights | None, best_step: int | None) -> None:
        """Write the state, with the best weights so far where these are newer than what is on the disk."""
        if best is not None and not self._build.has(self._best(best_step)):
            self._write(self._best(best_step), best)
        self._write(LAST.format(self._folder), {**state, "best_step": best_step})
        for old in (self._build.path / self._folder).glob("best-*.pt"):
            if old.name != self._best(best_step).rsplit("/", 1)[-1]:
                old.unlink()

    def exist(self) -> bool:
        """Whether there is a state to go on from."""
        return self._build.has(LAST.format(self._folder))

    def load(self) -> tuple[State, Weights | None] | None:
        """The last state and the best weights so far; None when training has to start from nothing."""
        if not self.exist():
            return None
        state = self._read(LAST.format(self._folder))
        best = self._read(self._best(state["best_step"])) if state["best_step"] is not None else None
        return state, best

    def _best(self, step: int | None) -> str:
        return f"{self._folder}/best-{step}.pt"

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        # Through a stream: given the path, torch loses the system's reason why it could not write.
        with self._build.write(name) as path, path.open("wb") as stream:
            torch.save(content, stream)

    def _read(self, name: str) -> Any:
        return torch.load(self._build.path / name, map_location="cpu", weights_only=True)


def copy_weights(encoder: nn.Module, method: nn.Module) -> Weights:
    """What a student is made of, on the CPU: the encoder's tensors and the method's parameters, not its queue."""
    return {
        "encoder": {name: tensor.detach().cpu().clone() for name, tensor in encoder.state_dict().items()},
        "method": {name: tensor.detach().cpu().clone() for name, tensor in method.named_parameters()},
    }
