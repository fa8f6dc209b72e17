"""eval-retrieval from files to the artifact, against brute force over sentence-transformers' vectors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from beir import with_ids, write_beir
from listening import Listener
from safetensors.torch import load_file, save_file
from tiny_models import make_plain, make_tiny_model

from sentcompress.encoding.engine import EncodeEngine
from sentcompress.errors import InputError, UsageError
from sentcompress.evaluation.index_plan import KINDS, QUANTISED, WITHOUT_LENGTHS
from sentcompress.evaluation.metrics import (
    BYTES_PER_DOCUMENT,
    FIRST_RELEVANT,
    INDEX_BYTES,
    INDEX_LOSS,
    MRR,
    NDCG,
    SEARCH_TIME,
    recall_at,
)
from sentcompress.evaluation.retrieval import EXACT
from sentcompress.evaluation.score import read_scores, select, value_of
from sentcompress.evaluation.similarity import normalized
from sentcompress.evaluation.tables import ratio
from sentcompress.models import sources
from sentcompress.models.layout import load_encoder
from sentcompress.models.sources import resolve
from sentcompress.stages import augment, report, teacher_embed
from sentcompress.stages import eval_retrieval as stage
from sentcompress.stages.eval_retrieval import Params, run
from sentcompress.store import WorkDirectory

HEADER = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"


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


@pytest.fixture
def collection(tmp_path: Path, sentences: list[str]) -> Path:
    """700 documents with titles, 60 queries that share words with their document, graded judgements."""
    documents = [
        {"_id": f"d{n}", "title": sentences[n % 300], "text": f"{sentences[(n * 3 + n // 300) % 300]} {n % 3 * 'dog '}"}
        for n in range(700)
    ]
    queries = with_ids((f"{sentences[n * 4]} fresh" for n in range(60)), "q")
    judged = [(f"q{n}", f"d{d}", grade) for n in range(60) for d, grade in ((4 * n, 2), (4 * n + 300, 1), (n + 1, 0))]
    return write_beir(tmp_path / "beir", documents, queries, test=judged)


def write_vectors(path: Path, texts: Mapping[str, Any]) -> str:
    """A `.npy` file with its texts beside it; what --model is given."""
    np.save(path, np.array(list(texts.values()), dtype=np.float32))
    path.with_suffix(".txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return str(path)


def read_jsonl(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def brute_force_mrr(model_folder: Path, rows: list[tuple[str, str, int]], normalize: bool = True) -> float:
    """The MRR of sentence-transformers' vectors."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(model_folder), device="cpu")
    return mrr_of(lambda texts: np.asarray(model.encode(texts, normalize_embeddings=normalize)), rows)


def mrr_of(encode: Callable[[list[str]], np.ndarray], rows: list[tuple[str, str, int]]) -> float:
    """The Quora protocol once more, in plain loops."""
    documents = sorted({second for _, second, _ in rows})
    vectors = encode(documents)
    queries = sorted({first for first, _, _ in rows})
    values = []
    for query, vector in zip(queries, encode(queries), strict=True):
        wanted = {second for first, second, mark in rows if first == query and mark}
        if wanted:
            scores = vectors @ vector
            best = [documents[i] for i in np.argsort(-scores)[:10]]
            values.append(next((1 / rank for rank, text in enumerate(best, start=1) if text in wanted), 0.0))
    return 100 * float(np.mean(values))


