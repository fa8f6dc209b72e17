"""The placement of teacher vectors and tokens in training on a GPU: on the device, in memory, or mapped from the disk.

A step reads a few hundred random rows. From a file on a network disk that takes longer than the step, so that whatever
fits is read once, at the start. On a CPU everything stays mapped: memory does not grow with the number of sentences.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from sentcompress.encoding.npy_files import NpyFiles
from sentcompress.models.devices import to_device
from sentcompress.models.memory import available_memory
from sentcompress.models.token_batches import TokenRows
from sentcompress.progress import Reporter
from sentcompress.quantities import told_bytes
from sentcompress.training.batches import RowField, Rows
from sentcompress.training.data import vector_field

# The share of the free memory, of the device or of the machine, that one array may take.
SHARE = 0.5
# Rows that are read at a time.
PIECE = 50_000


@dataclass
class Residence:
    """Puts the arrays of one training run where they fit, in the order of the calls.

    Attributes:
        device: the device that is trained on.
    """

    device: torch.device
    reporter: Reporter
    _told: list[str] = field(default_factory=list, init=False)

    def vectors(self, vectors: NpyFiles, name: str) -> RowField:
        """Cached vectors of rows as float32, [B] -> [B, D]; on the device if they fit there.

        Args:
            name: name of the vectors in messages.
        """
        if (free := free_on_device(self.device)) is None:
            return vector_field(vectors)
        size, available = vectors.nbytes, self._available()
        if size <= SHARE * free:
            self._tell(name, size, f"on the device ({told_bytes(free)} free)")
            return rows_of(self._loaded(vectors, name, self.device))
        if size <= SHARE * available:
            self._tell(name, size, f"in CPU memory ({told_bytes(free)} free on the device)")
            return rows_of(self._loaded(vectors, name, torch.device("cpu")))
        self._tell(name, size, f"on the disk (free: {told_bytes(free)} on the device, {told_bytes(available)} here)")
        return vector_field(vectors)

    def tokens(self, tokens: TokenRows) -> TokenRows:
        """The same tokens, in memory if they fit."""
        if free_on_device(self.device) is None:
            return tokens
        if tokens.flat.nbytes > SHARE * self._available():
            self._tell("tokens", tokens.flat.nbytes, "on the disk")
            return tokens
        self._tell("tokens", tokens.flat.nbytes, "in CPU memory")
        return TokenRows.joined(np.array(tokens.flat), tokens.lengths)

    def tell(self) -> None:
        """Report where everything is, in one message; nothing on a CPU."""
        if self._told:
            self.reporter.note("; ".join(self._told))
        self._told = []

    def _tell(self, name: str, size: int, place: str) -> None:
        self._told.append(f"{name} ({told_bytes(size)}) {place}")

    def _available(self) -> int:
        # Each process of torchrun on this machine reads its own copy.
        return (available_memory() or 0) // int(os.environ.get("LOCAL_WORLD_SIZE") or 1)

    def _loaded(self, vectors: NpyFiles, name: str, device: torch.device) -> Tensor:
        """All vectors, [N, D] as stored."""
        dtype = torch.from_numpy(np.zeros(0, vectors.dtype)).dtype
        table = torch.empty((len(vectors), vectors.dimension), dtype=dtype, device=device)
        start = 0
        with self.reporter.track(f"reading {name}", total=len(vectors)) as task:
            for piece in vectors.pieces(PIECE):
                table[start : start + len(piece)] = torch.from_numpy(np.array(piece)).to(device)
                start += len(piece)
                task.advance(len(piece))
        return table


def free_on_device(device: torch.device) -> int | None:
    """Free bytes of a CUDA device; None for another device, whose memory is the machine's."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None


def rows_of(table: Tensor) -> RowField:
    """Rows of a table [N, D] as float32, on its device: [B] -> [B, D]."""

    def take(rows: Rows) -> Tensor:
        return table.index_select(0, to_device(torch.from_numpy(rows), table.device)).float()

    return take
