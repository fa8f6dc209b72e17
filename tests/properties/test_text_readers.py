"""Lines of plain text: read by themselves, as records, and by `augment`."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

from hypothesis import example, given
from hypothesis import strategies as st
from properties.contract import kept
from properties.mutations import mutated, packed

from sentcompress.corpora.readers import read_records
from sentcompress.corpora.text_files import BadRecords, open_lines
from sentcompress.errors import SentcompressError
from sentcompress.stages import augment
from sentcompress.store import WorkDirectory

TEXT = "A first sentence.\nA second one, h\u00e9.\n\nA fourth \u4f60\u597d.\nA first sentence.\n".encode()
documents = mutated(TEXT, b" ").flatmap(packed)


def write(folder: Path, content: bytes, name: str) -> Path:
    path = Path(mkdtemp(dir=folder)) / name
    path.write_bytes(content)
    return path


@given(documents, st.booleans())
@example((b"\xef\xbb\xbf", ""), False)
@example((b"\r" * 300, ""), False)
@example((b"one\rtwo\rthree", ""), False)
@example((b"\n" * 100_000, ""), False)
def test_lines(tmp_path: Path, document: tuple[bytes, str], skip: bool) -> None:
    content, suffix = document
    path = write(tmp_path, content, f"a.txt{suffix}")
    bad = BadRecords(skip)
    found = kept(lambda: list(open_lines(path, bad=bad)), path)
    if not isinstance(found, SentcompressError):
        assert found or bad.count
        assert [number for number, _ in found] == sorted({number for number, _ in found})
        assert not any("\n" in line or "\r" in line for _, line in found)


@given(st.lists(st.text(st.characters(exclude_characters="\r\n\x00", codec="utf-8")), min_size=1))
@example([""])
@example(["\ufeff"])
def test_every_line_end_gives_the_lines_that_were_written(tmp_path: Path, lines: list[str]) -> None:
    for mark in ("", "\ufeff"):
        for end in ("\n", "\r\n", "\r"):
            content = ("\ufeff" + mark + "".join(line + end for line in ["first", *lines])).encode()
            found = [line for _, line in open_lines(write(tmp_path, content, "a.txt"))]
            assert found == [f"{mark}first", *lines]


@given(documents, st.booleans())
def test_augment_makes_a_whole_table_or_none(tmp_path: Path, document: tuple[bytes, str], skip: bool) -> None:
    content, suffix = document
    path = write(tmp_path, content, f"a.txt{suffix}")
    work = WorkDirectory(path.parent / "work")
    params = augment.Params(inputs=(str(path),), wordnet=0, back_translate=0, skip_bad=skip, format="text")
    found = kept(lambda: augment.run(params, work))
    if isinstance(found, SentcompressError):
        assert not [left for left in work.path.rglob("*") if left.is_file() and left.suffix != ".lock"]
    else:
        assert found.facts["originals"] >= 1


@given(documents)
def test_records_of_any_format(tmp_path: Path, document: tuple[bytes, str]) -> None:
    content, suffix = document
    path = write(tmp_path, content, f"a{suffix}")
    kept(lambda: list(read_records(path)), path)
