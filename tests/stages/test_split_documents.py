from __future__ import annotations

import gzip
import json
import random
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from beir import write_jsonl
from interrupting import interrupted
from listening import Listener

from sentcompress.commands.options import keys_of
from sentcompress.corpora.documents_artifact import CORPUS, PARTS, QUERIES, TRAIN
from sentcompress.corpora.search_texts import documents_source
from sentcompress.errors import InputError, MissingArtifactError, SentcompressError, UsageError
from sentcompress.passages import writing
from sentcompress.passages.words import words_of
from sentcompress.progress import Reporter, Task
from sentcompress.stages import augment, split_documents
from sentcompress.stages.split_documents import Params
from sentcompress.store import Artifact, WorkDirectory

NOUNS = "harbour engine violin orchard glacier court museum battery parliament river lantern vaccine tunnel".split()
VERBS = "opens measures repairs carries crosses finds keeps closes warms".split()


def sentence(generator: random.Random) -> str:
    one, other, third = generator.sample(NOUNS, 3)
    return f"The old {one} near the {other} {generator.choice(VERBS)} the {third} for {generator.randint(2, 999)} days."


def made(count: int, sentences: int = 12, seed: int = 1) -> list[dict[str, str]]:
    """Documents with a title of their own and a word that no other has."""
    generator = random.Random(seed)
    return [
        {
            "_id": str(number),
            "title": f"Report {number} on the {generator.choice(NOUNS)}",
            "text": " ".join([f"Code zq{number}x was found.", *(sentence(generator) for _ in range(sentences))]),
        }
        for number in range(count)
    ]


def run(folder: Path, *inputs: Path | str, **options: Any) -> Artifact:
    return split_documents.run(Params(inputs=tuple(map(str, inputs)), **options), WorkDirectory(folder / "work"))


def rows(artifact: Artifact, name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (artifact.path / name).read_text(encoding="utf-8").splitlines()]


def normal(text: str) -> str:
    return " ".join(words_of(text))


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "articles.jsonl", made(240))


def test_what_is_written_and_its_counts(tmp_path: Path, articles: Path) -> None:
    artifact = run(tmp_path, articles, passage_words=60)
    facts = artifact.facts
    train, corpus, queries = (rows(artifact, name) for name in (TRAIN, CORPUS, QUERIES))
    assert facts["documents"] == 240
    assert facts["held_out_documents"] == len({row["document"] for row in queries}) == 50
    assert facts["held_out_queries"] == len(queries) == len({row["_id"] for row in queries})
    assert facts["parts"] == {part: sum(row["part"] == part for row in queries) for part in PARTS}
    assert facts["corpus"] == len(corpus) == len({row["_id"] for row in corpus})
    by_kind = {kind: sum(row["kind"] == kind for row in train) for kind in ("passage", "title", "query")}
    assert by_kind == {kind: facts[f"{kind}s" if kind != "query" else "queries"] for kind in by_kind}
    assert 400 <= len(queries) <= 1000
    assert {row["kind"] for row in queries} == {"span", "keywords", "rare", "title"}
    assert facts["words"] == sum(len(words_of(f"{row['title']} {row['text']}")) for row in made(240))
    # The title stands before the first passage, in a field of its own in the collection.
    first = next(row for row in train if row["kind"] == "passage")
    assert first["text"].startswith("Report 0 on the ")
    assert all(bool(row["title"]) == row["_id"].endswith("#0") for row in corpus)


def test_nothing_of_a_held_out_document_is_trained_on(tmp_path: Path, articles: Path) -> None:
    artifact = run(tmp_path, articles)
    train, corpus, queries = (rows(artifact, name) for name in (TRAIN, CORPUS, QUERIES))
    held = {row["document"] for row in queries}
    assert not held & {row["document"] for row in train}
    seen = {normal(row["text"]) for row in train}
    assert not seen & {normal(row["text"]) for row in queries}
    # The word that only this document has.
    trained = {word for row in train for word in words_of(row["text"])}
    assert not trained & {f"zq{number}x" for number in held}
    assert held <= {row["_id"].split("#")[0] for row in corpus}
    assert all(normal(row["text"]) not in seen for row in corpus if row["_id"].split("#")[0] in held)


