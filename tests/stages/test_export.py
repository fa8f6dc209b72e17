"""`sentcompress export`: what lands in exports/, what is proved of it, and what never lands there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from listening import Listener
from tiny_models import break_weights, load_model
from tracing import traced_once

from sentcompress.cli.main import _run
from sentcompress.corpora.sentence_table import SCHEMA, SENTENCES_PATTERN
from sentcompress.corpora.sts import StsSet, StsSubset
from sentcompress.errors import DamagedError, InputError, MissingArtifactError, SentcompressError, UsageError
from sentcompress.evaluation.metrics import SPEARMAN
from sentcompress.evaluation.score import Recorder
from sentcompress.exporting import graph_formats, verification
from sentcompress.exporting.card import LONGEST_NOTES
from sentcompress.exporting.onnx import INT8_FILE
from sentcompress.exporting.verification import encoder_vectors
from sentcompress.models import weight_formats
from sentcompress.models.encoder import Dense, Encoder, TextSettings
from sentcompress.models.int4 import RoundedWeights
from sentcompress.models.layout import save_encoder
from sentcompress.models.static_encoder import StaticEncoder, token_vectors
from sentcompress.models.static_folder import plain_tokenizer
from sentcompress.models.transformer_encoder import TransformerEncoder
from sentcompress.stages import export, status
from sentcompress.stages.export import Params, run
from sentcompress.store import Artifact, Request, WorkDirectory
from sentcompress.store.running import PROGRESS

STUDENT = "hpd-teacher-1-8"


def make_sentence_table(work: WorkDirectory, sentences: list[str]) -> Artifact:
    with work.build(Request("sentences", "main", "augment", {"wordnet": 0})) as build:
        count = len(sentences)
        columns = [list(range(count)), sentences, ["original"] * count, [-1] * count, ["x.txt"] * count, [""] * count]
        with build.write(SENTENCES_PATTERN.format(0)) as path:
            pq.write_table(pa.table(columns, schema=SCHEMA), path)
        return build.finish({"rows": count})


def make_student(work: WorkDirectory, inputs: dict[str, str], encoder: Encoder, name: str = STUDENT) -> Artifact:
    request = Request("students", name, "distill", {"method": "hpd", "student": "teacher:1"}, inputs)
    with work.build(request) as build:
        save_encoder(encoder, build.path / "model")
        recipe = {"lr": {"value": 0.0001, "source": "the paper, section 4"}}
        return build.finish({"method": "hpd", "student": "teacher:1", "teacher": "owner/big-teacher", "recipe": recipe})


def make_evaluation(work: WorkDirectory, name: str, model: dict[str, str], score: float, **facts: Any) -> Artifact:
    inputs = {model["reference"]: model["digest"], "file:/somewhere/sts/test.tsv": "1" * 64}
    asked = {"model": model["reference"], "aggregate": "all"}
    recorder = Recorder({"model": model["reference"]})
    recorder.add("STS-B", SPEARMAN, {"model": score}, count=1379)
    with work.build(
        Request("evaluations", name, "eval-sts", asked, inputs, ("eval-sts", "--sts", "test.tsv", "--model", STUDENT))
    ) as build:
        (build.path / "result.json").write_text("{}")
        result = {
            "evaluation": "sts",
            "protocol": {"statement": "as papers do", "split": "test", "aggregate": "all"},
            "model": model,
            "scores": recorder.as_dicts(),
        }
        return build.finish(result | facts)


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    """Exports are checked with fewer texts, and a structure is converted once."""
    with pytest.MonkeyPatch.context() as patch, traced_once():
        patch.setattr(export, "SAMPLE", 40)
        yield


@pytest.fixture(scope="module")
def encoder(tiny_model: Path) -> Encoder:
    base = load_model(tiny_model)
    torch.manual_seed(0)
    return TransformerEncoder(base.transformer, base.tokenizer, dense=[Dense(32, 8)], text=base.text).eval()


@pytest.fixture(scope="module")
def template(encoder: Encoder, sentences: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work directory with sentences, teacher vectors, a student and its scores; do not write to it."""
    work = WorkDirectory(tmp_path_factory.mktemp("template") / "work")
    table = make_sentence_table(work, sentences)
    inputs = {table.reference: table.digest, "model:owner/big-teacher": "2" * 64}
    with work.build(Request("teacher-vectors", "main", "teacher-embed", {"teacher": "big"}, inputs)) as build:
        np.save(build.path / "vectors-00000.npy", np.zeros((1, 4), np.float32))
        vectors = build.finish({"teacher": "owner/big-teacher"})
    made_of = {table.reference: table.digest, vectors.reference: vectors.digest}
    student = make_student(work, made_of, encoder)
    ours = {"reference": student.reference, "digest": student.digest, "label": STUDENT}
    make_evaluation(work, f"sts-{STUDENT}", ours, 81.0)
    theirs = {"reference": "model:owner/big-teacher", "digest": "2" * 64, "label": "owner/big-teacher"}
    make_evaluation(work, "sts-big-teacher", theirs, 90.0)
    return work.path


