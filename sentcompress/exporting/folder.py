"""The sentence-transformers folder, a part of every export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sentcompress.exporting.formats import BATCH, Format
from sentcompress.exporting.verification import Vectors, folder_vectors
from sentcompress.models.layout import save_encoder

if TYPE_CHECKING:
    from sentcompress.models.encoder import Encoder


class Folder(Format):
    """A folder that `SentenceTransformer(folder)` loads."""

    title = "sentence-transformers folder"
    batches = (BATCH,)

    def write(self, encoder: Encoder, folder: Path) -> None:
        save_encoder(encoder, folder)

    def open(self, encoder: Encoder, folder: Path, *, trust_remote_code: bool) -> _FolderReader:
        return _FolderReader(folder, trust_remote_code)


@dataclass(frozen=True)
class _FolderReader:
    folder: Path
    trust_remote_code: bool

    def vectors(self, texts: Sequence[str], batch: int = BATCH) -> Vectors:
        return folder_vectors(self.folder, texts, trust_remote_code=self.trust_remote_code)
