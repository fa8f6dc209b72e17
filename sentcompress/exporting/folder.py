"""The sentence-transformers folder, a part of every export, with float32 or float16 weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from sentcompress.errors import InputError
from sentcompress.exporting.formats import BATCH, Format
from sentcompress.exporting.verification import (
    EncodeReader,
    Vectors,
    encoder_vectors,
    open_folder,
    require_agreement,
    unit,
)
from sentcompress.models.layout import read_back, save_encoder
from sentcompress.models.static_folder import TABLE, WEIGHTS

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


def halve_weights(folder: Path) -> None:
    """Convert the float32 tensors of all safetensors files of a model folder to float16, which takes half the space.

    `config.json` keeps naming float32, so that loaders convert them back and compute in float32.

    Raises:
        InputError: if a weight exceeds the range of float16.
    """
    for path in sorted(folder.rglob("*.safetensors")):
        with safe_open(path, framework="pt") as stored:
            metadata, tensors = stored.metadata(), {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        halved = {name: tensor.half() if tensor.dtype == torch.float32 else tensor for name, tensor in tensors.items()}
        for name, tensor in halved.items():
            if tensor.is_floating_point() and not torch.isfinite(tensor).all():
                raise InputError(f"{name} has values beyond the range of float16 (65,504)", "export without `float16`")
        if TABLE in halved:
            # With weights, here ones, sentence-transformers and model2vec compute a static model in float32.
            halved.setdefault(WEIGHTS, torch.ones(len(halved[TABLE])))
        save_file(halved, path, metadata)


def check_own_loader(folder: Path, texts: list[str], expected: Vectors, *, trust_remote_code: bool) -> None:
    """Load the folder as sentcompress does, and compare its vectors with the model's.

    Args:
        expected: [N, D] the model's vectors of the N texts.

    Raises:
        SentcompressError: if they differ by more than float16 weights explain.
    """
    encoder = read_back(folder, trust_remote_code=trust_remote_code)
    require_agreement(unit(encoder_vectors(encoder, texts)), unit(expected), "the folder with float16 weights")
