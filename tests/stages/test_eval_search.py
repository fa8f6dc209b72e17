"""eval-search: a model's search against its teacher's, from held-out documents or a collection."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from listening import Listener
from search_documents import KINDS, make_documents, write_held_out
from tiny_models import make_sentences, make_tiny_model

from sentcompress.corpora.search_texts import collection_files
from sentcompress.encoding import embedder_sources
from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.evaluation.metrics import FIRST_FOUND, RESULTS_SHARED, SEARCH_FIDELITY
from sentcompress.evaluation.score import read_scores, select, value_of
from sentcompress.evaluation.search_fidelity import GoldRanking
from sentcompress.evaluation.search_verdict import LEVELS
from sentcompress.stages.eval_search import Params, run
from sentcompress.store import WorkDirectory

TEXTS = make_sentences(170)
PASSAGES, QUERIES = TEXTS[:140], [" ".join(text.split()[:4]) for text in TEXTS[140:]]
TEST_QUERIES = QUERIES[::2]


@pytest.fixture(scope="session")
def sister(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As wide as the tiny model, with other weights."""
    return make_tiny_model(tmp_path_factory.mktemp("sister") / "sister", seed=9)


def test_a_model_reproduces_its_own_search(work: WorkDirectory, tiny_model: Path) -> None:
    documents = make_documents(work, PASSAGES, QUERIES)
    listener = Listener()
    made = run(Params(model=str(tiny_model), compare=str(tiny_model), device="cpu"), work, listener)
    assert listener.warnings[0].startswith(f"{tiny_model.name} is compared with itself; ")
    assert made.name == f"search-main-test-{tiny_model.name}"
    assert made.inputs[documents.reference] == documents.digest
    facts = made.facts
    assert json.loads((made.path / "result.json").read_text()) == facts
    scores = read_scores(facts)
    assert scores[0].metric == SEARCH_FIDELITY
    assert {score.value for score in scores} == {100}
    assert (facts["queries"], facts["passages"]) == (len(set(TEST_QUERIES)), len(set(PASSAGES)))
    assert facts["queries_among_passages"] == 0
    assert facts["verdict"]["level"] == "same"
    assert "practically the same results" in facts["verdict"]["text"]


def test_the_scores_of_another_model(work: WorkDirectory, tiny_model: Path, small_model: Path) -> None:
    from sentence_transformers import SentenceTransformer

    make_documents(work, PASSAGES, QUERIES)
    facts = run(Params(model=str(small_model), compare=str(tiny_model), device="cpu"), work).facts
    scores = read_scores(facts)
    vectors = [
        SentenceTransformer(str(folder), device="cpu").encode(list(dict.fromkeys(texts)))
        for folder in (small_model, tiny_model)
        for texts in (TEST_QUERIES, PASSAGES)
    ]
    expected = GoldRanking.of(*vectors[2:]).fidelity(*vectors[:2])
    assert value_of(scores, SEARCH_FIDELITY, "main test") == pytest.approx(100 * expected.mean(), abs=0.5)
    kinds = [KINDS[place % 3] for place in range(0, len(QUERIES), 2)]
    distinct = list(dict(zip(TEST_QUERIES, kinds, strict=True)).values())
    for kind in KINDS:
        own = expected[np.array(distinct) == kind]
        assert value_of(scores, SEARCH_FIDELITY, "main test", kind) == pytest.approx(100 * own.mean(), abs=1)
        assert select(scores, SEARCH_FIDELITY, part=kind, role="model")[0].count == len(own)
    whole = select(scores, SEARCH_FIDELITY, part="", role="model")[0]
    assert whole.interval is not None
    assert whole.interval.low < whole.value < whole.interval.high
    assert whole.kept == pytest.approx(whole.value)
    assert 0 < value_of(scores, RESULTS_SHARED, "main test") < 100
    assert 0 < value_of(scores, FIRST_FOUND, "main test") < 100
    assert facts["verdict"]["level"] in {level for _, level, _ in LEVELS}
    assert any(re.fullmatch(r"only [\d,]+ queries: see the interval", one) for one in facts["verdict"]["cautions"])