def test_queries_of_one_document_are_in_one_part(tmp_path: Path, articles: Path) -> None:
    queries = rows(run(tmp_path, articles), QUERIES)
    owners = {part: {row["document"] for row in queries if row["part"] == part} for part in PARTS}
    assert [len(found) for found in owners.values()] == [25, 25]
    assert not set.intersection(*owners.values())
    texts = {part: {normal(row["text"]) for row in queries if row["part"] == part} for part in PARTS}
    assert not set.intersection(*texts.values())
    shuffled = made(240)
    random.Random(5).shuffle(shuffled)
    again = rows(run(tmp_path, write_jsonl(tmp_path / "b.jsonl", shuffled), name="shuffled"), QUERIES)
    assert {(row["document"], row["part"]) for row in again} == {(row["document"], row["part"]) for row in queries}
    other = rows(run(tmp_path, articles, seed=3, name="other"), QUERIES)
    assert {row["document"] for row in other if row["part"] == "dev"} != owners["dev"]


def test_a_title_of_two_documents_is_a_query_of_one_part(tmp_path: Path) -> None:
    documents = [{**row, "title": f"Annual report {int(row['_id']) % 3}"} for row in made(240)]
    queries = rows(run(tmp_path, write_jsonl(tmp_path / "a.jsonl", documents)), QUERIES)
    titles = [row["text"] for row in queries if row["kind"] == "title"]
    assert sorted(titles) == sorted(set(titles)) != []


def test_the_collection_is_filled_up_with_training_passages(tmp_path: Path, articles: Path) -> None:
    artifact = run(tmp_path, articles, passage_words=60, corpus_passages=200)
    held = {row["document"] for row in rows(artifact, QUERIES)}
    owners = [row["_id"].split("#")[0] for row in rows(artifact, CORPUS)]
    assert len(owners) == artifact.facts["corpus"] == 200
    assert sum(owner not in held for owner in owners) > 20


def test_the_number_of_documents_without_text_is_told(tmp_path: Path) -> None:
    rows = [*made(150), *({"_id": f"empty {number}", "text": ""} for number in range(7))]
    path, notes = write_jsonl(tmp_path / "docs.jsonl", rows), Listener()
    artifact = split_documents.run(Params(inputs=(str(path),)), WorkDirectory(tmp_path / "work"), notes)
    assert "left out 7 documents without text" in notes.notes
    assert (artifact.facts["documents"], artifact.facts["skipped"]["empty_documents"]) == (150, 7)


def test_documents_of_the_same_words_stand_on_one_side(tmp_path: Path) -> None:
    documents = made(150)
    shouted = [{**row, "_id": f"again-{row['_id']}", "text": row["text"].upper() + "!!"} for row in documents]
    artifact = run(tmp_path, write_jsonl(tmp_path / "twice.jsonl", documents + shouted))
    assert artifact.facts["skipped"] == {"repeated_documents": 150}
    owners = {row["document"] for name in (TRAIN, QUERIES) for row in rows(artifact, name)}
    assert owners == {row["_id"] for row in documents}


def test_a_passage_that_a_training_document_shares_with_a_held_out_one_is_dropped(tmp_path: Path) -> None:
    shared = {"text": "This notice is printed below each of our articles and nobody has read it."}
    parts = [{"title": row["title"], "text": f"{row['text']}\n\n{shared['text']}"} for row in made(150, sentences=4)]
    artifact = run(tmp_path, write_jsonl(tmp_path / "a.jsonl", parts), passage_words=20)
    assert artifact.facts["skipped"]["passages_equal_to_held_out_texts"] > 50
    assert not any(row["text"] == shared["text"] for row in rows(artifact, TRAIN))


def test_queries_that_are_alike_are_chosen_once() -> None:
    pool = writing.QueryPool(seed=0)
    for kind, text in (("title", "What's new?"), ("title", "What’s new"), ("title", "old"), ("span", "whatʼs new")):
        pool.add(kind, text, "a document")
    assert len(pool.chosen(frozenset())) == 2


@pytest.mark.parametrize("signs", [{"'": "’", "-": "–"}, {"notice": "no\u00adtice", "th": "t\u00adh", "fi": "\ufb01"}])
def test_typographic_signs_do_not_hide_that_a_training_text_is_held_out(tmp_path: Path, signs: dict[str, str]) -> None:
    def typeset(text: str) -> str:
        for plain, sign in signs.items():
            text = text.replace(plain, sign)
        return text

    def plain_texts(artifact: Artifact, name: str) -> list[str]:
        texts = [row["text"] for row in rows(artifact, name)]
        for plain, sign in signs.items():
            texts = [text.replace(sign, plain) for text in texts]
        return texts

    notice = "This report's well-known notice is printed below each of our articles and nobody's read it."
    articles = made(240, sentences=4)
    for number, row in enumerate(articles):
        row["title"] += f" in the harbour's years 19{number // 2:03}-24"
        row["text"] += f"\n\n{notice}"
    articles = [{name: typeset(text) for name, text in row.items()} if n % 2 else row for n, row in enumerate(articles)]
    log = tmp_path / "log.txt"
    asked = [f"what's the {noun} {number}-{number}" for noun in NOUNS for number in range(10)]
    log.write_text("".join(f"{query}\n{typeset(query)}\n" for query in asked), encoding="utf-8")
    artifact = run(tmp_path, write_jsonl(tmp_path / "a.jsonl", articles), passage_words=20, queries=(log,))
    assert artifact.facts["logged_queries"] == len(asked)
    train, queries, corpus = (set(plain_texts(artifact, name)) for name in (TRAIN, QUERIES, CORPUS))
    assert notice in corpus - train
    assert not train & queries
    assert len(queries) == len(rows(artifact, QUERIES)), "each is there once"


