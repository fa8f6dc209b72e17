"""Samples records from each input in proportion to its weight, counted in words, so that no large input dominates."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from sentcompress.corpora.inputs import Input
from sentcompress.corpora.records import Record
from sentcompress.corpora.text_files import BadRecords
from sentcompress.errors import did_you_mean
from sentcompress.progress import Reporter

WEIGHT = 1.0


@dataclass(frozen=True)
class Sample:
    """A random part of the records of an input.

    Attributes:
        words: number of words in the whole input.
        share: share of its words that is taken, 0 to 1.
    """

    given: Input
    words: int
    share: float
    seed: int

    @property
    def origin(self) -> str:
        return self.given.origin

    def records(self, bad: BadRecords) -> Iterator[Record]:
        """The records taken, in order. Whether one is depends on its texts, the share and the seed only."""
        if self.share <= 0:
            return iter(())
        found = self.given.records(bad)
        return found if self.share >= 1 else (record for record in found if _draw(record, self.seed) < self.share)


def weights_of(shares: Sequence[str], inputs: Sequence[str]) -> list[float]:
    """The weight of each input: that of `INPUT=WEIGHT` in `shares`, where INPUT is its name or file name, else 1.

    Raises:
        ValueError: for another form, an input that is not there, or weights that are all 0.
    """
    weights = dict.fromkeys(inputs, WEIGHT)
    for share in shares:
        name, _, text = share.rpartition("=")
        try:
            weight = float(text)
        except ValueError:
            weight = -1.0
        if not name or not 0 <= weight < float("inf"):
            raise ValueError(f"`share` {share}: write INPUT=WEIGHT, such as news.txt=0.5")
        named = [given for given in inputs if name in (given, PurePath(given).name)]
        if not named:
            hint = did_you_mean(name, [PurePath(given).name for given in inputs])
            raise ValueError(f"`share` {share}: no input is called {name} (a folder is one input); {hint}")
        weights.update(dict.fromkeys(named, weight))
    if inputs and not any(weights.values()):
        raise ValueError("`share`: the weights of all inputs are 0")
    return [weights[given] for given in inputs]


def mixed(inputs: Sequence[Input], words: int, weights: Sequence[float], seed: int, reporter: Reporter) -> list[Sample]:
    """A sample of each input, about `words` words in all, in proportion to the weights.

    An input with fewer words than its part is taken whole, and the others share the rest.

    Raises:
        InputError: if an input cannot be read. Faults of single lines are left to the reading itself.
    """
    counts = []
    with reporter.track("counting words") as task:
        for given in inputs:
            counts.append(0)
            for record in given.records(BadRecords(skip=True)):
                counts[-1] += sum(len(text.split()) for text in record.texts)
                task.advance()
    taken = parts(counts, weights, words)
    return [
        Sample(given, count, part / count if count else 0.0, seed)
        for given, count, part in zip(inputs, counts, taken, strict=True)
    ]


def parts(available: Sequence[int], weights: Sequence[float], wanted: int) -> list[float]:
    """How much to take of each: `wanted` in total, in proportion to the weights, but no more than is available.

    >>> parts([100, 1000, 1000], [1, 1, 2], 900)
    [100, 266.6666666666667, 533.3333333333334]
    """
    taken = [0.0] * len(available)
    rest, open_ = float(wanted), {place for place, weight in enumerate(weights) if weight > 0}
    while open_:
        total = sum(weights[place] for place in open_)
        whole = {place for place in open_ if available[place] <= rest * weights[place] / total}
        if not whole:
            for place in open_:
                taken[place] = rest * weights[place] / total
            break
        for place in whole:
            taken[place] = available[place]
        rest -= sum(available[place] for place in whole)
        open_ -= whole
    return taken


def as_facts(samples: Sequence[Sample]) -> Mapping[str, Mapping[str, float]]:
    """Origin -> its words and the share taken, for the manifest."""
    return {one.origin: {"words": one.words, "share": round(min(1.0, one.share), 6)} for one in samples}


def _draw(record: Record, seed: int) -> float:
    """A number in [0, 1) that depends on the texts and the seed."""
    digest = hashlib.blake2b(
        "\n".join(record.texts).encode(errors="replace"), digest_size=8, key=seed.to_bytes(8, "little")
    )
    return int.from_bytes(digest.digest(), "little") / 2**64
