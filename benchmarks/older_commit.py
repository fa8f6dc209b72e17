"""Is this tree slower than an older commit? Both train and embed the same sentences, in turns.

    python benchmarks/older_commit.py COMMIT [--rounds 5] [--only "distill, ckd"]

Four commands, run by the code of a git worktree of that commit and by the code of this one, one after the other in each
round: `teacher-embed`, `distill` with ckd and with simtde, and `finetune`, on data/nli.jsonl with the embedded teacher
and students of its last three layers. Both use the installed libraries. The speed is what the log of a run or the facts
of an artifact say, without the time to start Python.
Set OMP_NUM_THREADS to choose the number of threads. Writes benchmarks/results/older_commit.json and .md.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from running import machine, write_results

ROOT = Path(__file__).resolve().parents[1]
NUMBERS = "--max-steps 60 --eval-every 1000 --dtype float32"
TRAINING = f"--student teacher:3 --sentences text --teacher-vectors text --batch-size 64 {NUMBERS}"
WORKS = {
    "teacher-embed": "teacher-embed --teacher embedded --sentences text --name speed --dtype float32",
    "distill, ckd": f"distill --method ckd {TRAINING} --name speed-ckd",
    "distill, simtde": f"distill --method simtde {TRAINING} --name speed-simtde",
    "finetune": f"finetune --model embedded --sentences text --batch-size 16 {NUMBERS} --name speed-finetune",
}


def run(tree: Path, work: Path, words: str) -> dict[str, Any]:
    """The JSON document of a command that the code of `tree` runs."""
    command = [sys.executable, "-m", "sentcompress", *shlex.split(words), "--work", str(work), "--json", "--quiet"]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=tree, env=environment)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def speed(tree: Path, work: Path, words: str) -> float:
    """Sentences (triplets) per second of one command."""
    document = run(tree, work, f"{words} --force")
    if (log := Path(document["path"]) / "log.jsonl").is_file() and words.startswith(("distill", "finetune")):
        entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        speeds = [entry["sentences_per_second"] for entry in entries if "sentences_per_second" in entry]
        return float(statistics.median(speeds))
    return float(document["facts"]["sentences_per_second"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", choices=tuple(WORKS), help="instead of all four")
    asked = parser.parse_args()
    git = ["git", "-C", str(ROOT)]
    commits = {
        "older": subprocess.check_output([*git, "rev-parse", "--short", asked.commit], text=True).strip(),
        "now": subprocess.check_output([*git, "rev-parse", "--short", "HEAD"], text=True).strip(),
    }
    with tempfile.TemporaryDirectory() as temporary:
        trees = {"older": Path(temporary) / "tree", "now": ROOT}
        subprocess.run([*git, "worktree", "add", "--detach", "--quiet", str(trees["older"]), asked.commit], check=True)
        try:
            rows = measured(trees, Path(temporary), asked.rounds, asked.only or WORKS)
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", str(trees["older"])], check=True)
    threads = os.environ.get("OMP_NUM_THREADS", str(os.cpu_count()))
    document = {"machine": machine(), "threads": threads, "commits": commits, "rows": rows}
    text = table(rows, commits, threads)
    write_results("older_commit", document, text)
    print(text)


def measured(
    trees: dict[str, Path], folder: Path, rounds: int, works: Iterable[str]
) -> dict[str, dict[str, list[float]]]:
    """By command, the speeds of both trees in each round."""
    places = {name: folder / f"work-{name}" for name in trees}
    for name, tree in trees.items():
        run(tree, places[name], f"augment {ROOT}/data/nli.jsonl --wordnet 0 --back-translate 0 --name text")
        run(tree, places[name], "teacher-embed --teacher embedded --sentences text --name text --dtype float32")
    rows: dict[str, dict[str, list[float]]] = {work: {name: [] for name in trees} for work in works}
    for number in range(rounds):
        # Who goes first changes, so that a slow change of the machine's speed favours neither.
        for name in sorted(trees, reverse=bool(number % 2)):
            for work in rows:
                rows[work][name].append(speed(trees[name], places[name], WORKS[work]))
                print(f"round {number + 1}  {name:5}  {work:16} {rows[work][name][-1]:8.1f}/s", flush=True)
    return rows


def table(rows: dict[str, dict[str, list[float]]], commits: dict[str, str], threads: str) -> str:
    """The rows in Markdown."""
    rounds = len(next(iter(rows.values()))["now"])
    lines = [
        "# Speed on a CPU, beside an older commit",
        "",
        f"Commit {commits['now']} and commit {commits['older']}, in turns, {rounds} rounds; {machine()['processor']}, "
        f"threads: {threads}. Sentences (triplets for finetune) per second. "
        f"`python benchmarks/older_commit.py {commits['older']}`",
        "",
        "| work | older, median | now, median | now / older, median of the rounds | smallest and largest |",
        "|---|---:|---:|---:|---:|",
    ]
    for work, found in rows.items():
        ratios = [now / older for now, older in zip(found["now"], found["older"], strict=True)]
        lines.append(
            f"| {work} | {statistics.median(found['older']):.1f} | {statistics.median(found['now']):.1f} | "
            f"{statistics.median(ratios):.3f} | {min(ratios):.3f} to {max(ratios):.3f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
