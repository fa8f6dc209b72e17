"""Work directories with evaluations whose figures are made up, in the form that the evaluations write."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sentcompress.compression.plan_file import PlanFile
from sentcompress.evaluation.metrics import (
    ACCURACY,
    ALIGNMENT,
    DISK_BYTES,
    FIRST_FOUND,
    INDEX_BYTES,
    INDEX_LOSS,
    LATENCY_P50,
    LATENCY_P95,
    LATENCY_P99,
    MODEL_MEMORY,
    MRR,
    NDCG,
    NEAREST,
    NEIGHBOURS,
    PEAK_MEMORY,
    RESULTS_SHARED,
    SEARCH_FIDELITY,
    SEARCH_TIME,
    SIMILARITIES,
    SPEARMAN,
    SPEED,
    SPEED_SINGLE,
    UNIFORMITY,
)
from sentcompress.evaluation.retrieval import EXACT
from sentcompress.evaluation.score import MEAN, Difference, Interval, Recorder
from sentcompress.store import LOG, Artifact, Request, WorkDirectory

TEACHER = {"label": "owner/big", "reference": "model:owner/big", "digest": "7" * 64, "dimension": 6}
HOSTILE = 'A <b>bold</b> & "quoted" | sentence'


def make(
    work: WorkDirectory,
    kind: str,
    name: str,
    command: str,
    facts: Mapping[str, Any],
    inputs: Mapping[str, str] | None = None,
    files: Mapping[str, str] | None = None,
    **parameters: Any,
) -> Artifact:
    """An artifact with these facts and files."""
    request = Request(
        kind, name, command, {**parameters, "facts": json.dumps(facts)}, inputs or {}, (command, "--name", name)
    )
    with work.build(request, force=True) as build:
        for file, text in (files or {"data.txt": json.dumps(facts)}).items():
            (build.path / file).parent.mkdir(exist_ok=True)
            with build.write(file) as path:
                path.write_text(text)
        return build.finish(facts)


def student(work: WorkDirectory, name: str, method: str = "hpd", dimension: int = 4) -> Artifact:
    """A student that learnt for three looks."""
    log = [{"step": 0, "epoch": 0.0, "dev": 40.0, "temperature": 0.5}] + [
        {"step": s, "epoch": s / 9, "mse": 3.0 / s, "pkd": 1.0, "sentences_per_second": 9.0, "lr": 1e-3, "dev": 50 + s}
        for s in (3, 6, 9)
    ]
    facts = {
        "method": method,
        "student": "teacher:2",
        "teacher": "owner/big",
        "parameters": 1000 * dimension,
        "dimension": dimension,
        "dev": 59.0,
        "dev_protocol": "Spearman x 100 of cosines on 9 graded pairs",
        "best_step": 9,
        "training_seconds": 90.0,
    }
    files = {
        LOG: "".join(json.dumps(line) + "\n" for line in log),
        "weights.txt": name,
        "model/model.safetensors": f"{name} {method}",
    }
    return make(work, "students", name, "distill", facts, files=files, method=method, student="teacher:2")


def described(artifact: Artifact, **more: Any) -> dict[str, Any]:
    """How an evaluation describes the model that it measured."""
    known = {"label": artifact.name, "reference": artifact.reference, "digest": artifact.digest}
    return {**known, "dimension": artifact.facts["dimension"], "parameters": artifact.facts["parameters"], **more}


def document(name: str, models: Mapping[str, Mapping[str, Any]], recorder: Recorder, **more: Any) -> dict[str, Any]:
    """The document of an evaluation."""
    return {"evaluation": name, "protocol": {"statement": name}, **models, "scores": recorder.as_dicts(), **more}


def recorder_of(models: Mapping[str, Mapping[str, Any]]) -> Recorder:
    return Recorder({role: str(model["reference"]) for role, model in models.items()})


def around(values: Mapping[str, float], width: float) -> dict[str, Interval | None]:
    return {role: Interval(value - width, value + width) for role, value in values.items()}


def sts(work: WorkDirectory, of: Artifact, score: float = 81.0) -> Artifact:
    """Two sets beside the teacher, with intervals."""
    models = {"model": described(of), "compare": TEACHER}
    recorder = recorder_of(models)
    for name, ours, theirs in (("STS-B", score, 82.0), ("STS13", score - 1, 80.0), (MEAN, score - 0.5, 81.0)):
        values = {"model": ours, "compare": theirs}
        difference = Difference(ours - theirs, Interval(ours - theirs - 1, 0.5))
        intervals = around(values, 2)
        recorder.add(name, SPEARMAN, values, count=9, intervals=intervals, difference=difference)
    near = {"model": Interval(0.1, 0.3)}
    recorder.add("STS-B", ALIGNMENT, {"model": 0.2, "compare": 0.1}, intervals=near, shared=False)
    recorder.add("STS-B", UNIFORMITY, {"model": -2.0, "compare": -2.0}, shared=False)
    protocol = {"statement": "the papers' protocol", "split": "test", "aggregate": "all"}
    facts = document("sts", models, recorder, protocol=protocol)
    files = {"file:/data/sts/test.tsv": "1" * 64, of.reference: of.digest}
    asked = {"model": of.reference, "compare": TEACHER["reference"]}
    return make(work, "evaluations", f"sts-{of.name}", "eval-sts", facts, files, **asked)


def retrieval(work: WorkDirectory, of: Artifact, runtime: str = "") -> Artifact:
    """A collection, exact and with two kinds of index; in a runtime other than torch, if one is named."""
    models = {"model": described(of), "compare": TEACHER}
    recorder = recorder_of(models)
    for part, value, size in ((EXACT, 57.0, 0), ("flat", 56.5, 90_000), ("ivf", 56.5, 95_000)):
        values = {"model": value, "compare": value + 3}
        recorder.add("scifact dev", NDCG, values, part=part, count=9, intervals=around(values, 3))
        recorder.add("scifact dev", MRR, {role: of_role + 1 for role, of_role in values.items()}, part=part)
        if size:
            sizes = {"model": size, "compare": 3 * size}
            recorder.add("scifact dev", INDEX_LOSS, {"model": 0.5, "compare": 0.5}, part=part, shared=False)
            recorder.add("scifact dev", INDEX_BYTES, sizes, part=part)
            recorder.add("scifact dev", SEARCH_TIME, {role: bytes_ / 7 for role, bytes_ in sizes.items()}, part=part)
    settings = {"flat": {}, "ivf": {"nlist": 8, "nprobe": 2}}
    facts = document(
        "retrieval",
        models,
        recorder,
        dataset={"protocol": "collection", "name": "scifact", "split": "dev"},
        documents=50,
        judged_queries=9,
        indexes=[{"index": kind, "settings": {"model": of, "compare": of}} for kind, of in settings.items()],
    )
    if runtime:
        statement = f"retrieval; vectors of the model by {runtime}"
        facts["protocol"] = {**facts["protocol"], "statement": statement, "runtime": runtime}
    asked = {
        "model": of.reference,
        "protocol": "collection",
        "data": "scifact",
        "split": "dev",
        "index": ["flat", "ivf"],
    }
    name = "-".join(("retrieval", of.name, *([runtime] if runtime else [])))
    return make(work, "evaluations", name, "eval-retrieval", facts, **asked)


def transfer(work: WorkDirectory, of: Artifact) -> Artifact:
    """Two tasks without a second model."""
    models = {"model": described(of)}
    recorder = recorder_of(models)
    for name, accuracy in (("MR", 75.0), ("TREC", 85.0), (MEAN, 80.0)):
        recorder.add(name, ACCURACY, {"model": accuracy}, intervals=around({"model": accuracy}, 1))
    facts = document("transfer", models, recorder)
    return make(work, "evaluations", f"transfer-{of.name}", "eval-transfer", facts, {"file:/data/MR/all.tsv": "2" * 64})


def fidelity(work: WorkDirectory, of: Artifact) -> Artifact:
    """With matrices, a histogram, a verdict and a disagreement that holds what HTML would take for markup."""
    matrix = [[0.2 if row == column else -0.01 * row for column in range(4)] for row in range(4)]
    shape = {
        "tokens": {"limit": 64, "mean_length": 9.0, "truncated_share": 0.25, "unknown_share": 0.0},
        "anisotropy": 0.1,
        "effective_rank": None,
        "dimensions_shown": 4,
        "sentences_of_covariance": 30,
        "mean_absolute_correlation": 0.05,
        "covariance": matrix,
    }
    models = {"model": described(of, **shape), "compare": {**TEACHER, **shape, "tokens": None}}
    recorder = recorder_of(models)
    shared = {"model": 70.0, "compare": 100.0}
    intervals = {"model": Interval(60.0, 80.0)}
    recorder.add("mine.txt", NEIGHBOURS, shared, part="10 nearest", count=30, intervals=intervals)
    recorder.add("mine.txt", NEAREST, {"model": 88.0, "compare": 100.0}, part="10 nearest", count=30)
    recorder.add("mine.txt", SIMILARITIES, {"model": 90.0, "compare": 100.0}, count=30)
    facts = document(
        "fidelity",
        models,
        recorder,
        sentences=30,
        cosine_to_compared=None,
        cosine_is_to="not comparable: 4 and 6 dimensions",
        neighbours={"k": 10, "by_chance": 0.1},
        histogram={"edges": [-1, -0.5, 0, 0.5, 1], "model": [0, 2, 6, 2], "compare": [0, 5, 5, 0]},
        disagreements=[{"first": HOSTILE, "second": "Another.", "model": 0.1, "compare": 0.9, "gap": -3.0}],
        verdict={"level": "good", "text": f"{of.name} keeps 70%.", "cautions": ["only 30 sentences"]},
    )
    return make(work, "evaluations", f"fidelity-{of.name}", "eval-fidelity", facts, {"file:/data/mine.txt": "3" * 64})


def bench(work: WorkDirectory, of: Artifact) -> Artifact:
    """Two runtimes, the second of which the teacher has no graph for."""
    models = {
        "model": described(of, weight_bytes=4000),
        "compare": {**TEACHER, "parameters": 9000, "weight_bytes": 9000},
    }
    recorder = recorder_of(models)
    for runtime, roles in (("float32", ("model", "compare")), ("onnx", ("model",))):
        speeds = {role: {"model": 300.0, "compare": 100.0}[role] for role in roles}
        sizes = {role: {"model": 4000, "compare": 9000}[role] for role in roles}
        recorder.add("", SPEED, speeds, part=runtime)
        recorder.add("", SPEED_SINGLE, {role: speed / 2 for role, speed in speeds.items()}, part=runtime)
        for metric in (LATENCY_P50, LATENCY_P95, LATENCY_P99):
            recorder.add("", metric, {role: 1000 / speed for role, speed in speeds.items()}, part=runtime)
        recorder.add("", DISK_BYTES, sizes, part=runtime)
        recorder.add("", PEAK_MEMORY, {role: 9 * size for role, size in sizes.items()}, part=runtime)
        recorder.add("", MODEL_MEMORY, sizes, part=runtime)
    protocol = {"statement": "all in turn", "preset": None}
    runtimes = [{"runtime": "float32", "what": "torch"}, {"runtime": "onnx", "what": "onnxruntime"}]
    facts = document("bench", models, recorder, protocol=protocol, runtimes=runtimes)
    asked = {"model": of.reference, "compare": TEACHER["reference"], "runtimes": ["float32", "onnx"]}
    return make(work, "evaluations", f"bench-{of.name}", "bench", facts, **asked)


def nothing_measured(model: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """A bench run of two models, with a single figure."""
    models = {"model": model, "compare": other}
    recorder = recorder_of(models)
    recorder.add("", SPEED, {"model": 3.0, "compare": 1.0}, part="float32")
    return document("bench", models, recorder, runtimes=[])


def with_model(facts: Mapping[str, Any], model: Mapping[str, Any]) -> dict[str, Any]:
    """The same document of another model."""
    scores = [
        {**score, "model": model["reference"]} if score["role"] == "model" else score for score in facts["scores"]
    ]
    return {**facts, "model": model, "scores": scores}


def guest(work: WorkDirectory, place: Path, score: float = 79.0, digest: str = "6" * 64) -> Artifact:
    """Similarity of a model from outside, beside the teacher."""
    facts = sts(work, student(work, "measured-alike"), score).facts
    shutil.rmtree(work.path / "evaluations" / "sts-measured-alike")
    shutil.rmtree(work.path / "students" / "measured-alike")
    model = {**facts["model"], "label": place.name, "reference": f"model:{place}", "digest": digest}
    files = {"file:/data/sts/test.tsv": "1" * 64, model["reference"]: digest}
    asked = {"model": model["reference"], "compare": TEACHER["reference"]}
    return make(
        work, "evaluations", f"sts-{place.name}-{digest[0]}", "eval-sts", with_model(facts, model), files, **asked
    )


def projection(work: WorkDirectory) -> Artifact:
    facts = {"dimension": 4, "teacher_dimension": 6, "explained_variance_ratio": [0.4, 0.2, 0.1, 0.05]}
    return make(work, "projections", "pca-4", "fit-pca", facts, dim=4)


def full_work(path: Path) -> WorkDirectory:
    """Two students; of the first everything was measured, of the second similarity alone."""
    work = WorkDirectory(path)
    first, second = student(work, "small"), student(work, "tiny", "mse", 2)
    projection(work)
    for measure in (sts, retrieval, transfer, fidelity, bench):
        measure(work, first)
    sts(work, second, 75.0)
    make(work, "exports", "small", "export", {}, {first.reference: first.digest})
    return work


def search(
    work: WorkDirectory,
    of: Artifact,
    name: str,
    score: float,
    *,
    keep_index: bool = False,
    stored: int | None = None,
    queries: int = 600,
    logged: int = 0,
    data: str = "docs",
    passages: int = 2000,
    cautions: Sequence[str] = (),
) -> Artifact:
    """Search fidelity, beside a teacher with a size; `stored`: bytes of a stored vector, `logged`: queries of a log."""
    models = {"model": described(of), "compare": {**TEACHER, "weight_bytes": 9_000_000}}
    if keep_index:
        models["model"]["label"] = f"{of.name}, documents by {TEACHER['label']}"
    recorder = recorder_of(models)
    values, near = {"model": score, "compare": 100.0}, {"model": Interval(score - 1, score + 1)}
    recorder.add(data, SEARCH_FIDELITY, values, count=queries, intervals=near)
    recorder.add(data, RESULTS_SHARED, {"model": score - 9, "compare": 100.0}, count=queries)
    recorder.add(data, FIRST_FOUND, {"model": score + 5, "compare": 100.0}, count=queries)
    if logged:
        recorder.add(data, SEARCH_FIDELITY, values, part="log", count=logged)
    facts = document("search", models, recorder, queries=queries, passages=passages, keep_index=keep_index)
    ways = "; passages by the compared one" * keep_index + f"; passages stored in {stored} bytes" * bool(stored)
    statement = facts["protocol"]["statement"] + ways
    facts["protocol"] = {**facts["protocol"], "statement": statement, "resampled": "130 documents"}
    facts["verdict"] = {"level": "good", "text": f"{of.name} is good.", "cautions": list(cautions)}
    if stored:
        facts["protocol"]["stored"] = {"format": "int4", "dimension": 4, "bytes": stored}
    return make(work, "evaluations", name, "eval-search", facts, {of.reference: of.digest}, model=of.reference)


def quantizer(work: WorkDirectory, of: Artifact, name: str) -> Artifact:
    """Two formats, the second of which was chosen, and two prefixes."""
    rows = [
        {"format": "int8", "dimension": 2, "bytes": 2, "fidelity": 60.0, "interval": [58.0, 62.0]},
        {"format": "int4", "dimension": 4, "bytes": 2, "fidelity": 91.5, "interval": [90.0, 93.0]},
    ]
    prefixes = [{"dimension": 2, "float32": 61.0, "stored": 60.5}, {"dimension": 4, "float32": 92.0, "stored": 91.5}]
    facts = {
        **{key: rows[1][key] for key in ("format", "dimension", "bytes", "fidelity")},
        "fidelity_of_float32": 92.0,
        "protocol": "600 queries",
        "tried": rows,
        "prefixes": prefixes,
    }
    return make(work, "quantizers", name, "fit-quantizer", facts, {of.reference: of.digest})


def export(work: WorkDirectory, of: Artifact | None, name: str, *, weight_format: str = "int8") -> Artifact:
    checked = {"int8": {"mean_cosine": 0.9968, "texts": 200}}
    written = {"folder": "model.safetensors", "int8": "onnx/sentence_embedding_int8.onnx"}
    facts = {
        "formats": {title: {"title": title, "files": [file]} for title, file in written.items()},
        "bytes": {"model.safetensors": 4_000_000, "onnx/sentence_embedding_int8.onnx": 1_000_000},
        "weight_format": weight_format,
    }
    inputs = {of.reference: of.digest} if of else {}
    return make(work, "exports", name, "export", {**facts, "checked": checked, **SIZES}, inputs)


SIZES = {"parameters": 850_000, "dimension": 4}
# The shape of a student; others have no configuration.
CONFIG = {
    "num_hidden_layers": 2,
    "hidden_size": 96,
    "intermediate_size": 384,
    "vocab_size": 6000,
    "max_position_embeddings": 128,
}


def trained(work: WorkDirectory, name: str, start: str, **more: Any) -> Artifact:
    facts = {"method": "simtde", "student": start, "teacher": "owner/big", "training_seconds": 90.0, **SIZES}
    facts |= {"dev_before_training": 70.0, "dev_protocol": "300 queries", "best_step": 40, **more}
    return make(work, "students", name, "distill", facts, files={LOG: "", "model/model.safetensors": f"{name} {more}"})


def plan(work: WorkDirectory, name: str, *stages: Mapping[str, Any]) -> Path:
    """A plan as `compress` writes it."""
    lines = [PlanFile({"time": "3m"}, 180.0, "", (), ()).head]
    for stage in stages:
        lines += ["[[stage]]", *(f"{key} = {json.dumps(value)}" for key, value in stage.items())]
    path = work.path / "plans" / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def stage(command: str, name: str, **options: Any) -> dict[str, Any]:
    return {"command": command, "name": name, **options}


def compressed(path: Path) -> WorkDirectory:
    """Two candidates of which the better was trained on, averaged with its start, quantised and exported."""
    work = WorkDirectory(path)
    candidates = [trained(work, "docs-1-1", "ready"), trained(work, "docs-1-2", "teacher:2")]
    for one, score in zip(candidates, (80.0, 70.0), strict=True):
        search(work, one, f"{one.name}-trial", score)
    bench(work, candidates[0])
    make(work, "students", "docs-1-best", "select", {"models": ["docs-1-1"], "method": "select", **SIZES})
    last = trained(work, "docs-last", "docs-1-best")
    shares = {"models": ["docs-last", "docs-1-best"], "shares": [0.75, 0.25], "method": "average", **SIZES}
    mixed = make(work, "students", "docs-mixed", "average", shares, files={"model/config.json": json.dumps(CONFIG)})
    for one, score in ((last, 92.0), (mixed, 91.0)):
        search(work, one, f"{one.name}-trial", score)
    best = make(work, "students", "docs", "select", {"models": ["docs-last"], "method": "select", **SIZES})
    quantizer(work, best, "docs")
    exported = export(work, best, "docs")
    search(work, exported, "docs-search", 92.0, stored=2, cautions=["only 39 queries: see the interval"])
    bench(work, exported)
    plan(
        work,
        "docs",
        stage("split-documents", "docs", inputs=["docs.txt"]),
        stage("distill", "docs-1-1", student="ready"),
        stage("distill", "docs-1-2", student="teacher:2", **{"token-dim": 128}),
        *(stage("eval-search", f"docs-1-{place}-trial", model=f"docs-1-{place}") for place in (1, 2)),
        stage("bench", "bench-docs-1-1", model="docs-1-1"),
        stage("select", "docs-1-best", inputs=["docs-1-1", "docs-1-2"]),
        stage("distill", "docs-last", student="docs-1-best"),
        stage("average", "docs-mixed", inputs=["docs-last", "docs-1-best"]),
        *(stage("eval-search", f"docs-{end}-trial", model=f"docs-{end}") for end in ("last", "mixed")),
        stage("select", "docs", inputs=["docs-last", "docs-mixed"]),
        stage("fit-quantizer", "docs", model="docs"),
        stage("export", "docs", model="docs"),
        stage("eval-search", "docs-search", model="exports/docs"),
        stage("bench", "bench-docs", model="exports/docs"),
    )
    return work


def untrained(path: Path, *, keep_index: bool = False, logged: int = 0, weight_format: str = "int8") -> WorkDirectory:
    """The teacher itself as an int8 graph, without a quantizer."""
    work = WorkDirectory(path)
    exported = export(work, None, "docs", weight_format=weight_format)
    search(work, exported, "docs-search", 99.0, keep_index=keep_index, logged=logged)
    plan(
        work,
        "docs",
        stage("export", "docs", model="owner/big"),
        stage("eval-search", "docs-search", model="exports/docs"),
    )
    return work
