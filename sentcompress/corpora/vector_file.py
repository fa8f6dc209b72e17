"""Vectors that were made elsewhere: a `.npy` file and the texts that its rows belong to."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sentcompress.corpora.text_files import open_lines
from sentcompress.errors import InputError

SUFFIX = ".npy"
TEXTS = (".txt", ".txt.gz", ".txt.zst")
SHOWN = 80


class VectorFile:
    """Rows of a `.npy` file, looked up by their text.

    Texts are compared with every run of white space as one blank, since a line cannot hold a line break. A text that
    occurs on several lines has the vector of the first.

    Args:
        path: [N, D] floats; memory-mapped, not read.
        texts: one text a line, N lines; by default the file beside `path` with its name and `.txt`.

    Raises:
        InputError: if a file is missing, is no array of vectors, or has another number of rows than the other.
    """

    def __init__(self, path: Path, texts: Path | None = None) -> None:
        self.path = path
        self._vectors = _open_array(path)
        self.texts = texts or _texts_beside(path)
        self._rows: dict[bytes, int] = {}
        count = 0
        for count, (_, line) in enumerate(open_lines(self.texts), start=1):
            self._rows.setdefault(_key(line), count - 1)
        if count != len(self._vectors):
            raise InputError(
                f"{path} has {len(self._vectors)} rows and {self.texts} {count} lines", "they belong row by row"
            )

    @property
    def dimension(self) -> int:
        return int(self._vectors.shape[1])

    def rows(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """The vectors of some texts, [n, D].

        Raises:
            InputError: if a text has no row.
        """
        found = [self._rows.get(_key(text), -1) for text in texts]
        missing = [text for text, row in zip(texts, found, strict=True) if row < 0]
        if missing:
            raise InputError(
                f"{self.texts} lacks {len(missing)} of {len(texts)} texts of the evaluation: {missing[0][:SHOWN]!r}"
                + (" and others" if len(missing) > 1 else ""),
                "every distinct text needs a line, as it stands in the evaluation's file (documents: title, blank, "
                "text), and a row of the array",
            )
        return np.asarray(self._vectors[found], dtype=np.float32)


def _key(text: str) -> bytes:
    return hashlib.blake2b(" ".join(text.split()).encode("utf-8"), digest_size=16).digest()


def _texts_beside(path: Path) -> Path:
    stem = str(path).removesuffix(SUFFIX)
    for suffix in TEXTS:
        if (found := Path(stem + suffix)).is_file():
            return found
    raise InputError(
        f"{path} has no texts beside it", f"write them to {stem}.txt, one a line, or name the file: {path}:TEXTS.txt"
    )


def _open_array(path: Path) -> npt.NDArray[np.floating]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"{path} is not a NumPy array: {error}") from None
    if not isinstance(array, np.ndarray) or array.ndim != 2 or not np.issubdtype(array.dtype, np.floating):
        shape = getattr(array, "shape", "several arrays")
        raise InputError(f"{path} does not hold vectors: {shape}", "it has to be a two-dimensional array of floats")
    if 0 in array.shape:
        raise InputError(f"{path} is empty: {array.shape}")
    return array
