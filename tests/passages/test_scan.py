from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

from sentcompress.corpora.document import Document, Section, plain_document
from sentcompress.passages.frequencies import DocumentFrequencies
from sentcompress.passages.scan import read_units, scan
from sentcompress.progress import SILENT


def scanned(documents: Iterator[Document], path: Path, words: int = 20) -> tuple[int, int, int]:
    with SILENT.track("scan") as task:
        counts = scan(documents, words, path, DocumentFrequencies(), task)
    return counts.documents, counts.passages, counts.empty


def test_documents_without_text_are_their_title_or_nothing(tmp_path: Path) -> None:
    documents = [plain_document("a", "A title", " "), plain_document("b", "", "\n"), plain_document("c", "T", "Text.")]
    path = tmp_path / "passages.jsonl"
    assert scanned(iter(documents), path) == (2, 2, 1)
    assert [(unit.title, unit.passages) for unit in read_units(path, False)] == [("", ("A title",)), ("T", ("Text.",))]


def test_sections_by_headings_and_without_them(tmp_path: Path) -> None:
    text = " ".join(f"Sentence {number} has these six words." for number in range(12))
    headed = Document("h", "T", (Section("", text), Section("Part", text)))
    path = tmp_path / "passages.jsonl"
    scanned(iter([headed, plain_document("p", "T", text * 3)]), path)
    first, second, *plain = read_units(path, True)
    assert (first.id, first.title, first.headings) == ("h#1", "T", ())
    assert (second.id, second.title, second.headings) == ("h#2", "", ("Part",))
    assert second.passages[0].startswith("Part Sentence 0")
    assert [unit.id for unit in plain] == [f"p#{number + 1}" for number in range(len(plain))]
    assert [len(unit.passages) for unit in plain[:-1]] == [4] * (len(plain) - 1)
    assert " ".join(passage for unit in plain for passage in unit.passages) == " ".join((text * 3).split())


def test_a_long_section_is_divided(tmp_path: Path) -> None:
    text = " ".join(f"Sentence {number} has these six words." for number in range(32))
    sections = (Section("First part", text), Section("Second part", "Few words."), Section("Third part", text))
    path = tmp_path / "passages.jsonl"
    scanned(iter([Document("a", "T", sections)]), path)
    units = list(read_units(path, True))
    assert max(len(unit.passages) for unit in units) == 4
    passages = [passage for unit in read_units(path, False) for passage in unit.passages]
    assert [passage for unit in units for passage in unit.passages] == passages
    assert [unit.id for unit in units] == [f"a#{number + 1}" for number in range(len(units))]
    assert [unit.title for unit in units] == ["T"] + [""] * (len(units) - 1)
    assert [heading for unit in units for heading in unit.headings] == ["First part", "Second part", "Third part"]


def test_headings_belong_to_the_section_whose_passages_hold_their_text(tmp_path: Path) -> None:
    sentences = [f"Sentence {number} has these six words." for number in range(10)]
    sections = tuple(
        Section(f"Heading number {number}", " ".join(sentences[:length])) for number, length in enumerate([1, 1, 10, 1])
    )
    path = tmp_path / "passages.jsonl"
    scanned(iter([Document("a", "T", sections)]), path, words=30)
    units = list(read_units(path, True))
    assert [unit.headings for unit in units] == [
        ("Heading number 0", "Heading number 1"),
        ("Heading number 2", "Heading number 3"),
    ]
    for unit in units:
        assert all(heading in " ".join(unit.passages) for heading in unit.headings)


def test_memory_does_not_grow_with_the_collection(tmp_path: Path) -> None:
    def documents(count: int) -> Iterator[Document]:
        for number in range(count):
            yield plain_document(str(number), f"Title {number}", f"Word{number} is new. " * 30)

    peaks = []
    for count in (100, 1000):
        tracemalloc.start()
        scanned(documents(count), tmp_path / "passages.jsonl")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # The cache of function words is bounded; without it, nothing is kept of a document.
    assert peaks[1] - peaks[0] < 500_000
