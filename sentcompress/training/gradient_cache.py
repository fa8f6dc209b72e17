"""Gradient caching: a contrastive step over several batches in the memory of one.

Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup": the encoder runs over every
batch without storing activations, the loss is computed over all vectors together and its gradient with respect to each
vector is kept. Then the encoder runs again, one batch at a time, to backpropagate these gradients. The result is the
gradient of the large batch, for any loss that is a function of the views.

Ranks do the same with their shares of each batch: every rank gathers the views of all and computes the whole loss of
them, so that a method has the negatives, and the queue, that a single process has. Then it backpropagates the gradient
of its own views (docs/decisions/0016-ranks.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from sentcompress.ranks.alone import ALONE, Ranks
from sentcompress.training.batches import Batch
from sentcompress.training.views import concatenated, lengths_by_rank

# From a batch and its number within the step to its views, float32; uses the same random numbers in every call.
Compute = Callable[[Batch, int], dict[str, Tensor]]
Objective = Callable[[dict[str, Tensor]], dict[str, Tensor]]


def backward_together(
    batches: Sequence[Batch], compute: Compute, objective: Objective, ranks: Ranks = ALONE
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Add the gradients of the objective over all batches together to `.grad` of every parameter.

    Args:
        batches: this rank's share of each batch.

    Returns:
        The terms of the loss, and the views of all batches, of all ranks.
    """
    # Activations of a single batch can stay; of several, each is computed again.
    kept = len(batches) == 1
    with torch.set_grad_enabled(kept):
        parts = [compute(batch, number) for number, batch in enumerate(batches)]
    # Batch by batch, so that rows are in the order in which a single process has them.
    gathered = [
        ranks.gather({name: view.detach() for name, view in part.items()}, lengths_by_rank(batch, part))
        for batch, part in zip(batches, parts, strict=True)
    ]
    views = concatenated([part.views for part in gathered])
    for view in views.values():
        view.requires_grad_(view.is_floating_point())
    terms = objective(views)
    torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
    gradients = {
        name: torch.split(view.grad, [len(part.views[name]) for part in gathered])
        for name, view in views.items()
        if view.grad is not None
    }
    own, parts = [part.own for part in gathered], parts if kept else []
    del gathered
    for number, batch in enumerate(batches):
        again = parts[number] if kept else compute(batch, number)
        carried = [name for name in gradients if again[name].requires_grad]
        # d loss / d weights = sum over views of (d loss / d view) (d view / d weights)
        torch.autograd.backward(
            [again[name] for name in carried], [gradients[name][number][own[number][name]] for name in carried]
        )
    return terms, {name: view.detach() for name, view in views.items()}


def sum_gradients(encoder: nn.Module, method: nn.Module, ranks: Ranks) -> None:
    """Make `.grad` of every parameter that of the whole step, with the same bits on all ranks.

    Each rank has the encoder's gradient of its own views, but the whole gradient of the method, which counts once.
    """
    own = [parameter.grad for parameter in encoder.parameters() if parameter.grad is not None]
    whole = [parameter.grad for parameter in method.parameters() if parameter.grad is not None]
    for gradient in whole:
        gradient.div_(ranks.count)
    ranks.add([*own, *whole])