def test_pairs_equal_brute_force(
    tmp_path: Path, pairs: Path, rows: list[tuple[str, str, int]], tiny_model: Path
) -> None:
    params = Params(pairs=pairs, model=str(tiny_model), index=("flat",), rounds=1, device="cpu")
    artifact = run(params, WorkDirectory(tmp_path / "work"))
    facts = artifact.facts
    scores = read_scores(facts)
    assert value_of(scores, MRR, "pairs.tsv", "flat") == pytest.approx(brute_force_mrr(tiny_model, rows), abs=0.5)
    assert value_of(scores, MRR, "pairs.tsv", "flat") == value_of(scores, MRR, "pairs.tsv", EXACT)
    assert (scores[0].metric, scores[0].part, scores[0].count) == (MRR, EXACT, 100)
    assert facts["documents"] == len({second for _, second, _ in rows})
    assert (facts["queries"], facts["judged_queries"]) == (300, 100)
    assert facts["model"]["raw_vector_bytes"] == facts["documents"] * 32 * 4
    assert value_of(scores, INDEX_BYTES, part="flat") >= facts["model"]["raw_vector_bytes"]
    assert facts["model"]["weight_bytes"] == (tiny_model / "model.safetensors").stat().st_size
    assert (facts["protocol"]["threads"], facts["protocol"]["main_score"]) == (1, MRR)
    assert facts["dataset"] == {"protocol": "pairs", "name": "pairs.tsv", "split": None}
    assert (facts["corpus"]["taken"], facts["corpus"]["hpd_met"]) == ("all", False)
    stated = f"question2 of all pairs, {facts['documents']} documents (not the 87,265 of HPD's table)"
    assert stated in facts["protocol"]["statement"]
    assert artifact.name == "retrieval-pairs-tiny-model"
    assert {path.name for path in artifact.path.iterdir()} == {"result.json", "manifest.json", "request.json"}


def test_the_corpus_of_duplicates_is_another_result(tmp_path: Path, pairs: Path, tiny_model: Path) -> None:
    params = Params(
        pairs=pairs, corpus="duplicates", model=str(tiny_model), index=("flat",), rounds=1, device="cpu", name="two"
    )
    facts = run(params, WorkDirectory(tmp_path / "work")).facts
    assert (facts["documents"], facts["judged_queries"]) == (100, 100)
    assert facts["corpus"]["sizes"]["duplicates"] == 100
    with pytest.raises(UsageError, match="`corpus` is for `pairs`"):
        run(Params(collection=tmp_path, corpus="all"), WorkDirectory(tmp_path / "work"))


def test_a_collection_equals_pytrec_eval(tmp_path: Path, collection: Path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    rows = {name: read_jsonl(collection / f"{name}.jsonl") for name in ("corpus", "queries")}
    generator = np.random.default_rng(0)
    documents = {f"{row['title']} {row['text']}".strip(): generator.normal(size=16) for row in rows["corpus"]}
    # The query's own document is no more than near, so that some are found and some are not.
    own = [f"{row['title']} {row['text']}".strip() for row in rows["corpus"][: 4 * 60 : 4]]
    queries = {
        row["text"]: documents[text] + generator.normal(size=16) for row, text in zip(rows["queries"], own, strict=True)
    }
    model = write_vectors(tmp_path / "vectors.npy", documents | queries)
    listener = Listener()
    params = Params(collection=collection, model=model, index=("flat", "binary"), rounds=1)
    artifact = run(params, WorkDirectory(tmp_path / "work"), listener)

    unit = {text: np.array(vector) / np.linalg.norm(vector) for text, vector in (documents | queries).items()}
    scored = {
        query["_id"]: {
            row["_id"]: float(unit[query["text"]] @ unit[f"{row['title']} {row['text']}".strip()])
            for row in rows["corpus"]
        }
        for query in rows["queries"]
    }
    qrels: dict[str, dict[str, int]] = {}
    for line in (collection / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        query, document, grade = line.split("\t")
        qrels.setdefault(query, {})[document] = int(grade)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "recall.1,10,100"}).evaluate(scored).values()
    names = {recall_at(cutoff): f"recall_{cutoff}" for cutoff in (1, 10, 100)} | {NDCG: "ndcg_cut_10"}
    found = read_scores(artifact.facts)
    for part in (EXACT, "flat"):
        for ours, name in names.items():
            expected = 100 * np.mean([one[name] for one in theirs])
            assert value_of(found, ours, "beir test", part) == pytest.approx(expected)
        assert 5 < value_of(found, NDCG, part=part) < 95
    assert not select(found, recall_at(1000))
    assert artifact.facts["dataset"] == {"protocol": "collection", "name": "beir", "split": "test"}
    assert artifact.name == f"retrieval-beir-test-{tmp_path.name}-vectors.npy"
    assert listener.notes == [
        "eval-retrieval: split test",
        "k lowered from 1000 to 700, the number of documents; Recall@1000 is not computed",
    ]
    assert listener.warnings == ["binary: all 700 documents are candidates, so the codes select nothing"]


