"""The sentence-transformers folder, a part of every export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sentcompress.exporting.formats import BATCH, Format
from sentcompress.exporting.verification import EncodeReader, open_folder
from sentcompress.models.layout import save_encoder

if TYPE_CHECKING:
    from sentcompress.models.encoder import Encoder


class Folder(Format):
    """A folder that `SentenceTransformer(folder)` loads."""

    title = "sentence-transformers folder"
    batches = (BATCH,)

    def write(self, encoder: Encoder, folder: Path) -> None:
        save_encoder(encoder, folder)

    def open(self, encoder: Encoder, folder: Path, *, trust_remote_code: bool) -> EncodeReader:
        return EncodeReader(open_folder(folder, trust_remote_code=trust_remote_code).encode)
