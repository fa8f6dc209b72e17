"""What an augmentation is: a recipe that can be sent to another process, and the thing that it loads there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Augmenter(Protocol):
    """Makes new sentences out of old ones."""

    def augment(self, texts: Sequence[str], first_row: int, copy: int) -> list[str]:
        """One new sentence for each of `texts`, which are consecutive rows of the sentence table.

        What comes out depends on the text, its row and the number of the copy alone, never on the neighbours
        or on what was augmented before. A sentence that cannot be augmented comes back as it was.
        """


class AugmenterSpec(Protocol):
    """How to make an `Augmenter`; small, immutable, picklable."""

    @property
    def source(self) -> str:
        """What the column `source` of the sentence table says."""

    @property
    def summary(self) -> str:
        """What will be used, in a few words for the user."""

    @property
    def in_workers(self) -> bool:
        """Whether several processes can each run one; a neural translator uses all cores by itself."""

    def describe(self) -> Mapping[str, Any]:
        """Everything that changes the result: parameters, versions, digests of data. Part of the fingerprint."""

    def load(self) -> Augmenter:
        """Make it, in the process that will use it.

        Raises:
            InputError: if its data or programs cannot be used.
        """
