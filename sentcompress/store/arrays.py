"""Arrays in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt


def save_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write a `.npy` file like `np.save`, but raise the system's own error if the write fails, e.g. on a full disk."""
    with path.open("wb") as stream:
        write_header(stream, array.dtype, array.shape)
        stream.write(np.ascontiguousarray(array).data)


def write_header(stream: BinaryIO, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> None:
    """Begin a `.npy` file; the array's values, row by row, are to follow."""
    described = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, described)
