from __future__ import annotations

from pathlib import Path

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
    with pytest.raises(InputError, match="no texts beside it"):
        VectorFile(path)


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((2, 3), dtype=np.int64), np.zeros((0, 3))])
def test_what_is_no_array_of_vectors_is_refused(tmp_path: Path, array: np.ndarray) -> None:
    path = write(tmp_path, ["one"])
    np.save(path, array)
    with pytest.raises(InputError):
        VectorFile(path)


def test_what_is_no_array_at_all_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, ["one"])
    path.write_bytes(b"PAR1 and more")
    with pytest.raises(InputError, match="not a NumPy array"):
        VectorFile(path)


def test_a_file_that_is_not_there_is_named_before_its_texts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"v\.npy: no such file"):
        VectorFile(tmp_path / "v.npy")
