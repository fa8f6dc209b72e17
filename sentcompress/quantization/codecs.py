"""Number formats of stored vectors: [N, d] float32 values to [N, B] bytes and back.

The layout of the bytes is that of FAISS's indexes (IndexFlat, IndexScalarQuantizer, and IndexPQ of 256 centroids), so
codes can be added to such an index as they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float32]
Codes = npt.NDArray[np.uint8]
# Values that a product quantizer compares with its centroids at a time: 64 MB of distances.
DISTANCES = 2**24
# Values of `--store` that are not formats: the best format that fits; the format of the model's quantizer.
AUTO, QUANTIZER = "auto", "quantizer"


class Codec(ABC):
    """A number format with its parameters, all of which are arrays.

    Attributes:
        name: the format's name.
        bits: number of bits per dimension; 0 if a code stands for several dimensions.
    """

    name: ClassVar[str]
    bits: ClassVar[int] = 0

    @property
    @abstractmethod
    def dimension(self) -> int:
        """d, the number of values of a vector."""

    @property
    def bytes(self) -> int:
        """B, the bytes of a stored vector."""
        return -(-self.dimension * self.bits // 8)

    @property
    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """The parameters by name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}

    @abstractmethod
    def encode(self, values: Values) -> Codes:
        """[N, d] -> [N, B]; values outside the ranges become the nearest value inside."""

    @abstractmethod
    def decode(self, codes: Codes) -> Values:
        """[N, B] -> [N, d]."""


@dataclass(frozen=True)
class Float32(Codec):
    """IEEE single precision, little endian."""

    name: ClassVar[str] = "float32"
    bits: ClassVar[int] = 32
    kind: ClassVar[np.dtype[np.floating]] = np.dtype("<f4")
    width: int

    @property
    def dimension(self) -> int:
        return self.width

    def encode(self, values: Values) -> Codes:
        return np.ascontiguousarray(values, dtype=self.kind).view(np.uint8)

    def decode(self, codes: Codes) -> Values:
        return np.ascontiguousarray(codes).view(self.kind).astype(np.float32)


class Float16(Float32):
    """IEEE half precision, little endian: a relative error of at most 2^-11."""

    name: ClassVar[str] = "float16"
    bits: ClassVar[int] = 16
    kind: ClassVar[np.dtype[np.floating]] = np.dtype("<f2")


@dataclass(frozen=True)
class Int8(Codec):
    """256 equal cells per dimension: value = low + (code + 1/2) step. The error inside the range is at most step / 2.

    With fewer bits there are fewer cells, and a byte holds several dimensions, the first in the lowest bits.

    Attributes:
        low, step: [d], the lower end of the range and the width of a cell.
    """

    name: ClassVar[str] = "int8"
    bits: ClassVar[int] = 8
    low: Values
    step: Values

    @property
    def dimension(self) -> int:
        return len(self.low)

    def encode(self, values: Values) -> Codes:
        width = np.where(self.step > 0, self.step, 1)  # the only value of a dimension that does not vary is in cell 0
        each = len(self._shifts)
        cells = np.zeros((len(values), self.bytes * each), dtype=np.uint8)
        cells[:, : self.dimension] = np.clip(np.floor((values - self.low) / width), 0, 2**self.bits - 1)
        first, *others = (cells[:, place::each] << shift for place, shift in enumerate(self._shifts))
        for other in others:
            first |= other
        return np.ascontiguousarray(first)

    def decode(self, codes: Codes) -> Values:
        cells = np.stack([codes >> shift & 2**self.bits - 1 for shift in self._shifts], axis=2)
        cells = cells.reshape(len(codes), self.bytes * len(self._shifts))[:, : self.dimension]
        middles = self.low + (cells.astype(np.float32) + np.float32(0.5)) * self.step
        return np.asarray(middles, dtype=np.float32)

    @property
    def _shifts(self) -> range:
        """Where the dimensions of a byte begin in it."""
        return range(0, 8, self.bits)


class Int4(Int8):
    """16 equal cells per dimension."""

    name: ClassVar[str] = "int4"
    bits: ClassVar[int] = 4


@dataclass(frozen=True)
class Binary(Codec):
    """One bit per dimension: whether the value is above the threshold. The first dimension is the lowest bit.

    Attributes:
        threshold: [d].
        below, above: [d], the values that stand for a 0 and a 1.
    """

    name: ClassVar[str] = "binary"
    bits: ClassVar[int] = 1
    threshold: Values
    below: Values
    above: Values

    @property
    def dimension(self) -> int:
        return len(self.threshold)

    def encode(self, values: Values) -> Codes:
        return np.packbits(values > self.threshold, axis=1, bitorder="little")

    def decode(self, codes: Codes) -> Values:
        bits = np.unpackbits(codes, axis=1, count=self.dimension, bitorder="little")
        return np.where(bits > 0, self.above, self.below).astype(np.float32)


@dataclass(frozen=True)
class ProductCodes(Codec):
    """Product quantisation (Jégou et al. 2011): segments of d / M values, each stored as the number of its centroid.

    Attributes:
        codebooks: [M, K, d / M], the K centroids of each of the M segments; K is at most 256.
        order: [d] int32, the dimensions in the order of the segments.
    """

    name: ClassVar[str] = "pq"
    codebooks: Values
    order: npt.NDArray[np.int32]

    @property
    def dimension(self) -> int:
        return int(self.codebooks.shape[0] * self.codebooks.shape[2])

    @property
    def bytes(self) -> int:
        return int(self.codebooks.shape[0])

    def encode(self, values: Values) -> Codes:
        segments, centroids, width = self.codebooks.shape
        squares = np.square(self.codebooks).sum(axis=2)[:, None, :]
        codes = np.empty((len(values), segments), dtype=np.uint8)
        rows = max(1, DISTANCES // (segments * centroids))
        for start in range(0, len(values), rows):
            parts = values[start : start + rows, self.order].reshape(-1, segments, width).transpose(1, 0, 2)
            distances = squares - 2 * parts @ self.codebooks.transpose(0, 2, 1)
            codes[start : start + rows] = distances.argmin(axis=2).T
        return codes

    def decode(self, codes: Codes) -> Values:
        values = np.empty((len(codes), self.dimension), dtype=np.float32)
        values[:, self.order] = self.codebooks[np.arange(self.bytes), codes].reshape(values.shape)
        return values


CODECS: Mapping[str, type[Codec]] = {
    codec.name: codec for codec in (Float32, Float16, Int8, Int4, Binary, ProductCodes)
}
FORMATS = (AUTO, *CODECS)
STORES = (*CODECS, QUANTIZER)
