from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from beir import write_jsonl
from doubling import Doubling
from listening import Listener

from sentcompress.augmentations.apertium import find_pivots
from sentcompress.augmentations.wordnet import find_wordnet
from sentcompress.corpora import sentence_table
from sentcompress.errors import InputError, UsageError
from sentcompress.passages.words import words_of
from sentcompress.stages import augment
from sentcompress.stages.augment import Params
from sentcompress.store import Artifact, WorkDirectory

ROOT = Path(__file__).resolve().parents[2]
PLAIN = {"wordnet": 0, "back_translate": 0}
needs_wordnet = pytest.mark.skipif(find_wordnet() is None, reason="no WordNet (apt-get install wordnet-base)")
needs_apertium = pytest.mark.skipif(not find_pivots(), reason="no apertium with a pair of English")


def rows_of(artifact: Artifact) -> list[dict[str, Any]]:
    files = sorted(artifact.path.glob("sentences-*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def triplets_of(artifact: Artifact) -> list[tuple[int, int, int]]:
    return [tuple(row.values()) for row in pq.read_table(artifact.path / "triplets.parquet").to_pylist()]


def run(folder: Path, *inputs: Path, **options: Any) -> Artifact:
    params = Params(inputs=tuple(map(str, inputs)), **{**PLAIN, **options})
    return augment.run(params, WorkDirectory(folder / "work"))


@pytest.fixture
def nli(tmp_path: Path) -> Path:
    rows = [
        ("A man  plays\n a guitar.", "A man makes music.", "entailment"),
        ("A man plays a guitar.", "A man sleeps.", "contradiction"),
        ("A dog runs.", "A cat sits.", "-"),
        ("Two women walk.", "A man sleeps.", "contradiction"),
        ("Two women walk.", "", "entailment"),
    ]
    path = tmp_path / "nli.jsonl"
    lines = (json.dumps({"premise": p, "hypothesis": h, "label": label}) for p, h, label in rows)
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(("column", "asked"), [("domain", None), ("genre", "genre")])
def test_a_column_tells_the_domains_and_copies_have_their_parents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str, asked: str | None
) -> None:
    monkeypatch.setattr(sentence_table, "FILE_ROWS", 2)
    told = ["fiction", "travel", None, "fiction", "travel"]
    lines = [json.dumps({"text": f"A man makes music {n}.", column: said}) for n, said in enumerate(told)]
    path = tmp_path / "told.jsonl"
    path.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(augment, "wordnet_spec", lambda *_: Doubling())
    artifact = run(tmp_path, path, domain=asked, wordnet=1)
    rows = rows_of(artifact)
    assert [row["domain"] for row in rows] == [said or "" for said in told] * 2
    assert [row["text"] for row in rows[5:]] == [f"{row['text']} {row['text']}" for row in rows[:5]]
    assert sentence_table.SentenceTable(artifact.path).domains().tolist() == [0, 1, 2, 0, 1] * 2


def test_how_an_augmenter_computes_is_said_and_recorded(
    tmp_path: Path, nli: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(augment, "wordnet_spec", lambda *_: Doubling(note="float32 on cpu"))
    listener = Listener()
    params = Params(inputs=(str(nli),), wordnet=1, back_translate=0)
    artifact = augment.run(params, WorkDirectory(tmp_path / "work"), listener)
    assert "wordnet: float32 on cpu" in listener.notes
    assert artifact.facts["computed"] == {"wordnet": "float32 on cpu"}
    assert "computed" not in run(tmp_path / "other", nli).facts


def test_a_missing_translator_is_told_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object) -> None:
        raise InputError("sacremoses is not installed", "install it")

    monkeypatch.setattr(augment, "back_translation_spec", absent)
    with pytest.raises(InputError, match="sacremoses is not installed"):
        run(tmp_path, tmp_path / "there is no such file.txt", back_translate=1, translator=("nlpaug",))


def test_a_translator_that_nothing_needs_is_told(tmp_path: Path, nli: Path) -> None:
    listener = Listener()
    params = Params(inputs=(str(nli),), wordnet=0, back_translate=0, translator=("nlpaug",))
    augment.run(params, WorkDirectory(tmp_path / "work"), listener)
    assert listener.warnings == ["`translator` is ignored, because `back_translate` is 0"]


def test_without_a_domain_all_is_one(tmp_path: Path, nli: Path) -> None:
    table = sentence_table.SentenceTable(run(tmp_path, nli).path)
    assert table.domain_names(0) == [""] * 4
    assert table.domains().tolist() == [0] * 4


def test_a_domain_column_that_is_not_there_is_a_fault(tmp_path: Path, nli: Path) -> None:
    with pytest.raises(InputError, match="no column 'gnre'") as caught:
        run(tmp_path, nli, domain="gnre")
    assert "premise" in str(caught.value.hint)
    plain = tmp_path / "plain.txt"
    plain.write_text("A man sleeps.\n")
    with pytest.raises(InputError, match="no table in") as caught:
        run(tmp_path, plain, domain="genre")
    assert "leave out `domain`" in str(caught.value.hint)


def test_rows_of_other_splits_are_counted(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", ({"text": f"Text {n}.", "split": s} for n, s in enumerate("abb")))
    listener = Listener()
    artifact = augment.run(
        Params(inputs=(str(path),), split="a", wordnet=0, back_translate=0), WorkDirectory(tmp_path / "work"), listener
    )
    assert artifact.facts["originals"] == 1
    assert "left out 2 rows whose column split is not a (`split` chooses)" in listener.notes


def test_distinct_sentences_in_order_with_triplets(tmp_path: Path, nli: Path) -> None:
    artifact = run(tmp_path, nli)
    rows = rows_of(artifact)
    assert [row["text"] for row in rows] == [
        "A man plays a guitar.",
        "A man makes music.",
        "A man sleeps.",
        "Two women walk.",
    ]
    assert [row["row"] for row in rows] == [0, 1, 2, 3]
    assert {(row["source"], row["parent"], row["origin"]) for row in rows} == {("original", -1, "nli.jsonl")}
    assert triplets_of(artifact) == [(0, 1, 2)]
    facts = artifact.facts
    assert facts["rows"] == facts["originals"] == 4
    assert facts["triplets"] == 1
    assert facts["skipped"] == {"no_gold_label": 1, "blank": 1, "duplicates": 3}


def write_glue(folder: Path) -> list[Path]:
    """A file of each task of GLUE that SimTDE's teacher is trained on, with one triplet of each kind."""
    files = {
        "QQP.tsv": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
        "0\t1\t2\tHow old is Rome?\tWhat is the age of Rome?\t1\n1\t1\t3\tHow old is Rome?\tHow large is Rome?\t0\n",
        "QNLI.tsv": "index\tquestion\tsentence\tlabel\n0\tWho built it?\tRomans built it.\tentailment\n"
        "1\tWho built it?\tIt has two towers.\tnot_entailment\n",
        "MRPC.tsv": "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\tShares fell.\tThe shares dropped.\n"
        "0\t3\t2\tShares rose.\tThe shares dropped.\n",
    }
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return [folder / name for name in files]


def test_duplicates_answers_and_paraphrases_become_triplets(tmp_path: Path) -> None:
    artifact = run(tmp_path, *write_glue(tmp_path))
    texts = [row["text"] for row in rows_of(artifact)]
    assert [tuple(texts[row] for row in triplet) for triplet in triplets_of(artifact)] == [
        ("How old is Rome?", "What is the age of Rome?", "How large is Rome?"),
        ("Who built it?", "Romans built it.", "It has two towers."),
        # Either sentence of a paraphrase is an anchor.
        ("The shares dropped.", "Shares fell.", "Shares rose."),
    ]


def texts_of(artifact: Artifact) -> list[str]:
    return [row["text"] for row in rows_of(artifact)]


def test_a_title_is_part_of_its_document(tmp_path: Path) -> None:
    rows = [{"_id": "1", "title": "Cats", "text": "They sleep."}, {"_id": "2", "title": "", "text": "Dogs run."}]
    path = write_jsonl(tmp_path / "corpus.jsonl", rows)
    assert texts_of(run(tmp_path, path)) == ["Cats They sleep.", "Dogs run."]
    assert texts_of(run(tmp_path, path, column=("text",), name="text")) == ["They sleep.", "Dogs run."]


def test_several_columns_are_joined_or_separate_sentences(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("title,body\nCats,They sleep.\nDogs,They run.\n")
    assert texts_of(run(tmp_path, path)) == ["Cats They sleep.", "Dogs They run."]
    columns = ("body", "title")
    assert texts_of(run(tmp_path, path, column=columns, name="joined")) == ["They sleep. Cats", "They run. Dogs"]
    separate = run(tmp_path, path, column=columns, separate_columns=True, name="separate")
    assert texts_of(separate) == ["They sleep.", "Cats", "They run.", "Dogs"]
    with pytest.raises(UsageError, match="`separate_columns` needs `column` at least twice"):
        run(tmp_path, path, separate_columns=True)


def test_a_text_is_read_by_paragraphs_and_tables_stay_as_they_are(tmp_path: Path, nli: Path) -> None:
    (tmp_path / "a.txt").write_text("One line\nand another.\n\nA third.\n")
    artifact = run(tmp_path, nli, tmp_path / "a.txt", text_as="paragraph")
    assert texts_of(artifact)[4:] == ["One line and another.", "A third."]
    assert artifact.facts["triplets"] == 1


def test_folders_are_read_and_of_a_collection_only_the_corpus(tmp_path: Path, nli: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    nli.rename(folder / "nli.jsonl")
    (folder / "page.md").write_text("# A title\n\nSome *text*.\n")
    (folder / "notes.txt").write_text("One line.\nAnother line.\n")
    artifact = run(tmp_path, folder)
    assert artifact.facts["triplets"] == 1
    assert texts_of(artifact)[4:] == ["One line. Another line.", "A title Some text."]
    assert list(artifact.inputs) == [f"file:{folder.resolve()}"]
    by_line = run(tmp_path, folder, text_as="line", name="lines")
    assert texts_of(by_line)[4:] == ["One line.", "Another line.", "# A title", "Some *text*."]
    (folder / "page.md").rename(folder / "other.md")
    assert run(tmp_path, folder).inputs != artifact.inputs
    collection = tmp_path / "beir"
    collection.mkdir()
    (collection / "corpus.jsonl").write_text('{"_id": "1", "title": "A", "text": "document"}\n')
    (collection / "queries.jsonl").write_text('{"_id": "1", "text": "a judged query"}\n')
    assert texts_of(run(tmp_path, collection, name="beir")) == ["A document"]


def test_documents_are_copied_only_if_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(augment, "wordnet_spec", lambda *_: Doubling())
    monkeypatch.setattr(augment, "back_translation_spec", lambda *_: Doubling("back-translation"))
    work = WorkDirectory(tmp_path / "work")

    def sources(name: str, words: int, **options: Any) -> tuple[set[str], list[str]]:
        path = tmp_path / f"{words}.txt"
        titles = "".join(f"Title {number}\n" for number in range(30))
        path.write_text(titles + "".join(f"{number} word{' word' * (words - 2)}.\n" for number in range(30)))
        listener = Listener()
        artifact = augment.run(Params(inputs=(str(path),), name=name, **options), work, listener)
        return set(artifact.facts["by_source"]), [note for note in listener.notes if "no copies are made" in note]

    both = {"original", "wordnet", "back-translation"}
    assert sources("short", augment.DOCUMENT_WORDS) == (both, [])
    only, notes = sources("long", augment.DOCUMENT_WORDS + 1)
    assert (only, len(notes)) == ({"original"}, 1)
    only, (note,) = sources("asked", augment.DOCUMENT_WORDS + 1, wordnet=1)
    assert only == {"original", "wordnet"}
    assert note.endswith("; `back_translate` 1 makes copies"), "WordNet copies are made"
    translated = sources("translated", augment.DOCUMENT_WORDS + 1, translator=("apertium",))[0]
    assert translated == {"original", "back-translation"}
    assert sources("both", augment.DOCUMENT_WORDS + 1, wordnet=1, back_translate=1) == (both, [])
    sources("longest", 400)
    names = tuple(str(tmp_path / f"{words}.txt") for words in (400, augment.DOCUMENT_WORDS))
    mixed = Params(inputs=names, words=100_000, share=("400.txt=0",), name="mixed")
    assert set(augment.run(mixed, work).facts["by_source"]) == both, "an input that is left out does not count"


def test_without_labels_there_is_no_triplet_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    artifact = run(tmp_path, tmp_path / "a.txt")
    assert not (artifact.path / "triplets.parquet").exists()
    assert artifact.facts["triplets"] == 0


def test_length_and_number_are_limited(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\nsome words\nother words\na line that is too long\nmore words\n")
    artifact = run(tmp_path, tmp_path / "a.txt", min_length=2, max_length=15, limit=2)
    assert [row["text"] for row in rows_of(artifact)] == ["some words", "other words"]
    assert artifact.facts["skipped"] == {"too_short": 1, "too_long": 1}


def test_fewer_sentences_than_the_limit_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\ntwo\n")
    listener = Listener()
    work = WorkDirectory(tmp_path / "work")
    for limit in (2, 1000):
        params = Params(inputs=(str(tmp_path / "a.txt"),), limit=limit, name=f"limit-{limit}", **PLAIN)
        augment.run(params, work, listener)
    assert listener.notes == ["the input has 2 distinct sentences, fewer than `limit` 1,000"]
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    params = Params(inputs=(str(tmp_path / "a.txt"),), limit=3, max_length=3, name="short", **PLAIN)
    augment.run(params, work, listener)
    assert listener.notes[1:] == ["the other options leave 2 distinct sentences, fewer than `limit` 3"]


def test_a_triplet_never_names_a_sentence_that_was_left_out(tmp_path: Path, nli: Path) -> None:
    artifact = run(tmp_path, nli, max_length=18)
    assert not (artifact.path / "triplets.parquet").exists()


def test_the_same_request_is_fresh_and_another_is_not(tmp_path: Path, nli: Path) -> None:
    first = run(tmp_path, nli)
    assert run(tmp_path, nli).manifest["finished"] == first.manifest["finished"]
    assert run(tmp_path, nli, workers=3).manifest["finished"] == first.manifest["finished"]
    with pytest.raises(UsageError, match=r"already exists with different options \(limit: not given, now 2\)"):
        run(tmp_path, nli, limit=2)
    assert run(tmp_path, nli, limit=2, name="two").facts["rows"] == 2
    nli.write_text(nli.read_text() + '{"premise": "x", "hypothesis": "y", "label": 1}\n')
    assert run(tmp_path, nli).facts["rows"] == 6


def test_a_failed_read_leaves_nothing_and_loses_nothing(tmp_path: Path, nli: Path) -> None:
    before = run(tmp_path, nli)
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"text": "fine"}\n{"text": \n')
    with pytest.raises(InputError, match="line 2 is not valid JSON"):
        run(tmp_path, broken, force=True)
    assert WorkDirectory(tmp_path / "work").get("sentences").digest == before.digest
    assert WorkDirectory(tmp_path / "work").unfinished("sentences") == []
    assert run(tmp_path, broken, skip_bad=True, force=True).facts["skipped"] == {"bad_lines": 1}


def test_a_file_of_a_folder_that_is_skipped_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("fine\n")
    (folder / "picture.txt").write_bytes(b"\x00\x01\xff" * 100)
    with pytest.warns(UserWarning, match=r"skipped 1 unreadable line or file; the first: .*picture\.txt is a binary"):
        run(tmp_path, folder, skip_bad=True)


def test_half_a_character_is_a_bad_record(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "fine"}\n{"text": "bad \\ud800"}\n')
    with pytest.raises(InputError, match="record 2"):
        run(tmp_path, tmp_path / "a.jsonl")
    assert run(tmp_path, tmp_path / "a.jsonl", skip_bad=True).facts["rows"] == 1


def test_input_without_sentences_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n  \n")
    with pytest.raises(InputError, match="no sentences") as caught:
        run(tmp_path, tmp_path / "a.txt")
    assert caught.value.hint == "dropped: 2 blank"


def test_all_faults_of_a_request_are_told_at_once(tmp_path: Path) -> None:
    params = Params(inputs=(), wordnet=-1, limit=0, translator=("x",), format="jsnl", min_length=9, max_length=3)
    with pytest.raises(UsageError, match="6 errors") as caught:
        augment.run(params, WorkDirectory(tmp_path))
    assert "`format` jsnl: did you mean jsonl?" in caught.value.faults
    with pytest.raises(UsageError, match="`translator` is given 2 times, which needs `back_translate` 2, not 1"):
        Params(inputs=("a.txt",), translator=("nlpaug", "there,back")).check()


def test_what_nobody_asked_for_may_be_missing(tmp_path: Path, nli: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sentcompress.augmentations.wordnet.find_wordnet", lambda: None)
    monkeypatch.setattr("sentcompress.augmentations.back_translation.find_pivots", lambda: ())
    monkeypatch.setattr("sentcompress.augmentations.back_translation.is_cached", lambda name: False)
    listener, work = Listener(), WorkDirectory(tmp_path / "work")
    artifact = augment.run(Params(inputs=(str(nli),)), work, listener)
    assert artifact.facts["rows"] == 4
    assert ["`wordnet`" in listener.warnings[0], "`back_translate`" in listener.warnings[1]] == [True, True]
    assert "apt-get install" in listener.warnings[0]
    for asked in ({"wordnet": 1}, {"back_translate": 1}, {"translator": ("apertium",)}):
        with pytest.raises(InputError, match=r"not installed|no translator"):
            augment.run(replace(Params(inputs=(str(nli),)), **asked), work)


def sample(count: int) -> list[str]:
    words = "dog cat house garden picture book river quick red large run eat see walk build quickly often".split()
    generator = random.Random(7)
    return [f"The {' '.join(generator.choices(words, k=6))} near {number}." for number in range(count)]


def test_bytes_do_not_depend_on_workers_or_files_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(augment, "wordnet_spec", lambda *_: Doubling(in_workers=True))
    monkeypatch.setattr(sentence_table, "FILE_ROWS", 300)
    (tmp_path / "a.txt").write_text("\n".join(sample(500)) + "\n")
    options: dict[str, Any] = {"wordnet": 2, "seed": 1, "back_translate": 0}
    results = [run(tmp_path, tmp_path / "a.txt", workers=n, name=f"w{n}", **options) for n in (1, 3)]
    assert len({result.digest for result in results}) == 1
    rows = rows_of(results[0])
    assert [row["row"] for row in rows] == list(range(len(rows)))
    assert len({row["text"] for row in rows}) == len(rows)
    made = [row for row in rows if row["source"] == "wordnet"]
    assert len(made) == results[0].facts["by_source"]["wordnet"] > 800
    assert all(rows[row["parent"]]["source"] == "original" for row in made)
    assert {row["origin"] for row in rows} == {"a.txt"}


@needs_wordnet
@needs_apertium
def test_three_times_by_default(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A man is playing a large guitar.\nTwo children walk to the old school.\n")
    artifact = augment.run(Params(inputs=(str(tmp_path / "a.txt"),)), WorkDirectory(tmp_path / "work"))
    assert set(artifact.facts["by_source"]) == {"original", "wordnet", "back-translation"}
    assert artifact.facts["by_source"]["original"] == 2
    assert set(artifact.parameters["augmentations"]) == {"wordnet", "back-translation"}
    assert not (artifact.path / "pieces").exists()


# Without fsync, as in the tests themselves, see conftest.py.
COMMAND = "import os; os.fsync = os.fstat; from sentcompress.__main__ import main; {} main()"
# Each worker loads WordNet for seconds.
DOUBLING = """from doubling import Doubling; from sentcompress.stages import augment; \
augment.wordnet_spec = lambda *_: Doubling(in_workers=True, seconds=0.3);"""


def start(folder: Path, work: str, *options: str, first: str = "") -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", COMMAND.format(first), "augment", str(folder / "a.txt"), "--quiet", *options]
    return subprocess.Popen(
        [*command, "--work", str(folder / work)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests")))},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
    )


def kill_at(process: subprocess.Popen[bytes], pieces: Path, count: int, delay: float) -> bool:
    """Kill the process some time after so many pieces are there; whether it was still alive."""
    while process.poll() is None and len(list(pieces.glob("*.parquet"))) < count:
        time.sleep(0.01)
    time.sleep(delay)
    alive = process.poll() is None
    process.kill()
    process.wait()
    return alive


def check_kills(folder: Path, sentences: int, total_pieces: int, kills: int, *options: str, first: str = "") -> None:
    (folder / "a.txt").write_text("\n".join(sample(sentences)) + "\n")
    assert start(folder, "whole", *options, first=first).wait() == 0
    generator = random.Random(3)
    pieces = folder / "killed" / "sentences" / ".main.partial" / ".scaffold" / "pieces"
    # From the start of the program over all pieces to the writing of the table.
    hits = sum(
        kill_at(
            start(folder, "killed", *options, first=first),
            pieces,
            total_pieces * kill // (kills - 1),
            generator.uniform(0.0, 0.8 if kill == 0 else 0.1),
        )
        for kill in range(kills)
    )
    assert hits >= kills - 2
    assert start(folder, "killed", *options, first=first).wait() == 0
    whole, killed = (WorkDirectory(folder / name).get("sentences") for name in ("whole", "killed"))
    assert killed.digest == whole.digest
    assert {path.name for path in killed.path.iterdir()} == {path.name for path in whole.path.iterdir()}


def test_killed_and_run_again_gives_the_same_bytes(tmp_path: Path) -> None:
    check_kills(tmp_path, 2000, 4, 3, "--wordnet", "2", "--back-translate", "0", first=DOUBLING)


@pytest.mark.slow
@needs_wordnet
@needs_apertium
def test_killed_a_dozen_times_and_run_again_gives_the_same_bytes(tmp_path: Path) -> None:
    check_kills(tmp_path, 6000, 12, 14, "--wordnet", "1", "--back-translate", "1")


def test_interrupted_by_the_keyboard_it_ends_at_once_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(sample(2000)) + "\n")
    process = start(tmp_path, "work", "--wordnet", "9", "--back-translate", "0", first=DOUBLING)
    partial = tmp_path / "work" / "sentences" / ".main.partial" / ".scaffold" / "pieces"
    while not (partial.is_dir() and any(partial.glob("*.parquet"))):
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=300) == 130
    assert WorkDirectory(tmp_path / "work").unfinished("sentences") == ["main"]


def passages(folder: Path, name: str, count: int) -> Path:
    path = folder / name
    sentence = (
        "The {0} number {1} stands beside a word{1} that nobody else has seen. It is {0} all the same, and so on."
    )
    path.write_text("".join(f"{sentence.format(name.partition('.')[0], n)}\n" for n in range(count)))
    return path


def made_queries(artifact: Artifact) -> int:
    """Those that are in the table, and those that another text gave too."""
    found: int = artifact.facts["by_source"]["query"] + artifact.facts["skipped"]["query_duplicates"]
    return found


def test_a_mix_takes_words_of_every_input_by_weight(tmp_path: Path) -> None:
    many, few = passages(tmp_path, "many.txt", 2000), passages(tmp_path, "few.txt", 100)
    words = len(many.read_text().splitlines()[0].split())
    artifact = run(tmp_path, many, few, words=400 * words, share=("many.txt=2",))
    origins = [row["origin"] for row in rows_of(artifact)]
    assert origins.count("few.txt") == 100
    assert 230 < origins.count("many.txt") < 370
    assert artifact.facts["mix"]["few.txt"] == {"words": 100 * words, "share": 1.0}
    assert "mix" not in run(tmp_path, many, few, name="all").facts
    left = run(tmp_path, many, few, words=400 * words, share=("many.txt=0",), name="left")
    assert {row["origin"] for row in rows_of(left)} == {"few.txt"}
    with pytest.raises(UsageError, match="needs `words`"):
        run(tmp_path, many, share=("many.txt=2",))
    with pytest.raises(UsageError, match=r"no input is called few\.txt"):
        run(tmp_path, many, words=10, share=("few.txt=2",))


def test_queries_are_made_of_long_texts_and_do_not_depend_on_the_workers(tmp_path: Path) -> None:
    path = passages(tmp_path, "long.txt", 1500)
    with path.open("a") as file:
        file.write("A short text gives none.\n")
    artifact = run(tmp_path, path, queries_per_text=0.5, workers=1)
    rows = rows_of(artifact)
    originals, queries = rows[:1501], rows[1501:]
    assert {row["source"] for row in queries} == {"query"}
    assert artifact.facts["by_source"]["query"] == len(queries)
    assert 650 < made_queries(artifact) < 850
    assert all(len(row["text"]) < len(originals[row["parent"]]["text"]) for row in queries)
    words = [set(words_of(originals[row["parent"]]["text"])) for row in queries]
    own = [set(words_of(row["text"])) for row in queries]
    assert all(found <= held for found, held in zip(own, words, strict=True))
    assert 1500 not in {row["parent"] for row in queries}
    again = run(tmp_path, path, queries_per_text=0.5, workers=2, name="again")
    assert rows_of(again) == rows
    more = run(tmp_path, path, queries_per_text=1.5, name="more")
    assert 2.8 < made_queries(more) / made_queries(artifact) < 3.2
