"""`.npy` files with the texts of their rows."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from properties.contract import kept
from properties.mutations import mutated
from properties.test_text_readers import write

from sentcompress.corpora.vector_file import VectorFile

TEXTS = ["one", "two words", "three"]
HEADERS = (
    *("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2)", "(((", "{}", "[]", "'" * 3, "{'shape': (3, 2), }"),
    *(f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}" for shape in ("(3, 10**9)", "(2**62, 2**62)")),
    *(
        f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
        for shape in ("(-1, 2)", "(True, 2)", "3", "()")
    ),
    *(
        f"{{'descr': {kind}, 'fortran_order': False, 'shape': (3, 2), }}"
        for kind in ("'|O'", "'<U4'", "'(2,)<f4'", "3")
    ),
    *(f"{{'descr': {kind}, 'fortran_order': 1, 'shape': (3, 2), }}" for kind in ("[('a', '<f4')]", "'<f0'", "'V8'")),
)


def array_bytes(array: np.ndarray) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array)
    return sink.getvalue()


def with_header(text: str, data: bytes = b"\0" * 24) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + data


@st.composite
def arrays(draw: st.DrawFn) -> bytes:
    kind = draw(st.sampled_from("<f4 >f4 <f2 <f8 >f8 <f16 <i4 <c8 |b1 <U3".split()))
    shape = draw(st.sampled_from(((3, 2), (3, 2), (3, 2), (2, 3), (3,), (3, 0), (0, 2), (3, 1, 2))))
    array = np.zeros(shape, dtype=kind, order=draw(st.sampled_from(("C", "F"))))
    if array.dtype.kind == "f" and array.size and draw(st.booleans()):
        with np.errstate(over="ignore"):
            array.flat[0] = draw(st.sampled_from((np.nan, np.inf, 1e300, -1e-300, 1e38)))
    return array_bytes(array)


documents = st.one_of(arrays(), arrays().flatmap(mutated), st.sampled_from(HEADERS).map(with_header))


def read(path: Path) -> list[np.ndarray]:
    file = VectorFile(path)
    return [file.rows(["two  words", "one"]), file.rows(TEXTS)]


@given(documents, mutated("".join(f"{text}\n" for text in TEXTS).encode()))
@example(b"PK\x03\x04 not a zip archive", b"one\ntwo words\nthree\n")
@example(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, "), b"one\n")
@example(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1000000000000), }"), b"one\ntwo\nthree\n")
@example(b"\x80\x04K\x01.", b"one\n")
def test_vectors_and_texts(tmp_path: Path, array: bytes, texts: bytes) -> None:
    path = write(tmp_path, array, "v.npy")
    (path.parent / "v.txt").write_bytes(texts)
    kept(lambda: read(path), path, path.with_suffix(".txt"))


@given(documents)
def test_vectors_of_texts_that_are_whole(tmp_path: Path, array: bytes) -> None:
    path = write(tmp_path, array, "v.npy")
    (path.parent / "v.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    kept(lambda: read(path), path)
