"""A sentence table as a model encodes it: each sentence with the prompt of its role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from sentcompress.corpora.sentence_table import SentenceTable


class PromptedTable(SentenceTable):
    """The sentences of a table with prompts before them.

    Args:
        folder: the folder of the table.
        prompts: the prompt of each role, and of sentences without a role under the empty string.
    """

    def __init__(self, folder: Path, prompts: Mapping[str, str]) -> None:
        super().__init__(folder)
        self._prompts = prompts

    def texts(self, file: int) -> list[str]:
        return [self._prompts[role] + text for role, text in zip(self.roles(file), super().texts(file), strict=True)]

    def stream(self, start: int = 0, rows: int | None = None) -> Iterator[list[str]]:
        first, stop = 0, len(self) if rows is None else start + rows
        for file, count in enumerate(self.file_rows):
            if start < first + count and first < stop:
                yield self.texts(file)[max(0, start - first) : stop - first]
            first += count