def test_queries_that_are_documents_too_are_told(tmp_path: Path, tiny_model: Path, sentences: list[str]) -> None:
    """Counterarguments of ArguAna: BEIR's code drops the document of the query's id, trec_eval does not."""
    texts, heard = with_ids(sentences[:12]), Listener()
    folder = write_beir(tmp_path / "beir", texts, texts[:3], test=[("0", "5", 1), ("1", "6", 1)])
    params = Params(collection=folder, model=str(tiny_model), index=("flat",), rounds=1, device="cpu")
    facts = run(params, WorkDirectory(tmp_path / "work"), heard).facts
    assert facts["queries_among_documents"] == 2
    assert heard.warnings == [
        "2 queries are documents too, with the same id and text, for example '0'; such documents stay among the "
        "results, as in trec_eval. BEIR's own code drops them, so published scores are not comparable"
    ]


def test_the_result_says_that_dev_of_ms_marco_is_dev_small(tmp_path: Path, tiny_model: Path) -> None:
    texts = {"collection.tsv": "1\tthe cat\n2\tthe dog\n", "queries.dev.tsv": "7\tcat\n8\tdog\n"}
    judged = {"qrels.dev.small.tsv": "7\t0\t1\t1\n", "qrels.dev.tsv": "7\t0\t1\t1\n8\t0\t2\t1\n"}
    for name, content in (texts | judged).items():
        (tmp_path / name).write_text(content)
    listener = Listener()
    params = Params(collection=tmp_path, split="dev", model=str(tiny_model), index=("flat",), rounds=1, device="cpu")
    artifact = run(params, WorkDirectory(tmp_path / "work"), listener)
    assert listener.notes[0] == "eval-retrieval: split dev.small"
    assert artifact.facts["dataset"]["split"] == "dev.small"
    assert "(split dev.small)" in artifact.facts["protocol"]["statement"]
    assert artifact.facts["judged_queries"] == 1
    assert artifact.name == f"retrieval-{tmp_path.name}-dev.small-tiny-model"


def test_entities_by_hand(tmp_path: Path) -> None:
    vectors = {"apple": [1, 0], "pear": [0, 1], "red apple": [1, 0.1], "ripe pear": [0.9, 0.2], "plum": [1, 1]}
    model = write_vectors(tmp_path / "fruit.npy", vectors)
    (tmp_path / "test.tsv").write_text(
        "query\tentity\tlabel\nred apple\tapple\t1\nred apple\tpear\t0\nripe pear\tpear\t1\nplum\tpear\t0\n"
    )
    artifact = run(
        Params(entities=tmp_path / "test.tsv", model=model, index=("flat",), rounds=1), WorkDirectory(tmp_path / "w")
    )
    facts = artifact.facts
    assert (facts["documents"], facts["queries"]) == (2, 2)
    assert facts["protocol"]["main_score"] == FIRST_RELEVANT
    assert value_of(read_scores(facts), FIRST_RELEVANT, part=EXACT) == 50
    assert value_of(read_scores(facts), MRR, part=EXACT) == 75
    # Not the name of an evaluation of the folder's split `test`, whose catalogue is another.
    assert artifact.name == f"retrieval-{tmp_path.name}-test.tsv-{tmp_path.name}-fruit.npy"


def test_a_query_of_two_entities_is_resolved_by_either(tmp_path: Path) -> None:
    """SimTDE's R@1 (section 4.2) is the share of queries whose first entity is right: two of these three.

    Recall@1 is the share of a query's entities: 1/2, 1/3 and 0, so that no model could reach 100.
    """
    east, north, up = np.eye(3)
    vectors = {"FM 4": east, "fm4": east, "Radio 4": north, "R4": north, "BBC R4": north, "Ö1": up}
    queries = {"play f m four": east, "bbc radio four": north, "play oe one": east}
    model = write_vectors(tmp_path / "radio.npy", vectors | queries)
    pairs = {
        "play f m four": ["FM 4", "fm4"],
        "bbc radio four": ["Radio 4", "R4", "BBC R4"],
        "play oe one": ["Ö1"],
    }
    lines = "".join(f"{query}\t{entity}\t1\n" for query, entities in pairs.items() for entity in entities)
    (tmp_path / "test.tsv").write_text(f"query\tentity\tlabel\n{lines}", encoding="utf-8")
    params = Params(entities=tmp_path / "test.tsv", model=model, compare=model, index=("flat",), rounds=1)
    listener = Listener()
    facts = run(params, WorkDirectory(tmp_path / "w"), listener).facts
    assert listener.warnings[0].startswith("radio.npy is compared with itself; ")
    scores = read_scores(facts)
    for part in (EXACT, "flat"):
        assert value_of(scores, FIRST_RELEVANT, part=part) == pytest.approx(100 * 2 / 3)
        assert value_of(scores, recall_at(1), part=part) == pytest.approx(100 * (1 / 2 + 1 / 3) / 3)
    assert "Accuracy@1" in facts["protocol"]["statement"]


