"""Every method on one page: the same 200,000 sentences, the same student, the same number of sentences seen, one seed.

    python benchmarks/all_methods.py DATA --work work-methods [--only hpd,ckd] [--jobs 2]

The student is `teacher:3` of the embedded teacher. Learning rate, schedule, warm-up, dropout and batch are the same for
all, so that what differs is the objective; switches that a method needs with this teacher (whose vectors have length
one) stand beside it below. `simcse` and `ibkd-2` are stage 2: one pass over the NLI triplets, from the student of ckd
and of ibkd. `--jobs` methods train at once, each on its share of the cores. Interrupted, it goes on where it stopped.
Writes benchmarks/results/all_methods.json and .md.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from method_corpus import gather_short
from running import facts, machine, sentcompress, write_results

from sentcompress.evaluation.metrics import NDCG, SPEARMAN
from sentcompress.evaluation.retrieval import EXACT
from sentcompress.evaluation.score import MEAN, read_scores, select, value_of

SENTENCES = 200_000
SAME = (
    "--student teacher:3 --lr 5e-4 --schedule cosine --warmup-steps 100 --dropout 0 --dtype bfloat16 --epochs 1 "
    "--batch-size 256 --batch-tokens 16384 --eval-every 200"
)
# What each method is told beside that.
METHODS = {
    "hpd": "--dim 128",
    "mse": "",
    "ckd": "--set head=linear",
    "ibkd": "--set normalise=true",
    "simtde": "--set normalise=true --set token_weight=0.002",
    "crd": "",
    "pkd": "",
    "metakd": "",
    "lrn-kd": "--set normalise=true",
    "lmx-kd": "--set normalise=true",
}
STAGE_2 = {
    "simcse": "finetune --objective simcse --model ckd",
    "ibkd-2": "finetune --objective ibkd --model ibkd --set normalise=true",
}
SEARCHED = "msmarco_5k nDCG@10"
SCORES = ("STS13", "STS-B", SEARCHED)
STAGE_2_SAME = "--sentences nli --lr 5e-5 --epochs 1 --batch-size 128 --dropout 0 --dtype bfloat16 --eval-every 50"


def prepare(data: Path, work: Path) -> None:
    """Sentences, triplets, the teacher's vectors and three of its layers, the projection."""
    sentences = work / "sentences.txt"
    if not sentences.exists():
        texts = gather_short(data, seed=0)[:SENTENCES]
        sentences.write_text("\n".join(texts) + "\n", encoding="utf-8")
    triplets = data / "nli" / "triplets_allsplits_noSTS.train.tsv.gz"
    sentcompress(f"augment {sentences} --wordnet 0 --back-translate 0", work)
    sentcompress(f"augment {triplets} --wordnet 0 --back-translate 0 --name nli", work)
    sentcompress("teacher-embed --sentences main --layers 2,4,6 --store float16 --dtype bfloat16", work)
    sentcompress("fit-pca --dim 128", work)


def measure(name: str, command: str, data: Path, work: Path, jobs: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Train and score: the row of the method, and the one of its teacher."""
    dev = data / "sts" / "stsb" / "dev.tsv"
    trained = facts(f"{command} --name {name} --dev {dev}", work, jobs)
    sts = facts(f"eval-sts --sts {data / 'sts'} --model {name} --compare teacher", work, jobs)
    searched = f"eval-retrieval --collection {data / 'retrieval' / 'msmarco_5k'} --index flat"
    found = facts(f"{searched} --model {name} --compare teacher", work, jobs)

    def scores(role: str) -> dict[str, float]:
        sets = select(read_scores(sts), SPEARMAN, part="", role=role)
        values = {score.data: score.value for score in sets if score.data != MEAN}
        values[SEARCHED] = value_of(read_scores(found), NDCG, part=EXACT, role=role)
        return {key: round(value, 2) for key, value in values.items()}

    row = {
        "method": name,
        **scores("model"),
        "sentences/s": trained["sentences_per_second"],
        "sentences seen": trained["sentences_seen"],
        "dimensions": trained["dimension"],
        "peak GB": round(trained["peak_memory_bytes"] / 1e9, 1),
    }
    return row, {"method": "teacher", **scores("compare")}


def table(rows: list[dict[str, Any]]) -> str:
    columns = list(rows[-1])
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        values = [row.get(column, "") for column in columns]
        shown = [_shown(column, value) for column, value in zip(columns, values, strict=True)]
        lines.append("| " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def _shown(column: str, value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.2f}" if isinstance(value, float) and column in SCORES else str(value)


def write(rows: list[dict[str, Any]], commands: dict[str, str], jobs: int) -> None:
    document = {"machine": machine(), "methods at once": jobs, "commands": commands, "rows": rows}
    write_results("all_methods", document, table(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("work-methods"))
    parser.add_argument("--only", help="methods with commas between them")
    parser.add_argument("--jobs", type=int, default=1, help="methods that train at once")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    commands = {name: f"distill --method {name} {SAME} {own}" for name, own in METHODS.items()}
    commands |= {name: f"{words} {STAGE_2_SAME}" for name, words in STAGE_2.items()}
    wanted = options.only.split(",") if options.only else list(commands)
    prepare(options.data, options.work)
    rows: list[dict[str, Any]] = []
    # Stage 2 begins from students of stage 1.
    for stage in (METHODS, STAGE_2):
        chosen = [name for name in wanted if name in stage]
        with ThreadPoolExecutor(options.jobs) as pool:
            for row, teacher in pool.map(
                lambda name: measure(name, commands[name], options.data, options.work, options.jobs), chosen
            ):
                rows += [row] if rows else [teacher, row]
                write(rows, commands, options.jobs)
    print(table(rows))


if __name__ == "__main__":
    main()
