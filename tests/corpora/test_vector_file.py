from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sentcompress.corpora.vector_file import VectorFile
from sentcompress.errors import InputError


def write(folder: Path, lines: list[str], rows: int | None = None) -> Path:
    (folder / "v.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    count = len(lines) if rows is None else rows
    np.save(folder / "v.npy", np.arange(count * 3, dtype=np.float16).reshape(count, 3))
    return folder / "v.npy"


def test_rows_are_found_by_their_text_whatever_the_white_space(tmp_path: Path) -> None:
    file = VectorFile(write(tmp_path, ["one", "two  words", "one"]))
    assert file.rows(["two\nwords", "one"]).tolist() == [[3, 4, 5], [0, 1, 2]]
    assert file.rows(["one"]).dtype == np.float32


def test_a_text_without_a_row_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"lacks 1 of 2 texts .* 'three'"):
        VectorFile(write(tmp_path, ["one", "two"])).rows(["one", "three"])


def test_rows_and_lines_have_to_agree(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"3 rows and .* 2 lines"):
        VectorFile(write(tmp_path, ["one", "two"], rows=3))


def test_texts_may_have_another_name_and_must_be_somewhere(tmp_path: Path) -> None:
    path = write(tmp_path, ["one"])
    (tmp_path / "v.txt").rename(tmp_path / "other.txt")
    assert VectorFile(path, tmp_path / "other.txt").dimension == 3
    with pytest.raises(InputError, match="has no file of texts"):
        VectorFile(path)


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((2, 3), dtype=np.int64), np.zeros((0, 3))])
def test_what_is_no_array_of_vectors_is_refused(tmp_path: Path, array: np.ndarray) -> None:
    path = write(tmp_path, ["one"])
    np.save(path, array)
    with pytest.raises(InputError):
        VectorFile(path)


class Evil:
    """Pickled, it makes a file when it is opened."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.marker,)


def test_pickled_objects_are_refused_and_never_opened(tmp_path: Path) -> None:
    marker = tmp_path / "it ran"
    path = write(tmp_path, ["one"])
    np.save(path, np.array([[Evil(marker)]], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="not a NumPy array"):
        VectorFile(path)
    assert not marker.exists()
    np.load(path, allow_pickle=True)
    assert marker.exists()


def test_what_is_no_array_at_all_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, ["one"])
    path.write_bytes(b"PAR1 and more")
    with pytest.raises(InputError, match="not a NumPy array"):
        VectorFile(path)


def test_a_file_that_is_not_there_is_named_before_its_texts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such file: .*v\.npy"):
        VectorFile(tmp_path / "v.npy")


def header(text: str) -> bytes:
    """A .npy file with any header, and a little data."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode("latin-1") + b"\0" * 64


@pytest.mark.parametrize(
    "content",
    [
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, "),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 10**30)}"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4611686018427387904)}"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000)}"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 2)}"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': ('a', 2)}"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (2.0, 2)}"),
        header("{'descr': '|O', 'fortran_order': False, 'shape': (2, 2)}"),
        header("{'descr': 'nonsense', 'fortran_order': False, 'shape': (2, 2)}"),
        header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 2)}"),
        header("(" * 5000),
        header("'" * 3),
        b"PK\x03\x04 not a zip archive",
        b"\x80\x04K\x01.",
        b"\x93NUMPY\x09\x00" + b"\0" * 64,
        b"\x93NUM",
        b"",
    ],
)
def test_broken_headers_are_input_errors(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, ["one", "two"])
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"v\.npy"):
        VectorFile(path)


@pytest.mark.parametrize("dtype", ["<f8", ">f4", ">f2", "<f2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_any_float_in_any_order_is_read(tmp_path: Path, dtype: str, order: str) -> None:
    path = write(tmp_path, ["one", "two"])
    np.save(path, np.array([[1, 2, 3], [4, 5, 6]], dtype=dtype, order=order))  # type: ignore[call-overload]
    assert VectorFile(path).rows(["two", "one"]).tolist() == [[4, 5, 6], [1, 2, 3]]


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_a_row_without_float32_values_is_named_by_its_text(tmp_path: Path, value: float) -> None:
    path = write(tmp_path, ["one", "two"])
    np.save(path, np.array([[1.0, 2.0], [value, 3.0]]))
    assert VectorFile(path).rows(["one"]).tolist() == [[1, 2]]
    with pytest.raises(InputError, match=r"1 of 2 vectors hold NaN or infinity, .* 'two'"):
        VectorFile(path).rows(["one", "two"])
