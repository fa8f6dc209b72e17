"""Arrays in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def save_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write a `.npy` file like `np.save`, but raise the system's own error if the write fails, e.g. on a full disk."""
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(
            stream,
            {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape},
        )
        stream.write(np.ascontiguousarray(array).data)
