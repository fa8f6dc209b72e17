"""Students by variants of the papers' methods, trained from all-MiniLM-L6-v2 on real text and scored beside it.

    python benchmarks/students.py DATA --work work-real [--only hpd-128,ckd] [--measure-only]

They have the teacher's last three layers:

hpd-128    HPD to 128 dimensions, on 300,000 short sentences (`method_corpus.py short`)
ckd        CKD, 384 dimensions, on the same sentences
ckd-128    ckd after a second stage on 17,400 NLI triplets, to 128 dimensions, with a distillation term kept
simtde-9m  SimTDE with a token table of width 128, 9.35 million parameters, on 279,000 texts, paragraphs and queries
           among them (`method_corpus.py mixed`)

None of the text is of an STS set or of a retrieval collection. Each student is scored on STS-B test and STS13, and with
exact search on SciFact dev, msmarco_5k and Quora. What is fresh in the work directory is skipped, so an interrupted run
goes on where it stopped. Writes benchmarks/results/students.json and .md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from method_corpus import gather_mixed, gather_short
from proof import INDEXES, commands
from running import facts, machine, read_results, sentcompress, write_results

from sentcompress.evaluation.metrics import MRR, NDCG, SPEARMAN
from sentcompress.evaluation.retrieval import EXACT
from sentcompress.evaluation.score import MEAN, read_scores, select, value_of
from sentcompress.models.catalog import find_model
from sentcompress.store import WorkDirectory

SHORT = "--sentences short --teacher-vectors short --schedule cosine --dropout 0 --dtype bfloat16 --lr 5e-4 --dev {dev}"
# Sentences as squared distances of unit vectors, and a token term of about an eighth of that; `relation` is what
# keeps the order of neighbours. Batches of 4,096 tokens hold 18 paragraphs or 256 short sentences.
LONG = (
    "--set normalise=true --set reduction=sum --set relation=20 --max-length 256 --schedule cosine --dropout 0 "
    "--dtype bfloat16 --batch-size 256 --batch-tokens 4096"
)
MIXED = f"--token-dim 128 --sentences mixed --teacher-vectors mixed {LONG}"
VECTORS = "--name {} --store float16 --dtype bfloat16"
STUDENTS = {
    "hpd-128": f"distill --method hpd --student teacher:3 {SHORT} --epochs 2 --warmup-steps 300",
    "ckd": (
        f"distill --method ckd --student teacher:3 --set head=linear {SHORT} --epochs 1 --warmup-steps 100 "
        "--eval-every 200"
    ),
    "ckd-128": (
        "finetune --model ckd --sentences nli --teacher-vectors short --dim 128 --keep 20 --lr 1e-4 --epochs 2 "
        "--batch-size 128 --dropout 0 --dtype bfloat16 --eval-every 40 --dev {dev}"
    ),
    "simtde-9m": (
        "distill --method simtde --student teacher:3 --lr 5e-4 --max-steps 4500 --warmup-steps 300 --epochs 2 "
        f"--eval-every 500 --set token_weight=0.002 {MIXED}"
    ),
}
COLLECTIONS = ("SciFact dev", "msmarco_5k", "Quora")


def gather(name: str, data: Path, work: Path) -> None:
    """The sentence table of a training file."""
    file = work / f"{name}.txt"
    if not file.exists():
        texts = gather_short(data, seed=0) if name == "short" else gather_mixed(data, seed=0)
        file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    sentcompress(f"augment {file} --wordnet 0 --back-translate 0 --name {name}", work)


def prepare(command: str, data: Path, work: Path) -> None:
    """What a student's command names: sentence tables, the teacher's vectors, the projection."""
    for name in ("short", "mixed"):
        if f"--teacher-vectors {name}" in command:
            gather(name, data, work)
            sentcompress(f"teacher-embed --sentences {name} {VECTORS.format(name)}", work)
    if "--sentences nli" in command:
        triplets = data / "nli" / "triplets_allsplits_noSTS.train.tsv.gz"
        sentcompress(f"augment {triplets} --wordnet 0 --back-translate 0 --name nli", work)
    if "--method hpd" in command:
        sentcompress("fit-pca --dim 128 --teacher-vectors short", work)


def measure(name: str, data: Path, work: Path) -> dict[str, Any]:
    """The results of a row: by the commands of proof.py, with exact search alone."""
    sts, *retrieval = (
        facts(words.replace(INDEXES, "flat"), work)
        for step in ("sts", "retrieval")
        for words in commands(step, name, data, work)
    )
    return {"sts": sts, **dict(zip(COLLECTIONS, retrieval, strict=True))}


def figures(name: str, found: dict[str, Any], role: str) -> dict[str, Any]:
    """One row of the table; `role` is "model", or "compare" for the teacher."""
    row: dict[str, Any] = {"model": name}
    sts = select(read_scores(found["sts"]), SPEARMAN, part="", role=role)
    row |= {score.data: score.value for score in sts if score.data != MEAN}
    searched = {key: read_scores(found[key]) for key in COLLECTIONS}
    row |= {f"{key} nDCG@10": value_of(of, NDCG, part=EXACT, role=role) for key, of in searched.items()}
    row["Quora MRR@10"] = value_of(searched["Quora"], MRR, part=EXACT, role=role)
    return row


HEADER = """# Students of the papers' methods