@pytest.mark.usefixtures("figures_not_drawn")
def test_entities_of_several_languages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sentcompress.cli.call import Call
    from sentcompress.cli.evaluations import SHOW

    texts = ["Apfel", "Birne", "pomme", "poire", "apfel", "birne", "la pomme", "la poire"]
    units = np.eye(4)
    right = dict(zip(texts, [*units, *units], strict=True))
    # The student confuses one of the two German queries.
    wrong = right | {"birne": units[0]}
    teacher, student = (write_vectors(tmp_path / f"{name}.npy", of) for name, of in (("t", right), ("s", wrong)))
    rows = {"german": ("apfel\tApfel", "birne\tBirne"), "french": ("la pomme\tpomme", "la poire\tpoire")}
    (tmp_path / "er").mkdir()
    for language, pairs in rows.items():
        lines = "".join(f"{pair}\t1\n" for pair in pairs)
        (tmp_path / "er" / f"{language}.tsv").write_text(f"query\tentity\tlabel\n{lines}")
    params = Params(entities=tmp_path / "er", model=student, compare=teacher, index=("flat",), rounds=1)
    artifact = run(params, WorkDirectory(tmp_path / "w"))
    french = {"language": "french", "queries": 2, "model": 100, "compare": 100, "relative_percent": 0}
    german = {"language": "german", "queries": 2, "model": 50, "compare": 100, "relative_percent": -50}
    mean = {"language": "mean", "queries": 4, "model": 75, "compare": 100, "relative_percent": -25}
    assert artifact.facts["languages"] == [french, german, mean]
    assert "2 languages with one catalogue" in artifact.facts["protocol"]["statement"]
    SHOW["eval-retrieval"](artifact, Call(params, tmp_path / "w"))
    shown = capsys.readouterr().out
    assert "by language, exact search" in shown
    assert all(word in shown for word in ("-50.00%", "+0.00%", "mean of the languages", "-25.00%"))
    work = WorkDirectory(tmp_path / "w")
    page = report.run(report.Params(), work)["markdown"]
    assert "by language: er, exact search" in page
    assert re.search(r"german *\| 2 *\| 50.00 *\| 100.00 *\| -50.00%", page)


def test_every_kind_stands_beside_exact_search(tmp_path: Path, collection: Path, tiny_model: Path) -> None:
    params = Params(collection=collection, model=str(tiny_model), index=KINDS, depth=10, rounds=1, device="cpu")
    facts = run(params, WorkDirectory(tmp_path / "work")).facts
    scores = read_scores(facts)
    exact = value_of(scores, NDCG, part=EXACT)
    for kind in KINDS:
        (found,) = select(scores, NDCG, part=kind)
        assert value_of(scores, INDEX_LOSS, part=kind) == pytest.approx(exact - found.value)
        assert found.interval is not None
        assert found.interval.low <= found.value <= found.interval.high
    bytes_each = {kind: value_of(scores, BYTES_PER_DOCUMENT, part=kind) for kind in KINDS}
    assert bytes_each["sq8"] < bytes_each["fp16"] < bytes_each["flat"] < bytes_each["hnsw"]
    assert value_of(scores, INDEX_LOSS, part="flat") == 0


