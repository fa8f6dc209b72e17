"""bench: what is measured adds up, and all models and runtimes are measured in one run."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from beir import write_jsonl
from listening import Listener
from tiny_models import make_tiny_model
from tracing import traced_once

from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.evaluation.metrics import (
    DISK_BYTES,
    LATENCY_P50,
    LATENCY_P95,
    LATENCY_P99,
    MODEL_MEMORY,
    PASS_SECONDS,
    PEAK_MEMORY,
    SPEED,
)
from sentcompress.evaluation.score import read_scores, select, value_of
from sentcompress.evaluation.tables import ratio
from sentcompress.exporting.dynamic_quantisation import quantise
from sentcompress.exporting.onnx import FLOAT32_FILE, INT8_FILE, write_graph
from sentcompress.measuring import contender
from sentcompress.measuring.contender import Contender
from sentcompress.measuring.lineup import FoundGraph, find_graphs
from sentcompress.measuring.turns import take_turns, work_of
from sentcompress.measuring.workload import of_file
from sentcompress.models.catalog import NamedModel, find_model
from sentcompress.models.layout import save_encoder
from sentcompress.progress import Reporter
from sentcompress.stages import bench
from sentcompress.stages.bench import Params, run
from sentcompress.store import Artifact, Request, WorkDirectory

QUICK: dict[str, Any] = {"count": 40, "single": 6, "rounds": 1, "device": "cpu", "memory": False}


@pytest.fixture
def text(tmp_path: Path, sentences: list[str]) -> Path:
    path = tmp_path / "lines.txt"
    path.write_text("\n".join([*sentences, "", *sentences]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def pairs(tmp_path: Path, sentences: list[str]) -> Path:
    """A small stand-in for STS-B's test split: 12 pairs, of which every one shares a sentence with the next."""
    path = tmp_path / "sts" / "stsb" / "test.tsv"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{n % 6}\t{sentences[n]}\t{sentences[n + 1]}\n" for n in range(12)), encoding="utf-8")
    return path


def test_both_models_are_measured(tmp_path: Path, text: Path, tiny_model: Path) -> None:
    other = make_tiny_model(tmp_path / "other", layers=4, width=64)
    params = Params(
        model=str(tiny_model), compare=str(other), text=text, count=50, single=10, rounds=2, device="cpu", memory=False
    )
    facts = run(params, WorkDirectory(tmp_path / "work")).facts
    assert facts["protocol"]["sentences"] == 50
    assert [entry["runtime"] for entry in facts["runtimes"]] == ["float32", "bfloat16"]
    scores = read_scores(facts)
    for role, folder, width in (("model", tiny_model, 32), ("compare", other, 64)):
        assert facts[role]["label"] == folder.name
        assert facts[role]["dimension"] == width
        assert facts[role]["weight_bytes"] == (folder / "model.safetensors").stat().st_size
        for entry in facts["runtimes"]:
            assert entry[role]["best_batch_tokens"] in (512, 2048, 8192)
            figures = {score.metric: score.value for score in select(scores, part=entry["runtime"], role=role)}
            assert figures[SPEED] > 0
            assert 0 < figures[LATENCY_P50] <= figures[LATENCY_P95] <= figures[LATENCY_P99]
    assert facts["compare"]["parameters"] > facts["model"]["parameters"]
    (speed,) = select(scores, SPEED, part="float32", role="model")
    assert ratio(speed) == pytest.approx(speed.value / value_of(scores, SPEED, part="float32", role="compare"))


def export(work: WorkDirectory, model: NamedModel, *, int8: bool = True) -> Artifact:
    """An export with nothing but the graphs and what is read beside them."""
    request = Request("exports", "small", "export", {"model": model.reference}, {model.reference: model.digest})
    with work.build(request) as build:
        encoder = model.load()
        save_encoder(encoder, build.path)
        with traced_once():
            write_graph(encoder, build.path / FLOAT32_FILE)
        if int8:
            quantise(build.path / FLOAT32_FILE, build.path / INT8_FILE)
        return build.finish({})


class CountingTask:
    """Adds up what a progress bar is told."""

    def __init__(self) -> None:
        self.done = 0

    def advance(self, amount: int = 1) -> None:
        self.done += amount

    def set_total(self, total: int | None) -> None:
        raise AssertionError("the total is known")

    def set_work(self, stretches: object) -> None:
        raise AssertionError("all sentences are alike")


