"""One step from several batches whose rows all see each other, in the memory of one batch.

Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup": the encoder runs over every
batch without keeping anything for the backward pass, the loss is taken over all vectors together, its gradient with
respect to each vector is kept, and the encoder runs again over one batch at a time to take those gradients further.
The result is the gradient of the large batch, for any loss that is a function of the views.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from sentcompress.training.batches import Batch
from sentcompress.training.views import concatenated

# A batch and its number within the step -> its views, float32; with the same random numbers every time it is called.
Compute = Callable[[Batch, int], dict[str, Tensor]]
Objective = Callable[[dict[str, Tensor]], dict[str, Tensor]]


def backward_together(
    batches: Sequence[Batch], compute: Compute, objective: Objective
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Gradients of the objective over all batches together, added to `.grad` of every parameter.

    Returns:
        the terms of the loss, and the views they were taken of.
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