Students of all-MiniLM-L6-v2. STS: Spearman x 100, aggregate `all`; retrieval: x 100, exact search; in brackets: percent
of the teacher's score. `python benchmarks/students.py` trains and measures them; its head says how they differ.

"""


def table(rows: list[dict[str, Any]], parameters: dict[str, int]) -> str:
    """Markdown; students carry the share of the teacher's score that they keep."""
    teacher, scored = rows[0], [key for key in rows[0] if key != "model"]
    lines = [f"| model | parameters | {' | '.join(scored)} |", "|---|---:|" + "---:|" * len(scored)]
    for row in rows:
        kept = ["" if row is teacher else f" ({100 * row[key] / teacher[key]:.1f}%)" for key in scored]
        cells = [f"{row[key]:.2f}{share}" for key, share in zip(scored, kept, strict=True)]
        lines.append(f"| {row['model']} | {parameters[row['model']]:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("work-real"))
    parser.add_argument(
        "--only", default=",".join(STUDENTS), help="students with commas between them; rows of others stay as they are"
    )
    parser.add_argument("--measure-only", action="store_true", help="take the students as they are")
    options = parser.parse_args()
    data, work = options.data, options.work
    work.mkdir(parents=True, exist_ok=True)
    trained, measured = {}, {}
    for name in options.only.split(","):
        if not options.measure_only:
            command = STUDENTS[name].format(dev=data / "sts" / "stsb" / "dev.tsv")
            prepare(command, data, work)
            sentcompress(f"{command} --name {name}", work)
        trained[name] = json.loads((work / "students" / name / "manifest.json").read_text(encoding="utf-8"))
        measured[name] = measure(name, data, work)
    before = read_results("students", {"training": {}, "rows": []})
    training, scores = before["training"], {row["model"]: row for row in before["rows"]}
    for name, manifest in trained.items():
        training[name] = {key: manifest[key] for key in ("parameters", "facts")}
        scores[name] = figures(name, measured[name], "model")
    known = [name for name in STUDENTS if name in training]
    rows = [figures("teacher", next(iter(measured.values())), "compare"), *(scores[name] for name in known)]
    document = {"machine": machine(), "training": {name: training[name] for name in known}, "rows": rows}
    parameters = {name: training[name]["facts"]["parameters"] for name in known}
    parameters["teacher"] = find_model(WorkDirectory(work), "embedded").load().count_parameters()
    write_results("students", document, HEADER + table(rows, parameters))
    print(table(rows, parameters))


if __name__ == "__main__":
    main()
