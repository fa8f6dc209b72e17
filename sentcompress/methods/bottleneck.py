"""IBKD's bottleneck term: penalises the dependence between the student's vector and its input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from sentcompress.methods.base import unit
from sentcompress.methods.hsic import KERNELS, hsic, kernel, mean_off_diagonal
from sentcompress.methods.hyperparameters import CODE, OURS, PAPER, Option

HSIC = f"{PAPER}, section 3.2"
MODELS = f"{CODE}, simcse/models_unsup.py and simcse/models_sup.py"


def bottleneck_options(beta: float, beta_source: str, gamma_source: str, layer_source: str) -> dict[str, Option]:
    """Options of the bottleneck term. Stage 1 and stage 2 differ in the defaults and their sources."""
    return {
        "beta": Option(beta, "weight of the HSIC term", beta_source, minimum=0),
        "kernel": Option(
            "rbf",
            "kernel for both sides of HSIC",
            f"{HSIC}, and {MODELS}: rbf; {PAPER}, table 4: all three",
            choices=KERNELS,
        ),
        "gamma": Option(0.5, "gamma of the rbf kernel, or offset of imq", gamma_source, minimum=1e-6),
        "layer": Option(
            0,
            "the student's hidden states whose mean is X; 0: the embedding layer, -2: last but one",
            layer_source,
        ),
        "detach": Option(False, "no gradient through X", f"{MODELS}: false"),
        "normalise": Option(
            False,
            "scale X and S to length one inside HSIC, so that rbf does not vanish on long vectors",
            f"{HSIC}, and {MODELS}: false (true in the linear kernel of the former); elsewhere true is {OURS}",
        ),
        "divisor": Option(
            "n-1", "HSIC is divided by the square of this", f"{MODELS}: n-1; {HSIC}: n", choices=("n-1", "n")
        ),
    }


class Bottleneck(nn.Module):
    """beta HSIC(X, S), and the mean kernel values for the log."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.settings = settings
        self._means: dict[str, Tensor] = {}

    def forward(self, inputs: Tensor, states: Tensor) -> Tensor:
        """[n, H], [n, D] -> scalar."""
        inputs = inputs.detach() if self.settings["detach"] else inputs
        beta = float(self.settings["beta"])
        return beta * hsic(self._kernel(inputs), self._kernel(states), self.settings["divisor"])

    @torch.no_grad()
    def look(self, inputs: Tensor, states: Tensor) -> None:
        """Record the mean kernel values of this batch, [n, H] and [n, D]; not if the term is off."""
        if not self.settings["beta"]:
            return
        # A separate name for the linear kernel: its means have another scale, and 0 or 80 is no cause for concern.
        name = "linear" if self.settings["kernel"] == "linear" else "kernel"
        for side, vectors in (("x", inputs), ("s", states)):
            mean = mean_off_diagonal(self._kernel(vectors))
            if mean is not None:
                self._means[f"{name}_{side}"] = mean

    def watched(self) -> dict[str, float]:
        """The last recorded means: `kernel_x` and `kernel_s`, or `linear_x` and `linear_s` with kernel=linear."""
        return {name: float(mean) for name, mean in self._means.items()}

    def _kernel(self, vectors: Tensor) -> Tensor:
        vectors = unit(vectors) if self.settings["normalise"] else vectors
        return kernel(vectors, self.settings["kernel"], self.settings["gamma"])
