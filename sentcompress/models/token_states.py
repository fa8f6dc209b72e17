"""What a teacher makes of each token on the way to a layer, measured on a sample of texts.

A student of a teacher's last layers has no layers before them. What comes nearest to what those made of a token,
without looking at its neighbours, is the mean of what they made of it in the sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sentcompress.models.encoder import Encoder
from sentcompress.models.token_batches import by_length, padded
from sentcompress.progress import Task

# Longer texts are cut; a batch is of so many tokens, padding included.
MAX_LENGTH = 256
BATCH_TOKENS = 8192
# A token counts as if it had been seen so often with the state that it has alone, and a position with none of its own.
PRIOR_OCCURRENCES = 3
PRIOR_PLACES = 20
# Of a token that is seen more often, further occurrences say no more about how states in context differ.
ENOUGH = 100
RIDGE = 0.01


@dataclass(frozen=True)
class TokenStates:
    """States on the way into a layer.

    Attributes:
        counts: [V] how often each token was in the sample.
        states: [V, H] the mean state of each token, float64.
        positions: [T, H] what each position, counted from the first token, adds to that on the mean, as far as the
            longest text of the sample reached.
    """

    counts: Tensor
    states: Tensor
    positions: Tensor


def hidden_states(
    encoder: Encoder, rows: Sequence[Sequence[int]], task: Task | None = None
) -> Iterator[tuple[Tensor, Tensor, tuple[Tensor, ...]]]:
    """Run an encoder's body over rows of token ids, shortest first.

    Yields:
        ids [B, T], mask [B, T] (bool), and the hidden states [B, T, H] of the embedding layer and of every layer.
    """
    for batch in by_length([len(row) for row in rows], BATCH_TOKENS):
        tensors = map(torch.from_numpy, padded([rows[row] for row in batch], encoder.padding))
        ids, mask = (tensor.to(encoder.device) for tensor in tensors)
        with torch.inference_mode():
            states = encoder.hidden_states(ids, mask, every_layer=True)
        yield ids, mask.bool(), states
        if task:
            task.advance(len(batch))


def measure_token_states(
    encoder: Encoder,
    layer: int,
    texts: Sequence[str],
    told_of_texts: Task | None = None,
    told_of_tokens: Task | None = None,
) -> TokenStates:
    """The mean state of each token on its way into a layer.

    A token that the sample lacks gets the state that it has as the only one of a text, mapped linearly to what the
    mean states of the others are; rare ones lie between.

    Args:
        encoder: the teacher, all of its layers.
        layer: how many layers come before.
        texts: the sample, with at least one text.
        told_of_texts: is told of every text.
        told_of_tokens: of every token of the vocabulary, each of which is a text of its own, too.
    """
    rows = [row[:MAX_LENGTH] for row in encoder.tokenize(texts)]
    size, width, longest = len(encoder.tokenizer), encoder.hidden_size, max(map(len, rows))
    sums, counts = torch.zeros(size, width, dtype=torch.float64), torch.zeros(size, dtype=torch.float64)
    by_place, places = torch.zeros(longest, width, dtype=torch.float64), torch.zeros(longest, dtype=torch.float64)
    for ids, mask, states in hidden_states(encoder, rows, told_of_texts):
        found = states[layer][mask].double().cpu()
        tokens, ones = ids[mask].cpu(), torch.ones(len(found), dtype=torch.float64)
        place = torch.arange(ids.shape[1]).expand(ids.shape)[mask.cpu()]
        sums.index_add_(0, tokens, found)
        counts.index_add_(0, tokens, ones)
        by_place.index_add_(0, place, found)
        places.index_add_(0, place, ones)
    means = sums / counts.clamp_min(1).unsqueeze(1)
    alone = _in_context(_alone(encoder, layer, size, told_of_tokens), means, counts)
    weight = counts.unsqueeze(1)
    means = (sums + PRIOR_OCCURRENCES * alone) / (weight + PRIOR_OCCURRENCES)
    for row in rows:
        by_place[: len(row)] -= means[torch.tensor(row)]
    return TokenStates(counts, means, by_place / (places + PRIOR_PLACES).unsqueeze(1))


def _alone(encoder: Encoder, layer: int, size: int, task: Task | None) -> Tensor:
    """[V, H] the state of each token that stands alone between the special tokens."""
    *before, after = encoder.tokenize([""])[0]
    rows = [[*before, token, after] for token in range(size)]
    # Rows of one length keep their order.
    parts = [states[layer][:, len(before)].cpu() for _, _, states in hidden_states(encoder, rows, task)]
    return torch.cat(parts).double()


def _in_context(alone: Tensor, means: Tensor, counts: Tensor) -> Tensor:
    """The ridge regression from states alone to mean states, weighted by how much is known of these: [V, H]."""
    weight = counts.clamp_max(ENOUGH).unsqueeze(1)
    total = weight.sum()
    first, second = (weight * alone).sum(0) / total, (weight * means).sum(0) / total
    centred = alone - first
    scatter = centred.T @ (weight * centred) / total
    scatter += RIDGE * scatter.diagonal().mean() * torch.eye(len(scatter), dtype=torch.float64)
    found: Tensor = torch.linalg.solve(scatter, centred.T @ (weight * (means - second)) / total)
    return second + centred @ found
