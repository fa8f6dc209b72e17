"""The protocols of an augmentation: a specification that can be sent to a worker, and the augmenter that it loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Augmenter(Protocol):
    """Makes new sentences from existing ones.

    Attributes:
        note: how it computes, if that was decided when it was made; otherwise empty.
    """

    note: str

    def augment(self, texts: Sequence[str], first_row: int, copy: int) -> list[str]:
        """One new sentence for each of `texts`, which are consecutive rows of the sentence table.

        The result depends only on the text, its row and the number of the copy, never on neighbouring texts or on
        earlier calls. A sentence that cannot be augmented is returned unchanged. An empty text means that there is no
        new sentence.
        """


class AugmenterSpec(Protocol):
    """How to make an `Augmenter`; small, immutable, picklable."""

    @property
    def source(self) -> str:
        """The value of the column `source` in the sentence table."""

    @property
    def summary(self) -> str:
        """What is used, as a short note for the user."""

    @property
    def in_workers(self) -> bool:
        """Whether it runs in several workers, without `workers.HIDDEN_LIBRARIES`; else in the main process."""

    def describe(self) -> Mapping[str, Any]:
        """Everything that changes the result: parameters, versions, digests of data. Part of the request."""

    def load(self) -> Augmenter:
        """Make the augmenter, in the process that uses it.

        Raises:
            InputError: if its data or programs cannot be used.
        """
