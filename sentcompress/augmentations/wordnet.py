"""WordNet substitution: the recipe. What it does is in `synonyms.py`, which is loaded only where it runs."""

from __future__ import annotations

import importlib.metadata
import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from sentcompress.augmentations.base import Augmenter
from sentcompress.augmentations.wordnet_data import (
    INSTALL_WORDNET,
    DataFolder,
    find_tagger,
    find_wordnet,
    tagger_digest,
    wordnet_digest,
)
from sentcompress.errors import InputError


@dataclass(frozen=True)
class WordNetSpec:
    """Replace some words by synonyms, as nlpaug's SynonymAug does.

    Attributes:
        wordnet: where the database is.
        tagger: where nltk's tagger is; None leaves the part of speech to WordNet's own counts.
        share: the share of a sentence's tokens to replace (nlpaug's aug_p), at least one and at most ten.
        seed: of the choice of words and of their synonyms.
    """

    wordnet: Path
    tagger: Path | None
    share: float = 0.3
    seed: int = 0

    source = "wordnet"
    in_workers = True

    @property
    def summary(self) -> str:
        return f"WordNet in {self.wordnet}, parts of speech by {'nltk' if self.tagger else 'WordNet itself'}"

    def describe(self) -> dict[str, Any]:
        tagger = f"nltk {tagger_digest(DataFolder(self.tagger))[:16]}" if self.tagger else "WordNet's counts"
        return {
            "aug_p": self.share,
            "seed": self.seed,
            "wordnet": wordnet_digest(DataFolder(self.wordnet))[:16],
            "tagger": tagger,
            "nlpaug": importlib.metadata.version("nlpaug"),
        }

    def load(self) -> Augmenter:
        with _without_heavy_libraries():
            from sentcompress.augmentations.synonyms import SynonymAugmenter
        return SynonymAugmenter(self)


def wordnet_spec(share: float, seed: int) -> WordNetSpec:
    """The recipe with what this machine has.

    Raises:
        InputError: if WordNet is not installed.
    """
    wordnet, tagger = find_wordnet(), find_tagger()
    if wordnet is None:
        raise InputError("WordNet is not installed", INSTALL_WORDNET)
    return WordNetSpec(wordnet.path, tagger.path if tagger else None, share, seed)


_UNWANTED = ("torch", "transformers", "scipy", "sklearn")


class _Absent:
    """Tells the import system that some libraries are not there."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in _UNWANTED:
            raise ModuleNotFoundError(f"{name} is not wanted here", name=name)
        return None


@contextmanager
def _without_heavy_libraries() -> Iterator[None]:
    """nlpaug and nltk import these for things that are not used here: 8 seconds and 400 MB a worker.

    They can do without. Only in worker processes, which do nothing else: elsewhere it may need them later.
    """
    if multiprocessing.parent_process() is None:
        yield
        return
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        yield
    finally:
        sys.meta_path.remove(absent)
