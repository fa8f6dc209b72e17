"""eval-retrieval --vectors: the documents' vectors as `encode` stored them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from beir import with_ids, write_beir, write_jsonl
from listening import Listener
from search_documents import make_documents
from tiny_models import make_sentences, make_tiny_model

from sentcompress.cli.main import _run
from sentcompress.errors import InputError, UsageError
from sentcompress.evaluation.metrics import NDCG
from sentcompress.evaluation.retrieval import EXACT
from sentcompress.evaluation.score import read_scores, value_of
from sentcompress.reporting.evidence import gather
from sentcompress.reporting.sections.retrieval import model_name, section
from sentcompress.reporting.summary import lines_of
from sentcompress.stages import encode, fit_quantizer, select
from sentcompress.stages.eval_retrieval import Params, run
from sentcompress.store import Artifact, WorkDirectory

pytest.importorskip("faiss")
TEXTS = make_sentences(160, seed=12)
ROWS = [{"_id": f"d{n}", "title": "", "text": text} for n, text in enumerate(TEXTS)]


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    queries = with_ids((" ".join(text.split()[:4]) for text in TEXTS[:40]), "q")
    return write_beir(tmp_path / "beir", ROWS, queries, test=[(f"q{n}", f"d{n}", 1) for n in range(40)])


def stored(work: WorkDirectory, lines: str, model: Path, output: Path, store: str = "float32") -> Path:
    params = encode.Params(lines=lines, output=output, model=str(model), store=store, dtype="float32", device="cpu")
    encode.run(params, work)
    return output


def evaluated(work: WorkDirectory, collection: Path, model: Path, **others: object) -> Artifact:
    options = {"index": ("flat",), "rounds": 1, "bootstrap": 0, "device": "cpu", **others}
    return run(Params(collection=collection, model=str(model), **options), work)  # type: ignore[arg-type]


def ndcg(artifact: Artifact) -> float:
    return value_of(read_scores(artifact.facts), NDCG, part=EXACT)


def test_float32_vectors_in_any_order_score_as_the_model_does(
    work: WorkDirectory, collection: Path, tiny_model: Path, tmp_path: Path
) -> None:
    plain = evaluated(work, collection, tiny_model)
    same = stored(work, str(collection), tiny_model, tmp_path / "same")
    more = [{"_id": "extra", "title": "", "text": "a dog"}, *reversed(ROWS)]
    turned = stored(work, str(write_jsonl(tmp_path / "turned.jsonl", more)), tiny_model, tmp_path / "turned")
    for number, folder in enumerate((same, turned)):
        made = evaluated(work, collection, tiny_model, vectors=folder, name=f"stored-{number}")
        assert ndcg(made) == pytest.approx(ndcg(plain), abs=1e-6)
        assert made.facts["model"]["documents_by"]["store"] == "float32"
    assert evaluated(work, collection, tiny_model, vectors=same).name == f"{plain.name}-float32"


def test_vectors_of_other_texts_with_the_same_ids_are_told(
    work: WorkDirectory, collection: Path, tiny_model: Path, tmp_path: Path
) -> None:
    folder = stored(work, str(collection), tiny_model, tmp_path / "vectors")

    def warned(name: str) -> bool:
        listener = Listener()
        params = Params(
            collection=collection,
            model=str(tiny_model),
            vectors=folder,
            index=("flat",),
            rounds=1,
            bootstrap=0,
            name=name,
        )
        run(params, work, listener)
        return any("or before it changed" in text for text in listener.warnings)

    assert not warned("as-encoded")
    moved = [{**row, "text": other["text"]} for row, other in zip(ROWS, [*ROWS[1:], ROWS[0]], strict=True)]
    write_jsonl(collection / "corpus.jsonl", moved)
    assert warned("changed")


def test_codes_are_compared_with_turned_queries(
    work: WorkDirectory, collection: Path, tiny_model: Path, tmp_path: Path
) -> None:
    make_documents(work, TEXTS, [" ".join(text.split()[:4]) for text in TEXTS[:20]])
    fit_quantizer.run(
        fit_quantizer.Params(
            model=str(tiny_model), compare=str(tiny_model), vector_bytes=24, store="int8", device="cpu"
        ),
        work,
    )
    folder = stored(work, str(collection), tiny_model, tmp_path / "codes", "int8")
    plain, made = evaluated(work, collection, tiny_model), evaluated(work, collection, tiny_model, vectors=folder)
    assert made.name.endswith("-int8")
    assert made.facts["model"]["documents_by"]["store"] == "int8"
    assert made.facts["model"]["dimension"] == 24
    assert ndcg(made) == pytest.approx(ndcg(plain), abs=5)
    assert ndcg(made) > 20


def test_report_and_status_name_the_model_and_the_format_of_stored_documents(
    work: WorkDirectory, collection: Path, tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluated(work, collection, tiny_model)
    for name, model in (("own", tiny_model), ("other", make_tiny_model(tmp_path / "other-model", seed=9))):
        folder = stored(work, str(collection), model, tmp_path / name)
        evaluated(work, collection, tiny_model, vectors=folder, name=name)
    evidence = gather(work)
    assert {model_name(evidence, one.facts["model"]) for one in evidence.evaluations} == {
        "tiny-model",
        "tiny-model (documents: float32)",
        "tiny-model (documents: other-model, float32)",
    }
    assert section(evidence).tables
    reference = evidence.evaluations[0].models["model"]["reference"]
    metrics = [line.metric.partition("exact search") for line in lines_of(evidence, str(reference))]
    assert {documents for before, _, documents in metrics if "nDCG" in before} == {
        "",
        ", stored as float32",
        ", documents by other-model, stored as float32",
    }
    assert _run(["status", "--work", str(work.path)]) == 0
    assert "model tiny-model, documents by other-model, nDCG" in capsys.readouterr().out


def test_a_model_beside_itself_shows_what_storing_costs(
    work: WorkDirectory, collection: Path, tiny_model: Path, tmp_path: Path
) -> None:
    plain = ndcg(evaluated(work, collection, tiny_model))
    wrong = stored(work, str(collection), make_tiny_model(tmp_path / "other", seed=9), tmp_path / "other-vectors")
    scores = read_scores(evaluated(work, collection, tiny_model, vectors=wrong, compare=str(tiny_model)).facts)
    assert value_of(scores, NDCG, part=EXACT, role="compare") == pytest.approx(plain)
    assert value_of(scores, NDCG, part=EXACT) < plain - 20


def test_select_compares_models_whose_documents_were_encoded_and_stored_alike(
    work: WorkDirectory, collection: Path, tiny_model: Path, tmp_path: Path
) -> None:
    second, teacher = (
        make_tiny_model(tmp_path / name, seed=seed) for seed, name in enumerate(("second", "teacher"), 2)
    )
    chosen = select.Params(inputs=(str(tiny_model), str(second)), by="ndcg_at_10")
    evaluated(work, collection, tiny_model)
    evaluated(work, collection, second, document_model=str(teacher))
    half = [
        stored(work, str(collection), model, tmp_path / f"half-{model.name}", "float16")
        for model in (tiny_model, second)
    ]
    first_stored = evaluated(work, collection, tiny_model, vectors=half[0])
    with pytest.raises(InputError, match="measured on other data or by another protocol"):
        select.run(chosen, work)
    made = [first_stored, evaluated(work, collection, second, vectors=half[1])]
    assert select.run(chosen, work).facts["ranking"][0]["value"] == max(map(ndcg, made))
    # On the teacher's documents: the comparison that was completed last.
    of_teacher = [evaluated(work, collection, model, document_model=str(teacher)) for model in (tiny_model, second)]
    ranking = select.run(replace(chosen, force=True), work).facts["ranking"]
    assert [row["value"] for row in ranking] == sorted(map(ndcg, of_teacher), reverse=True)


def test_vectors_that_do_not_belong_here(
    work: WorkDirectory, collection: Path, tiny_model: Path, tmp_path: Path
) -> None:
    part = stored(work, str(write_jsonl(tmp_path / "part.jsonl", ROWS[:-2])), tiny_model, tmp_path / "part")
    with pytest.raises(InputError, match=r"has no vector of 2 of 160 documents, for example 'd158'"):
        evaluated(work, collection, tiny_model, vectors=part)
    narrow = make_tiny_model(tmp_path / "narrow", width=16)
    wrong = stored(work, str(collection), narrow, tmp_path / "wrong")
    with pytest.raises(InputError, match="vectors of a model with 16 dimensions, but the queries have 32"):
        evaluated(work, collection, tiny_model, vectors=wrong)
    other = stored(work, str(collection), make_tiny_model(tmp_path / "other", seed=9), tmp_path / "by-other")
    reporter = Listener()
    params = Params(
        collection=collection, model=str(tiny_model), vectors=other, index=("flat",), rounds=1, device="cpu"
    )
    run(params, work, reporter)
    assert any("was encoded by" in warning and "model:" not in warning for warning in reporter.warnings)
    with pytest.raises(UsageError, match="`vectors` needs `collection`"):
        Params(pairs=tmp_path / "pairs.tsv", vectors=part).check()
