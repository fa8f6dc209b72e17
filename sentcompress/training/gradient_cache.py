"""Gradient caching: a contrastive step over several batches in the memory of one.

Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup": the encoder runs over every
batch without storing activations, the loss is computed over all vectors together and its gradient with respect to each
vector is kept. Then the encoder runs again, one batch at a time, to backpropagate these gradients. The result is the
gradient of the large batch, for any loss that is a function of the views.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from sentcompress.training.batches import Batch
from sentcompress.training.views import concatenated

# From a batch and its number within the step to its views, float32; uses the same random numbers in every call.
Compute = Callable[[Batch, int], dict[str, Tensor]]
Objective = Callable[[dict[str, Tensor]], dict[str, Tensor]]


def backward_together(
    batches: Sequence[Batch], compute: Compute, objective: Objective
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Add the gradients of the objective over all batches together to `.grad` of every parameter.

    Returns:
        The terms of the loss, and the views of all batches.
    """
    with torch.no_grad():
        parts = [compute(batch, number) for number, batch in enumerate(batches)]
    views = concatenated(parts)
    for view in views.values():
        view.requires_grad_(view.is_floating_point())
    terms = objective(views)
    torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
    sizes = [{name: len(part[name]) for name in part} for part in parts]
    del parts
    gradients = {
        name: torch.split(view.grad, [size[name] for size in sizes])
        for name, view in views.items()
        if view.grad is not None
    }
    for number, batch in enumerate(batches):
        again = compute(batch, number)
        carried = [name for name in gradients if again[name].requires_grad]
        # d loss / d weights = sum over views of (d loss / d view) (d view / d weights)
        torch.autograd.backward([again[name] for name in carried], [gradients[name][number] for name in carried])
    return terms, {name: view.detach() for name, view in views.items()}
