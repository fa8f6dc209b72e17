"""Documents of any text: passages hold its words in order, and a folder of them is split as a whole or not at all."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

from hypothesis import example, given
from hypothesis import strategies as st
from properties.contract import kept
from properties.mutations import mutated

from sentcompress.corpora.document import Section
from sentcompress.corpora.document_files import find_document_files, read_folder
from sentcompress.corpora.markup import marked_up
from sentcompress.corpora.readers import ReadOptions
from sentcompress.corpora.text_files import BadRecords
from sentcompress.errors import SentcompressError
from sentcompress.passages.cutting import cut, measure
from sentcompress.passages.sentences import split_sentences
from sentcompress.stages import split_documents
from sentcompress.store import WorkDirectory

PROSE = (
    "# A title\n\nDr. Smith left. He went, i.e. home!\n\n## Part\n\n- an item\n- `code` | [a](b)\n\n```\nx = 1\n```\n"
)
words = st.sampled_from([*"One two. Three? four! e.g. J. 3.5 (so) \u3002 \u4f60\u597d\u3002\u597d \n\n - #".split(" ")])
texts = st.one_of(st.text(), st.lists(words, max_size=200).map(" ".join))


@given(texts)
@example("A.B. C.\u2028D")
def test_sentences_are_the_words_in_order(text: str) -> None:
    found = split_sentences(text)
    assert all(found)
    assert "".join("".join(found).split()) == "".join(text.split())


@given(st.lists(st.tuples(st.one_of(st.just(""), st.text(max_size=20)), texts), max_size=5), st.integers(10, 60))
def test_passages_are_the_words_in_order_and_none_is_too_long(parts: list[tuple[str, str]], longest: int) -> None:
    passages = cut([Section(heading, text) for heading, text in parts], longest)
    whole = "".join("".join(heading.split()) + "".join(text.split()) for heading, text in parts)
    assert "".join("".join(passage.text.split()) for passage in passages) == whole
    assert all(passage.text and measure(passage.text) <= longest + 1 for passage in passages)
    assert [one.section for one in passages] == sorted(one.section for one in passages)


@given(texts, st.sampled_from(["md", "rst"]))
@example("[" * 20_000, "md")
@example("![" * 20_000, "md")
@example("[](" * 20_000, "md")
@example("<a " * 20_000, "md")
@example("*" * 20_000, "md")
@example("# " + "#" * 20_000 + "x", "md")
@example("<!--" * 20_000, "md")
@example("---" + "\n" * 20_000, "md")
@example("---\ntitle: " + " " * 20_000 + "x\n---\n", "md")
@example("`" * 20_000, "rst")
@example(":a" * 20_000, "rst")
@example(":a:`" + " " * 20_000 + "x", "rst")
def test_markup_of_any_text_is_read_in_bounded_time(text: str, extension: str) -> None:
    found = kept(lambda: marked_up("a", text, extension))
    assert not isinstance(found, SentcompressError)


@given(mutated(PROSE.encode() * 30, b" "), st.booleans(), st.sampled_from(["a.md", "a.rst", "a.txt"]))
def test_a_folder_of_broken_files(tmp_path: Path, content: bytes, skip: bool, name: str) -> None:
    folder = Path(mkdtemp(dir=tmp_path))
    (folder / name).write_bytes(content)
    (folder / "fine.jsonl").write_text('{"title": "T", "text": "A row."}\n')
    found = kept(lambda: list(read_folder(find_document_files(folder), folder, ReadOptions(), BadRecords(skip))), name)
    if skip:
        assert not isinstance(found, SentcompressError)
        assert found[-1].text == "T A row."


@given(mutated("".join(f"Text {n} of many.\n" for n in range(120)).encode(), b" "), st.booleans())
def test_split_documents_writes_a_whole_artifact_or_none(tmp_path: Path, content: bytes, skip: bool) -> None:
    path = Path(mkdtemp(dir=tmp_path)) / "a.txt"
    path.write_bytes(content)
    work = WorkDirectory(path.parent / "work")
    params = split_documents.Params(inputs=(str(path),), skip_bad=skip, text_as="line", passage_words=10)
    found = kept(lambda: split_documents.run(params, work))
    if isinstance(found, SentcompressError):
        assert not [left for left in work.path.rglob("*") if left.is_file() and left.suffix != ".lock"]
    else:
        assert found.facts["held_out_documents"] >= 1