def test_a_training_document_with_the_words_of_a_held_out_title_or_query_is_dropped(tmp_path: Path) -> None:
    articles = [{**row, "title": row["title"] if n % 2 else f"Report{n}"} for n, row in enumerate(made(240))]
    bare = [{"_id": f"bare {row['_id']}", "text": row["title"].upper()} for row in articles]
    path = write_jsonl(tmp_path / "a.jsonl", [*articles, *bare])
    spans = [row["text"] for row in rows(run(tmp_path, path, name="first"), QUERIES) if row["kind"] == "span"]
    more = [{"_id": f"span {number}", "text": span} for number, span in enumerate(spans[:20]) if "eport" not in span]
    artifact = run(tmp_path, write_jsonl(tmp_path / "b.jsonl", [*articles, *bare, *more]), corpus_passages=1)
    queries, train = (rows(artifact, name) for name in (QUERIES, TRAIN))
    held = {row["_id"].split("#")[0] for row in rows(artifact, CORPUS)}
    titles = {normal(row["title"]) for row in articles if row["_id"] in held}
    seen = {normal(row["text"]) for row in train}
    assert not seen & {normal(row["text"]) for row in queries}
    assert not seen & titles
    asked = {normal(row["text"]) for row in queries}
    dropped = [row for row in [*bare, *more] if row["_id"] not in held and normal(row["text"]) in titles | asked]
    assert artifact.facts["skipped"]["passages_equal_to_held_out_texts"] == len(dropped)
    assert {row["_id"].split()[0] for row in dropped} == {"bare", "span"}


def test_a_training_title_with_the_words_of_a_held_out_passage_is_dropped(tmp_path: Path) -> None:
    notices = [f"Notice number {number} of the old harbour" for number in range(240)]
    whole = [{"_id": f"whole {number}", "text": notice} for number, notice in enumerate(notices)]
    articles = [{**row, "title": notice} for row, notice in zip(made(240), notices, strict=True)]
    artifact = run(tmp_path, write_jsonl(tmp_path / "a.jsonl", [*whole, *articles]))
    held = {row["document"] for row in rows(artifact, QUERIES)} & {row["_id"] for row in whole}
    texts = {normal(row["text"]) for row in whole if row["_id"] in held}
    assert len(held) > 10
    assert not texts & {normal(row["text"]) for row in rows(artifact, TRAIN)}


def test_the_same_seed_gives_the_same_bytes_and_another_holds_out_others(tmp_path: Path, articles: Path) -> None:
    first, again = run(tmp_path, articles), run(tmp_path, articles, name="again")
    assert first.digest == again.digest
    other = run(tmp_path, articles, name="other", seed=7)
    held = [{row["document"] for row in rows(one, QUERIES)} for one in (first, other)]
    assert held[0] != held[1]
    # Which documents are held out does not depend on their order.
    turned = run(tmp_path, write_jsonl(tmp_path / "turned.jsonl", made(240)[::-1]), name="turned")
    assert {row["document"] for row in rows(turned, QUERIES)} == held[0]


def test_a_fresh_result_is_not_made_again_and_other_options_need_a_name(tmp_path: Path, articles: Path) -> None:
    first = run(tmp_path, articles)
    assert run(tmp_path, articles).manifest["finished"] == first.manifest["finished"]
    with pytest.raises(UsageError, match="already exists with different options"):
        run(tmp_path, articles, passage_words=50)


