"""`augment` and `teacher-embed` in shards on many short sentences, with a tiny random teacher: memory, time, bytes.

    python benchmarks/shards.py [--sentences 10000000] [--shards 8] [--jobs 2] [--kills 10] [--whole]

Shards run in random order, --jobs at a time; --kills of them are killed at random moments and run again. Every command
is a process of its own; its peak resident memory comes from the kernel's count for it. With --whole, both commands also
run without shards, and all bytes are compared. Writes benchmarks/results/shards.json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_million import ROOT, write_sentences, write_teacher
from running import machine

RESULT = ROOT / "benchmarks" / "results" / "shards.json"
# Sentences of the plan, and a teacher's vectors: 768 dimensions in float16.
PLANNED, BYTES_PER_VECTOR = 100_000_000, 768 * 2


@dataclass
class Job:
    """A running command."""

    words: list[str]
    process: subprocess.Popen[bytes]
    started: float


def start(words: list[str]) -> Job:
    command = [sys.executable, "-m", "sentcompress", *words]
    return Job(words, subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL), time.perf_counter())


def ended(job: Job) -> dict[str, Any] | None:
    """What a command took, with its exit status; None while it runs."""
    pid, status, usage = os.wait4(job.process.pid, os.WNOHANG)
    if pid == 0:
        return None
    seconds = round(time.perf_counter() - job.started, 1)
    return {"status": status, "peak_bytes": usage.ru_maxrss * 1024, "seconds": seconds}


def run(commands: list[list[str]], jobs: int, kills: int, generator: random.Random) -> list[dict[str, Any]]:
    """Run all commands, some at a time; those that were killed run again. What each took that was not killed."""
    waiting, running, taken, killed = list(commands), [], [], 0
    generator.shuffle(waiting)
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(start(waiting.pop(0)))
        time.sleep(0.2)
        if killed < kills and generator.random() < 0.05:
            # Not Popen.kill, which would reap a process that has ended.
            os.kill(generator.choice(running).process.pid, signal.SIGKILL)
            killed += 1
        for job in list(running):
            if (found := ended(job)) is None:
                continue
            running.remove(job)
            if found.pop("status") == 0:
                taken.append(found)
            elif killed:
                waiting.append(job.words)
            else:
                raise SystemExit(f"{' '.join(job.words)} failed")
    return taken


def summary(name: str, taken: list[dict[str, Any]]) -> dict[str, Any]:
    peaks, seconds = ([one[key] for one in taken] for key in ("peak_bytes", "seconds"))
    return {"command": name, "processes": len(taken), "peak_bytes": max(peaks), "longest_seconds": max(seconds)}


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=10_000_000)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--whole", action="store_true")
    asked = parser.parse_args()
    generator = random.Random(0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_sentences(folder / "lines.txt", asked.sentences)
        write_teacher(folder / "teacher")
        work = ["--work", str(folder / "work"), "--quiet"]
        commands = {
            "sentences": ["augment", str(folder / "lines.txt"), "--wordnet", "0", "--back-translate", "0"],
            "teacher-vectors": ["teacher-embed", "--teacher", str(folder / "teacher"), "--dtype", "float32"],
        }
        found, equal = [], None
        for kind, words in commands.items():
            shards = [[*words, *work, "--shard", f"{n}/{asked.shards}"] for n in range(1, asked.shards + 1)]
            found.append(summary(f"{words[0]} --shard", run(shards, asked.jobs, asked.kills, generator)))
            found.append(summary(f"merge {kind}", run([["merge", f"{kind}/main", *work]], 1, 0, generator)))
            if asked.whole:
                apart = ["--work", str(folder / "whole"), "--quiet"]
                found.append(summary(words[0], run([[*words, *apart]], 1, 0, generator)))
                digests = {
                    json.loads((folder / place / kind / "main" / "manifest.json").read_text())["digest"]
                    for place in ("work", "whole")
                }
                equal = len(digests) == 1 and equal is not False
        size = bytes_in(folder / "work" / "sentences") / asked.sentences
    document = {
        "machine": machine(),
        **{name: getattr(asked, name) for name in ("sentences", "shards", "jobs", "kills")},
        "commands": found,
        "bytes_equal_those_of_one_run": equal,
        "planned": {
            "sentences": PLANNED,
            "table_bytes": round(size * PLANNED),
            "vector_bytes": PLANNED * BYTES_PER_VECTOR,
            "vector_files": PLANNED // 100_000,
        },
    }
    RESULT.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(document, indent=1))
    if equal is False:
        raise SystemExit("the bytes differ")


if __name__ == "__main__":
    main()
