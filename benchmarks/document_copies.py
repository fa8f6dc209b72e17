"""Do WordNet and back-translated copies of documents help a student that is trained for the same time?

    python benchmarks/document_copies.py ../shared/data --work work-copies [--minutes 8] [--sets SciFact]

For each collection, one student (the embedded teacher's last three layers, `lrn-kd`, unit vectors) is trained on its
passages alone, with a WordNet copy of each, and with a back-translated copy beside that, as `augment` makes them. All
train for the same minutes with the same seed, and are compared by search fidelity on held-out documents. The teacher
needs time for the copies; a student of the passages alone that trains for this time, too, is the last row. Judged
queries are not used: this sets a default of `augment`. Back-translation is apertium's. A stage that is finished is
skipped. Writes benchmarks/results/document_copies.json and .md.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from running import facts, machine, write_results

from sentcompress.evaluation.metrics import SEARCH_FIDELITY
from sentcompress.evaluation.score import read_scores, select

COPIES = {
    "none": "--wordnet 0 --back-translate 0",
    "WordNet": "--wordnet 1 --back-translate 0",
    "WordNet, back-translation": "--wordnet 1 --back-translate 1 --translator apertium",
}


def one_set(corpus: Path, work: Path, minutes: float) -> list[dict[str, Any]]:
    """A row for each kind of copies, and one for passages alone in the time that WordNet copies take as well."""
    documents = facts(f"split-documents {corpus} --name docs", work)
    rows = []
    for number, (copies, options) in enumerate(COPIES.items()):
        name = f"copies-{number}"
        texts = facts(f"augment documents/docs {options} --name {name}", work)
        vectors = facts(f"teacher-embed --sentences {name} --name {name} --store float16", work)
        embedding = {
            "copies": copies,
            "passages": documents["passages"],
            "texts": texts["rows"],
            "embedding_seconds": vectors["rows"] / vectors["sentences_per_second"],
        }
        rows.append({**embedding, **trained(name, name, minutes, work)})
    alone, copied = rows[:2]
    longer = round(minutes + (copied["embedding_seconds"] - alone["embedding_seconds"]) / 60, 1)
    return [*rows, {**alone, **trained("copies-0-longer", "copies-0", longer, work)}]


def trained(name: str, sentences: str, minutes: float, work: Path) -> dict[str, Any]:
    """A student of those sentences after so many minutes."""
    facts_of = facts(
        f"distill --student teacher:3 --method lrn-kd --set normalise=true --lr 5e-4 --schedule cosine --ema 0.99 "
        f"--epochs 1000 --max-minutes {minutes} --batch-tokens 4096 --max-length 256 --sentences {sentences} "
        f"--teacher-vectors {sentences} --dev documents/docs --seed 0 --name {name}",
        work,
    )
    found = facts(f"eval-search --model {name} --documents docs --part test --name {name}", work)
    score = select(read_scores(found), SEARCH_FIDELITY)[0]
    return {"minutes": minutes, "steps": facts_of["steps"], "fidelity": score.value, "interval": score.interval}


def markdown(rows: list[dict[str, Any]], minutes: float) -> str:
    """The table."""
    lines = [
        "# Copies of documents",
        "",
        "One student (`teacher:3`, `lrn-kd`) trained on a collection's passages, titles and queries, without and with",
        "copies, for the same time; and without copies for as much longer as the teacher needs for WordNet copies.",
        "Search fidelity on queries of test, made from held-out documents.",
        f"`python benchmarks/document_copies.py DATA --work WORK --minutes {minutes:g}`.",
        f"Machine: {machine()['processor']}, {machine()['cores']} cores.",
        "",
        "| collection | copies | texts | teacher, s | training, min | steps | search fidelity |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['collection']} | {row['copies']} | {row['texts']:,} | {row['embedding_seconds']:.0f} | "
        f"{row['minutes']:g} | {row['steps']:,} | "
        f"{row['fidelity']:.1f} ({row['interval'][0]:.1f} to {row['interval'][1]:.1f}) |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with retrieval/scifact and retrieval/msmarco_5k")
    parser.add_argument("--work", type=Path, default=Path("work-copies"))
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--sets", default="scifact,msmarco_5k", help="folders of retrieval/, and files of passages")
    asked = parser.parse_args()
    rows = []
    for name in asked.sets.split(","):
        corpus = Path(name) if Path(name).is_file() else asked.data / "retrieval" / name / "corpus.jsonl"
        found = one_set(corpus.resolve(), asked.work / corpus.parent.name, asked.minutes)
        rows += [{"collection": corpus.parent.name, **row} for row in found]
        document = {"machine": machine(), "minutes": asked.minutes, "rows": rows}
        write_results("document_copies", document, markdown(rows, asked.minutes))
    print(markdown(rows, asked.minutes))


if __name__ == "__main__":
    main()
