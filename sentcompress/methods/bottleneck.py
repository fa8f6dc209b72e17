"""IBKD's second term: what the student's vector shares with its input is to be small."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from sentcompress.methods.base import unit
from sentcompress.methods.hsic import KERNELS, hsic, kernel, mean_off_diagonal
from sentcompress.methods.hyperparameters import CODE, OURS, PAPER, Option

HSIC = f"{PAPER}, definition of HSIC"
MODELS = f"{CODE}, simcse/models_unsup.py and simcse/models_sup.py"


def bottleneck_options(beta: float, beta_source: str, gamma_source: str, layer_source: str) -> dict[str, Option]:
    """The switches of the term; stage 1 and stage 2 differ in the numbers."""
    return {
        "beta": Option(beta, "weight of the HSIC term", beta_source, minimum=0),
        "kernel": Option(
            "rbf", "the kernel of both sides of HSIC", f"{HSIC}: all three; {MODELS}: rbf", choices=KERNELS
        ),
        "gamma": Option(0.5, "width of the rbf kernel, or offset of imq; above 0", gamma_source),
        "layer": Option(
            0,
            "which of the student's hidden states X is the mean of; 0: the embedding layer, -2: last but one",
            layer_source,
        ),
        "detach": Option(False, "take X as given: no gradient through it", f"{MODELS}: false"),
        "normalise": Option(
            False,
            "scale X and S to length one inside HSIC, which keeps rbf from vanishing on long vectors",
            f"{HSIC}, and {MODELS}: false (in the linear kernel of the first: true); elsewhere true is {OURS}",
        ),
        "divisor": Option(
            "n-1", "HSIC is divided by the square of it", f"{MODELS}: n-1; {HSIC}: n", choices=("n-1", "n")
        ),
    }


class Bottleneck(nn.Module):
    """beta HSIC(X, S), and the kernels' means for the log."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.settings = settings
        if not settings["gamma"] > 0:
            raise ValueError(f"gamma must be above 0, not {settings['gamma']:g}")
        self._means: dict[str, Tensor] = {}

    def forward(self, inputs: Tensor, states: Tensor) -> Tensor:
        """[n, H], [n, D] -> a number."""
        inputs = inputs.detach() if self.settings["detach"] else inputs
        beta = float(self.settings["beta"])
        return beta * hsic(self._kernel(inputs), self._kernel(states), self.settings["divisor"])

    @torch.no_grad()
    def look(self, inputs: Tensor, states: Tensor) -> None:
        """Note the kernels' mean values on this batch."""
        # A linear kernel's means are of another kind: no gamma moves them, and 0 or 80 is nothing to worry about.
        name = "linear" if self.settings["kernel"] == "linear" else "kernel"
        for side, vectors in (("x", inputs), ("s", states)):
            mean = mean_off_diagonal(self._kernel(vectors))
            if mean is not None:
                self._means[f"{name}_{side}"] = mean

    def watched(self) -> dict[str, float]:
        """The last noted means: `kernel_x` and `kernel_s`, or `linear_x` and `linear_s` with kernel=linear."""
        return {name: float(mean) for name, mean in self._means.items()}

    def _kernel(self, vectors: Tensor) -> Tensor:
        vectors = unit(vectors) if self.settings["normalise"] else vectors
        return kernel(vectors, self.settings["kernel"], self.settings["gamma"])