def test_the_progress_bar_counts_everything_that_is_encoded() -> None:
    encoded: list[int] = []

    class Engine:
        batch_tokens = 512

        def encode(self, texts: Sequence[str]) -> None:
            encoded.append(len(texts))

    engine: Any = Engine()
    contenders = [Contender(role, "float32", engine, engine, 1) for role in ("model", "compare")]
    texts, task = [f"text {number}" for number in range(40)], CountingTask()
    take_turns(contenders, texts, texts[:6], 2, task)
    warm_up = 2 * 6
    assert task.done == sum(encoded) - warm_up
    assert work_of(contenders, texts, texts[:6], 2) == task.done


def test_the_batch_size_is_the_fastest_of_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    engine: Any = SimpleNamespace(batch_tokens=0)
    seconds = {"512": [2.0, 1.5], "2048": [3.0, 1.0], "8192": [1.2, 1.3]}
    monkeypatch.setattr(contender, "alternate", lambda runs, rounds, ends: {name: seconds[name] for name in runs})
    Contender("model", "float32", engine, engine, 1).pick_batch(["text"], CountingTask(), 2)
    assert engine.batch_tokens == 2048


def test_the_result_says_how_much_a_limit_of_time_left(
    tmp_path: Path, text: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    monkeypatch.setattr(Reporter, "note", lambda self, message: notes.append(message))
    asked = Params(model=str(tiny_model), compare=str(tiny_model), text=text, **{**QUICK, "rounds": 3})
    limited = dataclasses.replace(asked, runtimes=("float32",), max_minutes=1e-6)
    facts = run(limited, WorkDirectory(tmp_path / "work"), Reporter()).facts
    protocol = facts["protocol"]
    assert [protocol[key] for key in ("sentences", "rounds", "single", "single_rounds")] == [32, 1, 6, 1]
    assert "32 distinct sentences" in protocol["statement"]
    assert "median of 1 round " in protocol["statement"]
    told = "timed 32 of 40 sentences in batches, 1 of 3 rounds, and 6 of 6 one at a time, 1 of 3 rounds"
    assert notes == [f"bench: {told} because of `max_minutes`"]
    whole = run(dataclasses.replace(limited, max_minutes=60.0, force=True), WorkDirectory(tmp_path / "work")).facts
    assert [whole["protocol"][key] for key in ("sentences", "rounds", "single", "single_rounds")] == [40, 3, 6, 3]


def test_graphs_are_found_in_the_export_of_a_model(tmp_path: Path, text: Path, tiny_model: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    work = WorkDirectory(tmp_path / "work")
    exported = export(work, find_model(work, str(tiny_model)))
    facts = run(Params(model=str(tiny_model), compare=None, text=text, **QUICK), work).facts
    assert [entry["runtime"] for entry in facts["runtimes"]] == ["float32", "bfloat16", "onnx", "onnx-int8"]
    sizes = {score.part: score.value for score in select(read_scores(facts), DISK_BYTES)}
    assert sizes["onnx"] == (exported.path / FLOAT32_FILE).stat().st_size
    assert sizes["onnx-int8"] < sizes["onnx"]
    # The export itself has the graphs; the other model has none and is left out with a remark.
    other = make_tiny_model(tmp_path / "other", seed=1)
    params = Params(model=exported.name, compare=str(other), text=text, runtimes=("onnx", "float32"), **QUICK)
    facts = run(params, work).facts
    assert "compare" not in facts["runtimes"][0]
    assert "other is skipped because it has no such graph" in facts["missing"]["onnx"]
    assert [entry["runtime"] for entry in facts["runtimes"]] == ["onnx", "float32"]
    # What both ran in comes first: it is what is told where there is room for one runtime.
    assert [score.part for score in select(read_scores(facts), SPEED, role="model")] == ["float32", "onnx"]


def test_graphs_that_cannot_be_run_are_told(tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "graphs_can_run", lambda: False)
    work, heard = WorkDirectory(tmp_path / "work"), Listener()
    model, graphs = find_model(work, str(tiny_model)), {"onnx": FoundGraph(tiny_model, {})}
    assert bench._runtimes(Params(), model, graphs, work, heard) == ["float32", "bfloat16"]
    assert [note.partition(" (run: pip install ")[0] for note in heard.notes] == [
        "bench: without onnx: onnxruntime is not installed"
    ]
    assert bench._runtimes(Params(), model, {}, work, heard) == ["float32", "bfloat16"]
    assert len(heard.notes) == 1


def test_a_model_beside_itself_is_a_warning(tmp_path: Path, text: Path, tiny_model: Path) -> None:
    heard = Listener()
    params = Params(model=str(tiny_model), compare=str(tiny_model), text=text, runtimes=("float32",), **QUICK)
    run(params, WorkDirectory(tmp_path / "work"), heard)
    assert [warning.partition(" is compared with itself")[0] for warning in heard.warnings] == [tiny_model.name]


def test_an_export_with_one_graph_is_measured_with_it(tmp_path: Path, text: Path, tiny_model: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    work = WorkDirectory(tmp_path / "work")
    export(work, find_model(work, str(tiny_model)), int8=False)
    asked = Params(model=str(tiny_model), compare=None, text=text, **QUICK)
    assert [entry["runtime"] for entry in run(asked, work).facts["runtimes"]] == ["float32", "bfloat16", "onnx"]
    with pytest.raises(InputError, match="no ONNX graph for onnx-int8"):
        run(dataclasses.replace(asked, runtimes=("onnx", "onnx-int8")), work)


def test_the_graphs_of_an_export_are_not_those_of_its_routers_documents(tmp_path: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    queries, documents = (find_model(work, str(path)) for path in (make_tiny_model(tmp_path / "other"), tiny_model))
    inputs = {model.reference: model.digest for model in (queries, documents)}
    with work.build(Request("exports", "both", "export", {"model": queries.reference}, inputs)) as build:
        with build.write(FLOAT32_FILE) as path:
            path.write_bytes(b"the graph of the queries")
        build.finish({})
    assert set(find_graphs(work, queries)) == {"onnx"}
    assert find_graphs(work, documents) == {}
    # The model of that name now has other weights.
    assert find_graphs(work, dataclasses.replace(queries, digest="0" * 64)) == {}


def test_a_runtime_that_cannot_be_had_is_told_with_the_command_that_makes_it(
    tmp_path: Path, text: Path, tiny_model: Path
) -> None:
    pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    with pytest.raises(InputError, match="no ONNX graph for onnx") as caught:
        run(
            Params(model=str(tiny_model), compare=None, text=text, runtimes=("onnx",)), WorkDirectory(tmp_path / "work")
        )
    assert f"sentcompress export --model {tiny_model} --work {tmp_path / 'work'}" in str(caught.value.hint)


def test_a_model_without_a_graph_is_named_with_the_command_that_makes_it(
    tmp_path: Path, text: Path, tiny_model: Path
) -> None:
    pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    work, heard = WorkDirectory(tmp_path / "work"), Listener()
    export(work, find_model(work, str(tiny_model)), int8=False)
    other = make_tiny_model(tmp_path / "other", layers=4, width=64)
    params = Params(
        model=str(tiny_model), compare=str(other), text=text, count=20, single=2, rounds=1, device="cpu", memory=False
    )
    facts = run(params, work, heard).facts
    said = "onnx: other is skipped because it has no such graph"
    assert facts["missing"] == {"onnx": said}
    assert heard.notes == [f"{said} (run: sentcompress export --model {other} --work {work.path})"]


def test_simtde_is_a_pass_over_all_pairs_repeats_included(tmp_path: Path, pairs: Path, tiny_model: Path) -> None:
    params = Params(
        model=str(tiny_model),
        compare=None,
        runtimes=("float32",),
        preset="simtde",
        sts=[pairs.parents[1]],
        memory=False,
    )
    facts = run(params, WorkDirectory(tmp_path / "work")).facts
    assert facts["protocol"]["single"] == 24
    assert facts["protocol"]["sentences"] == 13
    scores, passes = read_scores(facts), facts["runtimes"][0]["model"]["passes"]
    assert len(passes) == 3
    seconds = value_of(scores, PASS_SECONDS, part="float32")
    assert seconds == pytest.approx(sum(passes) / 3, abs=0.001)


def test_simtde_is_measured_on_the_cpu_beside_a_gpu(
    tmp_path: Path, pairs: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "pick_device", lambda name="auto": torch.device("cuda" if name == "auto" else name))
    notes: list[str] = []
    monkeypatch.setattr(Reporter, "note", lambda self, message: notes.append(message))
    params = Params(model=str(tiny_model), compare=None, runtimes=("float32",), preset="simtde", sts=(pairs,))
    artifact = run(dataclasses.replace(params, memory=False), WorkDirectory(tmp_path / "work"), Reporter())
    protocol = artifact.facts["protocol"]
    assert protocol["device"] == "cpu"
    assert "one at a time, including tokenisation, on the CPU" in protocol["statement"]
    assert notes == ["bench: SimTDE's protocol is measured on the CPU (for the GPU: `device` cuda)"]


@pytest.mark.parametrize(
    ("preset", "device", "measured"), [("simtde", "auto", "cpu"), ("simtde", "cuda", "cuda"), (None, "auto", "cuda")]
)
def test_the_gpu_is_used_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, preset: str | None, device: str, measured: str
) -> None:
    monkeypatch.setattr(bench, "pick_device", lambda name="auto": torch.device("cuda" if name == "auto" else name))
    assert bench._device(Params(preset=preset, device=device), Reporter()) == measured


def test_without_text_and_without_sentences_the_hint_names_both(tmp_path: Path, tiny_model: Path) -> None:
    with pytest.raises(MissingArtifactError) as caught:
        run(Params(model=str(tiny_model), compare=str(tiny_model)), WorkDirectory(tmp_path / "work"))
    assert str(caught.value.hint).startswith("name a file of sentences with `text`, or run: sentcompress augment")


def test_the_text_can_be_a_table_but_not_a_page(tmp_path: Path) -> None:
    rows = [{"id": n, "title": f"Title {n}", "text": "A dog."} for n in range(9)]
    table = write_jsonl(tmp_path / "docs.jsonl", rows)
    assert sorted(of_file(table, 20, 5, 0).batched) == [f"Title {n} A dog." for n in range(9)]
    page = tmp_path / "page.html"
    page.write_text("<p>A dog.")
    with pytest.raises(InputError, match="is an HTML page"):
        of_file(page, 20, 5, 0)


def test_bad_requests(tmp_path: Path, pairs: Path, tiny_model: Path) -> None:
    blank = tmp_path / "blank.txt"
    blank.write_text("\n \n")
    work = WorkDirectory(tmp_path / "work")
    with pytest.raises(InputError, match="no line with text"):
        run(Params(model=str(tiny_model), compare=None, text=blank), work)
    with pytest.raises(UsageError, match="2 errors"):
        run(Params(model=str(tiny_model), compare=None, text=blank, count=0, rounds=0), work)
    with pytest.raises(UsageError, match="3 errors") as caught:
        run(Params(model=str(tiny_model), compare=None, text=blank, runtimes=("flaot32",), preset="simtde"), work)
    assert "did you mean float32" in caught.value.message
    for extent in ({"max_minutes": 1.0}, {"rounds": 5}, {"single": 7}):
        with pytest.raises(UsageError, match=f"`preset` fixes how much is timed, so `{next(iter(extent))}` cannot be"):
            run(Params(model=str(tiny_model), preset="simtde", sts=(pairs,), **extent), work)  # type: ignore[arg-type]
    pairs.parent.rename(pairs.parents[1] / "other")
    with pytest.raises(InputError, match="no STS-B test pairs"):
        run(Params(model=str(tiny_model), compare=None, preset="simtde", sts=[pairs.parents[1]]), work)


def test_command_prints_tables_and_says_when_times_are_old(
    tmp_path: Path, text: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sentcompress.cli.main import _run

    words = ["bench", "--model", str(tiny_model), "--compare", "none", "--text", str(text), "--count", "20"]
    words += ["--single", "5", "--rounds", "1", "--runtimes", "float32", "--work", str(tmp_path / "work")]
    assert _run(words) == 0
    table = capsys.readouterr().out
    assert all(word in table for word in ("latency p99 (ms)", "parameters", "20 distinct sentences", "peak memory"))
    assert _run([*words, "--json"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)["facts"]
    assert document["evaluation"] == "bench"
    peak, own = (value_of(read_scores(document), of, part="float32") for of in (PEAK_MEMORY, MODEL_MEMORY))
    assert peak > own > 0
    assert "times as measured on" in captured.err
