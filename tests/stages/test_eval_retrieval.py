"""eval-retrieval from a file of pairs to the artifact, against brute force over sentence-transformers' vectors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_models import make_tiny_model

from sentcompress.artifacts import WorkDirectory
from sentcompress.errors import InputError, UsageError
from sentcompress.progress import SilentReporter
from sentcompress.stages.eval_retrieval import Params, run

HEADER = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"


class Listener(SilentReporter):
    """Keeps the warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, message: str) -> None:
        self.warnings.append(message)


@pytest.fixture
def rows(sentences: list[str]) -> list[tuple[str, str, int]]:
    """300 pairs; every third is a duplicate and shares all words but one."""
    made = []
    for number, sentence in enumerate(sentences):
        duplicate = number % 3 == 0
        other = f"{sentence} quiet" if duplicate else sentences[(number * 7 + 3) % len(sentences)]
        made.append((sentence, other, int(duplicate)))
    return made


@pytest.fixture
def pairs(tmp_path: Path, rows: list[tuple[str, str, int]]) -> Path:
    path = tmp_path / "pairs.tsv"
    lines = [f"{n}\t{2 * n}\t{2 * n + 1}\t{a}\t{b}\t{mark}\n" for n, (a, b, mark) in enumerate(rows)]
    path.write_text(HEADER + "".join(lines), encoding="utf-8")
    return path


def brute_force_mrr(model_folder: Path, rows: list[tuple[str, str, int]]) -> float:
    """The protocol once more, in plain loops."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(model_folder), device="cpu")
    documents = sorted({second for _, second, _ in rows})
    vectors = model.encode(documents, normalize_embeddings=True)
    values = []
    for query in sorted({first for first, _, _ in rows}):
        wanted = {second for first, second, mark in rows if first == query and mark}
        if wanted:
            scores = vectors @ model.encode(query, normalize_embeddings=True)
            best = [documents[i] for i in np.argsort(-scores)[:10]]
            values.append(next((1 / rank for rank, text in enumerate(best, start=1) if text in wanted), 0.0))
    return 100 * float(np.mean(values))


def test_flat_equals_brute_force(
    tmp_path: Path, pairs: Path, rows: list[tuple[str, str, int]], tiny_model: Path
) -> None:
    params = Params(pairs, str(tiny_model), index=("flat",), rounds=1, device="cpu")
    facts = run(params, WorkDirectory(tmp_path / "work")).facts
    entry = facts["indexes"][0]
    assert entry["model"]["mrr_at_10"] == pytest.approx(brute_force_mrr(tiny_model, rows), abs=0.5)
    assert facts["documents"] == len({second for _, second, _ in rows})
    assert (facts["queries"], facts["judged_queries"]) == (300, 100)
    assert facts["model"]["raw_vector_bytes"] == facts["documents"] * 32 * 4
    assert entry["model"]["index_bytes"] >= facts["model"]["raw_vector_bytes"]
    assert facts["protocol"]["threads"] == 1


def test_cells_are_lowered_with_a_warning_that_says_the_rule(tmp_path: Path, pairs: Path, tiny_model: Path) -> None:
    listener = Listener()
    params = Params(pairs, str(tiny_model), rounds=1, device="cpu")
    facts = run(params, WorkDirectory(tmp_path / "work"), listener).facts
    cells = facts["documents"] // 39
    assert [entry["settings"] for entry in facts["indexes"]] == [{}, {"nlist": cells, "nprobe": 5}]
    assert listener.warnings == [
        f"nlist lowered from 1024 to {cells}: FAISS wants 39 documents for each cell, "
        f"the corpus has {facts['documents']}"
    ]


def test_compare_gives_shares_and_ratios(tmp_path: Path, pairs: Path, tiny_model: Path) -> None:
    wide = make_tiny_model(tmp_path / "wide", width=64, seed=3)
    params = Params(pairs, str(tiny_model), compare=str(wide), index=("flat",), rounds=2, device="cpu")
    facts = run(params, WorkDirectory(tmp_path / "work")).facts
    entry = facts["indexes"][0]
    ours, other = entry["model"], entry["compare"]
    assert entry["share_kept"] == pytest.approx(100 * ours["mrr_at_10"] / other["mrr_at_10"])
    assert entry["times_smaller"] == pytest.approx(other["index_bytes"] / ours["index_bytes"])
    assert 1.9 < entry["times_smaller"] < 2
    assert entry["times_faster"] > 0
    assert facts["compare"]["dimension"] == 64


def test_fresh_result_is_shown_again_and_force_measures_again(tmp_path: Path, pairs: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    made = run(Params(pairs, str(tiny_model), rounds=1, device="cpu"), work)
    assert run(Params(pairs, str(tiny_model), rounds=1, device="cpu"), work).manifest == made.manifest
    forced = run(Params(pairs, str(tiny_model), rounds=1, device="cpu", force=True), work)
    assert forced.manifest["finished"] > made.manifest["finished"]
    assert forced.facts["indexes"][1]["model"]["mrr_at_10"] == made.facts["indexes"][1]["model"]["mrr_at_10"]


def test_corpus_smaller_than_ten(tmp_path: Path, tiny_model: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("question1,question2,is_duplicate\nthe cat,a cat,1\nthe dog,a dog,0\n,empty,1\n")
    listener = Listener()
    facts = run(Params(path, str(tiny_model), rounds=1, device="cpu"), WorkDirectory(tmp_path / "work"), listener).facts
    assert all(0 < entry["model"]["mrr_at_10"] <= 100 for entry in facts["indexes"])
    assert listener.warnings[0] == f"{path}: 1 pairs with an empty question left out"


def test_pairs_without_duplicates_are_refused(tmp_path: Path, tiny_model: Path) -> None:
    path = tmp_path / "none.csv"
    path.write_text("question1,question2,is_duplicate\nthe cat,a cat,0\n")
    with pytest.raises(InputError, match="marks no pair as duplicates"):
        run(Params(path, str(tiny_model)), WorkDirectory(tmp_path / "work"))


def test_all_faults_of_a_request_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        run(Params(tmp_path / "x.tsv", index=("flt",), nlist=0, threads=-1), WorkDirectory(tmp_path))
    assert all(word in caught.value.message for word in ("did you mean flat?", "--nlist", "--threads"))


def test_command_prints_a_table_or_one_json_document(
    tmp_path: Path, pairs: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sentcompress.cli.main import _run

    words = ["eval-retrieval", "--pairs", str(pairs), "--model", str(tiny_model), "--work", str(tmp_path / "work")]
    assert _run([*words, "--compare", str(tiny_model), "--rounds", "1"]) == 0
    captured = capsys.readouterr()
    assert [word for word in ("flat", "ivf 7/5", "MRR@10", "1 thread", "100.00") if word not in captured.out] == []
    assert "nlist lowered from 1024 to" in captured.err
    assert _run([*words, "--index", "flat", "--rounds", "1", "--json"]) == 0
    assert [entry["index"] for entry in json.loads(capsys.readouterr().out)["indexes"]] == ["flat"]
    assert _run([*words, "--index", "flat,fast"]) == 2
