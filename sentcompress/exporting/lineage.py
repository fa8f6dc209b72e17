"""Where a model came from: the artifacts of the work directory that it was made of, and the scores they got."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentcompress.numeric import NOT_DEFINED, figure
from sentcompress.plain_text import shell_line
from sentcompress.store import KINDS, Artifact, WorkDirectory

# Parameters that say which of several things a command made; the recipe has the others.
TELLING = ("teacher", "revision", "dim", "method", "student", "preset")
LISTS = ("index", "runtimes")
# The option by which a command is told its files.
FILE_OPTIONS = {
    "eval-sts": "--sts",
    "eval-retrieval": "--pairs",
    "eval-transfer": "--tasks",
    "eval-fidelity": "--text",
    "bench": "--text",
    "distill": "--dev",
}
MANY_FILES = 3
# What retrieval may be scored by -> how it is written.
METRICS = {"mrr_at_10": "MRR@10", "ndcg_at_10": "nDCG@10", "recall_at_1": "Recall@1"}


@dataclass(frozen=True)
class Table:
    """What one evaluation found, ready to print.

    Attributes:
        title: the evaluation and its protocol in a line.
        columns: heads of the columns; the rows have as many cells.
        command: the command line that measured it; files by name, without their folders.
        scores: for machines: data set, metric, value.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    command: str
    scores: Sequence[tuple[str, str, float]]


def ancestors(work: WorkDirectory, reference: str, digest: str) -> list[Artifact]:
    """The artifact itself if the work directory has it as it was, then what it was made of, nearest first."""
    found: dict[str, Artifact] = {}
    waiting = [(reference, digest)]
    while waiting:
        reference, digest = waiting.pop(0)
        kind, _, name = reference.partition("/")
        artifact = work.find(kind, name) if kind in KINDS and reference not in found else None
        if artifact is not None and artifact.digest == digest:
            found[reference] = artifact
            waiting += artifact.inputs.items()
    return list(found.values())


def taught_by(work: WorkDirectory, reference: str, digest: str) -> str | None:
    """The teacher that a model was distilled from, or its nearest ancestor that was; None if none was."""
    lineage = ancestors(work, reference, digest)
    return next((str(a.facts["teacher"]) for a in lineage if a.facts.get("teacher")), None)


def measurements(work: WorkDirectory, reference: str, digest: str) -> list[Artifact]:
    """Evaluations of this very model, in the order of their names."""
    found = sorted(work.newest("evaluations"), key=lambda artifact: artifact.name)
    return [artifact for artifact in found if _is_of(artifact, reference, digest)]


def tables(work: WorkDirectory, measured: Sequence[Artifact], teachers: set[str]) -> list[Table]:
    """A table for each evaluation of a kind that is known here.

    An evaluation without `--compare` gets its second column from one of a teacher (by digest) by the same protocol
    on the same files.
    """
    found = []
    for artifact in measured:
        facts = artifact.facts
        other = facts.get("compare") or facts.get("against")
        beside = None
        if other is None:
            beside = next((a for a in work.newest("evaluations") if _same_work(a, artifact, teachers)), None)
            other = beside.facts["model"] if beside else None
        reader = {"sts": _sts, "retrieval": _retrieval, "bench": _bench}.get(str(facts.get("evaluation")))
        if reader is not None:
            found.append(reader(artifact, other, beside.facts if beside else None))
    return found


def _is_of(artifact: Artifact, reference: str, digest: str) -> bool:
    model = artifact.facts.get("model", {})
    return bool(model.get("reference") == reference and model.get("digest") == digest)


def _same_work(candidate: Artifact, artifact: Artifact, teachers: set[str]) -> bool:
    of_teacher = candidate.facts.get("model", {}).get("digest") in teachers
    same = candidate.facts.get("protocol") == artifact.facts.get("protocol") and _files(candidate) == _files(artifact)
    return of_teacher and same and candidate.facts.get("evaluation") == artifact.facts.get("evaluation")


def _files(artifact: Artifact) -> set[tuple[str, str]]:
    return {(r, digest) for r, digest in artifact.inputs.items() if is_data(r)}


def command_line(artifact: Artifact) -> str:
    """The command that made an artifact, as far as its manifest tells: options by name, files without their folders."""
    command = str(artifact.manifest["command"])
    words = ["sentcompress", command, *_data(command, artifact)]
    for name, value in artifact.parameters.items():
        if name in ("model", "compare", "against"):
            words += [f"--{name}", _without_folders(_name_of(str(value)))]
        elif name == "model_documents":
            words += ["--documents", _without_folders(_name_of(str(value)))]
        elif name in LISTS and not isinstance(value, str):
            words += [f"--{name}", ",".join(map(str, value))]
        elif name in TELLING and value is not None:
            words += [f"--{name.replace('_', '-')}", _without_folders(str(value))]
    return shell_line(words)


