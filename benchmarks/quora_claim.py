"""HPD's claim, redone: on Quora a 128-d student needs a third of its teacher's index and time, and loses little.

    python benchmarks/quora_claim.py DATA --work work-real [--student hpd-128]

One run measures the student and the full-width teacher in turn, with every kind of index: bytes, milliseconds for
1,000 queries, MRR@10. Further runs look for the smallest index over the student's vectors that loses less than 1% of
their MRR@10 under exact search: int8, product codes and signs, rescored in several ways. Runs that are fresh in the
work directory are skipped. Writes benchmarks/results/quora_claim.json and quora_claim.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from running import facts, machine, write_results

from sentcompress.evaluation.metrics import INDEX_BYTES, MRR, SEARCH_TIME
from sentcompress.evaluation.retrieval import EXACT
from sentcompress.evaluation.score import read_scores, select, value_of

METRIC, TIME = MRR, SEARCH_TIME
PAPER = "--nlist 1024 --nprobe 5"
TOGETHER = "flat,ivf,hnsw,sq8,fp16,pq,ivfpq,binary"
# Name of a run -> what it searches with, student alone. Codes find candidates, which the int8 vectors then rank.
SEARCHES = {
    "few": "--index pq,binary --candidates 20",
    "some": "--index pq,binary --candidates 50",
    "many": "--index pq,binary --candidates 200",
    "half": "--index pq,binary --candidates 100 --rescore float16",
    "short-codes": "--index pq --segments 16 --candidates 100",
    "plain-codes": "--index ivfpq --nlist 1 --nprobe 1 --segments 64",
    "more-probes": "--index ivf,ivfpq --nprobe 20",
}
MOST_LOST = 1.0


def rows(run: str, words: str, result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each index and model of a run; what the index lost is in percent of exact search with its vectors."""
    scores = read_scores(result)
    for entry in result["indexes"]:
        for role, settings in entry["settings"].items():
            index = entry["index"]
            (score,) = select(scores, METRIC, part=index, role=role)
            exact = value_of(scores, METRIC, part=EXACT, role=role)
            size, time = (value_of(scores, metric, part=index, role=role) for metric in (INDEX_BYTES, TIME))
            yield {
                "run": run,
                "command": words,
                "model": result[role]["label"],
                "dimension": result[role]["dimension"],
                "index": index,
                "settings": settings,
                "raw_vector_bytes": result[role]["raw_vector_bytes"],
                INDEX_BYTES: size,
                TIME: time,
                METRIC: score.value,
                "interval": score.interval,
                "exact": exact,
                "lost_percent": 100 * (exact - score.value) / exact,
            }


def best(found: Sequence[dict[str, Any]], student: str) -> dict[str, Any]:
    """The smallest index of the student that loses less than 1%."""
    kept = [row for row in found if row["model"] == student and row["lost_percent"] < MOST_LOST]
    return min(kept, key=lambda row: (row[INDEX_BYTES], row[TIME]))


def named(row: dict[str, Any]) -> str:
    """An index with its settings."""
    settings = ", ".join(f"{key} {value}" for key, value in row["settings"].items())
    return f"{row['index']} ({settings})" if settings else str(row["index"])


HEADER = """# Quora with a student of 128 dimensions

HPD's paper claims that a student with short vectors needs a third of its teacher's index and search time and loses
little. Here, `hpd-128` and its teacher are measured in turn with every index type (run `together`); further runs search
for the smallest index. `lost`: percent of the same model's MRR@10 with exact search.
`python benchmarks/quora_claim.py DATA --work WORK`

"""


def markdown(found: Sequence[dict[str, Any]], student: str) -> str:
    """The table of all runs, the claim in a sentence, and the best point in another."""
    heads = ["model", "index", "run", "d", "index, MB", "ms per 1,000 queries", "MRR@10 x 100", "95% interval", "lost"]
    lines = [f"| {' | '.join(heads)} |", "|---|---|---|" + "---:|" * (len(heads) - 3)]
    for row in found:
        low, high = row["interval"]
        cells = [
            *(row["model"], named(row), row["run"], str(row["dimension"])),
            *(f"{row[INDEX_BYTES] / 1e6:.2f}", f"{row[TIME]:.1f}", f"{row[METRIC]:.2f}"),
            *(f"{low:.2f} to {high:.2f}", f"{row['lost_percent']:.2f}%"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", claim(found, student), "", best_point(found, student)]) + "\n"


def claim(found: Sequence[dict[str, Any]], student: str) -> str:
    parts = []
    for kind in ("flat", "ivf"):
        both = [row for row in found if row["run"] == "together" and row["index"] == kind]
        ours = next(row for row in both if row["model"] == student)
        theirs = next(row for row in both if row["model"] != student)
        parts.append(
            f"{kind}: {theirs[INDEX_BYTES] / ours[INDEX_BYTES]:.2f} times smaller, "
            f"{theirs[TIME] / ours[TIME]:.2f} times faster, {100 * ours[METRIC] / theirs[METRIC]:.1f}% of the MRR@10"
        )
    return f"{student} beside the full-width teacher, in one run: {'; '.join(parts)}."


def best_point(found: Sequence[dict[str, Any]], student: str) -> str:
    chosen = best(found, student)
    teacher = next(row for row in found if row["index"] == "flat" and row["model"] != student)
    smaller, kept = teacher[INDEX_BYTES] / chosen[INDEX_BYTES], 100 * chosen[METRIC] / teacher[METRIC]
    return (
        f"The smallest index that loses less than {MOST_LOST:g}% of the student's exact MRR@10: {named(chosen)}, "
        f"{chosen[INDEX_BYTES] / 1e6:.2f} MB, {chosen[TIME]:.1f} ms per 1,000 queries, MRR@10 {chosen[METRIC]:.2f} "
        f"({chosen['lost_percent']:.2f}% lost): {smaller:.1f} times smaller than exact search over the teacher's "
        f"vectors, with {kept:.1f}% of its MRR@10."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("work-real"))
    parser.add_argument("--student", default="hpd-128")
    parser.add_argument("--pairs", type=Path, help="another file of question pairs than Quora's")
    options = parser.parse_args()
    pairs = options.pairs or options.data / "quora" / "quora.tsv.gz"
    searches = {"together": f"--compare teacher --index {TOGETHER} {PAPER}", **SEARCHES}
    found: list[dict[str, Any]] = []
    for run, words in searches.items():
        asked = f"eval-retrieval --pairs {pairs} --model {options.student} {words}"
        result = facts(f"{asked} --name quora-claim-{run}-{options.student}", options.work)
        student = result["model"]["label"]
        found += rows(run, f"sentcompress {asked}", result)
    table = HEADER + markdown(found, student)
    document = {"machine": machine(), "best": best(found, student), "rows": found}
    write_results("quora_claim", document, table)
    print(table)


if __name__ == "__main__":
    main()
