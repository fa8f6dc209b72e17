"""SimTDE's small students: a few million parameters, and both STS and retrieval kept.

    python benchmarks/simtde_small.py ../shared/data --work work-simtde [--only simtde-9m] [--measure-only]

Three sizes of the embedded teacher (22.7 million parameters) learn from `mixed_corpus.py`'s text, which has paragraphs
beside sentences and queries, and nothing of an STS set or of a retrieval collection:

simtde-9m      ELECTRA, tokens of 128 dimensions, the last 3 layers: 9.35 million parameters
simtde-5m      tokens of 64 dimensions, the last 2 layers: 5.56 million
simtde-2m      tokens of 64 dimensions, the 8,000 most frequent tokens, the last layer: 2.34 million
simtde-9m-own  simtde-9m, distilled on with the documents of the three collections (their queries and judgements are
               not read): what it gives to distil on the documents that will be searched

Each is scored on STS-B test and STS13, and by nDCG@10 with exact search on SciFact dev, msmarco_5k and Quora, beside
the teacher. What is fresh in the work directory is skipped. Writes benchmarks/results/simtde_small.json and .md.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proof import commands
from running import machine, sentcompress

from sentcompress.artifacts import WorkDirectory
from sentcompress.models.catalog import find_model

RESULTS = Path(__file__).parent / "results"
# Sentences as squared distances of unit vectors, and a token term of about an eighth of that; `relation` is what
# keeps the order of neighbours. Batches of 4,096 tokens hold 18 paragraphs or 256 short sentences.
SAME = (
    "--set normalise=true --set reduction=sum --set token_weight=0.002 --set relation=20 --max-length 256 "
    "--schedule cosine --dropout 0 --dtype bfloat16 --batch-size 256 --batch-tokens 4096 --eval-every 500"
)
MIXED = f"--sentences mixed --teacher-vectors mixed --epochs 2 --warmup-steps 300 {SAME}"
OWN = f"--sentences own --teacher-vectors own --epochs 2 --warmup-steps 50 {SAME}"
TRAIN = "distill --method simtde --student"
ROWS = {
    "simtde-9m": f"{TRAIN} teacher:3 --token-dim 128 --lr 5e-4 --max-steps 4500 {MIXED}",
    "simtde-5m": f"{TRAIN} teacher:2 --token-dim 64 --lr 7e-4 --max-steps 4000 {MIXED}",
    "simtde-2m": f"{TRAIN} teacher:1 --token-dim 64 --vocabulary 8000 --lr 1e-3 --max-steps 4500 {MIXED}",
    "simtde-9m-own": f"{TRAIN} simtde-9m --lr 2e-4 {OWN}",
}
COLLECTIONS = ("SciFact dev", "msmarco_5k", "Quora")


def own_documents(data: Path) -> Iterator[str]:
    """The documents of the three collections, and nothing else of them."""
    for name in ("scifact", "msmarco_5k"):
        with (data / "retrieval" / name / "corpus.jsonl").open(encoding="utf-8") as lines:
            for document in map(json.loads, lines):
                yield f"{document.get('title', '')} {document['text']}".strip()
    with gzip.open(data / "quora" / "quora.tsv.gz", "rt", encoding="utf-8", newline="") as lines:
        # The second question of a pair is what is searched.
        yield from (row["question2"] for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def prepare(name: str, data: Path, work: Path) -> None:
    """A sentence table with the teacher's vectors."""
    texts = work / f"{name}.txt"
    if not texts.exists() and name == "own":
        lines = dict.fromkeys(" ".join(text.split()) for text in own_documents(data))
        texts.write_text("\n".join(line for line in lines if line) + "\n", encoding="utf-8")
    elif not texts.exists():
        gather = Path(__file__).parent / "mixed_corpus.py"
        subprocess.run([sys.executable, str(gather), str(data), str(texts)], check=True)
    sentcompress(f"augment {texts} --wordnet 0 --back-translate 0 --name {name}", work)
    sentcompress(f"teacher-embed --sentences {name} --name {name} --store float16 --dtype bfloat16", work)


def measure(name: str, data: Path, work: Path) -> dict[str, Any]:
    """The results of a row: those of proof.py, so that what it has measured is not measured again."""
    sts, *retrieval = (
        sentcompress(words, work) for step in ("sts", "retrieval") for words in commands(step, name, data, work)
    )
    return {"sts": sts, **dict(zip(COLLECTIONS, retrieval, strict=True))}


def figures(name: str, found: dict[str, Any], role: str) -> dict[str, Any]:
    """One row of the table; `role` is "model", or "compare" for the teacher."""
    row: dict[str, Any] = {"model": name}
    row |= {entry["name"]: entry[role]["spearman_cosine"] for entry in found["sts"]["sets"]}
    row |= {f"{key} nDCG@10": found[key]["exact"][role]["ndcg_at_10"] for key in COLLECTIONS}
    row["Quora MRR@10"] = found["Quora"]["exact"][role]["mrr_at_10"]
    return row


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
    parser.add_argument("--work", type=Path, default=Path("work-simtde"))
    parser.add_argument("--only", default=",".join(ROWS), help="rows with commas between them")
    parser.add_argument("--measure-only", action="store_true", help="take the students as they are")
    options = parser.parse_args()
    data, work = options.data, options.work
    work.mkdir(parents=True, exist_ok=True)
    names, trained, measured = options.only.split(","), {}, {}
    for name in names:
        if not options.measure_only:
            prepare("own" if name.endswith("own") else "mixed", data, work)
            sentcompress(f"{ROWS[name]} --name {name}", work)
        trained[name] = json.loads((work / "students" / name / "manifest.json").read_text(encoding="utf-8"))
        measured[name] = measure(name, data, work)
    rows = [figures("teacher", measured[names[0]], "compare")]
    rows += [figures(name, found, "model") for name, found in measured.items()]
    parameters = {name: manifest["facts"]["parameters"] for name, manifest in trained.items()}
    parameters["teacher"] = find_model(WorkDirectory(work), "teacher").load().count_parameters()
    RESULTS.mkdir(exist_ok=True)
    training = {name: {"command": ROWS[name], "facts": manifest["facts"]} for name, manifest in trained.items()}
    document = {"machine": machine(), "training": training, "rows": rows}
    (RESULTS / "simtde_small.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "simtde_small.md").write_text(table(rows, parameters), encoding="utf-8")
    print(table(rows, parameters))


if __name__ == "__main__":
    main()
