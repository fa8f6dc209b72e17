"""What others found to help, tried on a small student: each try sees the same number of tokens.

    python benchmarks/general_corpus.py DATA corpus
    python benchmarks/tries.py corpus --work work --sources work-sources [--steps 1200] [--only base,states]

Each try trains a student of about 2.4 million parameters from the embedded teacher's layers, on the teacher's vectors
of TEXT_WORDS words, and differs from `base` in what its row says. The tries whose names begin with `text-` have texts
of their own, of as many words. Decided by search fidelity on held-out documents of sources: one that no text is from,
and some that are in it. No reported set is looked at. What is fresh in the work directories is skipped, so an
interrupted run resumes. Writes benchmarks/results/tries.json and .md, or into `--results`.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from running import RESULTS, facts, machine, read_results, sentcompress, write_results
from sources import ENDING, searched, split

TEXT = ".txt.gz"
TEACHER = "embedded"
UNSEEN, SEEN = ("law",), ("books", "commands", "medicine", "titles")
# Families of queries and titles, and of definitions.
QUERIES = ("questions", "titles", "products", "prompts")
DEFINITIONS = ("dictionary", "wordnet", "biology", "computing")
TEXT_WORDS = 1_500_000
# Queries are made from this share of the longer texts, as in the recipes of the published students.
QUERIES_PER_TEXT = 0.5
# Of `base`; a try replaces some of them.
SHAPE = {
    "student": "teacher:1",
    "token-dim": 96,
    "vocabulary": 16_000,
    "character-count": 20,
    "feed-forward": 256,
    "passes": 3,
    "start": "sentences",
}
TRAINING = {
    "method": "simtde",
    "lr": 8e-4,
    "warmup-steps": 100,
    "schedule": "cosine",
    "dropout": 0,
    "batch-size": 64,
    "batch-tokens": 2048,
    "max-length": 256,
}
LOSS = {"normalise": "true", "reduction": "sum", "alpha": 0, "relation": 20}


@dataclass(frozen=True)
class Part:
    """A run of `distill`: its share of the steps of `base`, and options that differ from those of `base`."""

    share: float = 1.0
    options: dict[str, Any] = field(default_factory=dict)
    loss: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Try:
    """One row. Parts follow one another, each from the student of the one before.

    With `averaged`, they all begin at the start, and the mean of their weights is the student.

    Attributes:
        text: chooses the families of a text of its own.
    """

    name: str
    about: str
    parts: tuple[Part, ...] = (Part(),)
    averaged: bool = False
    text: Callable[[str], bool] | None = None


TRIES = (
    Try("base", "batches of 64 texts or 2,048 tokens, `relation` 20, falling rate"),
    Try("seed", "`base` with another seed", (Part(options={"seed": 1}),)),
    Try("vectors", "no `relation`: squared distance to the unit vector alone", (Part(loss={"relation": 0}),)),
    Try(
        "small-batches",
        "batches of 32 texts or 1,024 tokens, twice the steps",
        (Part(2, {"batch-size": 32, "batch-tokens": 1024}),),
    ),
    Try(
        "large-batches",
        "batches of 256 texts or 8,192 tokens, a quarter of the steps",
        (Part(0.25, {"batch-size": 256, "batch-tokens": 8192}),),
    ),
    Try("cycles", "three cycles of falling rate, as in LEAF", (Part(1 / 3),) * 3),
    Try(
        "leaf",
        "LEAF's three together: `vectors`, `small-batches`, `cycles`",
        (Part(2 / 3, {"batch-size": 32, "batch-tokens": 1024}, {"relation": 0}),) * 3,
    ),
    Try(
        "vectors-first",
        "half of the steps without `relation`, then with it",
        (Part(0.5, loss={"relation": 0}), Part(0.5)),
    ),
    Try("states", "hidden states as a target (0.05)", (Part(loss={"states": 0.05}),)),
    Try(
        "averaged",
        "mean of two runs at a constant rate, half of the steps each",
        (Part(0.5, {"schedule": "constant"}), Part(0.5, {"schedule": "constant", "seed": 1})),
        averaged=True,
    ),
    Try("ema", "constant rate, `--ema 0.998`", (Part(options={"schedule": "constant", "ema": 0.998}),)),
    Try(
        "vocabulary",
        "22,000 tokens of width 70 (16,000 of 96)",
        (Part(options={"vocabulary": 22_000, "token-dim": 70}),),
    ),
    Try(
        "thin-layers",
        "two layers of 64 neurons, twice, 12,000 tokens (one of 256, three times)",
        (Part(options={"student": "teacher:2", "feed-forward": 64, "passes": 2, "vocabulary": 12_000}),),
    ),
    Try("rate", "half the learning rate", (Part(options={"lr": 4e-4}),)),
    Try("relation", "`relation` 60", (Part(loss={"relation": 60}),)),
    Try("text-queries", "text of queries and titles alone", text=lambda family: family in QUERIES),
    Try("text-documents", "text without queries and titles", text=lambda family: family not in QUERIES),
    Try(
        "text-no-definitions",
        "text without definitions of words",
        text=lambda family: family not in DEFINITIONS,
    ),
)


def line(part: Part, student: str | None, steps: int, vectors: str, name: str) -> str:
    """The command of a part, from the start or from a student."""
    options = {**SHAPE, **TRAINING, **part.options}
    if student:
        options = {key: value for key, value in options.items() if key not in SHAPE} | {"student": student}
    count = max(1, round(steps * part.share))
    # More epochs than could be needed: the schedule ends with the steps.
    options |= {"teacher-vectors": vectors, "max-steps": count, "epochs": 100, "eval-every": count, "name": name}
    words = " ".join(f"--{key} {value}" for key, value in options.items())
    return f"distill {words} " + " ".join(f"--set {key}={value}" for key, value in {**LOSS, **part.loss}.items())


def vectors_of(one: Try, corpus: Path, work: Path) -> str:
    """The teacher's vectors of the text of a try."""
    name = f"try-{one.name}" if one.text else "tries"
    files = {path.name.removesuffix(TEXT): shlex.quote(str(path)) for path in sorted(corpus.glob(f"*{TEXT}"))}
    chosen = [file for family, file in files.items() if family not in UNSEEN and (not one.text or one.text(family))]
    size = f"--words {TEXT_WORDS} --queries-per-text {QUERIES_PER_TEXT} --wordnet 0 --back-translate 0"
    sentcompress(f"augment {' '.join(chosen)} {size} --name {name}", work)
    sentcompress(f"teacher-embed --teacher {TEACHER} --sentences {name} --store float16 --name {name}", work)
    return name