@pytest.fixture
def work(template: Path, tmp_path: Path) -> WorkDirectory:
    return WorkDirectory(shutil.copytree(template, tmp_path / "work"))


@pytest.fixture(scope="module")
def exported(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    """One export with everything; do not write to it."""
    pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    folder = tmp_path_factory.mktemp("exported")
    work = WorkDirectory(shutil.copytree(template, folder / "work"))
    lines = ["5\tthe dog runs\ta dog runs", "1\ttwo cats\ta man reads a book", "3\tred car\tblue car on the road"]
    (folder / "pairs.tsv").write_text("\n".join(lines) + "\n")
    return run(Params(sts=(folder / "pairs.tsv",)), work)


def test_the_artifact_is_the_model_folder(exported: Artifact, encoder: Encoder) -> None:
    assert exported.reference == f"exports/{STUDENT}"
    files = set(exported.manifest["files"])
    assert {
        "modules.json",
        "README.md",
        "model.safetensors",
        "2_Dense/model.safetensors",
        "onnx/sentence_embedding.onnx",
        "onnx/sentence_embedding_int8.onnx",
    } <= files
    assert {Path(name).suffix for name in files} <= {".json", ".md", ".safetensors", ".onnx", ".txt"}
    assert "onnx/model.onnx" not in files
    loaded = load_model(exported.path)
    texts = ["the dog runs", "a man reads"]
    np.testing.assert_allclose(encoder_vectors(loaded, texts), encoder_vectors(encoder, texts), atol=1e-6)


def test_facts_hold_sizes_and_the_check(exported: Artifact, encoder: Encoder) -> None:
    facts = exported.facts
    assert facts["dimension"] == 8
    assert facts["parameters"] == encoder.count_parameters()
    for name, size in facts["bytes"].items():
        assert (exported.path / name).stat().st_size == size
    assert len(facts["bytes"]) == 4
    checked = facts["checked"]
    assert checked["folder"]["min_cosine"] > 0.99999
    assert checked["onnx"]["min_cosine"] > 0.99999
    assert 0.9 < checked["int8"]["min_cosine"] <= checked["int8"]["mean_cosine"] <= 1
    assert {"single_min_cosine", "batch_to_single_min_cosine"} < checked["int8"].keys()
    (scored,) = facts["sts"]
    assert scored.keys() == {"set", "pairs", "onnx", "int8", "int8_single"}


def test_pairs_of_the_hub_and_of_another_split_are_told_as_such(
    work: WorkDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = StsSubset("", (5.0, 1.0), ("a", "b"), ("c", "d"), (), hub=("hub:mteb/sts13-sts:test", "c0ffee"))
    monkeypatch.setattr(export, "read_sts", lambda *_: [StsSet("STS13", "test", (pairs,))])
    params = Params(sts=("mteb/sts13-sts",), formats=("folder", "onnx"))
    assert export._request(params, export._find_inputs(params, work)).inputs["hub:mteb/sts13-sts:test"] == "c0ffee"
    scored = [export._score(StsSet("STS-B", split, (pairs,)), {}, {}) for split in ("test", "dev")]
    assert [one["set"] for one in scored] == ["STS-B", "STS-B, dev split"]


def test_the_request_is_tied_to_everything_the_card_tells(exported: Artifact) -> None:
    kinds = {reference.split("/")[0].split(":")[0] for reference in exported.inputs}
    assert kinds == {"students", "sentences", "evaluations", "file"}


def test_the_card_tells_lineage_numbers_and_use(exported: Artifact) -> None:
    card = (exported.path / "README.md").read_text(encoding="utf-8")
    front = card.split("---")[1]
    assert "library_name: sentence-transformers" in front
    assert "pipeline_tag: sentence-similarity" in front
    assert '- "owner/big-teacher"' in front
    assert SPEARMAN in front
    assert "| STS-B | 1,379 | 81.00 | 90.00 | -9.00 | 90.0% |" in card
    assert f"sentcompress eval-sts --sts test.tsv --model {STUDENT}" in card
    assert "`teacher-vectors/main`" in card
    assert "| lr | 0.0001 | the paper, section 4 |" in card
    assert "32 to 8 (Identity)" in card
    assert "/somewhere/" not in card
    assert str(exported.path.parent) not in card


def test_the_front_matter_is_yaml(exported: Artifact) -> None:
    yaml = pytest.importorskip("yaml")
    front = yaml.safe_load((exported.path / "README.md").read_text(encoding="utf-8").split("---")[1])
    assert front["base_model"] == ["owner/big-teacher"]
    (result,) = front["model-index"][0]["results"]
    assert result["metrics"] == [{"type": SPEARMAN, "name": "Spearman x 100", "value": 81.0}]


def python_blocks(card: str) -> list[str]:
    return [part.split("```")[0] for part in card.split("```python\n")[1:]]


def test_the_code_of_the_card_runs(exported: Artifact, encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(exported.path)
    first, second = python_blocks((exported.path / "README.md").read_text(encoding="utf-8"))
    expected = encoder_vectors(encoder, ["A man plays the guitar.", "Two dogs run."])
    for code in (first.replace("path/of/this/folder", "."), second):
        names: dict[str, Any] = {}
        exec(code, names)
        np.testing.assert_allclose(names["vectors"], expected, atol=1e-5)


def test_again_is_fresh_and_forced_gives_the_same_bytes(exported: Artifact, tmp_path: Path) -> None:
    work = WorkDirectory(shutil.copytree(exported.path.parents[1], tmp_path / "work"))
    sts = (exported.path.parents[2] / "pairs.tsv",)
    assert run(Params(sts=sts), work).manifest == exported.manifest
    again = run(Params(sts=sts, force=True), work)
    assert again.manifest["finished"] != exported.manifest["finished"]
    assert again.digest == exported.digest


def test_a_new_score_makes_a_new_card(work: WorkDirectory) -> None:
    before = run(Params(formats=("folder",)), work)
    student = work.get("students", STUDENT)
    model = {"reference": student.reference, "digest": student.digest, "label": STUDENT}
    make_evaluation(work, "sts-more", model, 77.0)
    after = run(Params(formats=("folder",)), work)
    assert after.fingerprint != before.fingerprint
    assert "77.00" in (after.path / "README.md").read_text(encoding="utf-8")


def test_without_onnx(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_formats, "require_packages", lambda: pytest.fail("needs no packages"))
    artifact = run(Params(formats=("folder",), name="plain"), work)
    assert artifact.reference == "exports/plain"
    assert not list(artifact.path.rglob("*.onnx"))
    card = (artifact.path / "README.md").read_text(encoding="utf-8")
    assert "onnx" not in card
    assert len(python_blocks(card)) == 1


def test_missing_packages_stop_it_before_anything_is_written(
    work: WorkDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sentcompress.exporting.onnx.PACKAGES", ("a_package_that_is_not_there",))
    with pytest.raises(InputError, match="a_package_that_is_not_there"):
        run(Params(), work)
    assert not (work.path / "exports").exists()


def left(work: WorkDirectory) -> list[str]:
    return sorted(path.name for path in (work.path / "exports").iterdir() if not path.name.endswith(".lock"))


@pytest.mark.parametrize("kind", ["Dense", "Normalize"])
def test_an_export_that_loses_a_module_fails_and_leaves_nothing(
    kind: str, work: WorkDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lossy(encoder: Encoder, folder: Path) -> None:
        save_encoder(encoder, folder)
        modules = json.loads((folder / "modules.json").read_text())
        (folder / "modules.json").write_text(json.dumps([m for m in modules if not m["type"].endswith(kind)]))

    monkeypatch.setattr("sentcompress.exporting.folder.save_encoder", lossy)
    with pytest.raises(SentcompressError, match="failed verification"):
        run(Params(formats=("folder",)), work)
    assert left(work) == []


def test_a_graph_that_loses_the_dense_layer_fails_and_keeps_the_older_export(
    work: WorkDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    older = run(Params(formats=("folder",)), work)
    real = graph_formats.write_graph

    def lossy(encoder: Encoder, path: Path) -> None:
        dropped = TransformerEncoder(encoder.transformer, encoder.tokenizer, text=encoder.text)
        real(dropped.eval(), path)

    monkeypatch.setattr(graph_formats, "write_graph", lossy)
    with pytest.raises(SentcompressError, match="32 dimensions instead of 8"):
        run(Params(force=True), work)
    assert left(work) == [STUDENT]
    assert work.get("exports", STUDENT).digest == older.digest


def test_a_student_with_a_flipped_bit_is_not_exported(work: WorkDirectory) -> None:
    path = work.get("students", STUDENT).path / "model" / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(DamagedError, match=r"model\.safetensors was changed"):
        run(Params(model=STUDENT, formats=("folder",), name="flipped"), work)
    assert work.find("exports", "flipped") is None


def test_a_killed_run_leaves_nothing_in_the_next(work: WorkDirectory) -> None:
    # A kill runs no handlers, so what it leaves is put there by hand.
    wanted = run(Params(formats=("folder",)), work)
    partial = work.path / "exports" / f".{STUDENT}.partial"
    shutil.copytree(wanted.path, partial)
    (partial / "manifest.json").unlink()
    (partial / "2_Dense" / "model.safetensors").write_bytes(b"half")
    (partial / "stray.bin").write_bytes(b"x")
    shutil.rmtree(wanted.path)
    again = run(Params(formats=("folder",)), work)
    assert again.digest == wanted.digest
    assert not (again.path / "stray.bin").exists()


def test_the_progress_of_the_build_is_no_file_of_the_export(
    exported: Artifact, work: WorkDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread writes it while a format is written."""

    def copied(_: object, path: Path, *others: object) -> str:
        path.parent.mkdir(exist_ok=True)
        shutil.copy(exported.path / "onnx" / path.name, path)
        progress = path.parents[1] / PROGRESS
        progress.parent.mkdir(exist_ok=True)
        progress.write_text("{}")
        seen.append(progress)
        return "int8"

    seen: list[Path] = []
    monkeypatch.setattr(graph_formats, "write_graph", copied)
    monkeypatch.setattr(graph_formats, "quantise", copied)
    artifact = run(Params(), work)
    assert len(seen) == 2
    assert artifact.facts["bytes"] == exported.facts["bytes"]
    for name, one in artifact.facts["formats"].items():
        assert one["files"] == exported.facts["formats"][name]["files"]


def test_poor_int8_vectors_are_warned_of(
    exported: Artifact, work: WorkDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copied(_: object, path: Path, *others: object) -> str:
        path.parent.mkdir(exist_ok=True)
        shutil.copy(exported.path / "onnx" / path.name, path)
        return "int8"

    monkeypatch.setattr(graph_formats, "write_graph", copied)
    monkeypatch.setattr(graph_formats, "quantise", copied)
    monkeypatch.setattr(verification, "LEAST_MEAN_COSINE", 1.1)
    remarks = Listener()
    run(Params(), work, remarks)
    assert ["score them with `sts`" in warning for warning in remarks.warnings] == [True]


def test_any_folder_can_be_exported_from_an_empty_work_directory(tiny_model: Path, tmp_path: Path) -> None:
    artifact = run(Params(model=str(tiny_model), formats=("folder",)), WorkDirectory(tmp_path / "work"))
    assert artifact.name == "tiny-model"
    assert artifact.facts["checked"]["folder"]["min_cosine"] > 0.9999
    assert list(artifact.inputs) == [f"model:{tiny_model}"]
    again = run(Params(model=str(artifact.path), formats=("folder",), name="copy"), WorkDirectory(tmp_path / "work"))
    assert again.facts["parameters"] == artifact.facts["parameters"]


def test_the_default_is_the_student_finished_last(work: WorkDirectory, encoder: Encoder) -> None:
    make_student(work, {}, encoder, "another")
    assert run(Params(formats=("folder",)), work).name == "another"


def test_without_a_student_the_command_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingArtifactError) as caught:
        run(Params(formats=("folder",)), WorkDirectory(tmp_path))
    assert "sentcompress compress DOCUMENTS" in str(caught.value.hint)


def test_scores_need_the_graphs() -> None:
    with pytest.raises(UsageError, match="but `formats` has none"):
        run(Params(formats=("folder",), sts=(Path("x.tsv"),)), WorkDirectory("nowhere"))


def test_the_command_prints_one_document(work: WorkDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["export", "--format", "folder", "--json", "--work", str(work.path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert 30 < document["facts"]["checked"]["folder"]["texts"] <= export.SAMPLE + 2
    assert document["path"] == str(work.path / "exports" / STUDENT)


def test_the_command_shows_the_check(work: WorkDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["export", "--format", "folder", "--work", str(work.path)]) == 0
    printed = capsys.readouterr()
    assert "sentence-transformers folder" in printed.out
    assert "sentcompress encode" in printed.err


@pytest.mark.parametrize("token", ["guitar", None])
def test_a_model_with_nan_in_its_weights_is_not_exported(
    tmp_path: Path, tiny_model: Path, token: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = break_weights(shutil.copytree(tiny_model, tmp_path / "broken"), token=token)
    words = ["export", "--model", str(broken), "--format", "folder", "--name", "x", "--work", str(tmp_path / "work")]
    assert _run(words) == 1
    assert "defect" not in capsys.readouterr().err
    work = WorkDirectory(tmp_path / "work")
    assert work.names("exports") == work.unfinished("exports") == []


def test_the_int8_graph_is_calibrated_where_that_is_more_exact(
    work: WorkDirectory, encoder: Encoder, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import onnx

    monkeypatch.setattr(export, "SAMPLE", 60)
    monkeypatch.setattr(export, "CALIBRATION_TEXTS", 60)
    text = tmp_path / "my.txt"
    text.write_text("\n".join(sentences) + "\n", encoding="utf-8")
    kept = {}
    for name, cosines in (("a", {"dynamic": 0.9, "static": 0.95}), ("b", {"dynamic": 0.95, "static": 0.9})):
        check = graph_formats.check_inexact

        def checked(
            reader: Any, texts: Any, expected: Any, title: str, cosines: Any = cosines, check: Any = check
        ) -> Any:
            found = check(reader, texts, expected, title)
            assert found["mean_cosine"] > 0.9
            value = cosines["static" if str(reader.reader._path).endswith("static") else "dynamic"]
            return {**found, "mean_cosine": value, "single_mean_cosine": value}

        with monkeypatch.context() as patched:
            patched.setattr(graph_formats, "check_inexact", checked)
            made = run(Params(model=STUDENT, calibrate=(str(text), "sentences/main"), name=name), work)
        assert made.inputs[f"file:{text}"]
        assert made.facts["int8"]["mean_cosine"] == pytest.approx(cosines)
        graph = onnx.load(made.path / "onnx" / "sentence_embedding_int8.onnx").graph
        assert made.facts["bytes"][graph_formats.INT8_FILE] == (made.path / graph_formats.INT8_FILE).stat().st_size
        kept[made.facts["int8"]["quantisation"]] = {node.op_type for node in graph.node}
        assert [path.name for path in (made.path / "onnx").iterdir() if "static" in path.name] == []
    assert "MatMulInteger" in kept["dynamic"]
    assert not {"MatMulInteger", "DynamicQuantizeLinear"} & kept["static"]
    with pytest.raises(UsageError, match="is for the format int8"):
        run(Params(model=STUDENT, calibrate=(str(text),), formats=("folder", "onnx")), work)
    with pytest.raises(InputError, match="no such file or folder"):
        run(Params(model=STUDENT, calibrate=("nothing.txt",)), work)


@pytest.mark.parametrize("projected", [False, True])
def test_a_static_model_can_be_calibrated(
    projected: bool, tiny_model: Path, sentences: list[str], tmp_path: Path
) -> None:
    source = load_model(tiny_model)
    static = StaticEncoder(
        token_vectors(torch.randn(source.table_size, 16, generator=torch.Generator().manual_seed(0))),
        plain_tokenizer(source.tokenizer),
        text=TextSettings(max_length=40),
    )
    save_encoder(static.with_dense([Dense(16, 8)] if projected else [], normalize=True).eval(), tmp_path / "static")
    text = tmp_path / "my.txt"
    # The last line has characters and no token.
    text.write_text("\n".join([*sentences[:50], "\u200b"]) + "\n", encoding="utf-8")
    params = Params(model=str(tmp_path / "static"), calibrate=(str(text),), name="static")
    made = run(params, WorkDirectory(tmp_path / "work"))
    assert made.facts["int8"]["calibration_texts"] == 51
    assert made.facts["checked"]["int8"]["mean_cosine"] > 0.99


def test_a_tokenizer_that_cuts_the_beginning_of_long_texts_does_so_for_the_graph(
    tiny_model: Path, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    model = shutil.copytree(tiny_model, tmp_path / "model")
    settings = json.loads((model / "tokenizer_config.json").read_text(encoding="utf-8"))
    (model / "tokenizer_config.json").write_text(json.dumps(settings | {"truncation_side": "left"}), encoding="utf-8")
    # The check of the export has texts that are longer than the model reads.
    made = run(Params(model=str(model), formats=("folder", "onnx"), name="left"), WorkDirectory(tmp_path / "work"))
    assert made.facts["checked"]["onnx"]["min_cosine"] > 0.9999
    assert ', direction="left")' in (made.path / "README.md").read_text(encoding="utf-8")


def test_calibrated_vectors_do_not_depend_on_the_batch(
    exported: Artifact, sentences: list[str], tmp_path: Path
) -> None:
    from sentcompress.exporting.graph_reader import GraphReader
    from sentcompress.exporting.static_quantisation import fix_ranges

    encoder = load_model(exported.path)
    folder = tmp_path / "copy"
    shutil.copytree(exported.path, folder)
    file = "onnx/fixed.onnx"
    fix_ranges(
        exported.path / graph_formats.INT8_FILE, folder / file, encoder.tokenize(sentences[:50]), encoder.padding
    )
    reader = GraphReader(folder, file, prepare=encoder.text.prepare, max_length=encoder.text.max_length)
    texts = sentences[50:90]
    alone = reader.vectors(texts, 1)
    np.testing.assert_allclose(reader.vectors(texts), alone, atol=2e-2)
    assert (alone * encoder_vectors(encoder, texts)).sum(axis=1).min() > 0.98


def test_float16_weights_take_half_the_size_and_give_the_same_vectors(work: WorkDirectory, encoder: Encoder) -> None:
    from sentence_transformers import SentenceTransformer

    full = run(Params(formats=("folder",), name="full"), work)
    small = run(Params(formats=("folder",), float16=True, name="small"), work)
    for name in ("model.safetensors", "2_Dense/model.safetensors"):
        assert small.facts["bytes"][name] < 0.6 * full.facts["bytes"][name]
    assert small.facts["weights"] == "float16"
    assert "float16; computed in float32" in (small.path / "README.md").read_text(encoding="utf-8")
    texts = ["the dog runs", "a man reads"]
    loaded = SentenceTransformer(str(small.path), device="cpu")
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    expected = encoder_vectors(encoder, texts)
    np.testing.assert_allclose(loaded.encode(texts), expected, atol=2e-3)
    own = load_model(small.path)
    np.testing.assert_allclose(encoder_vectors(own, texts), expected, atol=2e-3)
    again = run(Params(model=str(small.path), formats=("folder",), float16=True, name="again"), work)
    assert again.facts["bytes"] == small.facts["bytes"]


def test_weights_beyond_float16_are_not_exported_as_such(work: WorkDirectory, encoder: Encoder) -> None:
    large = Dense(32, 8)
    with torch.no_grad():
        large.linear.weight.fill_(1e5)
    beyond = TransformerEncoder(encoder.transformer, encoder.tokenizer, dense=[large], text=encoder.text).eval()  # type: ignore[attr-defined]
    student = make_student(work, {}, beyond, "beyond")
    with pytest.raises(InputError, match=r"linear.weight has values beyond the range of float16"):
        run(Params(model=student.name, formats=("folder",), float16=True), work)
    assert not work.names("exports")


def test_a_student_that_was_trained_in_four_bits_is_exported_in_four_bits(
    work: WorkDirectory, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weight_formats, "FEWEST", 1)
    with work.build(Request("students", "rounded", "distill", {"method": "mse", "weight_format": "int4"}, {})) as build:
        with RoundedWeights(encoder).in_place():
            save_encoder(encoder, build.path / "model")
        build.finish({"method": "mse", "student": "teacher:1", "teacher": "owner/big-teacher"})
    rounded = run(Params(model="rounded"), work)
    plain = run(Params(model="rounded", weight_format="int8", name="plain"), work)
    assert (rounded.facts["weight_format"], plain.facts["weight_format"]) == ("int4", "int8")
    graphs = [(made.path / INT8_FILE).read_bytes() for made in (rounded, plain)]
    assert b"BitShift" in graphs[0]
    assert b"BitShift" not in graphs[1]
    assert rounded.facts["checked"]["int8"]["mean_cosine"] > 0.98
    cards = [(made.path / "README.md").read_text(encoding="utf-8") for made in (rounded, plain)]
    assert ["weights stored in 4 bits" in card for card in cards] == [True, False]
    assert ["ONNX int8 with 4-bit weights, in batches" in card for card in cards] == [True, False]
    rows = [row for row in status.run(status.Params(), work) if row["kind"] == "exports"]
    assert {row["name"]: row["facts"]["weight_format"] for row in rows} == {"rounded": "int4", "plain": "int8"}
    with pytest.raises(UsageError, match="`weight_format` is for the format int8"):
        Params(weight_format="int4", formats=("folder", "onnx")).check()


@pytest.mark.parametrize("options", [{"license": "a b"}, {"language": ("en", "")}, {"license": ""}])
def test_licenses_and_languages_are_identifiers(work: WorkDirectory, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"is not (an identifier|a code)"):
        run(Params(**options), work)


def test_notes_become_a_part_of_the_card(work: WorkDirectory, tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_bytes("\ufeff\n## Training data\n\n| a | b |\n|---|---|\n| ü | *CC0* |\n\n".encode())
    params = Params(formats=("folder",), notes=notes)
    made = run(params, work)
    card = (made.path / "README.md").read_text(encoding="utf-8")
    assert "\n\n## Training data\n\n| a | b |\n|---|---|\n| ü | *CC0* |\n\n## Verification at export\n" in card
    inode = (made.path / "README.md").stat().st_ino
    assert (run(params, work).path / "README.md").stat().st_ino == inode  # fresh
    notes.write_text("## Limits", encoding="utf-8")
    assert "\n\n## Limits\n\n## Ver" in (run(params, work).path / "README.md").read_text(encoding="utf-8")


def test_notes_that_cannot_be_read(work: WorkDirectory, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        run(Params(notes=tmp_path / "missing.md"), work)
    with pytest.raises(UsageError, match="is a folder"):
        run(Params(notes=tmp_path), work)
    notes = tmp_path / "notes.md"
    notes.write_bytes(b"# a\xff")
    with pytest.raises(InputError, match=r"not UTF-8 \(byte 4\)"):
        run(Params(notes=notes), work)
    notes.write_bytes(b"a" * (LONGEST_NOTES + 1))
    with pytest.raises(InputError, match="larger than"):
        run(Params(notes=notes), work)


def test_the_author_states_license_and_language(work: WorkDirectory) -> None:
    made = run(Params(formats=("folder",), license="apache-2.0", language=("en",)), work)
    front = (made.path / "README.md").read_text(encoding="utf-8").split("---")[1]
    assert 'license: "apache-2.0"\nlanguage:\n- "en"\n' in front