def lengths_matter(path: Path) -> tuple[Path, str]:
    """Two queries whose document is far from parallel to them, but long; and a model of those vectors."""
    path.mkdir()
    (path / "pairs.tsv").write_text(
        "question1\tquestion2\tis_duplicate\na\tlong\t1\nb\tlong\t1\na\tnear a\t0\nb\tnear b\t0\n"
    )
    vectors = {"a": [2, 1], "b": [1, 2], "long": [30, 30], "near a": [2, 1], "near b": [1, 2]}
    return path / "pairs.tsv", write_vectors(path / "vectors.npy", vectors)


def test_inner_products_rank_by_the_lengths_too(tmp_path: Path) -> None:
    pairs, model = lengths_matter(tmp_path / "data")
    work, kinds = WorkDirectory(tmp_path / "work"), ("flat", "ivf", "hnsw", "sq8", "fp16")
    found = {}
    for similarity in ("cosine", "dot"):
        params = Params(pairs=pairs, model=model, index=kinds, rounds=1, similarity=similarity, name=similarity)
        facts = run(params, work).facts
        found[similarity] = [value_of(read_scores(facts), MRR, part=kind) for kind in (EXACT, *kinds)]
        assert facts["protocol"]["similarity"] == similarity
        stated = "normalised vectors" if similarity == "cosine" else "the vectors as the model gives them"
        assert f"inner product on {stated}" in facts["protocol"]["statement"]
    assert found == {"cosine": [50] * 6, "dot": [100] * 6}


def test_inner_products_equal_those_of_sentence_transformers(
    tmp_path: Path, pairs: Path, rows: list[tuple[str, str, int]]
) -> None:
    folder = make_tiny_model(tmp_path / "plain", normalize=False)
    expected = {similarity: brute_force_mrr(folder, rows, similarity == "cosine") for similarity in ("cosine", "dot")}
    work, found = WorkDirectory(tmp_path / "work"), {}
    for similarity in expected:
        kinds = tuple(kind for kind in KINDS if kind not in WITHOUT_LENGTHS and kind not in QUANTISED)
        params = Params(pairs=pairs, model=str(folder), index=kinds, rounds=1, device="cpu", similarity=similarity)
        scores = read_scores(run(replace(params, name=similarity), work).facts)
        found[similarity] = value_of(scores, MRR, part=EXACT)
        assert value_of(scores, MRR, part="flat") == found[similarity]
        assert value_of(scores, MRR, part="fp16") == pytest.approx(found[similarity], abs=1)
    assert found == pytest.approx(expected, abs=0.5)
    assert abs(found["cosine"] - found["dot"]) > 1


def test_a_model_that_normalises_scores_the_same_by_inner_product(
    tmp_path: Path, pairs: Path, tiny_model: Path
) -> None:
    found = []
    for similarity in ("cosine", "dot"):
        params = Params(
            pairs=pairs, model=str(tiny_model), index=("flat",), rounds=1, device="cpu", similarity=similarity
        )
        artifact = run(replace(params, name=similarity), WorkDirectory(tmp_path / "work"))
        found.append(value_of(read_scores(artifact.facts), MRR, part=EXACT))
    assert found[0] == found[1]


def test_a_teacher_that_is_read_in_its_own_way_is_searched_by_its_own_lengths(
    tmp_path: Path, pairs: Path, tiny_model: Path, rows: list[tuple[str, str, int]]
) -> None:
    """CoCondenser: the state of [CLS], not normalised, as `teacher-embed --pooling cls` reads it."""
    plain = make_plain(tmp_path / "plain", tiny_model)
    weights = load_file(plain / "model.safetensors")
    # A trained norm; with equal weights, all states would have the same length.
    weights["encoder.layer.1.output.LayerNorm.weight"] *= torch.linspace(0, 2, 32)
    save_file(weights, plain / "model.safetensors", metadata={"format": "pt"})
    work = WorkDirectory(tmp_path / "work")
    (tmp_path / "texts.txt").write_text("the cat\nthe dog\n")
    augment.run(augment.Params(inputs=(str(tmp_path / "texts.txt"),), wordnet=0, back_translate=0), work)
    asked = teacher_embed.Params(teacher=str(plain), pooling="cls", dtype="float32", device="cpu", name="cls")
    teacher_embed.run(asked, work)
    model = "teacher-vectors/cls"
    params = Params(pairs=pairs, model=model, index=("flat",), rounds=1, device="cpu", similarity="dot")
    found = value_of(read_scores(run(params, work).facts), MRR, part=EXACT)

    engine = EncodeEngine(load_encoder(resolve(str(plain)), pooling="cls"), device="cpu", dtype="float32")
    assert found == pytest.approx(mrr_of(engine.encode, rows), abs=0.5)
    assert found != pytest.approx(mrr_of(lambda texts: normalized(engine.encode(texts))[0], rows), abs=0.5)