def test_the_queries_of_a_document_are_drawn_together(work: WorkDirectory, tiny_model: Path, small_model: Path) -> None:
    def facts(documents: int, bootstrap: int = 1000) -> dict[str, Any]:
        make_documents(work, PASSAGES, QUERIES, documents=documents)
        models = {"model": str(small_model), "compare": str(tiny_model), "force": True}
        return run(Params(**models, bootstrap=bootstrap, device="cpu"), work).facts  # type: ignore[arg-type]

    few, log, none = facts(6), facts(0), facts(6, bootstrap=0)  # three of the six documents are of the part dev
    assert few["protocol"]["statement"].endswith("the middle 95% of 1,000 bootstrap samples of 3 documents")
    assert log["protocol"]["statement"].endswith("the middle 95% of 1,000 bootstrap samples of 15 queries")
    assert none["protocol"]["statement"].endswith("; no intervals")
    assert "(95% interval over 3 documents: " in few["verdict"]["text"]
    assert "the queries come from only 3 documents: the interval is somewhat too narrow" in few["verdict"]["cautions"]
    assert not any("narrow" in caution for caution in log["verdict"]["cautions"])
    (by_document, *_), (by_query, *_) = (select(read_scores(of), role="model") for of in (few, log))
    assert by_document.value == by_query.value
    assert by_document.interval != by_query.interval


def test_a_students_queries_search_the_teachers_index(
    work: WorkDirectory, tiny_model: Path, sister: Path, small_model: Path
) -> None:
    make_documents(work, PASSAGES, QUERIES)
    listener = Listener()
    both = run(Params(model=str(sister), compare=str(tiny_model), device="cpu"), work, listener)
    assert "compared with itself" not in " ".join(listener.warnings)
    params = Params(model=str(sister), compare=str(tiny_model), keep_index=True, device="cpu")
    one = run(params, work)
    assert one.name == f"search-main-test-{sister.name}-documents-{tiny_model.name}"
    assert one.name != both.name
    assert one.facts["keep_index"]
    assert "passages by the compared one" in one.facts["protocol"]["statement"]
    # Two random models do not share a space.
    assert value_of(read_scores(one.facts), SEARCH_FIDELITY) < value_of(read_scores(both.facts), SEARCH_FIDELITY)
    same = Params(model=str(tiny_model), compare=str(tiny_model), keep_index=True, device="cpu")
    assert value_of(read_scores(run(same, work).facts), SEARCH_FIDELITY) == 100
    with pytest.raises(InputError, match="16"):
        run(Params(model=str(small_model), compare=str(tiny_model), keep_index=True, device="cpu"), work)


def test_a_collection_needs_no_judgements(tmp_path: Path, work: WorkDirectory, tiny_model: Path) -> None:
    folder = tmp_path / "beir"
    write_held_out(folder, [*PASSAGES, PASSAGES[0], ""], QUERIES)
    with pytest.raises(InputError, match=r"queries.jsonl has the queries of all splits") as told:
        run(Params(collection=folder, split="test", model=str(tiny_model), compare=str(tiny_model)), work)
    assert told.value.hint == "omit `split`"
    params = Params(collection=folder, model=str(tiny_model), compare=str(tiny_model), max_passages=50, max_queries=7)
    facts = run(params, work).facts
    assert (facts["queries"], facts["passages"]) == (7, 50)
    assert "sampled with seed 0" in facts["protocol"]["statement"]
    (folder / "queries.jsonl").unlink()
    (folder / "corpus.jsonl").unlink()
    with gzip.open(folder / "collection.tsv.gz", "wt") as file:
        file.write("".join(f"{place}\t{text}\n" for place, text in enumerate(PASSAGES)))
    (folder / "qrels.dev.tsv").write_text("q0\t0\tp0\t1\n")
    (folder / "queries.dev.tsv").write_text("".join(f"{place}\t{text}\n" for place, text in enumerate(QUERIES)))
    params = Params(collection=folder, split="dev", model=str(tiny_model), compare=str(tiny_model), name="tsv")
    again = run(params, work)
    assert {score.part for score in read_scores(again.facts)} == {""}  # no kinds of queries in such files
    (folder / "qrels.dev.tsv").unlink()
    (folder / "queries.dev.tsv").rename(folder / "queries.valid.tsv")
    (folder / "queries.train.tsv").write_text("0\ta query\n")
    assert collection_files(folder, None)[1].name == "queries.valid.tsv"


