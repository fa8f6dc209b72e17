"""The sample of a collection that checkpoints are scored on."""

from __future__ import annotations

from pathlib import Path

import pytest
from beir import with_ids, write_beir

from sentcompress.corpora import dev_collection as module
from sentcompress.corpora.dev_collection import dev_collection, sample_of
from sentcompress.errors import InputError


def write_collection(folder: Path, splits: tuple[str, ...] = ("dev",), documents: int = 60, queries: int = 12) -> Path:
    """Query n has the relevant document 2 n."""
    judged = [(f"q{n}", f"d{2 * n}", 1) for n in range(queries)]
    texts = ([f"{kind} {n}" for n in range(count)] for kind, count in (("document", documents), ("query", queries)))
    return write_beir(folder, with_ids(next(texts), "d"), with_ids(next(texts), "q"), **dict.fromkeys(splits, judged))


def test_a_small_collection_is_taken_whole(tmp_path: Path) -> None:
    sample = sample_of(dev_collection(write_collection(tmp_path / "small", ("dev", "test"))))
    assert sample.name == "small dev"
    assert sample.documents == tuple(f"document {n}" for n in range(60))
    assert sample.queries == tuple(f"query {n}" for n in range(12))
    assert sample.relevant == tuple((2 * n,) for n in range(12))
    assert (sample.judged, sample.corpus) == (12, 60)


def test_a_sample_holds_all_relevant_documents_and_some_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUERIES", 5)
    monkeypatch.setattr(module, "OTHERS", 20)
    data = dev_collection(write_collection(tmp_path / "large"))
    sample = sample_of(data)
    assert (len(sample.queries), len(sample.documents), sample.judged) == (5, 25, 5)
    for query, relevant in zip(sample.queries, sample.relevant, strict=True):
        number = int(query.split()[1])
        assert [sample.documents[place] for place in relevant] == [f"document {2 * number}"]
    assert sample_of(data) == sample
    # Also among the other documents are some that are relevant to other queries, and some that come last.
    assert len(set(sample.documents)) == 25
    assert sample.documents[-1] > "document 30"


def test_a_relevant_document_that_the_corpus_lacks_is_not_in_the_sample(tmp_path: Path) -> None:
    folder = write_collection(tmp_path / "gap")
    with (folder / "qrels" / "dev.tsv").open("a") as stream:
        stream.write("q0\tlost\t1\n")
    assert sample_of(dev_collection(folder)).relevant[0] == (0,)


def test_only_a_dev_split_or_a_collection_without_splits_is_taken(tmp_path: Path) -> None:
    folder = write_collection(tmp_path / "marco", ("dev", "dev.small", "test"))
    assert dev_collection(folder).split == "dev.small"
    for splits in (("test",), ("train", "test")):
        with pytest.raises(InputError, match=rf"no dev split to select checkpoints on, only {splits[-1]}") as caught:
            dev_collection(write_collection(tmp_path / "-".join(splits), splits))
        assert "do not select checkpoints on a test split" in str(caught.value.hint)
    folder = write_collection(tmp_path / "plain", ())
    (folder / "qrels.tsv").write_text("q0\td0\t1\n")
    assert dev_collection(folder).split is None
    with pytest.raises(InputError, match="is not a collection: it has no corpus") as caught:
        dev_collection(tmp_path)
    assert str(caught.value.hint).startswith("name a file of graded pairs, in which a line is score<TAB>")
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(InputError, match="plain has no corpus"):
        dev_collection(folder)


def test_of_a_folder_of_graded_pairs_the_file_is_named(tmp_path: Path) -> None:
    for name in ("test", "dev"):
        (tmp_path / "STS-B").mkdir(exist_ok=True)
        (tmp_path / "STS-B" / f"{name}.tsv").write_text("3\ta cat\ta dog\n1\ta\tb\n", encoding="utf-8")
    with pytest.raises(InputError, match="is a folder of graded pairs, not a collection") as caught:
        dev_collection(tmp_path)
    assert caught.value.hint == f"name a file: `dev` {tmp_path / 'STS-B' / 'dev.tsv'}"