def test_a_result_with_cosines_is_not_one_with_inner_products(tmp_path: Path, pairs: Path, tiny_model: Path) -> None:
    params = Params(pairs=pairs, model=str(tiny_model), index=("flat",), rounds=1, device="cpu")
    run(params, WorkDirectory(tmp_path / "work"))
    with pytest.raises(UsageError, match=r"already exists with different options .*now dot"):
        run(replace(params, similarity="dot"), WorkDirectory(tmp_path / "work"))


def test_binary_is_refused_for_inner_products(tmp_path: Path, pairs: Path) -> None:
    params = Params(pairs=pairs, model="x.npy", index=("flat", "binary"), similarity="dot")
    with pytest.raises(UsageError, match="`index` binary ignores the lengths of vectors"):
        run(params, WorkDirectory(tmp_path / "work"))


def test_lowered_cells_are_a_warning_only_if_the_user_set_them(tmp_path: Path, pairs: Path, tiny_model: Path) -> None:
    listener = Listener()
    params = Params(pairs=pairs, model=str(tiny_model), rounds=1, device="cpu")
    facts = run(params, WorkDirectory(tmp_path / "work"), listener).facts
    cells = facts["documents"] // 39
    assert [entry["settings"]["model"] for entry in facts["indexes"]] == [{}, {"nlist": cells, "nprobe": 5}]
    rule = f"to {cells}: FAISS needs 39 documents per cell, the corpus has {facts['documents']}"
    assert f"nlist lowered from 1024 {rule}" in listener.notes
    assert listener.warnings == []
    run(replace(params, nlist=500, name="set"), WorkDirectory(tmp_path / "work"), listener)
    assert listener.warnings == [f"nlist lowered from 500 {rule}"]


def test_compare_gives_shares_ratios_and_the_interval_of_the_difference(
    tmp_path: Path, pairs: Path, tiny_model: Path
) -> None:
    wide = make_tiny_model(tmp_path / "wide", width=64, seed=3)
    params = Params(pairs=pairs, model=str(tiny_model), compare=str(wide), index=("flat",), rounds=2, device="cpu")
    facts = run(params, WorkDirectory(tmp_path / "work")).facts
    scores = read_scores(facts)
    for metric in (MRR, NDCG):
        (ours,), (other,) = (select(scores, metric, part="flat", role=role) for role in ("model", "compare"))
        assert ours.kept == pytest.approx(100 * ours.value / other.value)
        assert ours.difference == pytest.approx(ours.value - other.value)
    (ours,) = select(scores, MRR, part="flat", role="model")
    assert ours.difference is not None
    assert ours.difference_interval is not None
    assert ours.difference_interval.low <= ours.difference <= ours.difference_interval.high
    (smaller,), (faster,) = (select(scores, name, part="flat", role="model") for name in (INDEX_BYTES, SEARCH_TIME))
    assert 1.9 < (ratio(smaller) or 0) < 2
    assert (ratio(faster) or 0) > 0
    assert facts["compare"]["dimension"] == 64


def test_documents_of_one_and_queries_of_another(tmp_path: Path, pairs: Path, tiny_model: Path) -> None:
    other = make_tiny_model(tmp_path / "other", width=32, seed=3)
    asymmetric = Params(
        pairs=pairs,
        document_model=str(tiny_model),
        query_model=str(other),
        compare=str(other),
        index=("flat",),
        rounds=1,
        device="cpu",
    )
    artifact = run(asymmetric, WorkDirectory(tmp_path / "work"))
    facts = artifact.facts
    assert facts["model"]["label"] == "other, documents by tiny-model"
    assert facts["model"]["documents_by"]["label"] == "tiny-model"
    assert artifact.name == "retrieval-pairs-other-documents-tiny-model"
    # Random models do not understand each other.
    scores = read_scores(facts)
    assert value_of(scores, MRR, part=EXACT) < value_of(scores, MRR, part=EXACT, role="compare") / 2