def trained(one: Try, steps: int, vectors: str, work: Path) -> dict[str, Any]:
    """Make the student `try-NAME`; its size, and the mean cosine to held-out texts of the mix."""
    name, student, found = f"try-{one.name}", None, {}
    names = [f"{name}-{number}" if len(one.parts) > 1 else name for number in range(1, len(one.parts) + 1)]
    if len(one.parts) > 1 and not one.averaged:
        names[-1] = name
    for part, called in zip(one.parts, names, strict=True):
        found = facts(line(part, student, steps, vectors, called), work)
        student = None if one.averaged else called
    if one.averaged:
        sentcompress(f"average {' '.join(names)} --name {name}", work)
    return {"parameters": found["parameters"], "dev": None if one.averaged else found["dev"]}


def measured(one: Try, corpus: Path, work: Path, sources: Path) -> dict[str, float]:
    """Search fidelity of a student on each family."""
    # Evaluations are called by the folder's name.
    model = sources / "models" / f"try-{one.name}"
    shutil.rmtree(model, ignore_errors=True)
    shutil.copytree(work / "students" / f"try-{one.name}" / "model", model)
    found = {}
    for family in (*UNSEEN, *SEEN):
        documents = split(corpus / "held-out" / f"{family}{ENDING}", family, sources)
        found[family] = searched(documents, str(model), TEACHER, sources)["fidelity"]
    return found


def markdown(rows: dict[str, dict[str, Any]], facts: dict[str, Any]) -> str:
    """The table."""
    lines = [
        "# Tries on a small student",
        "",
        f"Each sees as many tokens as {facts['steps']:,} steps of `base` ({facts['machine']['processor']}). Search "
        f"fidelity to the teacher on held-out documents: of {', '.join(UNSEEN)}, which no training text is from, and "
        f"the mean of {', '.join(SEEN)}, which were trained on. One run each; `seed` shows how far two runs differ. "
        "The held-out cosine is on each try's own text.",
        "Command: `python benchmarks/tries.py CORPUS --work WORK --sources SOURCES`.",
        "",
        "| try | what differs | parameters | held-out cosine | unseen source | trained sources |",
        "|---|---|---:|---:|---:|---:|",
    ]
    about = {one.name: one.about for one in TRIES}
    for name, row in rows.items():
        dev = "" if row["dev"] is None else f"{row['dev']:.2f}"
        unseen, seen = (sum(row["fidelity"][one] for one in part) / len(part) for part in (UNSEEN, SEEN))
        millions = row["parameters"] / 1e6
        lines.append(f"| `{name}` | {about[name]} | {millions:.2f}M | {dev} | {unseen:.1f} | {seen:.1f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="the folder that general_corpus.py wrote")
    parser.add_argument("--work", type=Path, required=True, help="work directory of the students")
    parser.add_argument("--sources", type=Path, required=True, help="work directory of sources.py")
    parser.add_argument("--steps", type=int, default=1200, help="of `base`")
    parser.add_argument("--only", help="tries, separated by commas; default: all")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    asked = parser.parse_args()
    chosen = asked.only.split(",") if asked.only else [one.name for one in TRIES]
    if unknown := set(chosen) - {one.name for one in TRIES}:
        parser.error(f"no such try: {', '.join(sorted(unknown))}")
    document = read_results("tries", {"rows": {}}, asked.results)
    if document.get("steps", asked.steps) != asked.steps:
        parser.error(f"{asked.results} has tries of {document['steps']} steps: use as many, or another --results")
    for one in TRIES:
        if one.name not in chosen:
            continue
        row = trained(one, asked.steps, vectors_of(one, asked.corpus, asked.work), asked.work)
        row["fidelity"] = measured(one, asked.corpus, asked.work, asked.sources)
        document |= {"steps": asked.steps, "machine": machine()}
        document["rows"][one.name] = row
        write_results("tries", document, markdown(document["rows"], document), asked.results)
    print(markdown(document["rows"], document))


if __name__ == "__main__":
    main()