def test_the_teachers_vectors_are_computed_once(
    work: WorkDirectory, tiny_model: Path, small_model: Path, sister: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_documents(work, PASSAGES, QUERIES)
    encoded: list[int] = []
    encode = embedder_sources.ModelEmbedder.encode

    def counting(self: embedder_sources.ModelEmbedder, texts: list[str], task: object = None) -> object:
        encoded.append(len(texts))
        return encode(self, texts, task)

    monkeypatch.setattr(embedder_sources.ModelEmbedder, "encode", counting)
    run(Params(model=str(small_model), compare=str(tiny_model), device="cpu"), work)
    assert len(encoded) == 4
    run(Params(model=str(sister), compare=str(tiny_model), device="cpu"), work)
    assert len(encoded) == 6


def test_a_result_is_fresh_until_the_documents_change(work: WorkDirectory, tiny_model: Path) -> None:
    make_documents(work, PASSAGES, QUERIES)
    params = Params(documents="documents/main", model=str(tiny_model), compare=str(tiny_model), bootstrap=0)
    first = run(params, work)
    assert run(params, work).manifest["finished"] == first.manifest["finished"]
    assert read_scores(first.facts)[0].interval is None
    make_documents(work, PASSAGES[:100], QUERIES)
    assert run(params, work).facts["passages"] == len(set(PASSAGES[:100]))


def test_each_part_has_its_own_queries(work: WorkDirectory, tiny_model: Path, small_model: Path) -> None:
    make_documents(work, PASSAGES, QUERIES)
    asked = {"model": str(small_model), "compare": str(tiny_model), "bootstrap": 0}
    found = {
        part: run(Params(query_part=part, **asked), work)  # type: ignore[arg-type]
        for part in ("dev", "test", "all")
    }
    assert [made.facts["queries"] for made in found.values()] == [15, 15, 30]
    scores = {part: read_scores(made.facts)[0] for part, made in found.items()}
    assert [score.data for score in scores.values()] == ["main dev", "main test", "main"]
    assert scores["all"].value == pytest.approx((scores["dev"].value + scores["test"].value) / 2)
    assert "15 queries of the part dev (" in found["dev"].facts["protocol"]["statement"]
    again = run(Params(**asked), work)  # type: ignore[arg-type]
    assert again.manifest["finished"] == found["test"].manifest["finished"]


def test_what_cannot_be_measured(tmp_path: Path, work: WorkDirectory, tiny_model: Path) -> None:
    model = {"model": str(tiny_model), "compare": str(tiny_model), "device": "cpu"}
    with pytest.raises(MissingArtifactError, match="no documents in") as none:
        run(Params(**model), work)
    assert "split-documents" in str(none.value.hint)
    assert "`collection`" in str(none.value.hint)
    make_documents(work, PASSAGES[:10], QUERIES)
    with pytest.raises(InputError, match="10 distinct passages"):
        run(Params(**model), work)
    make_documents(work, PASSAGES, ["", " "])
    with pytest.raises(InputError, match="no queries"):
        run(Params(**model), work)
    with pytest.raises(MissingArtifactError, match="no documents named 'mian'"):
        run(Params(documents="mian", **model), work)
    with pytest.raises(InputError, match="not a folder"):
        run(Params(collection=tmp_path / "none", **model), work)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no corpus"):
        run(Params(collection=tmp_path / "empty", **model), work)
    for wrong, message in (
        ({"documents": "main", "collection": tmp_path}, "cannot both be given"),
        ({"split": "dev"}, "is for `collection`"),
        ({"compare": None}, "cannot be none"),
        ({"max_passages": 5}, "`max_passages` must be"),
    ):
        with pytest.raises(UsageError, match=message):
            run(Params(**{**model, **wrong}), work)  # type: ignore[arg-type]


def test_a_damaged_model_and_zero_vectors(
    tmp_path: Path, work: WorkDirectory, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_documents(work, PASSAGES, QUERIES)
    texts = list(dict.fromkeys([*PASSAGES, *QUERIES]))
    vectors = np.random.default_rng(0).normal(size=(len(texts), 4)).astype(np.float32)
    (tmp_path / "v.txt").write_text("\n".join(texts) + "\n")
    vectors[0] = 0
    np.save(tmp_path / "v.npy", vectors)
    listener = Listener()
    run(Params(model=str(tmp_path / "v.npy"), compare=str(tiny_model), device="cpu"), work, listener)
    assert any("1 zero vector among the passages" in warning for warning in listener.warnings)
    monkeypatch.setattr(
        embedder_sources.ModelEmbedder, "encode", lambda self, texts, task: np.full((len(texts), 4), np.nan)
    )
    with pytest.raises(InputError, match="cannot be searched"):
        run(Params(model=str(tmp_path / "v.npy"), compare=str(tiny_model), dtype="auto", name="b"), work)
