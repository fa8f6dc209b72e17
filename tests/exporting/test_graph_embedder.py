"""Exported graphs as sources of vectors, and the evaluations and `encode` that run them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from beir import with_ids, write_beir
from search_documents import make_documents
from tiny_models import make_prompted, make_sentences
from tracing import traced_once

from sentcompress.cli.main import _run
from sentcompress.encoding.embedder_sources import find_embedder
from sentcompress.errors import InputError, UsageError
from sentcompress.evaluation.metrics import SEARCH_FIDELITY
from sentcompress.evaluation.score import read_scores, value_of
from sentcompress.evaluation.search_fidelity import GoldRanking
from sentcompress.exporting.graph_embedder import GRAPHS, find_graph, in_runtime
from sentcompress.exporting.graph_reader import GraphReader
from sentcompress.extras import installing
from sentcompress.models.catalog import find_model
from sentcompress.quantization.quantizer import FOLDER, Quantizer
from sentcompress.stages import encode, eval_retrieval, eval_search, eval_sts, export, fit_quantizer
from sentcompress.store import WorkDirectory

TEXTS = make_sentences(150, seed=4)
QUERIES = [" ".join(text.split()[:4]) for text in TEXTS[:40]]
RUNTIMES = list(GRAPHS)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> WorkDirectory:
    """Documents, and an export with graphs and a quantizer of 8 bytes."""
    found = WorkDirectory(tmp_path_factory.mktemp("deployed") / "work")
    make_documents(found, TEXTS, QUERIES)
    fit_quantizer.run(
        fit_quantizer.Params(model=str(tiny_model), compare=str(tiny_model), vector_bytes=8, store="int8", name="q"),
        found,
    )
    with traced_once():
        export.run(export.Params(model=str(tiny_model), quantizer="q", name="small"), found)
    return found


def graph_vectors(work: WorkDirectory, runtime: str, texts: list[str]) -> np.ndarray:
    return find_graph(work, find_model(work, "exports/small"), runtime).load().encode(texts)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_vectors_come_in_the_given_order_and_from_the_cache(
    work: WorkDirectory, runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = find_embedder(work, "exports/small")
    expected = plain.open(device="cpu").encode(TEXTS)
    source = in_runtime(work, plain, runtime)
    mixed = [TEXTS[3], "", TEXTS[0], TEXTS[3], *TEXTS]
    found = source.open().encode(mixed)
    assert found.shape == (len(mixed), 32)
    assert np.array_equal(found[0], found[3])
    cosines = (found[4:] * expected).sum(axis=1)
    assert cosines.min() > (0.9999 if runtime == "onnx" else 0.97)
    assert (np.abs(found[4:] - expected).max() > 1e-4) == (runtime == "onnx-int8")
    np.testing.assert_allclose(np.concatenate(list(source.open().stream([mixed[:5], mixed[5:]]))), found)
    again = source.open()
    monkeypatch.setattr(GraphReader, "run_all", lambda *args: pytest.fail("computed again"))
    assert np.array_equal(again.encode(mixed), found)
    assert again.described() == {"dimension": 32, "parameters": 21440, "dtype": GRAPHS[runtime][1]}
    assert again.count_tokens(TEXTS[:2]) is not None


def test_a_graph_reads_texts_with_the_prompt_of_their_role(
    work: WorkDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = {"query": "the man reads ", "document": "a quiet street "}
    folder = make_prompted(tmp_path / "prompted", work.get("exports", "small").path, prompts, default="query")
    plain = find_embedder(work, str(folder))
    for role in ("query", "document", ""):
        source = plain.of_role(role)
        found = in_runtime(work, source, "onnx").open().encode(TEXTS)
        np.testing.assert_allclose(found, source.open(device="cpu").encode(TEXTS), rtol=0, atol=1e-5)
    names = ["documents", "--prompt-name", "document"], ["queries"]
    (tmp_path / "a.txt").write_text("\n".join(TEXTS))
    for (name, *given), role in zip(names, ("document", "query"), strict=True):
        line = ["encode", str(tmp_path / "a.txt"), "-o", str(tmp_path / f"{name}.npy"), "--model", str(folder), *given]
        assert _run([*line, "--runtime", "onnx", "--work", str(work.path)]) == 0, capsys.readouterr().err
        found = np.load(tmp_path / f"{name}.npy")
        np.testing.assert_allclose(found, plain.of_role(role).open(device="cpu").encode(TEXTS), rtol=0, atol=1e-5)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_batches_side_by_side_give_the_vectors_of_batches_in_turn(work: WorkDirectory, runtime: str) -> None:
    folder = work.get("exports", "small").path
    one, three = (
        GraphReader(folder, GRAPHS[runtime][0], prepare=str, max_length=64, threads=threads) for threads in (1, 3)
    )
    tokens = one.tokenize(TEXTS)
    rows: list[int] = []
    expected = one.run_all(tokens, 64)
    assert np.array_equal(three.run_all(tokens, 64, finished=lambda batch: rows.extend(batch)), expected)
    assert sorted(rows) == list(range(len(TEXTS)))
    assert np.array_equal(three.run_all(tokens[:2], 64), one.run_all(tokens[:2], 64))


def test_an_error_in_one_of_the_batches_names_the_graph(work: WorkDirectory) -> None:
    reader = GraphReader(work.get("exports", "small").path, GRAPHS["onnx"][0], prepare=str, max_length=64, threads=2)
    tokens = [*reader.tokenize(TEXTS), [10**6]]
    with pytest.raises(InputError, match="cannot be run"):
        reader.run_all(tokens, 64)


def test_another_graph_in_the_folder_is_another_input(work: WorkDirectory, tmp_path: Path) -> None:
    folder = shutil.copytree(work.get("exports", "small").path, tmp_path / "moved")
    sources = [in_runtime(work, find_embedder(work, str(folder)), runtime) for runtime in RUNTIMES]
    assert sources[0].digest == sources[1].digest
    one, other = (dict(source.inputs) for source in sources)
    assert one != other
    assert [name.endswith(".onnx") for name in one] == [False, True]
    own = in_runtime(work, find_embedder(work, "exports/small"), "onnx")
    assert list(own.inputs) == ["exports/small"]
    assert own.described["runtime"] == "onnx"
    assert own.described["graph_bytes"] == (folder / GRAPHS["onnx"][0]).stat().st_size


def test_what_has_no_graph_is_refused(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="tiny-model has no graph for `runtime` onnx-int8") as raised:
        in_runtime(work, find_embedder(work, str(tiny_model)), "onnx-int8")
    hint = str(raised.value.hint)
    assert "`model`, such as exports/tiny-model; " in hint
    assert hint.endswith(f"sentcompress export --model {tiny_model} --work {work.path}")
    np.save(tmp_path / "v.npy", np.eye(2, dtype=np.float32))
    (tmp_path / "v.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match="file of vectors, which has no graph"):
        in_runtime(work, find_embedder(work, str(tmp_path / "v.npy")), "onnx")
    with pytest.raises(UsageError, match="`runtime` tensorrt"):
        eval_search.run(eval_search.Params(runtime="tensorrt"), work)
    monkeypatch.setattr("sentcompress.extras.is_installed", lambda package: package != "onnxruntime")
    with pytest.raises(InputError, match="onnxruntime is not installed") as raised:
        in_runtime(work, find_embedder(work, "exports/small"), "onnx")
    assert raised.value.hint == f"run: {installing('onnxruntime')}"


def test_search_fidelity_as_deployed(work: WorkDirectory, tiny_model: Path) -> None:
    asked = {"model": "exports/small", "compare": str(tiny_model), "device": "cpu", "bootstrap": 0}
    made = eval_search.run(eval_search.Params(**asked, runtime="onnx-int8", stored=True), work)  # type: ignore[arg-type]
    assert made.name == "search-main-test-small-export-onnx-int8-stored"
    protocol = made.facts["protocol"]
    assert (protocol["runtime"], protocol["part"]) == ("onnx-int8", "test")
    assert protocol["stored"] == {"format": "int8", "dimension": 8, "bytes": 8}
    for told in ("queries of the part test", "passages stored as int8 in 8 bytes each", "int8 ONNX graph"):
        assert told in protocol["statement"]
    assert made.facts["model"]["runtime"] == "onnx-int8"
    assert "runtime" not in made.facts["compare"]
    assert made.facts["model"]["dtype"] == "int8"
    quantizer = Quantizer.load(work.get("exports", "small").path / FOLDER)
    distinct, queries = list(dict.fromkeys(TEXTS)), list(dict.fromkeys(QUERIES[::2]))
    own, asking = (graph_vectors(work, "onnx-int8", texts) for texts in (distinct, queries))
    gold = [find_embedder(work, str(tiny_model)).open(device="cpu").encode(texts) for texts in (queries, distinct)]
    stored = quantizer.decode(quantizer.encode(own))
    expected = 100 * GoldRanking.of(*gold).fidelity(quantizer.turn(asking), stored).mean()
    assert value_of(read_scores(made.facts), SEARCH_FIDELITY, "main test") == pytest.approx(expected, abs=2)
    assert expected < 95
    plain = eval_search.run(eval_search.Params(**asked), work)  # type: ignore[arg-type]
    assert value_of(read_scores(plain.facts), SEARCH_FIDELITY) == pytest.approx(100, abs=0.1)
    assert "runtime" not in plain.facts["protocol"]
    # Vectors are stored by the model's quantizer, also by one that is not in its folder yet.
    fitted = eval_search.run(eval_search.Params(**{**asked, "model": str(tiny_model)}, stored=True), work)  # type: ignore[arg-type]
    assert fitted.inputs["quantizers/q"] == work.get("quantizers", "q").digest


def test_stored_vectors_need_a_quantizer(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    bare = shutil.copytree(tiny_model, tmp_path / "bare")
    (bare / "README.md").write_text("another folder")
    empty = WorkDirectory(tmp_path / "empty")
    make_documents(empty, TEXTS, QUERIES)
    params = eval_search.Params(model=str(bare), compare=str(bare), stored=True)
    with pytest.raises(InputError, match="bare has no quantizer") as raised:
        eval_search.run(params, empty)
    assert "sentcompress fit-quantizer" in str(raised.value.hint)
    for wrong, message in (
        ({"keep_index": True}, "`stored` and `keep_index`"),
        ({"query_part": "dev", "collection": tmp_path}, "`query_part` is for `documents`"),
    ):
        with pytest.raises(UsageError, match=message):
            eval_search.Params(stored=True, **wrong).check()  # type: ignore[arg-type]


def test_only_the_queries_of_an_asymmetric_search_use_the_graph(work: WorkDirectory, tiny_model: Path) -> None:
    params = eval_search.Params(model="exports/small", compare=str(tiny_model), keep_index=True, runtime="onnx-int8")
    made = eval_search.run(params, work)
    assert made.facts["model"]["dtype"] == "int8"
    assert 80 < value_of(read_scores(made.facts), SEARCH_FIDELITY) < 100


def test_the_other_evaluations_run_the_graph(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{place % 6}\t{TEXTS[place]}\t{TEXTS[place + 40]}\n" for place in range(40)))
    asked = {"model": "exports/small", "compare": str(tiny_model), "bootstrap": 0, "runtime": "onnx-int8"}
    made = eval_sts.run(eval_sts.Params(sts=(str(pairs),), **asked), work)  # type: ignore[arg-type]
    assert made.name.endswith("onnx-int8")
    assert made.facts["protocol"]["runtime"] == "onnx-int8"
    assert made.facts["model"]["runtime"] == "onnx-int8"
    own, others = read_scores(made.facts)[:2]
    assert own.value != others.value
    assert own.value == pytest.approx(others.value, abs=5)
    judged = [(f"q{place}", f"d{place}", 1) for place in range(len(QUERIES))]
    folder = write_beir(tmp_path / "beir", with_ids(TEXTS, "d"), with_ids(QUERIES, "q"), test=judged)
    params = eval_retrieval.Params(collection=folder, index=("flat",), rounds=1, depth=10, **asked)  # type: ignore[arg-type]
    facts = eval_retrieval.run(params, work).facts
    assert "int8 ONNX graph" in facts["protocol"]["statement"]
    assert (facts["model"]["dtype"], facts["compare"]["dtype"]) == ("int8", "float32")
    one_sided = eval_retrieval.Params(
        collection=folder, index=("flat",), rounds=1, depth=10, document_model=str(tiny_model), **asked
    )  # type: ignore[arg-type]
    facts = eval_retrieval.run(one_sided, work).facts
    assert (facts["model"]["dtype"], facts["model"]["documents_by"]["dtype"]) == ("int8", "float32")
    with pytest.raises(UsageError, match="`runtime` is for `model`"):
        eval_retrieval.Params(collection=folder, document_model="a", query_model="b", runtime="onnx").check()


def test_encode_runs_the_graph(work: WorkDirectory, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(TEXTS[:30]) + "\n")
    asked = {"lines": str(tmp_path / "a.txt"), "model": "exports/small", "runtime": "onnx-int8"}
    result = encode.run(encode.Params(output=tmp_path / "a.npy", **asked), work)  # type: ignore[arg-type]
    assert (result.runtime, result.dtype, result.rows) == ("onnx-int8", "int8", 30)
    np.testing.assert_allclose(np.load(tmp_path / "a.npy"), graph_vectors(work, "onnx-int8", TEXTS[:30]), atol=1e-6)
    stored = encode.Params(output=tmp_path / "folder", store="int8", **asked)  # type: ignore[arg-type]
    assert encode.run(stored, work).bytes_per_vector == 8
    manifest = json.loads((tmp_path / "folder" / "manifest.json").read_text())
    assert manifest["plan"]["runtime"] == "onnx-int8"
    encode.run(stored, work)
    with pytest.raises(UsageError, match="different: plan"):
        encode.run(encode.Params(**{**vars(stored), "runtime": "onnx"}), work)
    with pytest.raises(UsageError, match="`dtype` and `batch_tokens` are for `runtime` torch"):
        encode.Params(output=tmp_path / "b.npy", dtype="float32", **asked).check()  # type: ignore[arg-type]