def test_a_revision_is_of_the_model_and_not_of_another_one_for_the_documents(
    tmp_path: Path, pairs: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_tiny_model(tmp_path / "other", width=32, seed=3)
    hub = {("owner/model", "v1"): other, ("owner/documents", None): tiny_model}
    monkeypatch.setattr(sources, "_download", lambda name, revision: hub[name, revision])
    asked = Params(pairs=pairs, model="owner/model", revision="v1", document_model="owner/documents", index=("flat",))
    facts = run(replace(asked, rounds=1, bootstrap=0, device="cpu"), WorkDirectory(tmp_path / "work")).facts
    assert facts["model"]["digest"] == resolve(str(other)).digest
    assert facts["model"]["documents_by"]["digest"] == resolve(str(tiny_model)).digest


def test_fresh_result_is_shown_again_and_force_measures_again(tmp_path: Path, pairs: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    params = Params(pairs=pairs, model=str(tiny_model), rounds=1, device="cpu")
    made = run(params, work)
    assert run(params, work).manifest == made.manifest
    forced = run(Params(pairs=pairs, model=str(tiny_model), rounds=1, device="cpu", force=True), work)
    assert forced.manifest["finished"] > made.manifest["finished"]
    again, before = (value_of(read_scores(one.facts), MRR, part="ivf") for one in (forced, made))
    assert again == before


def test_an_interrupted_run_does_not_encode_its_documents_again(
    tmp_path: Path, pairs: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = WorkDirectory(tmp_path / "work")
    params = Params(pairs=pairs, model=str(tiny_model), index=("flat",), rounds=1, device="cpu")

    class KilledError(Exception):
        pass

    def kill(*_: Any) -> Any:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(stage.Comparison, "exact", kill)
        with pytest.raises(KilledError):
            run(params, work)
    vectors = next((tmp_path / "work" / "evaluations").glob(".*.partial/.scaffold/vectors-model.npy"))
    assert np.linalg.norm(np.load(vectors), axis=1) == pytest.approx(1, abs=1e-5)
    monkeypatch.setattr(stage, "writing_vectors", kill)
    assert value_of(read_scores(run(params, work).facts), MRR, part=EXACT) > 0


def test_corpus_smaller_than_ten(tmp_path: Path, tiny_model: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("question1,question2,is_duplicate\nthe cat,a cat,1\nthe dog,a dog,0\n,empty,1\n")
    listener = Listener()
    params = Params(pairs=path, model=str(tiny_model), rounds=1, device="cpu")
    lowered = "k lowered from 10 to 2, the number of documents; Recall@10 is not computed"
    facts = run(params, WorkDirectory(tmp_path / "work"), listener).facts
    assert listener.notes[0] == lowered
    assert lowered not in listener.warnings, "it is the default"
    run(replace(params, depth=10, name="set"), WorkDirectory(tmp_path / "work"), listener)
    assert all(0 < score.value <= 100 for score in select(read_scores(facts), MRR))
    assert not select(read_scores(facts), recall_at(10))
    assert listener.warnings[0] == f"{path}: dropped 1 pair with an empty text"
    assert lowered in listener.warnings, "it was asked for"


def test_a_corpus_too_small_to_train_is_refused_before_anything_is_encoded(
    tmp_path: Path, pairs: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage.RetrievalEvaluation, "_spool", None)
    with pytest.raises(UsageError, match="too small to train ivfpq, which needs at least 624"):
        run(Params(pairs=pairs, model=str(tiny_model), index=("flat", "ivfpq")), WorkDirectory(tmp_path / "work"))


def test_zero_vectors_are_counted_and_numbers_that_are_none_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("question1\tquestion2\tis_duplicate\na\tb\t1\nc\td\t1\n")
    vectors = {"a": [1.0, 0.0], "b": [1.0, 0.1], "c": [0.0, 0.0], "d": [0.0, 0.0]}
    listener = Listener()
    model = write_vectors(tmp_path / "zeros.npy", vectors)
    facts = run(
        Params(pairs=path, model=model, index=("flat",), rounds=1), WorkDirectory(tmp_path / "work"), listener
    ).facts
    assert listener.warnings == [
        "zeros.npy: 1 zero vector among the documents; such vectors match nothing",
        "zeros.npy: 1 zero vector among the queries; such vectors match nothing",
    ]
    assert value_of(read_scores(facts), MRR, part=EXACT) >= 75
    broken = write_vectors(tmp_path / "broken.npy", {**vectors, "b": [1.0, np.nan]})
    with pytest.raises(InputError, match=r"broken\.npy: 1 of 2 vectors hold NaN or infinity"):
        run(Params(pairs=path, model=broken, index=("flat",), rounds=1), WorkDirectory(tmp_path / "work"))


def test_one_vector_for_everything_is_told(tmp_path: Path, pairs: Path, rows: list[tuple[str, str, int]]) -> None:
    texts = {text: [1.0, 2.0] for row in rows for text in row[:2]}
    listener = Listener()
    model = write_vectors(tmp_path / "same.npy", texts)
    run(Params(pairs=pairs, model=model, index=("flat",), rounds=1), WorkDirectory(tmp_path / "work"), listener)
    assert "same.npy gives every document the same vector: its rankings are meaningless" in listener.warnings


def test_pairs_without_duplicates_are_refused(tmp_path: Path, tiny_model: Path) -> None:
    path = tmp_path / "none.csv"
    path.write_text("question1,question2,is_duplicate\nthe cat,a cat,0\n")
    with pytest.raises(InputError, match="marks no pair as duplicates"):
        run(Params(pairs=path, model=str(tiny_model)), WorkDirectory(tmp_path / "work"))


def test_all_faults_of_a_request_at_once(tmp_path: Path) -> None:
    params = Params(
        pairs=tmp_path / "x.tsv",
        collection=tmp_path,
        split="dev",
        index=("flt",),
        nlist=0,
        rescore="int4",
        threads=-1,
        depth=3,
        bootstrap=-1,
    )
    with pytest.raises(UsageError) as caught:
        run(params, WorkDirectory(tmp_path))
    words = ("did you mean flat?", "`nlist`", "`threads`", "`rescore`", "`depth`", "one of `pairs`", "`split` is")
    assert [word for word in words if word not in caught.value.message] == []
    assert caught.value.message.count("`depth`") == 1
    others = {"document_model": "teacher", "query_model": "student"}
    with pytest.raises(UsageError, match="`revision` is for `model`, which has no effect with both"):
        Params(pairs=tmp_path / "x.tsv", revision="v1", **others).check()
    with pytest.raises(UsageError, match="`segments` is for `index` ivfpq and pq, not flat and ivf"):
        Params(pairs=tmp_path / "x.tsv", segments=4, nlist=7, **others).check()
    with pytest.raises(UsageError) as caught:  # more than FAISS takes, or has memory for
        run(Params(pairs=tmp_path / "x.tsv", links=2**31, ef_search=2**31, threads=2000), WorkDirectory(tmp_path))
    words = ("`links` must be from 2 to 1000", "`ef_search` must be from 1 to", "`threads` must be from 0 to 1024")
    assert [word for word in words if word not in caught.value.message] == []


def test_command_prints_tables_or_one_json_document(
    tmp_path: Path, pairs: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sentcompress.cli.main import _run

    words = ["eval-retrieval", "--pairs", str(pairs), "--model", str(tiny_model), "--work", str(tmp_path / "work")]
    assert _run([*words, "--compare", str(tiny_model), "--rounds", "1"]) == 0
    captured = capsys.readouterr()
    shown = ("flat", "nlist 7, nprobe 5", "exact search", "MRR@10", "nDCG@10", "1 thread", "100.0%", "+0.00 to +0.00")
    assert [word for word in shown if word not in captured.out] == []
    assert "nlist lowered from 1024 to" in captured.err
    assert _run([*words, "--index", "flat", "--rounds", "1", "--json", "--force"]) == 0
    assert [entry["index"] for entry in json.loads(capsys.readouterr().out)["facts"]["indexes"]] == ["flat"]
    assert _run([*words, "--index", "flat,fast"]) == 2
    assert _run(["eval-retrieval"]) == 2
