"""Compress all-MiniLM-L6-v2 on 300,000 real sentences with HPD and CKD, and score the students beside it.

HPD's student has 128 dimensions; CKD's gets as many in its second stage, on 17,400 NLI triplets, where a distillation
term is kept.

    python benchmarks/real_run.py ../shared/data --work work-real

Runs the commands that a user would run, one after the other; what is fresh in the work directory is skipped, so an
interrupted run goes on where it stopped. Writes benchmarks/results/real_run.json and real_run.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from real_corpus import as_simcse
from running import machine, sentcompress

RESULTS = Path(__file__).parent / "results"
TRAINING = "--student teacher:3 --lr 5e-4 --schedule cosine --dropout 0 --dtype bfloat16"
STUDENTS = {
    "hpd-teacher-3-128": f"distill --method hpd {TRAINING} --epochs 2 --warmup-steps 300",
    "ckd-teacher-3": f"distill --method ckd {TRAINING} --epochs 1 --warmup-steps 100 --eval-every 200",
    "ckd-128": (
        "finetune --model ckd-teacher-3 --sentences nli --dim 128 --keep 20 --lr 1e-4 --epochs 2 --batch-size 128 "
        "--dropout 0 --dtype bfloat16 --eval-every 40"
    ),
}


def train(data: Path, work: Path) -> dict[str, str]:
    """The chain up to the students; the command of each of them."""
    sentences = work / "sentences.txt"
    if not sentences.exists():
        gather = Path(__file__).parent / "real_corpus.py"
        subprocess.run([sys.executable, str(gather), str(data), str(sentences)], check=True)
    dev = data / "sts" / "stsb" / "dev.tsv"
    triplets = work / "triplets.csv"
    if not triplets.exists():
        triplets.write_text(as_simcse(data / "nli" / "triplets_allsplits_noSTS.train.tsv.gz"), encoding="utf-8")
    sentcompress(f"augment {sentences} --wordnet 0 --back-translate 0", work)
    sentcompress(f"augment {triplets} --wordnet 0 --back-translate 0 --name nli", work)
    sentcompress("teacher-embed --sentences main --store float16 --dtype bfloat16", work)
    sentcompress("fit-pca --dim 128", work)
    trained = {name: f"{words} --name {name} --dev {dev}" for name, words in STUDENTS.items()}
    for words in trained.values():
        sentcompress(words, work)
    return {name: f"sentcompress {words}" for name, words in trained.items()}


def trained_before(work: Path) -> dict[str, str]:
    """What the students of a work directory were trained with, as their manifests record it."""
    recorded = {name: json.loads((work / "students" / name / "manifest.json").read_text()) for name in STUDENTS}
    return {name: json.dumps(manifest["parameters"], sort_keys=True) for name, manifest in recorded.items()}


def measure(name: str, data: Path, work: Path) -> dict[str, Any]:
    """STS and retrieval of a student beside its teacher, and its speed."""
    sts = sentcompress(f"eval-sts --sts {data / 'sts'} --model {name} --compare teacher", work)
    quora = data / "quora" / "quora.tsv.gz"
    retrieval = sentcompress(f"eval-retrieval --pairs {quora} --model {name} --compare teacher", work)
    bench = sentcompress(f"bench --model {name} --against teacher", work)
    return {"sts": sts, "retrieval": retrieval, "bench": bench}


def figures(name: str, results: dict[str, Any], role: str) -> dict[str, Any]:
    """One row of the table; `role` is "model" for the student, "compare" for the teacher."""
    sts, retrieval, bench = (results[part] for part in ("sts", "retrieval", "bench"))
    scores = {entry["name"]: entry[role]["spearman_cosine"] for entry in sts["sets"]}
    indexes = {entry["index"]: entry[role] for entry in retrieval["indexes"]}
    speed = bench["model" if role == "model" else "against"]
    return {
        "model": name,
        "parameters": speed["parameters"],
        "dimension": speed["dimension"],
        **{key: round(value, 2) for key, value in scores.items()},
        "Quora MRR@10 flat": round(indexes["flat"]["mrr_at_10"], 2),
        "Quora MRR@10 ivf": round(indexes["ivf"]["mrr_at_10"], 2),
        "index bytes": indexes["flat"]["index_bytes"],
        "ms per 1,000 queries": indexes["flat"]["milliseconds_per_1000_queries"],
        "sentences/s": speed["sentences_per_second"],
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown; scores of students carry the share of the teacher's that they keep."""
    teacher = rows[0]
    scored = [key for key in teacher if key.startswith(("STS", "Quora"))]
    lines = ["| " + " | ".join(teacher) + " |", "|" + "---|" * len(teacher)]
    for row in rows:
        shown = [f"{value:,}" if isinstance(value, int) else str(value) for value in row.values()]
        if row is not teacher:
            shown = [
                f"{text} ({100 * row[key] / teacher[key]:.1f}%)" if key in scored else text
                for key, text in zip(row, shown, strict=True)
            ]
        lines.append("| " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("work-real"))
    parser.add_argument(
        "--measure-only", action="store_true", help="take the students as they are in the work directory"
    )
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    commands = trained_before(options.work) if options.measure_only else train(options.data, options.work)
    measured = {name: measure(name, options.data, options.work) for name in STUDENTS}
    first = next(iter(measured.values()))
    rows = [figures("all-MiniLM-L6-v2 (teacher)", first, "compare")]
    rows += [figures(name, results, "model") for name, results in measured.items()]
    RESULTS.mkdir(exist_ok=True)
    document = {"machine": machine(), "training": commands, "rows": rows, "evaluations": measured}
    (RESULTS / "real_run.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "real_run.md").write_text(table(rows), encoding="utf-8")
    print(table(rows))


if __name__ == "__main__":
    main()
