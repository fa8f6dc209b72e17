"""Quantizers: vectors are rotated, truncated to their first dimensions and stored in a number format.

The rotation is an orthogonal matrix whose rows are the principal axes of the model's vectors, so the first k dimensions
are the best k, for every k. It changes no cosine as long as all dimensions are kept. Cosines of fewer dimensions are
those of the truncated vectors scaled to unit length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save_file

from sentcompress.errors import InputError
from sentcompress.json_documents import read_json, write_json
from sentcompress.models.checks import require_sound, unsound
from sentcompress.numeric import at_least
from sentcompress.quantities import counted
from sentcompress.quantization.codecs import CODECS, Binary, Codec, Codes, Float32, Int8, ProductCodes, Values
from sentcompress.store import file_digest

# The folder inside a model's folder.
FOLDER = "vectors"
DOCUMENT, TENSORS = "quantizer.json", "quantizer.safetensors"
VERSION = 1
AXES, ORDER = "axes", "order"
SIMILARITY = "cosine"
# Decoded at a time: 64 MB.
BLOCK = 2**24
# How far the axes may be from orthonormal: they are stored in float32.
ROUNDING = 1e-3
FIELDS = {"version": int, "format": str, "similarity": str, "dimension": int, "bytes": int, "sha256": str}


@dataclass(frozen=True)
class Quantizer:
    """The rotation, the number of dimensions and the number format of a model's stored vectors.

    >>> codes = quantizer.encode(document_vectors)
    >>> scores = quantizer.scores(query_vectors, codes)

    Attributes:
        axes: [d, D] orthonormal rows, by decreasing share of the vectors' squared length.
        codec: the number format of d values.

    Vectors are compared by cosine, so they are scaled to unit length after truncation, and again after decoding.
    """

    axes: Values
    codec: Codec

    @property
    def format(self) -> str:
        """The name of the number format."""
        return self.codec.name

    @property
    def dimension(self) -> int:
        """d, the dimensions that are kept."""
        return len(self.axes)

    @property
    def model_dimension(self) -> int:
        """D, the dimensions of the model's vectors."""
        return int(self.axes.shape[1])

    @property
    def bytes(self) -> int:
        """The bytes of a stored vector."""
        return self.codec.bytes

    def turn(self, vectors: Values) -> Values:
        """Rotate and truncate the model's vectors, in float32; queries are compared in this form.

        Args:
            vectors: [N, D].

        Returns:
            [N, d], of unit length. A zero vector stays zero.

        Raises:
            InputError: if the vectors have another dimension, or contain NaN or infinity.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.model_dimension:
            raise InputError(
                f"the quantizer stores vectors of {self.model_dimension} dimensions, not of shape {vectors.shape}",
                "use the quantizer that was fitted to this model",
            )
        turned = np.asarray(vectors, dtype=np.float32) @ self.axes.T
        if not np.isfinite(turned).all():
            raise InputError("the model returned vectors with NaN or infinity", "try `dtype` float32")
        return self._scaled(turned)

    def encode(self, vectors: Values) -> Codes:
        """Store the model's vectors: [N, D] -> [N, B] bytes.

        Raises:
            InputError: see `turn`.
        """
        return self.codec.encode(self.turn(vectors))

    def decode(self, codes: Codes) -> Values:
        """Stored vectors as float32: [N, B] -> [N, d], of unit length.

        Raises:
            InputError: if the codes are of another quantizer.
        """
        if codes.ndim != 2 or codes.shape[1] != self.bytes or codes.dtype != np.uint8:
            raise InputError(
                f"{self.format} vectors have {counted(self.bytes, 'byte')} each, not {codes.dtype} of shape "
                f"{codes.shape}",
                "use the quantizer that the vectors were stored with",
            )
        if isinstance(self.codec, ProductCodes) and codes.max(initial=0) >= self.codec.codebooks.shape[1]:
            raise InputError(
                f"a stored vector names centroid {codes.max()}, which the codebooks lack",
                "encode the texts again with this quantizer",
            )
        return self._scaled(self.codec.decode(codes))

    def blocks(self, codes: Codes) -> Iterator[tuple[int, Values]]:
        """Decode any number of vectors in bounded memory: yields (first row, [n, d])."""
        step = max(1, BLOCK // self.dimension)
        for start in range(0, len(codes), step):
            yield start, self.decode(np.ascontiguousarray(codes[start : start + step]))

    def scores(self, queries: Values, codes: Codes) -> Values:
        """Asymmetric scores: float32 queries against stored vectors.

        Args:
            queries: [Q, D], vectors of the model, before rotation.
            codes: [N, B].

        Returns:
            [Q, N] cosines.
        """
        turned = self.turn(queries)
        found = np.empty((len(queries), len(codes)), dtype=np.float32)
        for start, block in self.blocks(codes):
            found[:, start : start + len(block)] = turned @ block.T
        return found

    def save(self, folder: Path) -> None:
        """Write the two files into a folder, which is created.

        Raises:
            SentcompressError: if a parameter contains NaN or infinity; nothing is written then.
        """
        tensors = {AXES: self.axes, **self.codec.tensors}
        stored = {name: np.ascontiguousarray(value) for name, value in tensors.items()}
        require_sound(stored, "the quantizer", "copy or download the model again: its vectors have to be finite")
        folder.mkdir(parents=True, exist_ok=True)
        save_file(stored, folder / TENSORS)
        document = {
            "version": VERSION,
            "format": self.format,
            "similarity": SIMILARITY,
            "dimension": self.dimension,
            "model_dimension": self.model_dimension,
            "bytes": self.bytes,
            "sha256": file_digest(folder / TENSORS),
        }
        write_json(folder / DOCUMENT, document)

    @classmethod
    def load(cls, folder: Path) -> Quantizer:
        """Read the two files.

        Raises:
            InputError: if one is missing or damaged, of a newer version, or does not fit the other.
        """
        document = read_json(folder / DOCUMENT)
        try:
            _check_document(document)
            content = (folder / TENSORS).read_bytes()
            if file_digest(folder / TENSORS) != document["sha256"]:
                raise ValueError(f"{TENSORS} was changed: its SHA-256 differs")
            return _checked(_made(document, load(content)), document)
        except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"the quantizer in {folder} is damaged: {error}", "copy it again, or run: sentcompress fit-quantizer"
            ) from None

    def _scaled(self, values: Values) -> Values:
        """Rows of unit length, summed in float64; zero rows stay zero."""
        lengths = np.sqrt(np.einsum("nd,nd->n", values, values, dtype=np.float64))[:, None]
        return np.asarray(values / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def has_quantizer(model: Path) -> bool:
    """Whether a model's folder holds a quantizer."""
    return (model / FOLDER / DOCUMENT).is_file()