def _data(command: str, artifact: Artifact) -> list[str]:
    """The options that name the files which were read; where there are many, the folder that holds them all."""
    asked = artifact.parameters
    if command == "eval-retrieval" and "protocol" in asked:
        split = ["--split", str(asked["split"])] if asked.get("split") else []
        return [f"--{asked['protocol']}", str(asked["data"]), *split]
    option = "--sts" if command == "bench" and asked.get("preset") else FILE_OPTIONS.get(command)
    files = sorted(Path(r.removeprefix("file:")) for r in artifact.inputs if r.startswith("file:") and is_data(r))
    if option is None:
        return []
    if command == "eval-transfer":
        # Each task has a folder; the option names the one that holds them.
        files = [Path(os.path.commonpath([file.parents[1] for file in files]))]
    elif len(files) > MANY_FILES:
        files = [Path(os.path.commonpath(files))]
    # A data set of the hub stands as `hub:owner/name:split`, with its configuration before the split if it has one.
    sets = [r.removeprefix("hub:").rpartition(":")[0] for r in sorted(artifact.inputs) if r.startswith("hub:")]
    return [word for name in (*(file.name for file in files), *sets) for word in (option, name)]


def is_data(reference: str) -> bool:
    """Whether an input of an evaluation is data, and no model: vectors made elsewhere and graphs are files too."""
    kind = reference.partition("/")[0]
    outside = reference.startswith(("file:", "hub:")) and not reference.endswith((".npy", ".onnx"))
    return outside or kind == "sentences"


def _name_of(reference: str) -> str:
    """`students/x` -> `x`, `model:owner/x` -> `owner/x`."""
    kind, slash, name = reference.partition("/")
    return name if slash and kind in KINDS else reference.removeprefix("model:")


def _without_folders(name: str) -> str:
    """A folder by its own name; names of a hub as they are."""
    return Path(name).name if name.startswith("/") else name


def _sts(artifact: Artifact, other: Mapping[str, Any] | None, beside: Mapping[str, Any] | None) -> Table:
    facts = artifact.facts
    theirs = {entry["name"]: entry["model"] for entry in beside["sets"]} if beside else {}
    rows, scores = [], []
    for entry in facts["sets"]:
        ours = entry["model"]["spearman_cosine"]
        compared = entry.get("compare") or theirs.get(entry["name"])
        reference = compared["spearman_cosine"] if compared else None
        rows.append([entry["name"], f"{entry['pairs']:,}", *_beside(ours, reference, other)])
        scores.append((entry["name"], "spearman_cosine", round(ours, 2)))
    columns = ["set", "pairs", *_columns(facts, other)]
    protocol = facts["protocol"]
    title = f"STS, Spearman x 100 of the cosines ({protocol['split']} split, aggregate {protocol['aggregate']})"
    return Table(title, columns, rows, command_line(artifact), scores)


def _retrieval(artifact: Artifact, other: Mapping[str, Any] | None, beside: Mapping[str, Any] | None) -> Table:
    facts = artifact.facts
    theirs = {entry["index"]: entry["model"] for entry in beside["indexes"]} if beside else {}
    data = facts.get("dataset", {}).get("name", "question pairs")
    metric = facts.get("protocol", {}).get("main_score", "mrr_at_10")
    rows, scores = [], []
    for entry in facts["indexes"]:
        ours, compared = entry["model"], entry.get("compare") or theirs.get(entry["index"])
        reference = compared[metric] if compared else None
        rows.append([f"{METRICS[metric]} x 100, {entry['index']}", *_beside(ours[metric], reference, other)])
        size = [f"{ours['index_bytes']:,}", *([f"{compared['index_bytes']:,}", ""] if compared else [])]
        rows.append([f"index bytes, {entry['index']}", *size, *([""] * (3 - len(size)) if other else [])])
        scores.append((f"{data} ({entry['index']})", metric, round(ours[metric], 2)))
    title = f"Retrieval, {data}: {facts['documents']:,} documents, {facts['judged_queries']:,} queries"
    return Table(title, ["measure", *_columns(facts, other)], rows, command_line(artifact), scores)


def _bench(artifact: Artifact, other: Mapping[str, Any] | None, _: Mapping[str, Any] | None) -> Table:
    facts = artifact.facts
    names = {
        "sentences_per_second": "sentences per second",
        "latency_p50_milliseconds": "latency of one sentence, ms (p50)",
        "weight_bytes": "bytes of weights",
        "vector_bytes": "bytes of a vector (float32)",
    }
    rows = []
    for key, label in names.items():
        if isinstance(facts["model"].get(key), int | float):
            values = [facts["model"][key], *([other.get(key)] if other else [])]
            rows.append([label, *("" if v is None else figure(v, ",.4g" if v < 100 else ",.0f") for v in values)])
    columns = ["measure", facts["model"]["label"], *([other["label"]] if other else [])]
    return Table("Speed and size", columns, rows, command_line(artifact), [])


def _columns(facts: Mapping[str, Any], other: Mapping[str, Any] | None) -> list[str]:
    return [facts["model"]["label"], *([other["label"], "kept"] if other else [])]


def _beside(ours: float, reference: float | None, other: Mapping[str, Any] | None) -> list[str]:
    if other is None:
        return [figure(ours, ".2f")]
    if reference is None:
        return [figure(ours, ".2f"), "", ""]
    kept = f"{100 * ours / reference:.2f}%" if reference > 0 and math.isfinite(ours / reference) else NOT_DEFINED
    return [figure(ours, ".2f"), figure(reference, ".2f"), kept]
