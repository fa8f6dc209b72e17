"""AdamW for all methods, and an exponential moving average (EMA) of the weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from sentcompress.training.settings import Settings


def make_optimizer(model: nn.Module, settings: Settings) -> torch.optim.AdamW:
    """AdamW with weight decay on matrices and tables only, not on biases, LayerNorms and scalars."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    # Fused: one pass over weights and moments instead of a dozen.
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, fused=True)


def set_dropout(model: nn.Module, rate: float | None) -> None:
    """Set the rate of all dropout, in layers and in attention; None keeps the rates of the checkpoint."""
    if rate is None:
        return
    for module in list(model.modules()):
        for name, inner in list(module.named_children()):
            # ModernBERT's attention has no dropout module after its output if the checkpoint's rate is 0.
            if name == "out_drop" and isinstance(inner, nn.Identity):
                setattr(module, name, nn.Dropout(rate))
        if isinstance(module, nn.Dropout):
            module.p = rate
        # The attention of some architectures, such as T5 and ModernBERT, has its rate as a number.
        for name, value in list(vars(module).items()):
            if "dropout" in name and type(value) in (int, float):
                setattr(module, name, rate)


class RunningMean:
    """The exponential moving average of parameters (Polyak and Juditsky 1992, with exponential weights).

    After step t, mean <- d mean + (1 - d) weights with d = min(decay, t / (t + 9)). Early on, when a mean over
    1 / (1 - decay) steps would mostly consist of the start, it covers about a tenth of the steps so far.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], decay: float) -> None:
        self._parameters: list[Tensor] = [parameter for parameter in parameters if parameter.requires_grad]
        self._decay = decay
        self._means = [parameter.detach().clone() for parameter in self._parameters]
        self._steps = 0

    @torch.no_grad()
    def update(self) -> None:
        """Add the weights after another step."""
        self._steps += 1
        share = 1.0 - min(self._decay, self._steps / (self._steps + 9))
        # All tensors in one call: on a GPU, a call for each takes longer than the arithmetic.
        torch._foreach_lerp_(self._means, self._parameters, share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Use the mean as the model's weights inside the block; restore the trained weights afterwards."""
        trained = [parameter.detach().clone() for parameter in self._parameters]
        self._set(self._means)
        try:
            yield
        finally:
            self._set(trained)

    def state(self) -> dict[str, int | list[Tensor]]:
        """The state for a checkpoint."""
        return {"steps": self._steps, "means": self._means}

    def restore(self, state: dict[str, int | list[Tensor]]) -> None:
        """Restore what `state` returned."""
        steps, means = state["steps"], state["means"]
        assert isinstance(steps, int)
        assert isinstance(means, list)
        self._steps = steps
        for mean, saved in zip(self._means, means, strict=True):
            mean.copy_(saved)

    @torch.no_grad()
    def _set(self, values: Sequence[Tensor]) -> None:
        for parameter, value in zip(self._parameters, values, strict=True):
            parameter.copy_(value)