def _check_document(document: Any) -> None:
    for name, kind in FIELDS.items():
        if not isinstance(document, dict) or type(document.get(name)) is not kind:
            raise ValueError(f"{DOCUMENT} has no valid {name}")
    if document["version"] != VERSION:
        raise ValueError(f"{DOCUMENT} has version {document['version']}, but only version {VERSION} can be read")
    if document["format"] not in CODECS:
        raise ValueError(f"{document['format']!r} is not one of {', '.join(CODECS)}")
    if document["similarity"] != SIMILARITY:
        raise ValueError(f"vectors are compared by {document['similarity']!r}, but only {SIMILARITY} is supported")


def _made(document: dict[str, Any], tensors: dict[str, Values]) -> Quantizer:
    wrong = [name for name, value in tensors.items() if value.dtype != (np.int32 if name == ORDER else np.float32)]
    if wrong or (bad := unsound(tensors)):
        raise ValueError(f"{wrong[0]} is {tensors[wrong[0]].dtype}" if wrong else f"NaN or infinity in {bad}")
    axes = tensors.pop(AXES)
    kind = CODECS[document["format"]]
    codec = kind(len(axes)) if issubclass(kind, Float32) else kind(**tensors)
    return Quantizer(axes, codec)


def _checked(found: Quantizer, document: dict[str, Any]) -> Quantizer:
    """The quantizer, if all shapes and values agree."""
    axes, codec = found.axes, found.codec
    if axes.ndim != 2 or 0 in axes.shape or len(axes) > axes.shape[1]:
        raise ValueError(f"the axes have the shape {axes.shape}")
    shapes = {value.shape for value in codec.tensors.values()}
    if isinstance(codec, Int8 | Binary) and shapes != {(len(axes),)}:
        raise ValueError(f"{found.format} has parameters of the shapes {sorted(shapes)} for {len(axes)} dimensions")
    if isinstance(codec, ProductCodes):
        if codec.codebooks.ndim != 3 or not 0 < codec.codebooks.shape[1] <= 256:
            raise ValueError(f"the codebooks have the shape {codec.codebooks.shape}")
        if sorted(codec.order.tolist()) != list(range(len(axes))):
            raise ValueError("the order does not name every dimension once")
    if isinstance(codec, Int8) and not at_least(float(codec.step.min()), 0):
        raise ValueError("a range is negative")
    if not np.allclose(axes @ axes.T, np.eye(len(axes)), atol=ROUNDING):
        raise ValueError("the axes are not orthonormal")
    said = (document["dimension"], document["bytes"])
    if said != (len(axes), codec.bytes) or codec.dimension != len(axes):
        raise ValueError(f"{DOCUMENT} says {said[0]} dimensions in {said[1]} bytes, which {TENSORS} does not hold")
    return found