def test_interrupted_while_writing_it_goes_on_without_reading_again(
    tmp_path: Path, articles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(tmp_path, articles, name="whole")
    with interrupted(writing, "_write_training"):
        run(tmp_path, articles, name="cut")
    monkeypatch.delattr(split_documents, "scan")
    resumed = run(tmp_path, articles, name="cut")
    assert resumed.digest == whole.digest
    assert not (resumed.path / ".scaffold").exists()


def test_a_folder_of_files(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    (folder / "guide").mkdir(parents=True)
    for number, row in enumerate(made(120)):
        suffix = ("txt", "md", "rst.gz")[number % 3]
        head = f"{row['title']}\n{'=' * 60}\n\n" if suffix != "txt" else ""
        content = f"{head}{row['text']}".encode()
        path = folder / "guide" / f"page-{number}.{suffix}"
        path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    (folder / "logo.png").write_bytes(b"\x89PNG")
    (folder / ".hidden.txt").write_text("secret")
    listener = Listener()
    artifact = split_documents.run(Params(inputs=(str(folder),)), WorkDirectory(tmp_path / "work"), listener)
    assert artifact.facts["documents"] == 120
    assert artifact.facts["held_out_by"] == "document"
    assert any("1 .png" in note for note in listener.notes)
    train = rows(artifact, TRAIN)
    assert all(row["document"].startswith("guide/page-") for row in train)
    assert not any("secret" in row["text"] or "====" in row["text"] for row in train)
    assert {row["text"][:6] for row in train if row["kind"] == "title"} == {"Report"}


def test_no_query_is_punctuation_only(tmp_path: Path) -> None:
    rules = "= - - / = - - + * - - = ~ - - & - - % = - - ^ - - | -"
    documents = [{"_id": row["_id"], "text": f"Table {row['_id']}. {rules}"} for row in made(120)]
    artifact = run(tmp_path, write_jsonl(tmp_path / "tables.jsonl", documents))
    queries = [*rows(artifact, QUERIES), *(row for row in rows(artifact, TRAIN) if row["kind"] == "query")]
    assert len(queries) > 50
    assert all(words_of(row["text"]) for row in queries)


def test_a_few_long_documents_are_held_out_by_section(tmp_path: Path) -> None:
    folder = tmp_path / "manual"
    folder.mkdir()
    for number in range(6):
        parts = [f"## {row['title']}\n\n{row['text']}" for row in made(20, seed=number)]
        (folder / f"{number}.md").write_text(f"# Manual {number}\n\n" + "\n\n".join(parts))
    listener = Listener()
    artifact = split_documents.run(Params(inputs=(str(folder),)), WorkDirectory(tmp_path / "work"), listener)
    assert artifact.facts["held_out_by"] == "section"
    assert artifact.facts["held_out_documents"] >= 20
    assert any("held out by section" in note for note in listener.notes)
    held = {row["document"] for row in rows(artifact, QUERIES)}
    assert not held & {row["document"] for row in rows(artifact, TRAIN)}


def test_few_long_chapters_are_not_held_out_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "books"
    folder.mkdir()
    for number in range(4):
        chapters = [f"## {row['title']}\n\n{row['text']}" for row in made(2, sentences=400, seed=number)]
        (folder / f"{number}.md").write_text(f"# Book {number}\n\nIts preface.\n\n" + "\n\n".join(chapters))
    artifact = run(tmp_path, folder)
    test = [row["document"] for row in rows(artifact, QUERIES) if row["part"] == "test"]
    assert len(set(test)) >= 8
    assert max(test.count(one) for one in set(test)) < len(test) / 4


def test_one_document_of_most_passages_is_held_out_by_section(tmp_path: Path) -> None:
    articles = write_jsonl(tmp_path / "articles.jsonl", [*made(120), {**made(1, 2000)[0], "_id": "book"}])
    listener = Listener()
    artifact = split_documents.run(Params(inputs=(str(articles),)), WorkDirectory(tmp_path / "work"), listener)
    assert any(re.match(r"one document has \d\d% of the passages: held out by", note) for note in listener.notes)
    held, trained = ({row["document"].split("#")[0] for row in rows(artifact, name)} for name in (QUERIES, TRAIN))
    assert "book" in held & trained


def test_a_query_log_is_split_too(tmp_path: Path, articles: Path) -> None:
    log = [f"where is the {noun} {number}" for noun in NOUNS for number in range(10)]
    path = tmp_path / "log.txt"
    path.write_text("".join(f"{query}\n{query.upper()}?\n" for query in log))
    artifact = run(tmp_path, articles, queries=(path,))
    held = {row["text"] for row in rows(artifact, QUERIES) if row["kind"] == "log"}
    trained = {row["text"] for row in rows(artifact, TRAIN) if row["kind"] == "query" and not row["document"]}
    assert artifact.facts["logged_queries"] == 130
    assert artifact.facts["held_out_logged_queries"] == 50
    assert len(held) == 50
    parts = [row["part"] for row in rows(artifact, QUERIES) if row["kind"] == "log"]
    assert [parts.count(part) for part in PARTS] == [25, 25]
    assert held | trained == set(log)
    assert not held & trained
    table = write_jsonl(tmp_path / "log.jsonl", [{"question": query} for query in log])
    assert run(tmp_path, articles, queries=(table,), name="table").digest == artifact.digest
    with pytest.raises(InputError, match="no column of queries"):
        run(tmp_path, articles, queries=(write_jsonl(tmp_path / "b.jsonl", [{"qury": "x"}]),), name="bad")


@pytest.mark.parametrize(
    ("row", "fault"),
    [({"query": 5}, "'query' is a number, not text"), ({"text": "x"}, r"no 'query' \(there: text\)")],
)
def test_rows_of_a_query_log_without_a_query_are_not_left_out_silently(
    tmp_path: Path, articles: Path, row: dict[str, object], fault: str
) -> None:
    log = write_jsonl(
        tmp_path / "log.jsonl", [*({"query": f"where is {noun}"} for noun in NOUNS), row, {"query": None}]
    )
    with pytest.raises(InputError, match=f"log.jsonl, line {len(NOUNS) + 1}: {fault}") as raised:
        run(tmp_path, articles, queries=(log,))
    assert "`skip_bad`" in str(raised.value.hint)
    facts = run(tmp_path, articles, queries=(log,), skip_bad=True).facts
    assert facts["logged_queries"] == len(NOUNS)
    assert facts["skipped"]["bad_lines"] == 1


def test_a_logged_query_that_is_also_made_from_the_text_is_written_once(tmp_path: Path, articles: Path) -> None:
    made_ones = [row["text"] for row in rows(run(tmp_path, articles, name="first"), QUERIES)]
    path = tmp_path / "log.txt"
    path.write_text("".join(f"{query.upper()}\n" for query in made_ones))
    artifact = run(tmp_path, articles, queries=(path,))
    queries = rows(artifact, QUERIES)
    assert len({normal(row["text"]) for row in queries}) == len(queries) == artifact.facts["held_out_queries"]
    logged = [row for row in queries if row["kind"] == "log"]
    assert len(logged) == artifact.facts["held_out_logged_queries"] >= 50


def test_a_query_log_is_the_same_from_any_folder(
    tmp_path: Path, articles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log.txt"
    log.write_text("".join(f"where is the {noun}\n" for noun in NOUNS))
    first = run(tmp_path, articles, queries=(log,))
    monkeypatch.chdir(tmp_path)
    assert run(tmp_path, articles, queries=(Path("log.txt"),)).manifest["finished"] == first.manifest["finished"]
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert run(tmp_path, articles, queries=(Path("../log.txt"),)).manifest["finished"] == first.manifest["finished"]
    (tmp_path / "more.txt").write_text("where is the ferry\n")
    with pytest.raises(UsageError, match="already exists with different options"):
        run(tmp_path, articles, queries=(tmp_path / "more.txt",))


def test_columns_make_one_document_in_their_order(tmp_path: Path) -> None:
    lines = ["headline,summary,body"]
    lines += [f'Title {row["_id"]},Summary {row["_id"]}.,"{row["text"]}"' for row in made(120, sentences=3)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines) + "\n")
    artifact = run(tmp_path, path, column=("headline", "summary", "body"), passage_words=200)
    first = next(row["text"] for row in rows(artifact, TRAIN) if row["kind"] == "passage")
    assert first.startswith("Title 0 Summary 0. Code zq0x was found.")
    with pytest.raises(InputError, match="no column 'boddy'") as caught:
        run(tmp_path, path, column=("boddy",), name="typo")
    with pytest.raises(InputError, match="no column 'boddy'"):  # and not that this result has other options
        run(tmp_path, path, column=("boddy",))
    assert "did you mean body?" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["海港引擎小提琴{}。", "🎉🚀{}"])
def test_documents_that_no_query_can_be_made_from(tmp_path: Path, text: str) -> None:
    """compress began to train on them, and then said that a file of its own is empty."""
    lines = "".join(text.format("😀" * number if "🎉" in text else number) + "\n" for number in range(1, 200))
    (tmp_path / "a.txt").write_text(lines, encoding="utf-8")
    with pytest.raises(InputError, match=r"too few queries can be made .*\(0 for dev, 0 for test\)"):
        run(tmp_path, tmp_path / "a.txt")
    assert not WorkDirectory(tmp_path / "work").unfinished("documents")
    (tmp_path / "log.txt").write_text("".join(f"harbour {number}\n" for number in range(20)), encoding="utf-8")
    facts = run(tmp_path, tmp_path / "a.txt", queries=(tmp_path / "log.txt",)).facts
    assert facts["parts"] == {"dev": 5, "test": 5}


def test_columns_of_text_that_are_not_read_are_told(tmp_path: Path) -> None:
    renamed = [{"Titel": row["title"], "text": row["text"], "sku": "a1"} for row in made(120, sentences=3)]
    path, listener = write_jsonl(tmp_path / "a.jsonl", renamed), Listener()
    split_documents.run(Params(inputs=(str(path),)), WorkDirectory(tmp_path / "work"), listener)
    assert [note for note in listener.notes if "column" in note] == [
        f"{path}: columns of text that are not read: Titel; to read them, name all columns with `column`"
    ]


def test_columns_of_which_each_text_is_a_document_are_named(tmp_path: Path) -> None:
    """Of a table of pairs, both columns would be taken without a word; as many as are wanted can be chosen."""
    generator = random.Random(3)
    folder = tmp_path / "pairs"
    folder.mkdir()
    for name in ("one", "two"):
        pairs = [{"question1": sentence(generator), "question2": sentence(generator)} for _ in range(90)]
        write_jsonl(folder / f"{name}.jsonl", pairs)

    def told(path: Path, **options: Any) -> tuple[Artifact, list[str]]:
        listener, work = Listener(), WorkDirectory(tmp_path / "work")
        artifact = split_documents.run(Params(inputs=(str(path),), name=path.stem, **options), work, listener)
        return artifact, [note for note in listener.notes if "column" in note]

    say = (
        "each text in the columns question1, question2 is a document of its own; name the columns to take with `column`"
    )
    artifact, notes = told(folder / "one.jsonl")
    assert notes == [f"{folder / 'one.jsonl'}: {say}"]
    assert (artifact.facts["documents"], artifact.facts["columns"]) == (180, ["question1", "question2"])
    assert told(folder)[1] == [f"{folder / 'one.jsonl'} and 1 other table: {say}"]
    artifact, notes = told(folder, column=("question2",), force=True)
    assert (artifact.facts["documents"], notes) == (180, [])
    assert "columns" not in artifact.facts


def test_a_column_split_counts_in_pairs_and_not_in_documents(tmp_path: Path) -> None:
    generator = random.Random(4)
    rows = [{"split": split} for split in ("train", "test") for _ in range(60)]
    pairs = [{"sentence1": sentence(generator), "sentence2": sentence(generator), **row} for row in rows]
    texts = [{"text": f"{sentence(generator)} {sentence(generator)}", **row} for row in rows]
    assert run(tmp_path, write_jsonl(tmp_path / "pairs.jsonl", pairs), split="test").facts["documents"] == 120
    assert run(tmp_path, write_jsonl(tmp_path / "texts.jsonl", texts), name="texts").facts["documents"] == 120
    listener = Listener()
    asked = Params(inputs=(str(tmp_path / "pairs.jsonl"), str(tmp_path / "texts.jsonl")), name="both")
    assert split_documents.run(asked, WorkDirectory(tmp_path / "work"), listener).facts["documents"] == 240
    assert "left out 60 rows whose column split is not train" in listener.notes
    with pytest.raises(InputError, match="has no rows of split 'dev'") as raised:
        run(tmp_path, tmp_path / "pairs.jsonl", split="dev", name="none")
    assert raised.value.hint == "its splits: test, train"
    said = keys_of(Params)["split"].opt.help
    assert said == "Split of a hub data set, or of a table of pairs with a column split."


def test_the_column_of_ids_can_be_named(tmp_path: Path) -> None:
    documents = [{"url": f"https://a.org/{one.pop('_id')}", **one} for one in made(240)]
    made_of = run(tmp_path, write_jsonl(tmp_path / "a.jsonl", documents), id_column="url")
    ids = {row["_id"] for row in rows(made_of, "held-out/corpus.jsonl")}
    assert ids <= {f"https://a.org/{number}#{passage}" for number in range(240) for passage in range(9)}


class _Counting(Reporter):
    """Counts what each phase advances by."""

    def __init__(self) -> None:
        self.counted: dict[str, tuple[int | None, int]] = {}

    @contextmanager
    def track(self, description: str, total: int | None = None, unit: str = "sentences") -> Iterator[Task]:
        with super().track(description, total, unit) as task:
            calls: list[int] = []
            task.advance = lambda amount=1: calls.append(amount)  # type: ignore[method-assign]
            yield task
        self.counted[description] = total, sum(calls)


def test_each_document_counts_once_in_the_progress(tmp_path: Path, articles: Path) -> None:
    reporter = _Counting()
    split_documents.run(Params(inputs=(str(articles),)), WorkDirectory(tmp_path / "work"), reporter)
    assert reporter.counted["cutting into passages"] == (None, 240)
    assert reporter.counted["writing"] == (240, 240)


def test_lines_paragraphs_and_files_of_text(tmp_path: Path) -> None:
    texts = [row["text"] for row in made(120, sentences=4)]
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"{text}\n\n" for text in texts))
    by_line = run(tmp_path, lines, name="lines").facts
    assert (by_line["documents"], by_line["skipped"]) == (120, {}), "a blank line is no document"
    wrapped = tmp_path / "wrapped.txt"
    wrapped.write_text("\n\n".join(text.replace(" for ", "\nfor ").replace(" near ", "\nnear ") for text in texts))
    by_paragraph = run(tmp_path, wrapped, name="wrapped")
    assert by_paragraph.facts["documents"] == 120
    assert [row["text"] for row in rows(by_paragraph, TRAIN)] == [
        row["text"] for row in rows(run(tmp_path, lines, name="again"), TRAIN)
    ]
    assert run(tmp_path, wrapped, text_as="file", name="file", passage_words=20).facts["documents"] == 1


