from __future__ import annotations

from sentcompress.corpora.document import Section
from sentcompress.passages.cutting import cut, measure


def sentences(count: int, words: int = 10) -> str:
    return " ".join(" ".join(["Word", *["of"] * (words - 2), f"s{number}."]) for number in range(count))


def test_passages_have_about_the_same_length() -> None:
    passages = cut([Section("", sentences(22))], 100)
    assert [len(passage.text.split()) for passage in passages] == [80, 70, 70]


def test_a_short_document_stays_whole() -> None:
    text = sentences(10)
    assert [passage.text for passage in cut([Section("", text)], 100)] == [text]
    assert cut([Section("", " \n")], 100) == []


def test_a_section_begins_a_passage_and_its_heading_stands_before_its_text() -> None:
    passages = cut([Section("", sentences(5)), Section("Second part", sentences(6)), Section("Last", "")], 70)
    assert [passage.section for passage in passages] == [0, 1]
    assert passages[1].text.startswith("Second part Word of")
    assert passages[1].text.endswith("s5. Last")


def test_a_sentence_longer_than_a_passage_is_cut_and_so_is_a_word() -> None:
    long = " ".join(f"w{number}" for number in range(250))
    assert [len(one.text.split()) for one in cut([Section("", long)], 100)] == [100, 100, 50]
    ideographs = "\u5b57" * 2500
    passages = cut([Section("", ideographs)], 100)
    assert "".join(one.text for one in passages) == ideographs
    assert all(measure(one.text) <= 100 for one in passages)
