"""fit-quantizer: every format that fits is tried, and the best by search fidelity is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from listening import Listener
from search_documents import make_documents
from tiny_models import load_model, make_sentences, make_tiny_model

from sentcompress.cli.main import _run
from sentcompress.encoding import embedder_sources
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.evaluation.search_fidelity import GoldRanking
from sentcompress.quantization.quantizer import FOLDER, Quantizer
from sentcompress.stages.fit_quantizer import Params, run
from sentcompress.store import WorkDirectory

TEXTS = make_sentences(400)
PASSAGES, QUERIES = TEXTS[:360], [" ".join(text.split()[:4]) for text in TEXTS[360:]]


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    found = WorkDirectory(tmp_path / "work")
    make_documents(found, PASSAGES, QUERIES)
    return found


@pytest.fixture(scope="session")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("teacher") / "teacher", seed=9)


def params(model: Path, **others: object) -> Params:
    return Params(**{"model": str(model), "compare": str(model), "device": "cpu", **others})  # type: ignore[arg-type]


def test_everything_that_fits_is_tried_and_the_best_is_kept(work: WorkDirectory, tiny_model: Path) -> None:
    made = run(params(tiny_model, vector_bytes=8), work)
    facts, quantizer = made.facts, Quantizer.load(made.path / FOLDER)
    assert made.reference == "quantizers/tiny-model-8"
    assert " held-out queries of the part dev among " in facts["protocol"]
    tried = {(row["format"], row["dimension"], row["bytes"]) for row in facts["tried"]}
    assert tried == {
        *(("float32", 2, 8), ("float16", 4, 8), ("int8", 8, 8), ("int4", 16, 8), ("binary", 32, 4)),
        *(("pq", 32, 8), ("pq", 24, 8), ("pq", 16, 8)),
    }
    assert facts["fidelity"] == max(row["fidelity"] for row in facts["tried"])
    assert (facts["format"], facts["dimension"], facts["bytes"]) == (
        *(quantizer.format, quantizer.dimension, quantizer.bytes),
    )
    assert facts["fidelity"] > next(row["fidelity"] for row in facts["tried"] if row["format"] == "float32") + 10
    assert facts["fidelity_of_float32"] == pytest.approx(100)
    assert set(made.manifest["files"]) == {"vectors/quantizer.json", "vectors/quantizer.safetensors"}


def test_the_fidelity_is_that_of_float_queries_against_stored_documents(work: WorkDirectory, tiny_model: Path) -> None:
    made = run(params(tiny_model, vector_bytes=6, store="int8"), work)
    quantizer = Quantizer.load(made.path / FOLDER)
    engine = EncodeEngine(load_model(tiny_model), dtype="float32")
    documents, queries = engine.encode(PASSAGES), engine.encode(QUERIES[1::2])
    stored = quantizer.decode(quantizer.encode(documents))
    expected = 100 * GoldRanking.of(queries, documents).fidelity(quantizer.turn(queries), stored).mean()
    assert made.facts["fidelity"] == pytest.approx(expected, abs=0.5)
    low, high = made.facts["tried"][0]["interval"]
    assert low < made.facts["fidelity"] < high


def test_more_dimensions_of_the_turned_vectors_are_better(work: WorkDirectory, tiny_model: Path) -> None:
    facts = run(params(tiny_model, vector_bytes=16, store="int8"), work).facts
    assert [row["dimension"] for row in facts["prefixes"]] == [16, 32]
    assert facts["prefixes"][0]["stored"] == pytest.approx(facts["fidelity"])
    assert facts["prefixes"][-1]["float32"] == pytest.approx(100, abs=0.5)
    assert facts["prefixes"][-1]["stored"] is None
    assert facts["prefixes"][0]["float32"] < facts["prefixes"][-1]["float32"]


def test_the_gold_is_the_teachers_ranking(work: WorkDirectory, tiny_model: Path, teacher: Path) -> None:
    facts = run(params(tiny_model, compare=str(teacher), vector_bytes=128, store="float32"), work).facts
    assert facts["compare"]["label"] == teacher.name
    assert facts["fidelity"] == pytest.approx(facts["fidelity_of_float32"], abs=0.5)
    assert facts["fidelity"] < 90


def test_a_sentence_table_is_divided(tmp_path: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "sentences")
    (tmp_path / "lines.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    line = f"augment {tmp_path}/lines.txt --wordnet 0 --back-translate 0 --work {work.path} -q"
    assert _run(line.split()) == 0
    made = run(params(tiny_model, vector_bytes=8, store="int4"), work)
    facts = made.facts
    assert (facts["queries"], facts["passages"], facts["texts"]) == (20, 180, 200)
    assert "sentences/main" in made.inputs
    assert " held-out queries among " in made.facts["protocol"]


def test_the_same_request_is_fresh(work: WorkDirectory, tiny_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"fit-quantizer --model {tiny_model} --compare {tiny_model} --vector-bytes 8 --store int4 --work {work.path}"
    assert _run(line.split()) == 0
    out = capsys.readouterr()
    assert "formats that fit" in out.out
    assert "fidelity by dimensions" in out.out
    assert f"sentcompress export --model {tiny_model} --quantizer tiny-model-8 --work {work.path}" in out.err
    digest = work.get("quantizers").digest
    assert _run(line.split()) == 0
    assert "up to date" in capsys.readouterr().err
    assert _run([*line.split(), "--force"]) == 0
    assert work.get("quantizers").digest == digest


def test_product_codes_are_skipped_where_there_are_too_few_texts(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, reporter = WorkDirectory(tmp_path / "few"), Listener()
    make_documents(work, PASSAGES[:60], QUERIES)
    made = run(params(tiny_model, vector_bytes=8), work, reporter)
    assert "pq" not in {row["format"] for row in made.facts["tried"]}
    too_few = "pq with 32 dimensions skipped: it needs at least 128 texts to fit on, and there are 60"
    assert too_few in reporter.notes
    monkeypatch.setattr(embedder_sources.ModelEmbedder, "encode", None)  # told before anything is encoded
    with pytest.raises(InputError, match="60 texts are too few to fit pq") as raised:
        run(params(tiny_model, vector_bytes=8, store="pq", name="pq", dtype="bfloat16"), work)
    assert raised.value.hint == "choose another `store`"


def test_fewer_texts_than_dimensions_limit_the_dimensions_and_not_the_formats(tmp_path: Path, tiny_model: Path) -> None:
    work, reporter = WorkDirectory(tmp_path / "few"), Listener()
    make_documents(work, PASSAGES[:20], QUERIES)
    made = run(params(tiny_model, vector_bytes=32), work, reporter)
    told = [note for note in reporter.notes if "20 texts to fit on cannot determine more" in note]
    assert bool(told) == (made.facts["dimension"] == 20)
    tried = {row["format"]: row["dimension"] for row in made.facts["tried"]}
    assert tried == {"float32": 8, "float16": 16, "int8": 20, "int4": 20, "binary": 20}
    one = run(params(tiny_model, vector_bytes=32, store="int8", name="one"), work, reporter)
    assert "vectors are stored with 20 of the model's 32 dimensions, in 20 bytes of 32" in reporter.notes[-1]
    assert (one.facts["dimension"], one.facts["bytes"]) == (20, 20)
    with pytest.raises(InputError, match="24 dimensions cannot be fitted on 20 sentences"):
        run(params(tiny_model, vector_bytes=32, dim=24, name="more"), work)


def test_queries_of_training_help_to_find_all_axes_of_few_passages(tmp_path: Path, tiny_model: Path) -> None:
    work, reporter = WorkDirectory(tmp_path / "few"), Listener()
    make_documents(work, PASSAGES[:20], QUERIES[:20], training_queries=[*QUERIES[20:], *PASSAGES[20:40]])
    made = run(params(tiny_model, vector_bytes=32), work, reporter)
    tried = {row["format"]: row["dimension"] for row in made.facts["tried"]}
    assert tried == {"float32": 8, "float16": 16, "int8": 32, "int4": 32, "binary": 32}
    assert (made.facts["texts"], made.facts["texts_for_axes"]) == (20, 60)
    assert not any("cannot determine" in note for note in reporter.notes)
    # Ranges of values are those of passages, which are what is stored.
    one = run(params(tiny_model, vector_bytes=32, store="int8", name="one"), work)
    assert one.facts["fidelity"] > 95
    limited = run(params(tiny_model, vector_bytes=32, sample=25, name="limited"), work)
    assert limited.facts["texts_for_axes"] == 25, "no more than --sample"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vector_bytes": 4, "store": "float32", "dim": 2}, "float32 vectors of 2 dimensions do not fit into 4 bytes"),
        ({"vector_bytes": 3, "store": "float32"}, "float32 vectors do not fit into 3 bytes"),
        ({"vector_bytes": 8, "dim": 33}, "33 dimensions are more than the model's 32"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_encoded(
    work: WorkDirectory,
    tiny_model: Path,
    options: dict[str, object],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedder_sources.ModelEmbedder, "encode", None)
    with pytest.raises(InputError, match=message):
        run(params(tiny_model, **options), work)
    assert work.names("quantizers") == []


def test_without_texts_the_error_names_the_command(tmp_path: Path, tiny_model: Path) -> None:
    with pytest.raises(MissingArtifactError, match="no documents") as raised:
        run(params(tiny_model), WorkDirectory(tmp_path / "empty"))
    assert str(raised.value.hint).startswith("run: sentcompress split-documents")


def test_options_that_contradict_each_other() -> None:
    with pytest.raises(UsageError, match="cannot both be given"):
        Params(documents="a", sentences="b").check()
    with pytest.raises(UsageError, match="`store`"):
        Params(store="int3").check()


def test_a_quantizer_is_for_turned_vectors_of_this_model(work: WorkDirectory, tiny_model: Path) -> None:
    quantizer = Quantizer.load(run(params(tiny_model, vector_bytes=32, store="int8"), work).path / FOLDER)
    vectors = EncodeEngine(load_model(tiny_model), dtype="float32").encode(TEXTS[:50])
    np.testing.assert_allclose(quantizer.scores(vectors, quantizer.encode(vectors)), vectors @ vectors.T, atol=0.02)
