"""Work directories with evaluations whose figures are made up, in the form that the evaluations write."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
    request = Request(kind, name, command, {**parameters, "facts": json.dumps(facts)}, inputs or {})
    with work.build(request, force=True) as build:
        for file, text in (files or {"data.txt": json.dumps(facts)}).items():
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
    files = {LOG: "".join(json.dumps(line) + "\n" for line in log), "weights.txt": f"{name} {method}"}
    return make(work, "students", name, "distill", facts, files=files, method=method, student="teacher:2")


def described(artifact: Artifact, **more: Any) -> dict[str, Any]:
    """How an evaluation describes the model that it measured."""
    known = {"label": artifact.name, "reference": artifact.reference, "digest": artifact.digest}
    return {**known, "dimension": artifact.facts["dimension"], "parameters": artifact.facts["parameters"], **more}


def sts(work: WorkDirectory, of: Artifact, score: float = 81.0) -> Artifact:
    """Two sets beside the teacher, with intervals."""

    def entry(name: str, ours: float, theirs: float) -> dict[str, Any]:
        scores = {
            role: {"spearman_cosine": value, "spearman_cosine_interval": [value - 2, value + 2]}
            for role, value in (("model", ours), ("compare", theirs))
        }
        difference = {"spearman_cosine": ours - theirs, "spearman_cosine_interval": [ours - theirs - 1, 0.5]}
        return {"name": name, "pairs": 9, **scores, "share_kept": 100 * ours / theirs, "difference": difference}

    spread = {"alignment": 0.2, "alignment_interval": [0.1, 0.3], "uniformity": -2.0, "uniformity_interval": None}
    facts = {
        "evaluation": "sts",
        "protocol": {"statement": "the papers' protocol", "split": "test", "aggregate": "all"},
        "model": described(of),
        "compare": TEACHER,
        "sets": [entry("STS-B", score, 82.0), entry("STS13", score - 1, 80.0)],
        "mean": {"model": score - 0.5, "compare": 81.0, "share_kept": 100 * (score - 0.5) / 81, "intervals": {}},
        "alignment_uniformity": {"set": "STS-B", "model": spread, "compare": {**spread, "alignment": 0.1}},
    }
    files = {"file:/data/sts/test.tsv": "1" * 64, of.reference: of.digest}
    asked = {"model": of.reference, "compare": TEACHER["reference"]}
    return make(work, "evaluations", f"sts-{of.name}", "eval-sts", facts, files, **asked)


def retrieval(work: WorkDirectory, of: Artifact) -> Artifact:
    """A collection, exact and with two kinds of index."""

    def scores(value: float, size: int | None) -> dict[str, Any]:
        found: dict[str, Any] = {"ndcg_at_10": value, "mrr_at_10": value + 1, "interval": [value - 3, value + 3]}
        if size:
            found |= {"index_bytes": size, "milliseconds_per_1000_queries": size / 7, "index_loss": {"ndcg_at_10": 0.5}}
        return found

    kept = {"shares_kept": {"ndcg_at_10": 95.0}, "share_kept": 95.5}
    facts = {
        "evaluation": "retrieval",
        "protocol": {"statement": "BEIR's protocol", "main_score": "ndcg_at_10"},
        "dataset": {"protocol": "collection", "name": "scifact", "split": "dev"},
        "documents": 50,
        "judged_queries": 9,
        "model": described(of),
        "compare": TEACHER,
        "exact": {"model": scores(57.0, None), "compare": scores(60.0, None), **kept},
        "indexes": [
            {
                "index": kind,
                "model": scores(56.5, size) | {"settings": more},
                "compare": scores(59.5, 3 * size) | {"settings": more},
                **kept,
            }
            for kind, size, more in (("flat", 90_000, {}), ("ivf", 95_000, {"nlist": 8, "nprobe": 2}))
        ],
    }
    asked = {
        "model": of.reference,
        "protocol": "collection",
        "data": "scifact",
        "split": "dev",
        "index": ["flat", "ivf"],
    }
    return make(work, "evaluations", f"retrieval-{of.name}", "eval-retrieval", facts, **asked)


def transfer(work: WorkDirectory, of: Artifact) -> Artifact:
    """Two tasks without a second model."""
    tasks = [
        {"name": n, "model": {"accuracy": a, "accuracy_interval": [a - 1, a + 1]}}
        for n, a in (("MR", 75.0), ("TREC", 85.0))
    ]
    facts = {
        "evaluation": "transfer",
        "protocol": {"statement": "SentEval's configuration"},
        "model": described(of),
        "tasks": tasks,
        "mean": {"model": 80.0, "intervals": {"model": [79.0, 81.0]}},
    }
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
    facts = {
        "evaluation": "fidelity",
        "protocol": {"statement": "the user's sentences"},
        "model": described(of, **shape),
        "compare": {**TEACHER, **shape, "tokens": None},
        "sentences": 30,
        "cosine_to_compared": None,
        "cosine_is_to": "not comparable: 4 dimensions against 6",
        "neighbours": {"k": 10, "overlap": 0.7, "interval": [0.6, 0.8], "by_chance": 0.1},
        "spearman_of_similarities": 0.9,
        "histogram": {"edges": [-1, -0.5, 0, 0.5, 1], "model": [0, 2, 6, 2], "compare": [0, 5, 5, 0]},
        "disagreements": [{"first": HOSTILE, "second": "Another.", "model": 0.1, "compare": 0.9, "gap": -3.0}],
        "verdict": {"level": "good", "text": f"{of.name} keeps 70%.", "cautions": ["30 sentences are few"]},
    }
    return make(work, "evaluations", f"fidelity-{of.name}", "eval-fidelity", facts, {"file:/data/mine.txt": "3" * 64})


def bench(work: WorkDirectory, of: Artifact) -> Artifact:
    """Two runtimes, the second of which the teacher has no graph for."""

    def figures(speed: float, size: int) -> dict[str, Any]:
        times = {f"latency_p{share}_milliseconds": 1000 / speed for share in (50, 95, 99)}
        memory = {"peak_memory_bytes": 9 * size, "model_memory_bytes": size}
        return (
            {"sentences_per_second": speed, "sentences_per_second_batch_1": speed / 2, "disk_bytes": size}
            | times
            | memory
        )

    small, large = figures(300.0, 4000), figures(100.0, 9000)
    sizes = {"weight_bytes": 4000, "vector_bytes": 16}
    facts = {
        "evaluation": "bench",
        "protocol": {"statement": "all in turn", "preset": None},
        "model": {**described(of), **sizes, **small},
        "against": {**TEACHER, "parameters": 9000, "weight_bytes": 9000, "vector_bytes": 24, **large},
        "runtimes": [{"runtime": "float32", "model": small, "against": large}, {"runtime": "onnx", "model": small}],
    }
    asked = {"model": of.reference, "against": TEACHER["reference"], "runtimes": ["float32", "onnx"]}
    return make(work, "evaluations", f"bench-{of.name}", "bench", facts, **asked)


def guest(work: WorkDirectory, place: Path, score: float = 79.0, digest: str = "6" * 64) -> Artifact:
    """Similarity of a model from outside, beside the teacher."""
    facts = sts(work, student(work, "measured-alike"), score).facts
    shutil.rmtree(work.path / "evaluations" / "sts-measured-alike")
    shutil.rmtree(work.path / "students" / "measured-alike")
    model = {**facts["model"], "label": place.name, "reference": f"model:{place}", "digest": digest}
    files = {"file:/data/sts/test.tsv": "1" * 64, model["reference"]: digest}
    asked = {"model": model["reference"], "compare": TEACHER["reference"]}
    return make(
        work, "evaluations", f"sts-{place.name}-{digest[0]}", "eval-sts", {**facts, "model": model}, files, **asked
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
