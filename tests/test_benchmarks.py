"""The scripts of benchmarks/ ask for what the commands offer, and draw the right conclusions."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib
import importlib.util
import json
import random
import re
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import report_works as works
import torch
from command_group import command_group
from scipy.stats import spearmanr
from tiny_models import load_model

from sentcompress.augmentations.wordnet import DataFolder
from sentcompress.cli.line import options_of
from sentcompress.commands import find_command
from sentcompress.corpora.collection_folders import collection_data_set
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.evaluation.metrics import INDEX_BYTES, MRR, NDCG, SEARCH_TIME, SPEARMAN
from sentcompress.evaluation.retrieval import EXACT
from sentcompress.evaluation.score import Recorder
from sentcompress.evaluation.search_verdict import LEVELS
from sentcompress.models.layout import load_encoder
from sentcompress.models.model_files import weight_bytes
from sentcompress.models.sources import resolve
from sentcompress.published import PUBLISHED
from sentcompress.quantization.choice import shortened, turn_of
from sentcompress.store import WorkDirectory

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
RESULTS = FOLDER / "results"


@pytest.fixture(autouse=True)
def scripts_find_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))


def load(name: str) -> ModuleType:
    # Under a name of its own: other scripts import this one too, and tests change what they import.
    spec = importlib.util.spec_from_file_location(f"loaded_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    script = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def parse(line: str) -> dict[str, Any]:
    """What a command line says, if there is such a command with such options."""
    words = shlex.split(line)
    group = command_group()
    parsed: dict[str, Any] = group.commands[words[0]].make_context(words[0], words[1:]).params
    return parsed


def test_every_command_of_the_proof_parses() -> None:
    proof = load("proof")
    text = Path("work/proof/unseen.txt")
    found = [line for step in proof.STEPS for line in proof.commands(step, "small", Path("data"), text)]
    assert len({shlex.split(line)[0] for line in found}) == 6
    assert {parse(line)["model"] for line in found} == {"small"}
    retrieval = [parse(line) for line in found if line.startswith("eval-retrieval")]
    assert [str(one["entities"]) for one in retrieval if one["entities"]] == [
        "data/er/amazon-google",
        "data/er/abt-buy",
    ]


def test_the_proof_collects_what_the_report_shows(tmp_path: Path) -> None:
    proof = load("proof")
    work = works.full_work(tmp_path / "work")
    proof.collect(work.path, tmp_path / "results")
    assert {"report.md", "loss.png"} <= {path.name for path in (tmp_path / "results").iterdir()}
    assert str(tmp_path) not in (tmp_path / "results" / "report.md").read_text()


def test_the_best_point_is_the_smallest_that_loses_less_than_a_hundredth() -> None:
    claim = load("quora_claim")
    for words in claim.SEARCHES.values():
        assert parse(f"eval-retrieval --pairs quora.tsv --model small {words}")["model"] == "small"

    recorder = Recorder({"model": "small", "compare": "big"})

    def record(part: str, ours: float, size: int) -> None:
        values = {"model": ours, "compare": 80.0}
        recorder.add("quora", MRR, values, part=part, intervals=works.around(values, 1))
        sizes = {"model": size, "compare": 3 * size}
        recorder.add("quora", INDEX_BYTES, sizes, part=part)
        recorder.add("quora", SEARCH_TIME, {role: bytes_ / 10 for role, bytes_ in sizes.items()}, part=part)

    found_by = {EXACT: (75.0, 0), "flat": (75.0, 900), "ivf": (74.0, 950), "sq8": (74.5, 300), "pq": (70.0, 100)}
    for part, (ours, size) in found_by.items():
        record(part, ours, size)
    described = {"dimension": 4, "raw_vector_bytes": 9}
    result = {
        "model": {"label": "small", **described},
        "compare": {"label": "big", **described},
        "scores": recorder.as_dicts(),
        "indexes": [{"index": kind, "settings": {"model": {}, "compare": {}}} for kind in found_by if kind != EXACT],
    }
    found = list(claim.rows("together", "command", result))
    chosen = claim.best(found, "small")
    assert (chosen["index"], chosen["model"]) == ("sq8", "small")
    assert chosen["lost_percent"] == pytest.approx(100 * 0.5 / 75)
    text = claim.markdown(found, "small")
    assert "flat: 3.00 times smaller, 3.00 times faster, 93.8% of the MRR@10" in text
    assert "9.0 times smaller than exact search over the teacher's vectors, with 93.1% of its MRR@10" in text


def recorded(script: ModuleType, monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any]) -> list[str]:
    """The lines that the script runs, which get this answer instead."""
    lines: list[str] = []

    def run(words: str, work: Path, jobs: int = 1) -> dict[str, Any]:
        lines.append(words)
        return answer

    monkeypatch.setattr(script, "facts", run)
    monkeypatch.setattr(script, "sentcompress", run, raising=False)
    return lines


def scored(value: float, other: float, sts: float) -> dict[str, Any]:
    recorder = Recorder({"model": "small", "compare": "big"})
    values = {"model": value, "compare": other}
    recorder.add("set", NDCG, values, intervals=works.around(values, 1))
    for number, data in enumerate(("STS-B", "STS13")):
        recorder.add(data, SPEARMAN, {"model": sts + number})
    return {"scores": recorder.as_dicts()}


def test_compress_is_judged_as_deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = load("compress_documents")
    export = str(tmp_path / "work" / "exports" / "small")
    verdict = {"bytes": 9_000_000, "vector_bytes": 128, "fidelity": 90.0, "export": export}
    answer = {"verdict": verdict, "plan": ["Read 9 documents"], **scored(60.0, 64.0, 71.2)}
    lines = recorded(script, monkeypatch, answer)
    monkeypatch.setattr(script.os, "sched_getaffinity", lambda _: {0})
    monkeypatch.setattr(script, "chosen", lambda _: "`general-5m`, cut, 4 bits")
    sts = tmp_path / "sts"
    rows = [
        {
            "collection": "law",
            "name": name,
            **script.one_run(tmp_path, sts, script.SETTINGS[name], tmp_path / "work", sharing=2),
        }
        for name in ("10MB-128", "keep-index")
    ]
    assert [parse(line) for line in lines]
    assert [line.split()[0] for line in lines] == [
        "compress", "eval-sts", "eval-retrieval", "encode", "eval-retrieval", "compress", "eval-sts", "eval-retrieval"
    ]  # fmt: skip
    assert "--vectors" in lines[4]
    assert "--document-model teacher" in lines[7]
    assert [row["verdict"]["export"] for row in rows] == ["exports/small"] * 2
    text = script.markdown(rows[::-1])
    assert text.index("--vector-bytes 128") < text.index("--keep-index")
    assert text.count("| 0.5 |") == 2, "the cores that each run had"
    assert "| `general-5m`, cut, 4 bits | 9.00 MB | 128 B | 93.8% | 93.8% | 97% | 90.0 | 71.2 | 72.2 |" in text
    assert "| 93.8% |  | 98% |" in text


@pytest.mark.parametrize(
    ("start", "vocabulary", "weight_format", "told"),
    [
        ("general-5m", 19_500, "int4", "`general-5m`, cut, 4 bits"),
        ("general-9m", None, "int8", "`general-9m`"),
        ("teacher:6", 15_000, "int4", "teacher, 4 bits"),
        (None, None, "int8", "teacher"),
    ],
)
def test_the_table_names_what_an_export_of_compress_was_trained_from(
    tmp_path: Path, start: str | None, vocabulary: int | None, weight_format: str, told: str
) -> None:
    work, last = WorkDirectory(tmp_path / "work"), None
    if start:
        first = works.trained(work, "small-1-1", start, vocabulary=vocabulary)
        facts = {"student": "small-1-1", "vocabulary": None}
        last = works.make(work, "students", "small-last", "distill", facts, {first.reference: first.digest})
    works.export(work, last, "small", weight_format=weight_format)
    assert load("compress_documents").chosen(work) == told


def test_a_row_replaces_that_of_its_collection_and_budget() -> None:
    with_row = load("compress_documents").with_row
    law, quora = {"collection": "law", "name": "3MB"}, {"collection": "Quora", "name": "3MB"}
    assert with_row([law, quora], {**law, "minutes": 1}) == [{**law, "minutes": 1}, quora]
    assert with_row([law], {**law, "name": "10MB-128"}) == [law, {**law, "name": "10MB-128"}]


def write_gzip(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def texts_found(folder: Path) -> dict[str, list[str]]:
    """The judged texts of each query of a collection."""
    collection = collection_data_set(folder, None).read()
    texts = [text for chunk in collection.corpus.texts() for text in chunk]
    judged = ([texts[int(row)] for row in grades] for grades in collection.grades)
    return dict(zip(collection.queries, judged, strict=True))


def test_question_pairs_become_a_collection(tmp_path: Path) -> None:
    header, *rows = "question1\tquestion2\tis_duplicate", "how are you\thow do you do\t1", "who\twhat\t0"
    write_gzip(tmp_path / "quora" / "quora.tsv.gz", header, *rows)
    folder = load("compress_documents").quora_collection(tmp_path, tmp_path / "folder")
    assert texts_found(folder) == {"how are you": ["how do you do"]}


def test_passages_of_law_are_found_by_titles_that_no_student_was_trained_on(tmp_path: Path) -> None:
    script = load("compress_documents")
    long = " ".join(["shall"] * script.BEHIND_TITLE)
    passages = [
        f"Witness fees. First {long}",
        f"Definitions of terms. Second {long}",  # the title of two passages
        f"Definitions of terms. Third {long}",
        f"Trained on. Fourth {long}",
        f"Repeal. Fifth {long}",  # one word
        "Too short. Sixth",
        f"Letters of transfer. Seventh {long}",
    ]
    write_gzip(tmp_path / "text" / "free" / "law.txt.gz", *passages)
    write_gzip(tmp_path / "text" / "research" / "titles.txt.gz", "TRAINED ON.")
    folder = script.law_collection(tmp_path, tmp_path / "law")
    assert texts_found(folder) == {"Witness fees": [f"First {long}"], "Letters of transfer": [f"Seventh {long}"]}
    written = [json.loads(line)["text"] for line in (folder / "corpus.jsonl").read_text().splitlines()]
    assert written == [f"First {long}", *passages[1:6], f"Seventh {long}"]


@pytest.mark.parametrize("name", ["all_methods", "students", "tries"])
def test_every_student_of_a_script_can_be_trained(name: str, tmp_path: Path) -> None:
    script = load(name)
    if name == "all_methods":
        lines = [f"distill --method {method} {script.SAME} {own}" for method, own in script.METHODS.items()]
        lines += [f"{words} {script.STAGE_2_SAME}" for words in script.STAGE_2.values()]
    elif name == "tries":
        starts = [None, "try-base-1"]
        parts = [part for one in script.TRIES for part in one.parts]
        lines = [script.line(part, start, 2400, "tries", "try-base") for part in parts for start in starts]
    else:
        dev = tmp_path / "dev.tsv"
        dev.touch()
        lines = [words.format(dev=dev) for words in script.STUDENTS.values()]
    for line in lines:
        options_of(find_command(shlex.split(line)[0]), parse(line))


WORDNET = """  1 This is the licence, which no definition is part of.
00001740 03 n 02 fear 0 dread_of_heights 0 000 | an emotion felt before some danger; "his fear was great"
00001930 03 n 01 choice 0 000 | the act of choosing
00002137 03 a 01 sour(a) 0 000 | sharp to the taste like vinegar
"""


def test_definitions_come_with_examples_and_need_wordnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wordings = importlib.import_module("corpus_wordings")
    for part in wordings.PARTS:
        (tmp_path / f"data.{part}").write_text(WORDNET if part == "noun" else "")
    found = [text for text, _ in wordings.definitions(DataFolder(tmp_path), random.Random(0))]
    assert found == [text for text, _ in wordings.definitions(DataFolder(tmp_path), random.Random(0))]
    assert "his fear was great" in found
    assert any("sharp to the taste" in text and "(a)" not in text for text in found)
    assert any("the act of choosing" in text for text in found)
    monkeypatch.setattr(wordings, "find_wordnet", lambda: None)
    with pytest.raises(FileNotFoundError, match="wordnet-base"):
        wordings.installed_wordnet()


def test_texts_that_share_most_of_their_words_are_near() -> None:
    near = load("corpus_texts").Near(["The act of choosing.", "A man is playing a large flute."])
    asked = ("the ACT of choosing", "choosing: an act of the", "choosing a large flute", "is a man playing a flute")
    assert [near(text) for text in asked] == [{0}, {0}, set(), {1}]


def test_the_text_of_the_methods_leaves_out_sts_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = load("method_corpus")
    monkeypatch.setattr(corpus, "sts_sentences", lambda data: {"a man is playing a large flute."})
    monkeypatch.setattr(corpus, "read_nli", lambda data: [f"Sentence number {n} of them." for n in range(9)])
    monkeypatch.setattr(corpus, "read_captions", lambda data: ["A man is playing  a large flute.", "A dog is running."])
    monkeypatch.setattr(corpus, "read_lines", lambda path: ["Sentence number 3 of them.", f"A line of {path.name}."])
    monkeypatch.setattr(corpus, "tweets", lambda data: ["@cnn a dog ran"])
    monkeypatch.setattr(corpus, "SHORT_SHARES", corpus.SHORT_SHARES | {"nli": 5})
    monkeypatch.setattr("sys.argv", ["method_corpus.py", "short", str(tmp_path), str(tmp_path / "out" / "short.txt")])
    corpus.main()
    texts = (tmp_path / "out" / "short.txt").read_text().splitlines()
    assert texts == corpus.gather_short(tmp_path, seed=0)
    assert len(texts) == len(set(texts)) in (9, 10)
    assert {"A dog is running.", "A line of common_voice_en.txt.gz."} < set(texts)
    assert "A man is playing a large flute." not in texts
    mixed = corpus.gather_mixed(tmp_path, seed=0)
    assert {"@cnn a dog ran", "A dog is running."} < set(mixed)
    assert "A man is playing a large flute." not in mixed


def test_tries_follow_one_another_or_are_averaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, lines = load("tries"), list[str]()
    monkeypatch.setattr(script, "sentcompress", lambda line, work: lines.append(line))
    monkeypatch.setattr(
        script, "facts", lambda line, work: lines.append(line) or {"parameters": 2_400_000, "dev": 84.0}
    )
    tries = {one.name: one for one in script.TRIES}
    seen = [
        sum(part.share * part.options.get("batch-tokens", 2048) for part in one.parts) / 2048 for one in script.TRIES
    ]
    assert seen == pytest.approx([1.0] * len(seen))  # as many tokens each
    script.trained(tries["cycles"], 2400, "v", tmp_path)
    script.trained(tries["averaged"], 2400, "v", tmp_path)
    assert [re.findall(r"--(student|max-steps|name) (\S+)", line) for line in lines[:3]] == [
        [("student", "teacher:1"), ("max-steps", "800"), ("name", "try-cycles-1")],
        [("student", "try-cycles-1"), ("max-steps", "800"), ("name", "try-cycles-2")],
        [("student", "try-cycles-2"), ("max-steps", "800"), ("name", "try-cycles")],
    ]
    assert [line.count("--student teacher:1") for line in lines[3:5]] == [1, 1]
    assert lines[5] == "average try-averaged-1 try-averaged-2 --name try-averaged"
    for family in ("law", "questions", "wordnet"):
        (tmp_path / f"{family}.txt.gz").touch()
    lines.clear()
    assert script.vectors_of(tries["base"], tmp_path, tmp_path) == "tries"
    assert script.vectors_of(tries["text-documents"], tmp_path, tmp_path) == "try-text-documents"
    chosen = [list(parse(line)["inputs"]) for line in lines[::2]]
    expected = (["questions", "wordnet"], ["wordnet"])
    assert chosen == [[str(tmp_path / f"{one}.txt.gz") for one in families] for families in expected]
    fidelity = dict.fromkeys((*script.UNSEEN, *script.SEEN), 60.0) | {"books": 40.0}
    rows = {"base": {"parameters": 2_412_928, "dev": 84.0, "fidelity": fidelity}}
    table = script.markdown(rows, {"steps": 2400, "machine": {"processor": "x"}})
    assert table.splitlines()[-1].endswith("| 2.41M | 84.00 | 60.0 | 55.0 |")


def test_overlaps_are_counted_by_the_texts_of_the_test_set() -> None:
    overlap = load("overlap")
    sets = {"one": ["A man plays a large flute outside.", "A dog.", "Nobody is here at all."], "other": ["Rain"]}
    texts = [
        "a man plays a LARGE flute, outside\n",
        "Outside a man plays a large flute!",
        "a dog",
        "here at all",
        "rain?",
    ]
    assert overlap.overlaps(sets, texts) == {"one": {"same": 2, "near": 1}, "other": {"same": 1, "near": 0}}
    # Five words of six, and two texts that are near to one sentence: still one sentence.
    assert overlap.overlaps(sets, ["a man plays a flute outside", "man plays a large flute outside"])["one"] == {
        "same": 0,
        "near": 1,
    }


def test_overlaps_of_an_earlier_run_keep_their_column_while_the_test_sets_are_the_same() -> None:
    overlap = load("overlap")
    earlier = {"texts": {"set": 3}, "found": {"old": {"set": {"same": 1, "near": 2}}}}
    found = overlap.kept(earlier, {"set": 3}) | {"new": {"set": {"same": 0, "near": 1}}}
    assert overlap.markdown({"set": 3}, found).splitlines()[2] == "| set | 3 | 1, 2 | 0, 1 |"
    assert overlap.kept(earlier, {"set": 4}) == {}


def test_made_texts_put_words_together_that_nobody_did() -> None:
    wordings = load("corpus_wordings")
    entries = [[f"plant {i}", f"herb{i}"] for i in range(60)] + [["dread of heights", "fear"]]
    lines = ["The fears of a man are many.", "Nothing to change."]
    found = [text for seed in range(40) for text in wordings.replaced(lines, entries, random.Random(seed))]
    assert 15 < len(found) < 40  # seven nouns in ten are replaced, and a line without one is left out
    assert all(
        re.fullmatch(r"The (plant \d+|herb\d+|fear|dread of heights)s of a man are many\.", text) for text in found
    )
    groups = list(wordings.beside(entries, random.Random(0)))
    assert len(groups) == len(entries)
    assert all(re.search("plant|herb|fear|heights", text) for text in groups)


def test_every_form_of_a_published_student_has_commands_that_parse(tmp_path: Path) -> None:
    script = load("published")
    found, stored = dict[str, list[dict[str, Any]]](), dict[str, list[dict[str, Any]]]()
    for form in script.FORMS:
        lines = [*script.command_lines(form, "small", tmp_path / "my data", tmp_path / "quora", tmp_path / "out")]
        found[form.title] = [parse(line) for title, line in lines if title]
        stored[form.title] = [parse(line) for title, line in lines if not title]
    counts = dict.fromkeys(found, 4) | {"queries only": 3, "int8, 128 bytes": 3}
    assert {title: len(lines) for title, lines in found.items()} == counts
    # What is stored is what is then searched.
    outputs = [one["output"] for one in stored["int8, 128 bytes"]]
    assert [one["vectors"] for one in found["int8, 128 bytes"]] == outputs
    assert [str(one["lines"]) for one in stored["int8, 128 bytes"]] == [
        f"{one['collection']}/corpus.jsonl" for one in found["int8, 128 bytes"]
    ]
    assert not any(lines for title, lines in stored.items() if title != "int8, 128 bytes")
    assert {one["document_model"] for one in found["queries only"]} == {"embedded"}
    assert {one["runtime"] for title in ("int8", "int8, 128-d") for one in found[title]} == {"onnx-int8"}
    assert {one["model"] for one in found["int8, 128-d"]} == {"exports/small-128"}
    assert [str(one["split"]) for one in found["float32"] if str(one.get("collection")).endswith("scifact")] == ["dev"]
    names = [one["name"] for lines in found.values() for one in lines]
    assert len(set(names)) == len(names)


def test_a_short_form_has_the_cosines_of_the_turned_vectors(tmp_path: Path, tiny_model: Path) -> None:
    script = load("published")
    texts = ["the man plays the guitar", "a dog runs", "the man runs", "a guitar"]
    vectors = EncodeEngine(load_model(tiny_model), device="cpu").encode(texts)
    quantizer = shortened(turn_of(vectors), 3)
    quantizer.save(tmp_path / "vectors")
    script.shorten(str(tiny_model), tmp_path / "vectors", tmp_path / "short", tmp_path / "work")
    found = EncodeEngine(load_model(tmp_path / "short"), device="cpu").encode(texts)
    assert found.shape == (4, 3)
    assert found @ found.T == pytest.approx(quantizer.turn(vectors) @ quantizer.turn(vectors).T, abs=1e-4)


def test_the_page_of_published_students_shows_forms_beside_float32_and_marks_quoted_scores() -> None:
    script = load("published_page")

    def scores(value: float, titles: tuple[str, ...]) -> dict[str, Any]:
        entry = {"value": value, "interval": [value - 1, value + 1], "kept": 100 * value / 80}
        return dict.fromkeys(titles, entry)

    sizes = {"parameters": 2_400_000, "dimension": 384, "weight_bytes": 4_800_000, "graph_bytes": 2_500_000}
    forms = {"float32": scores(76, script.TEST_SETS), "queries only": scores(78, script.COLLECTIONS)}
    models = {
        "embedded": {"forms": {"float32": scores(80, script.TEST_SETS)}, **sizes},
        "small": {"forms": forms, **sizes},
    }
    text = script.page({"text": "400,000 words", "models": models})
    assert f"| embedded |{' 80.00 (79.0 to 81.0) |' * 5}" in text
    assert f"| small |{' 76.00 (75.0 to 77.0), 95.0% |' * 5}" in text
    assert f"| small | queries only |  |  |{' 78.00, 97.5% |' * 3}" in text
    assert "| small | 2,400,000 | 384 | 4.8 MB | 2.5 MB |" in text
    assert "| small | 2.4M | 76.00 | 76.00 | 76.00 | measured |" in text
    assert "| minishlab/potion-base-8M | 7.6M | 75.41 | 77.28 | 50.64 | quoted |" in text
    assert "## Speed" not in text
    products = {name: scores(value, script.PRODUCTS) for name, value in (("embedded", 80), ("small", 84))}
    for entry in (one for of in products.values() for one in of.values()):
        entry["count"] = 7
    told = script.page({"text": "", "models": models, "products": products})
    assert "(7 of amazon-google and 7 of abt-buy;" in told
    assert f"| small |{' 84.00 (83.0 to 85.0), 105.0% |' * 2}" in told
    assert "## Product matching" not in text
    speed = {
        "texts": 10,
        "rounds": 5,
        "threads": 2,
        "load": [0, 1],
        "machine": {"processor": "x"},
        "rows": {"small, int8": {"sentences_per_second": 1000, "times": 2.5}},
    }
    document = {"text": "", "models": models, "speed": speed}
    assert "| small, int8 | 1,000 | 2.5 |" in script.page(document)
    inner = script.with_table("before\n<!-- generated: scores -->\nold\n<!-- end -->\nafter", document)
    assert f"| all-MiniLM-L6-v2 (teacher) | 4.8 MB | 2.40M |{' 80.00 |' * 5} 1.0 x |  |\n" in inner
    assert f"| `small` | 4.8 MB | 2.40M |{' 76.00, 95.0% |' * 5}  | 2.5 x |\n\n" in inner
    assert "\n\nSpeed was measured on 10 sentences of STS-B test, 2 threads of x.\n<!-- end -->\nafter" in inner
    assert "old" not in inner


def test_a_product_collection_has_the_queries_of_all_parts(tmp_path: Path) -> None:
    pairs = tmp_path / "er" / "shops"
    pairs.mkdir(parents=True)
    rows = {"train": [("q1", "e1", 1), ("q2", "e1", 0)], "valid": [("q3", "e2", 1)], "test": [("q1", "e3", 1)]}
    for part, of in rows.items():
        lines = "".join(f"{query}\t{entity}\t{label}\n" for query, entity, label in of)
        (pairs / f"{part}.tsv").write_text(f"query\tentity\tlabel\n{lines}", encoding="utf-8")
    folder = load("published").product_collection(tmp_path, "shops", tmp_path / "made")
    found = collection_data_set(folder, None).read()
    texts = [text for chunk in found.corpus.texts() for text in chunk]
    assert sorted(texts) == ["e1", "e2", "e3"]
    matches = {query: {texts[row] for row in of} for query, of in zip(found.queries, found.grades, strict=True)}
    assert matches == {"q1": {"e1", "e3"}, "q3": {"e2"}}


def test_scores_of_published_students_are_those_of_exact_search() -> None:
    script = load("published")
    recorder = Recorder({"model": "small", "compare": "big"})
    for part, value in ((EXACT, 70.0), ("flat", 60.0)):
        values = {"model": value, "compare": 80.0}
        recorder.add("scifact", NDCG, values, part=part, intervals=works.around(values, 1))
    found = script.scores_of("SciFact dev", {"scores": recorder.as_dicts()})
    assert found["SciFact dev"]["value"] == 70.0
    assert found["SciFact dev"]["kept"] == 87.5
    assert tuple(found["SciFact dev"]["interval"]) == (69.0, 71.0)


@pytest.fixture(scope="module")
def published_figures() -> dict[str, Any]:
    models: dict[str, Any] = json.loads((RESULTS / "published.json").read_text(encoding="utf-8"))["models"]
    return models


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_students_are_of_the_size_in_the_table(name: str, published_figures: dict[str, Any]) -> None:
    source = resolve(name)
    parameters = load_encoder(source).count_parameters()
    assert parameters == published_figures[name]["parameters"] == PUBLISHED[name].parameters
    assert weight_bytes(source.path) == published_figures[name]["weight_bytes"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_students_score_as_in_the_table(
    name: str, published_figures: dict[str, Any], shared_data: Path
) -> None:
    lines = (shared_data / "sts" / "stsb" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]
    scores, first, second = zip(*(line.split("\t") for line in lines), strict=True)
    engine = EncodeEngine(load_encoder(resolve(name)), device="cpu", dtype="float32")
    cosines = (engine.encode(first) * engine.encode(second)).sum(axis=1)
    found = 100 * spearmanr(cosines, [float(score) for score in scores]).statistic
    assert found == pytest.approx(published_figures[name]["forms"]["float32"]["STS-B test"]["value"], abs=0.02)


def test_made_questions_ask_about_names_words_of_a_line_and_nouns() -> None:
    wordings = load("corpus_wordings")
    wordnet = {"noun": [["sundew"]], "verb": [["wilt"]], "adj": [["hardy"]]}
    asked = list(
        wordings.questions(["In May of that year, Ada Lovelace met Babbage."] * 3000, wordnet, random.Random(0))
    )
    folded = {text.lower().removesuffix("?") for text in asked}
    assert {"who is ada lovelace", "what does sundew mean", "is babbage hardy", "how do you wilt lovelace"} <= folded
    assert 0.2 < sum(text.endswith("?") for text in asked) / len(asked) < 0.4
    assert 0.6 < sum(text == text.lower() for text in asked) / len(asked) < 0.8
    assert not any("{" in text for text in asked)


def test_made_advice_speaks_as_people_do() -> None:
    forum = load("corpus_wordings")
    wordnet = {"noun": [["sundew"], ["plant"]], "verb": [["wilt"], ["water"]], "adj": [["hardy"], ["old"]]}
    lines = ["In May of that year, Ada Lovelace had to water an old plant of Babbage."] * 3000
    told = list(forum.advice(lines, wordnet, random.Random(0)))
    assert len(told) == len(lines)
    assert not any(re.search(r"[{}]", text) for text in told)
    # Words that the lines use come more often than others of the dictionary.
    assert 1.5 < sum("plant" in text for text in told) / sum("sundew" in text for text in told) < 8
    assert any("Ada Lovelace" in text for text in told)
    clause = forum.as_clause
    assert clause("A very tall man is riding a bike.", random.Random(0)).endswith("riding a bike")
    assert {clause("A very tall man is riding.", random.Random(seed)) for seed in range(99)} > {
        "I am riding",
        "he was riding",
    }
    assert clause("Maria rode to the town.", random.Random(0)) == "Maria rode to the town"
    assert clause("The town is far from here.", random.Random(0)) == "the town is far from here"
    assert clause("Is the town far from here?", random.Random(0)) is None
    assert clause("Too short.", random.Random(0)) is clause("long " * 20, random.Random(0)) is None
    framed = list(forum.opinions(["The town is far from here.", "Maria rode to the town."] * 200, random.Random(0)))
    assert len(framed) == 400
    assert {"I think the town is far from here.", "Yes, Maria rode to the town."} <= set(framed)
    line = "The prices of the corn have been rising since May, the ministry said in a letter of its own."
    headed = set(forum.headlines([line] * 200, random.Random(0)))
    assert "Prices of corn rising since May ministry said in letter" in headed
    assert "Ministry said in letter of own" in headed
    assert all(len(text.split()) <= 11 for text in headed)


def test_the_general_corpus_keeps_off_test_sets_and_holds_documents_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    general, sources = importlib.import_module("general_corpus"), importlib.import_module("general_sources")
    texts_of = importlib.import_module("corpus_texts")
    tested = "Aspirin lowers the risk of heart attacks in men over fifty."
    known = texts_of.Known([tested])
    assert known.fault(texts_of.plain(tested.upper())) == "equals_test_text"
    assert known.fault("it is said that aspirin lowers the risk of heart attacks in women") == "shares_words_in_a_row"
    assert known.fault("aspirin lowers the risk of heart diseases in many men") is None
    gathered = general.Gathered(known, texts_of.Near(["The act of choosing."]))
    law = [f"Act number {n} of the year. It is about thing{n} and {n} more that a court may decide." for n in range(40)]
    gathered.add("law", sources.Family((), sources.SENTENCE), [*law, law[3].lower(), tested, "abc"])
    assert gathered.dropped["law"] == {"repeated": 1, "equals_test_text": 1, "too_short": 1}
    held = gathered.held_out["law"]
    assert len(held) == 10
    assert len(gathered.texts["law"]) == 30
    assert {f"{one['title']}. {one['text']}" for one in held} | set(gathered.texts["law"]) == set(law)
    assert [one["_id"] for one in held[:2]] == ["law-0", "law-1"]
    # A definition that contains the words of a test text does not equal it.
    gathered.add("words", sources.Family((), sources.TERM), ["choice, option, alternative: the act of choosing"])
    assert gathered.dropped["words"] == {"near_sts_sentence": 1}
    gathered.add("titles", sources.Family(()), [held[0]["title"].upper(), law[0], "Something else"])
    gathered.drop_held_out_titles()
    assert gathered.texts["titles"] == ["Something else"]

    own = sources.Source("free/law", "statutes", "public domain", lambda data, _: [])
    used = {"law": (own, sources.Source("research/law", "briefs", "none stated", lambda data, _: [], free=False))}
    monkeypatch.setattr(general, "FAMILIES", {name: sources.Family(used.get(name, ())) for name in gathered.texts})
    first, second = (general.write_all(gathered, tmp_path / name, research=False) for name in ("one", "two"))
    assert first == second == json.loads((tmp_path / "one" / "sources.json").read_text())
    packed = (tmp_path / "one" / "law.txt.gz").read_bytes()
    assert packed == (tmp_path / "two" / "law.txt.gz").read_bytes()
    assert hashlib.sha256(packed).hexdigest() == first["law"]["sha256"]
    assert gzip.decompress(packed).decode().splitlines() == gathered.texts["law"]
    assert first["law"]["lines"] == 30
    assert first["law"]["sources"] == {"free/law": {"title": "statutes", "licence": "public domain"}}
    section = (tmp_path / "one" / "sources.md").read_text(encoding="utf-8")
    assert section.startswith("## Training data\n")
    assert "\n| law | statutes: public domain | 30 | 0.00M |\n" in section
    assert "briefs" not in section
    rows = gzip.decompress((tmp_path / "one" / "held-out" / "law.jsonl.gz").read_bytes()).splitlines()
    assert [json.loads(row) for row in rows] == held


def test_the_general_corpus_says_before_reading_that_wordnet_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    general = importlib.import_module("general_corpus")
    monkeypatch.setattr(importlib.import_module("corpus_wordings"), "find_wordnet", lambda: None)
    monkeypatch.setattr("sys.argv", ["general_corpus.py", str(tmp_path / "no data"), str(tmp_path / "out")])
    with pytest.raises(SystemExit) as stopped:
        general.main()
    assert stopped.value.code == "WordNet is needed: on Debian, apt-get install wordnet-base"


def test_what_may_not_be_published_is_gathered_for_research_only() -> None:
    general = importlib.import_module("general_corpus")
    free = {name for name, family in general.FAMILIES.items() if general._used(family, research=False)}
    assert set(general.FAMILIES) - free == {"news"}
    for family in general.FAMILIES.values():
        for source in general._used(family, research=False):
            assert "-NC" not in source.licence
            assert "research" not in source.name


def test_sources_are_told_by_family_with_the_mean_and_the_worst() -> None:
    script = load("sources")
    found: dict[str, Any] = {}
    script.merged(found, "law", {"students/a": {"fidelity": 90.0}, "b": {"fidelity": 80.0}})
    script.merged(found, "books", {"students/a": {"fidelity": 70.0}, "b": {"fidelity": 85.0}})
    script.merged(found, "words", {"b": {"fidelity": 10.0}})
    assert script.markdown(found).splitlines() == [
        "| family | a | b |",
        "| --- | ---: | ---: |",
        "| law | 90.0 | 80.0 |",
        "| books | 70.0 | 85.0 |",
        "| words |  | 10.0 |",
        "| **mean of 2** | 80.0 | 82.5 |",
        "| **worst** | 70.0 (books) | 80.0 (law) |",
    ]


def test_runs_of_other_seeds_are_scored_like_the_first_and_their_spread_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, lines = load("seeds"), list[str]()
    monkeypatch.setattr(script, "facts", lambda line, work: lines.append(line) or {})
    monkeypatch.setattr(script, "scores_of", lambda title, facts: {title: {"value": 80.0}})
    for name in ("first", "seed-1"):
        model = tmp_path / "my students" / name / "model"
        assert script.reported(model, tmp_path, tmp_path / "quora", tmp_path)["sts"] == 80.0
        assert {parse(line)["model"] for line in lines[-4:]} == {str(model)}
    assert len({parse(line)["name"] for line in lines}) == 8
    found = {"first": {"STS13": 81.0, "law": 70.0}, "seed-1": {"STS13": 80.0, "law": 72.0}, "seed-2": {"STS13": 79.0}}
    assert script.table(found).splitlines() == [
        "|  | first | seed-1 | seed-2 | largest - smallest | standard deviation |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        "| STS13 | 81.00 | 80.00 | 79.00 | 2.00 | 1.00 |",
    ]


def test_the_commands_of_sources_parse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, lines = importlib.import_module("sources"), list[str]()
    scores = [{"data": "law", "metric": "fidelity"}]
    monkeypatch.setattr(script, "sentcompress", lambda line, work: lines.append(line) or {"facts": {"scores": scores}})
    monkeypatch.setattr(script, "read_scores", lambda facts: facts["scores"])
    monkeypatch.setattr(script, "select", lambda scores, metric, **of: [Score()])
    name = script.split(tmp_path / "law.jsonl.gz", "law", tmp_path)
    assert script.searched(name, "small", "embedded", tmp_path)["fidelity"] == 91.5
    parsed = [parse(line) for line in lines]
    assert parsed[0]["corpus_passages"] == parsed[1]["max_passages"] == str(script.PASSAGES)
    assert parsed[1]["documents"] == "source-law"
    assert parsed[1]["max_queries"] == str(script.QUERIES)


class Score:
    """A score as `select` gives it."""

    value, interval, count = 91.5, (90.0, 93.0), 200


def test_the_verdicts_of_search_fidelity_have_the_ranges_that_were_measured() -> None:
    found = json.loads((RESULTS / "search_fidelity.json").read_text(encoding="utf-8"))
    rows = [one for row in found["rows"] if row["name"] != "teacher" for one in row["sets"].values()]
    limits = [level.least for level in LEVELS]
    for level, below in zip(LEVELS[1:], limits[:-1], strict=True):
        kept = [row["kept"] for row in rows if level.least <= row["fidelity"] < below]
        digits = 0 if level.name == "poor" else 1
        assert f"kept {min(kept):.{digits}f} to {max(kept):.{digits}f}% of" in level.expectation


def test_search_fidelity_makes_queries_of_documents_and_correlates_what_it_measures() -> None:
    script = importlib.import_module("search_fidelity")
    documents = [" ".join(f"word{(n * m) % 97} alpha" for m in range(1, 9)) for n in range(1, 60)]
    queries = script.made_queries(documents, 40, 0)
    assert len(set(queries)) == 40
    assert {word for query in queries for word in query.split()} <= {
        word for text in documents for word in text.split()
    }
    assert queries == script.made_queries(documents, 40, 0)

    vectors = np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32)
    ways = script.stored(vectors)
    errors = {name: float(np.abs(way(vectors) - vectors).mean()) for name, way in ways.items()}
    assert errors["pca-256"] < errors["pca-64"] < errors["pca-32"]
    assert errors["vectors in 8 bits"] < errors["vectors in 4 bits"] < errors["vectors in 2 bits"]
    assert np.unique(ways["vectors in 1 bit"](vectors)).tolist() == [-1, 1]

    rows = [
        {
            "name": str(n),
            "STS-B": -n,
            "sets": {"a": {"nDCG@10": n, "kept": n, "fidelity": n * n, "cosine": float("nan")}},
        }
        for n in range(1, 6)
    ]
    found = script.correlations(rows)
    assert found["fidelity"] == pytest.approx({"a": 1, "mean of the sets": 1})
    assert found["STS-B"]["a"] == pytest.approx(-1)
    assert "| fidelity | 1.000 | 1.000 |" in script.page(
        {"machine": {"processor": "x"}, "sets": {"a": {}}, "rows": rows, "correlations": found}, "it"
    )


def test_the_share_of_a_gpus_peak_counts_layers_and_queue() -> None:
    gpu, sizes = load("gpu"), load("random_training")
    size = sizes.Size("small", layers=2, width=10, neurons=20)
    # Two layers: four products of 10 x 10 and two of 10 x 20 for each token, scores and sums over 28 tokens.
    forward = 28 * 2 * (2 * (400 + 400) + 4 * 10 * 28)
    assert gpu.operations("teacher-embed", size) == forward
    assert gpu.operations("simcse", size) == 3 * 3 * forward
    assert gpu.operations("ckd", size) == 3 * forward + 4 * 65_536 * 1024 + 6 * 10 * 1024
    row = {
        "work": "ckd",
        "size": "small",
        "dtype": "bfloat16",
        "sentences_per_second": 1234.5,
        "peak_memory_bytes": 1e9,
    }
    assert "| ckd | small | bfloat16 | 1,234 | 12.5% | 1.0 GB |" in gpu.table([{**row, "share_of_peak": 0.125}], "GPU")
    assert "| unknown |" in gpu.table([{**row, "share_of_peak": None}], "GPU")


@pytest.mark.parametrize("work", ["ckd", "simcse"])
def test_the_training_that_is_timed_on_a_gpu_runs_on_a_cpu(
    work: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu, sizes = load("gpu"), load("random_training")
    monkeypatch.setattr(gpu, "QUEUE", 64)
    monkeypatch.setattr(gpu, "TEACHER", 16)
    monkeypatch.setattr(gpu, "BATCH", {work: 8})
    speed, dtype = gpu.training_speed(work, sizes.TINY, torch.device("cpu"), tmp_path, 0.5)
    assert speed > 0
    assert dtype in ("float32", "bfloat16")


def test_the_profile_of_a_step_has_kernels_and_no_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profiled = load("step_profile")
    monkeypatch.setattr(profiled, "LOOK_EVERY", 1)
    kernels, waits = profiled.steps_of("simcse", tmp_path)
    assert kernels["copy_"] > 0
    assert not waits


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_its_benchmark_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = load("gpu")
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    with pytest.raises(SystemExit, match="needs a CUDA device; --profile"):
        gpu.main()


@pytest.mark.parametrize("kind", ["ivf", "ivfpq"])
def test_the_benchmark_of_large_indexes_runs_with_few_vectors(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    large = load("large_index")
    row = large.run_one(kind, argparse.Namespace(documents=9000, dimension=8, threads=1, folder=tmp_path))
    assert row["index"] == kind
    assert 0 < row[MRR] <= row["exact"][MRR]
    assert not list(tmp_path.iterdir())


def test_the_page_of_ten_million_sentences_shows_the_figures_beside_it() -> None:
    shards = load("shards")
    document = json.loads((RESULTS / "shards_ten_million.json").read_text(encoding="utf-8"))
    assert shards.page(document) == (RESULTS / "shards_ten_million.md").read_text(encoding="utf-8")


def started_as(code: Callable[[Any], str]) -> Callable[[Any], None]:
    """What starts a job of the benchmark of shards: other code in place of its command."""

    def start(job: Any) -> None:
        job._process = subprocess.Popen([sys.executable, "-c", code(job)])
        job._started = time.perf_counter()

    return start


@pytest.mark.parametrize(("kills", "killed"), [(2, 2), (9, 3)])
def test_as_many_shards_as_asked_are_killed_once_and_run_again(
    monkeypatch: pytest.MonkeyPatch, kills: int, killed: int
) -> None:
    shards = load("shards")
    begun: list[str] = []

    def code(job: Any) -> str:
        begun.append(job.words[-1])
        return "pass" if job.kill_after is None else "import time; time.sleep(60)"

    monkeypatch.setattr(shards.Job, "start", started_as(code))
    monkeypatch.setattr(shards, "FIRST_SECONDS", 0.2)
    taken, after = shards.run([["augment", "--shard", f"{n}/3"] for n in (1, 2, 3)], 2, kills, random.Random(0))
    assert sorted(one["shard"] for one in taken) == ["1/3", "2/3", "3/3"]
    assert len(after) == killed
    assert sorted(Counter(begun).values()) == [1] * (3 - killed) + [2] * killed
    assert all(one["peak_bytes"] > 0 for one in taken)


def test_a_shard_that_fails_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it was killed before: it would fail for ever."""
    shards = load("shards")
    codes = iter(["import time; time.sleep(60)", "raise SystemExit(1)"])
    monkeypatch.setattr(shards.Job, "start", started_as(lambda job: next(codes)))
    monkeypatch.setattr(shards, "FIRST_SECONDS", 0.2)
    with pytest.raises(SystemExit, match="failed with code 1"):
        shards.run([["augment", "--shard", "1/1"]], 1, 1, random.Random(0))


def test_held_out_titles_are_queries_of_a_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = load("sources")
    monkeypatch.setattr(sources, "TITLES", 2)
    held = {"law": ["Act", "", "Code"], "notes": ["Pump", "", ""]}
    for family, titles in held.items():
        lines = [json.dumps({"_id": f"{family}-{n}", "title": one, "text": f"t{n}"}) for n, one in enumerate(titles)]
        (tmp_path / f"{family}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    assert sources.title_collection(tmp_path, tmp_path / "titles") == ["law"]
    found = collection_data_set(tmp_path / "titles", "law").read()
    assert found.queries == ("Act", "Code")
    assert len(found.corpus) == 6
    scores: dict[str, Any] = {}
    sources.merged(scores, "law", {"a": {"fidelity": 80.0}, "b": {"fidelity": 70.0}})
    sources.merged(scores, "law", {"a": {"titles": {"kept": 91.25}}})
    fidelity, titles = sources.pages(scores).split("Documents found")
    assert "| law | 80.0 | 70.0 |" in fidelity
    assert "| law | 91.2 |" in titles
