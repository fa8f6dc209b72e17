"""`augment` and `teacher-embed` in shards on many short sentences, with a tiny random teacher: memory, time, bytes.

    python benchmarks/shards.py [--sentences 10000000] [--shards 8] [--jobs 2] [--copies 0] [--kills 0] [--whole]

Shards run in random order, --jobs at a time; --kills of them are killed at random moments and run again. Every command
is a process of its own; its peak resident memory comes from the kernel's count for it. With --whole, both commands also
run without shards, and all bytes are compared. Afterwards a projection is fitted and a student is trained for --steps
steps, for the memory of commands that read all rows. Writes benchmarks/results/NAME.json and NAME.md.
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_million import ROOT
from running import machine

RESULTS = ROOT / "benchmarks" / "results"
sys.path.insert(0, str(ROOT / "tests"))
WIDTH = 32


@dataclass
class Job:
    """A running command."""

    words: list[str]
    process: subprocess.Popen[bytes]
    started: float


def write_sentences(path: Path, count: int) -> None:
    """Distinct sentences of 4 to 8 words that the tiny teacher and WordNet know; the last one is a number."""
    from tiny_models import WORDS

    generator = random.Random(0)
    with path.open("w", encoding="utf-8") as stream:
        for number in range(count):
            stream.write(f"{' '.join(generator.choices(WORDS, k=generator.randint(3, 7)))} {number}\n")


def write_teacher(folder: Path) -> None:
    """A random model of one layer, in a process of its own so that this one's memory stays small."""
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import tiny_models; "
        f"tiny_models.make_tiny_model(Path(sys.argv[2]), layers=1, width={WIDTH})"
    )
    subprocess.run([sys.executable, "-c", code, str(ROOT / "tests"), str(folder)], check=True, cwd=ROOT)


def start(words: list[str]) -> Job:
    command = [sys.executable, "-m", "sentcompress", *words]
    return Job(words, subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL), time.perf_counter())


def ended(job: Job) -> dict[str, Any] | None:
    """What a command took, with its exit code; None while it runs."""
    pid, status, usage = os.wait4(job.process.pid, os.WNOHANG)
    if pid == 0:
        return None
    seconds, computed = time.perf_counter() - job.started, usage.ru_utime + usage.ru_stime
    return {
        "shard": job.words[job.words.index("--shard") + 1] if "--shard" in job.words else None,
        "code": os.waitstatus_to_exitcode(status),
        "peak_bytes": usage.ru_maxrss * 1024,
        "seconds": round(seconds, 1),
        "processor_seconds": round(computed, 1),
    }


def run(commands: list[list[str]], jobs: int, kills: int, generator: random.Random) -> list[dict[str, Any]]:
    """Run all commands, some at a time; those that were killed run again. What each took that was not killed."""
    waiting, running, taken, killed = list(commands), [], [], 0
    generator.shuffle(waiting)
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(start(waiting.pop(0)))
        time.sleep(0.1)
        if killed < kills and generator.random() < 0.03:
            # Not Popen.kill, which would reap a process that has ended.
            os.kill(generator.choice(running).process.pid, signal.SIGKILL)
            killed += 1
        for job in list(running):
            if (found := ended(job)) is None:
                continue
            running.remove(job)
            if (code := found.pop("code")) == 0:
                taken.append(found)
                print(f"{' '.join(job.words[:2])} {json.dumps(found)}", file=sys.stderr, flush=True)
            elif killed and code == -signal.SIGKILL:
                waiting.append(job.words)
            else:
                raise SystemExit(f"{' '.join(job.words)} failed with code {code}")
    return taken


class Measured:
    """The processes of a run, and what they left on the disk."""

    def __init__(self, work: Path, jobs: int, kills: int) -> None:
        self._work, self._jobs, self._kills = work, jobs, kills
        self._random = random.Random(0)
        self.commands: list[dict[str, Any]] = []

    def run(self, name: str, commands: list[list[str]], folder: Path | None = None) -> None:
        """Run commands at the same time, then look at the folder they wrote, and ask `status`."""
        several = len(commands) > 1
        taken = run(commands, self._jobs if several else 1, self._kills if several else 0, self._random)
        files = [path.stat().st_size for path in folder.rglob("*") if path.is_file()] if folder else []
        (status,) = run([["status", "--work", str(self._work)]], 1, 0, self._random)
        self.commands.append(
            {
                "command": name,
                "processes": taken,
                "bytes": sum(files),
                "files": len(files),
                "status_seconds": status["seconds"],
            }
        )
        print(json.dumps(self.commands[-1]), file=sys.stderr, flush=True)


def digest_of(folder: Path) -> str:
    return str(json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["digest"])


