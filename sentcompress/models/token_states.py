"""Mean hidden states of each token at the input of a teacher's layer, measured on a sample of texts.

A student with a teacher's last layers lacks the layers before them. The best context-free replacement for their output
is each token's mean state in the sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sentcompress.models.encoder import Encoder
from sentcompress.models.token_batches import TokenRows, by_length
from sentcompress.progress import SILENT, Reporter, Task

# Tokens per text, and per batch with padding.
MAX_LENGTH = 256
BATCH_TOKENS = 8192
# Pseudo-counts: of a token with its predicted state, and of a position with offset zero.
PRIOR_OCCURRENCES = 3
PRIOR_PLACES = 20
# Largest weight of a token in the regression of mean states: more occurrences add no information.
ENOUGH = 100
RIDGE = 0.01


@dataclass(frozen=True)
class TokenStates:
    """States at the input of a layer.

    Attributes:
        counts: [V] occurrences of each token in the sample.
        states: [V, H] the mean state of each token, float64.
        positions: [T, H] the mean offset at each position, from the first token to the end of the longest text.
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
    tokens = TokenRows.of(rows)
    for batch in by_length(tokens.lengths, BATCH_TOKENS):
        tensors = map(torch.from_numpy, tokens.padded(batch, encoder.padding))
        ids, mask = (tensor.to(encoder.device) for tensor in tensors)
        with torch.inference_mode():
            states = encoder.hidden_states(ids, mask, every_layer=True)
        yield ids, mask.bool(), states
        if task:
            task.advance(len(batch))


def measure_token_states(
    encoder: Encoder, layer: int, texts: Sequence[str], reporter: Reporter = SILENT
) -> TokenStates:
    """Measure the mean state of each token at the input of a layer.

    For a token that is not in the sample, the state is predicted: a linear regression from a token's state as the only
    word of a text to the mean states. The states of rare tokens are mixed with the prediction.

    Args:
        encoder: the teacher with all of its layers.
        layer: the number of layers before that input.
        texts: the sample, at least one text.
        reporter: shows progress in texts, then in tokens of the vocabulary, each of which is encoded as a text.
    """
    with (
        reporter.track("measuring token states in sentences", total=len(texts)) as sentences,
        reporter.track("measuring states of single tokens", total=len(encoder.tokenizer), unit="tokens") as tokens,
    ):
        return _measured(encoder, layer, texts, sentences, tokens)


def _measured(
    encoder: Encoder, layer: int, texts: Sequence[str], told_of_texts: Task, told_of_tokens: Task
) -> TokenStates:
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


def _alone(encoder: Encoder, layer: int, size: int, task: Task) -> Tensor:
    """The state of each token as the only word of a text: [V, H]."""
    *before, after = encoder.tokenize([""])[0]
    rows = [[*before, token, after] for token in range(size)]
    # Rows of equal length keep their order.
    parts = [states[layer][:, len(before)].cpu() for _, _, states in hidden_states(encoder, rows, task)]
    return torch.cat(parts).double()


def _in_context(alone: Tensor, means: Tensor, counts: Tensor) -> Tensor:
    """Ridge regression from the states of single tokens to the mean states, weighted by occurrences: [V, H]."""
    weight = counts.clamp_max(ENOUGH).unsqueeze(1)
    total = weight.sum()
    first, second = (weight * alone).sum(0) / total, (weight * means).sum(0) / total
    centred = alone - first
    scatter = centred.T @ (weight * centred) / total
    scatter += RIDGE * scatter.diagonal().mean() * torch.eye(len(scatter), dtype=torch.float64)
    found: Tensor = torch.linalg.solve(scatter, centred.T @ (weight * (means - second)) / total)
    return second + centred @ found
