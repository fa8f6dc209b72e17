"""The stored form of a vector: its values, or the codes of a quantizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sentcompress.quantization.quantizer import Quantizer


@dataclass(frozen=True)
class Storage:
    """How vectors are stored.

    Attributes:
        store: the number format.
        dimension: dimension of the vectors before they are stored.
        quantizer: None for float32 and float16 as the model gives them.
    """

    store: str
    dimension: int
    quantizer: Quantizer | None = None

    @property
    def dtype(self) -> str:
        """The type of the written array."""
        return "uint8" if self.quantizer else self.store

    @property
    def width(self) -> int:
        """Elements of a row of the written array."""
        return self.quantizer.bytes if self.quantizer else self.dimension

    @property
    def bytes(self) -> int:
        """Bytes of a stored vector."""
        return self.width * np.dtype(self.dtype).itemsize

    def encode(self, vectors: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
        """[n, D] vectors -> [n, width] codes; vectors that are stored as they are come back unchanged."""
        return self.quantizer.encode(vectors) if self.quantizer else vectors
