"""Vectors made by another program: a `.npy` file and a file with the texts of its rows."""

from __future__ import annotations

import hashlib
import tokenize
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sentcompress.corpora.text_files import open_lines
from sentcompress.errors import InputError, path_hint, reason_of
from sentcompress.quantities import counted

SUFFIX = ".npy"
TEXTS = (".txt", ".txt.gz", ".txt.zst")
SHOWN = 80
_MAGIC = b"\x93NUMPY"
# What numpy raises for invalid headers, and for arrays larger than their file.
_BROKEN = (
    *(ValueError, OSError, EOFError, SyntaxError, tokenize.TokenError),
    *(OverflowError, TypeError, MemoryError, RecursionError),
)


class VectorFile:
    """Rows of a `.npy` file, looked up by their text.

    Texts are compared with every run of white space as one space, since a line cannot hold a line break. A text that
    is on several lines has the vector of the first.

    Args:
        path: [N, D] floats; memory-mapped, not read.
        texts: N lines, one text per line; by default the file in the same folder with the same name and `.txt`.

    Raises:
        InputError: if a file is missing, the array does not hold vectors, or rows and lines differ in number.
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
                f"{path} has {counted(len(self._vectors), 'row')} and {self.texts} {counted(count, 'line')}",
                "give one line per row",
            )

    @property
    def dimension(self) -> int:
        return int(self._vectors.shape[1])

    def rows(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """The vectors of some texts, [n, D].

        Raises:
            InputError: if a text has no row, or its row contains NaN or infinity.
        """
        found = [self._rows.get(_key(text), -1) for text in texts]
        missing = [text for text, row in zip(texts, found, strict=True) if row < 0]
        if missing:
            raise InputError(
                f"{self.texts} lacks {len(missing)} of {len(texts)} texts of the evaluation: {missing[0][:SHOWN]!r}"
                + (" and others" if len(missing) > 1 else ""),
                "every distinct text needs a line, as in the evaluation's file (documents: title, space, text), and a "
                "row of the array",
            )
        with np.errstate(over="ignore", invalid="ignore"):
            vectors = np.asarray(self._vectors[found], dtype=np.float32)
        if not np.isfinite(vectors).all():
            bad = ~np.isfinite(vectors).all(axis=1)
            raise InputError(
                f"{self.path}: {int(bad.sum())} of {len(texts)} vectors hold NaN or infinity, "
                f"the first for the text {texts[int(bad.argmax())][:SHOWN]!r}",
                "make the file again",
            )
        return vectors


def _key(text: str) -> bytes:
    return hashlib.blake2b(" ".join(text.split()).encode("utf-8"), digest_size=16).digest()


def _texts_beside(path: Path) -> Path:
    stem = str(path).removesuffix(SUFFIX)
    for suffix in TEXTS:
        if (found := Path(stem + suffix)).is_file():
            return found
    raise InputError(
        f"{path} has no file of texts", f"write them to {stem}.txt, one per line, or name the file: {path}:TEXTS.txt"
    )


def _open_array(path: Path) -> npt.NDArray[np.floating]:
    try:
        with path.open("rb") as stream:
            if stream.read(len(_MAGIC)) != _MAGIC:
                raise InputError(f"{path} is not a NumPy array", "give a .npy file as numpy.save writes it")
        # numpy's product of a huge shape overflows with a warning; the array is refused anyway.
        with np.errstate(over="ignore"):
            array: npt.NDArray[np.floating] = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"no such file: {path}", path_hint(path)) from None
    except _BROKEN as error:
        reason = reason_of(error)
        raise InputError(f"{path} is not a NumPy array: {reason}", "write it again with numpy.save") from None
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.floating):
        shape = f"{array.dtype} of shape {array.shape}"[:SHOWN]
        raise InputError(f"{path} does not hold vectors: {shape}", "it must be a two-dimensional array of floats")
    if 0 in array.shape:
        raise InputError(f"{path} is empty: {array.shape}", "write at least one vector")
    return array