def measure(asked: argparse.Namespace, folder: Path, measured: Measured) -> bool | None:
    """Run all commands; returns whether the bytes are those of runs without shards, None if there were none."""
    work, apart = folder / "work", folder / "whole"
    copies = ["--wordnet", str(asked.copies), "--back-translate", "0", "--workers", "1"]
    commands = {
        "sentences": ["augment", str(folder / "lines.txt"), *copies],
        "teacher-vectors": [
            *("teacher-embed", "--teacher", str(folder / "teacher")),
            *("--dtype", "float32", "--store", "float16"),
        ],
    }
    placed, equal = ["--work", str(work), "--quiet"], None
    for kind, words in commands.items():
        shards = [[*words, *placed, "--shard", f"{n}/{asked.shards}"] for n in range(1, asked.shards + 1)]
        measured.run(f"{words[0]} --shard", shards, work / kind / ".main.shards")
        measured.run(f"merge {kind}", [["merge", f"{kind}/main", *placed]], work / kind / "main")
        if asked.whole:
            measured.run(words[0], [[*words, "--work", str(apart), "--quiet"]], apart / kind / "main")
            equal = equal is not False and digest_of(work / kind / "main") == digest_of(apart / kind / "main")
    if asked.steps:
        measured.run("fit-pca", [["fit-pca", "--dim", "16", *placed]])
        training = f"distill --method hpd --student teacher:1 --dim 16 --max-steps {asked.steps} --dtype float32"
        measured.run("distill", [[*training.split(), *placed]])
    return equal


def page(document: Mapping[str, Any]) -> str:
    """The result as Markdown."""
    lines = [
        f"# {document['sentences']:,} sentences in {document['shards']} shards",
        "",
        "Time, memory and disk of each command when it is divided into shards. Sentences of 4 to 8 words, WordNet "
        f"copies of each: {document['copies']}; a random teacher of one layer and {WIDTH} dimensions; float16 vectors; "
        f"{document['jobs']} processes at a time with one thread each, on {document['machine']['cores']} cores "
        f"({document['machine']['processor']}). {document['load']}",
        "",
        f"`{document['line']}`",
        "",
        "| command | processes | seconds of each | processor seconds of each | peak memory | left on the disk | files "
        "| seconds of `status` afterwards |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [_row(command) for command in document["commands"]]
    lines += ["", "Single shards:", "", "| command | shard | seconds | processor seconds | peak memory |"]
    lines += ["|---|---|---|---|---|"]
    for command in document["commands"]:
        for one in sorted(command["processes"], key=lambda one: int((one["shard"] or "0").split("/")[0])):
            if one["shard"]:
                lines.append(
                    f"| {command['command']} | {one['shard']} | {one['seconds']:,} | {one['processor_seconds']:,} "
                    f"| {one['peak_bytes'] / 1e6:,.0f} MB |"
                )
    if (equal := document["bytes_equal_those_of_one_run"]) is not None:
        lines += ["", f"The bytes {'equal' if equal else 'DIFFER FROM'} those of runs without shards."]
    return "\n".join(lines) + "\n"


def _row(command: Mapping[str, Any]) -> str:
    processes: Sequence[Mapping[str, Any]] = command["processes"]
    seconds, computed = (_range([one[key] for one in processes]) for key in ("seconds", "processor_seconds"))
    peak = max(one["peak_bytes"] for one in processes)
    size = f"{command['bytes'] / 1e6:,.0f} MB | {command['files']:,}" if command["files"] else "- | -"
    return (
        f"| {command['command']} | {len(processes)} | {seconds} | {computed} | {peak / 1e6:,.0f} MB | {size} "
        f"| {'-' if command['status_seconds'] is None else command['status_seconds']} |"
    )


def _range(values: Sequence[float]) -> str:
    return f"{min(values):,} to {max(values):,}" if len(values) > 1 else f"{values[0]:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=10_000_000)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--copies", type=int, default=0)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--name", default="shards", help="of the files of results")
    parser.add_argument("--load", default="", help="a sentence on what else ran")
    parser.add_argument("--folder", type=Path, help="where the work directory is for the time (default: temporary)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as temporary:
        folder = Path(temporary)
        write_sentences(folder / "lines.txt", asked.sentences)
        write_teacher(folder / "teacher")
        text_bytes = (folder / "lines.txt").stat().st_size
        measured = Measured(folder / "work", asked.jobs, asked.kills)
        equal = measure(asked, folder, measured)
    document = {
        "machine": machine(),
        "line": f"python benchmarks/shards.py {' '.join(_said(sys.argv[1:]))}",
        **{name: getattr(asked, name) for name in ("sentences", "shards", "jobs", "copies", "kills", "load")},
        "text_bytes": text_bytes,
        "commands": measured.commands,
        "bytes_equal_those_of_one_run": equal,
    }
    (RESULTS / f"{asked.name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (RESULTS / f"{asked.name}.md").write_text(page(document), encoding="utf-8")
    print(page(document))
    if equal is False:
        raise SystemExit("the bytes differ")


def _said(words: Sequence[str]) -> list[str]:
    """The options, without those that say nothing about what was measured."""
    left_out = {place + step for place, word in enumerate(words) if word in ("--folder", "--load") for step in (0, 1)}
    return [word for place, word in enumerate(words) if place not in left_out]


if __name__ == "__main__":
    main()