def test_too_little_text_is_an_error_that_says_how_much_is_needed(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "few.jsonl", [*made(10, sentences=2), {"_id": "11", "text": " "}])
    with pytest.raises(InputError, match=r"10 documents \(1 more without text\) with 10 distinct .* at least 100"):
        run(tmp_path, path)
    same = tmp_path / "same.txt"
    same.write_text("One line.\n" * 500)
    with pytest.raises(InputError, match=r"500 documents .* 1 distinct"):
        run(tmp_path, same)
    assert WorkDirectory(tmp_path / "work").unfinished("documents") == []


def test_a_folder_without_text_says_what_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    with pytest.raises(InputError, match="it is empty"):
        run(tmp_path, folder)
    for name in ("a.png", "b.png", "c.pdf", "LICENSE"):
        (folder / name).write_bytes(b"\x89PNG\0")
    with pytest.raises(InputError, match=r"2 \.png, 1 without extension, 1 \.pdf|2 \.png") as caught:
        run(tmp_path, folder)
    assert str(caught.value.hint).endswith("convert .pdf with pdftotext first")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        ("Caf\u00e9\n".encode("latin-1") * 200, "not UTF-8"),
        ("A text.\n".encode("utf-16"), "UTF-16"),
        (b"%PDF-1.7 \0\1", "PDF"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_the_name_of_the_file(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        run(tmp_path, path)
    assert "a.txt" in caught.value.message
    assert caught.value.hint


def test_a_bad_file_of_a_folder_can_be_skipped(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for row in made(120, sentences=3):
        (folder / f"{row['_id']}.txt").write_text(row["text"])
    (folder / "bad.txt").write_bytes(b"\0\1\2")
    with pytest.raises(InputError, match=r"bad\.txt is a binary file") as caught:
        run(tmp_path, folder)
    assert "`skip_bad`" in str(caught.value.hint)
    with pytest.warns(UserWarning, match="skipped 1 unreadable line or file; the first: "):
        assert run(tmp_path, folder, skip_bad=True).facts["skipped"] == {"bad_lines": 1}


def test_a_skipped_file_is_not_called_empty(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for row in made(10, sentences=2):
        (folder / f"{row['_id']}.md").write_text(row["text"])
    (folder / "bad.md").write_bytes(b"caf\xe9\n")
    with (
        pytest.warns(UserWarning, match="skipped 1 unreadable line or file"),
        pytest.raises(InputError, match=r"10 documents \(1 more without text that can be read\)"),
    ):
        run(tmp_path, folder, skip_bad=True)


def test_repeated_ids_and_other_languages_are_told(tmp_path: Path) -> None:
    generator = random.Random(3)
    syllables = ["ka", "lo", "mi", "tu", "ras", "eno", "vek"]

    def word() -> str:
        return "".join(generator.choices(syllables, k=3))

    documents = [{"_id": "same", "text": " ".join(word() for _ in range(30)) + "."} for _ in range(120)]
    listener = Listener()
    path = write_jsonl(tmp_path / "a.jsonl", documents)
    artifact = split_documents.run(Params(inputs=(str(path),)), WorkDirectory(tmp_path / "work"), listener)
    assert artifact.facts["repeated_ids"] == 120
    assert any("with the id of another one" in warning for warning in listener.warnings)
    assert any("English function words" in warning for warning in listener.warnings)
    ids = [row["_id"] for row in rows(artifact, CORPUS)]
    assert len(ids) == len(set(ids)) == 120


def test_a_part_of_the_documents_in_another_language_is_told(tmp_path: Path) -> None:
    german = "Das Haus am Hafen wird von der Stadt jeden Winter renoviert und ist für Besucher dann nicht zugänglich."
    others = [{"_id": f"g{number}", "text": f"{number} {german} {german}"} for number in range(30)]
    for count, told in ((10, False), (30, True)):
        path = write_jsonl(tmp_path / f"{count}.jsonl", [*made(120), *others[:count]])
        listener = Listener()
        split_documents.run(Params(inputs=(str(path),)), WorkDirectory(tmp_path / f"work{count}"), listener)
        warning = f"{count} of {120 + count} documents have few English function words"
        assert any(warning in one for one in listener.warnings) == told


def test_queries_of_documents_that_share_an_id_name_them_as_the_collection_does(tmp_path: Path) -> None:
    documents = [{**row, "_id": f"page {number // 6}"} for number, row in enumerate(made(240))]
    path = write_jsonl(tmp_path / "a.jsonl", documents)
    with pytest.warns(UserWarning, match="240 documents with the id of another one"):
        artifact = run(tmp_path, path, passage_words=60, corpus_passages=1000)
    passages = {row["_id"]: f"{row['title']} {row['text']}".strip() for row in rows(artifact, CORPUS)}
    queries = rows(artifact, QUERIES)
    owners = {row["document"] for row in queries}
    assert len(owners) == artifact.facts["held_out_documents"] == 50
    assert owners <= {one.rpartition("#")[0] for one in passages}
    assert not owners & {row["document"] for row in rows(artifact, TRAIN)}
    # So the passages that the queries were made from are half of a sample.
    read = documents_source(WorkDirectory(tmp_path / "work"), None, "dev").read(queries=5, passages=20, seed=1)
    of_queries = {row["document"] for row in queries if row["text"] in read.queries}
    near = {text for one, text in passages.items() if one.rpartition("#")[0] in of_queries}
    assert len(near & set(read.passages)) >= 10


def test_of_a_collection_folder_only_the_corpus_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "scifact"
    (folder / "qrels").mkdir(parents=True)
    write_jsonl(folder / "corpus.jsonl", made(120))
    write_jsonl(folder / "queries.jsonl", [{"_id": "1", "text": "a judged query"}])
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\t1\t1\n")
    artifact = run(tmp_path, folder)
    assert artifact.facts["documents"] == 120
    assert not any("judged" in row["text"] for name in (TRAIN, QUERIES) for row in rows(artifact, name))


def test_augment_reads_the_artifact(tmp_path: Path, articles: Path) -> None:
    split = run(tmp_path, articles)
    work = WorkDirectory(tmp_path / "work")
    listener = Listener()
    table = augment.run(augment.Params(inputs=("documents/main",)), work, listener)
    assert table.inputs == {"documents/main": split.digest}
    texts = {row["text"] for row in rows(split, TRAIN)}
    assert table.facts["rows"] == table.facts["originals"] == len(texts)
    assert any("no copies are made" in note for note in listener.notes)
    with pytest.raises(MissingArtifactError, match="no documents named 'mian'"):
        augment.run(augment.Params(inputs=("documents/mian",)), work)
    # With new documents, the table is made again.
    shutil.copy(articles, tmp_path / "old.jsonl")
    write_jsonl(articles, made(260))
    newer = run(tmp_path, articles)
    assert augment.run(augment.Params(inputs=("documents/main",)), work).inputs == {"documents/main": newer.digest}


def test_a_result_is_no_document(tmp_path: Path, articles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, articles)
    work = WorkDirectory(tmp_path / "work")
    with pytest.raises(InputError, match="documents/main is a result of split-documents") as refused:
        split_documents.run(Params(inputs=("documents/main",), name="again"), work)
    assert refused.value.hint == "name the documents that it was made from"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "documents").mkdir()
    shutil.copy(articles, tmp_path / "documents" / "main")
    with pytest.raises(InputError) as refused:
        split_documents.run(Params(inputs=("documents/main",), name="again"), work)
    assert refused.value.alternatives[1] == "write ./documents/main for the file or folder of that path"
    assert not work.has("documents", "again")


def test_faults_of_options_are_told_before_anything_is_read(tmp_path: Path) -> None:
    params = Params(inputs=(), queries=(tmp_path / "none.txt",), passage_words=3, held_out=0.9, text_as="book")
    with pytest.raises(UsageError, match="5 errors"):
        split_documents.run(params, WorkDirectory(tmp_path / "work"))
    with pytest.raises(SentcompressError, match="no such file"):
        run(tmp_path, tmp_path / "missing.jsonl")
