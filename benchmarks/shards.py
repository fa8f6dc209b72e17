"""`augment` and `teacher-embed` in shards on many short sentences, with a tiny random teacher: memory, time, bytes.

    python benchmarks/shards.py [--sentences 10000000] [--shards 8] [--jobs 2] [--copies 0] [--kills 0] [--whole]

Shards run in random order, --jobs at a time. --kills of them, drawn at random, are killed (SIGKILL) once each, at a
random moment, and run again; if there are fewer shards, all of them are killed. Every command is a process of its own;
its peak resident memory comes from the kernel's count for it. With --whole, both commands also run without shards, and
all bytes are compared. Several numbers of shards (--shards 1 3 16) are measured one after the other. Afterwards a
projection is fitted and a student is trained for --steps steps, for the memory of commands that read all rows. Writes
benchmarks/results/NAME.json and NAME.md.
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
from pathlib import Path
from typing import Any

from running import machine, write_results

from sentcompress.process_memory import peak_of

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
WIDTH = 32
# Kills come within this time after the start, until a shard has ended; then within the time of the fastest.
FIRST_SECONDS = 5.0


class Job:
    """A command that is run, and run again if it was killed.

    Attributes:
        kill_after: seconds after its start, if it is to be killed.
        was_killed: whether it was, in an earlier run.
    """

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.kill_after: float | None = None
        self.was_killed = False

    def start(self) -> None:
        command = [sys.executable, "-m", "sentcompress", *self.words]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        self._started = time.perf_counter()

    def kill_in_time(self) -> None:
        """Kill it if its time has come."""
        if self.kill_after is not None and time.perf_counter() - self._started >= self.kill_after:
            # Not Popen.kill, which would reap a process that has ended.
            os.kill(self._process.pid, signal.SIGKILL)

    def ended(self) -> dict[str, Any] | None:
        """What it took, with its exit code; None while it runs."""
        pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
        if pid == 0:
            return None
        seconds, computed = time.perf_counter() - self._started, usage.ru_utime + usage.ru_stime
        return {
            "shard": self.words[self.words.index("--shard") + 1] if "--shard" in self.words else None,
            "code": os.waitstatus_to_exitcode(status),
            "peak_bytes": peak_of(usage),
            "seconds": round(seconds, 1),
            "processor_seconds": round(computed, 1),
        }


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


def run(
    commands: list[list[str]], jobs: int, kills: int, generator: random.Random
) -> tuple[list[dict[str, Any]], list[float]]:
    """Run all commands, some at a time; those that were killed run again.

    Returns:
        What each took in the run that was not killed, and after how many seconds the other runs were killed.
    """
    waiting, running = [Job(words) for words in commands], list[Job]()
    taken, killed = list[dict[str, Any]](), list[float]()
    generator.shuffle(waiting)
    while waiting or running:
        while waiting and len(running) < jobs:
            job = waiting.pop(0)
            due = kills - len(killed) - sum(other.kill_after is not None for other in running)
            unharmed = 1 + sum(not other.was_killed for other in waiting)
            if not job.was_killed and generator.random() * unharmed < due:
                fastest = min((one["seconds"] for one in taken), default=FIRST_SECONDS)
                job.kill_after = generator.uniform(0, fastest)
            job.start()
            running.append(job)
        time.sleep(0.05)
        for job in list(running):
            job.kill_in_time()
            if (found := job.ended()) is None:
                continue
            running.remove(job)
            if (code := found.pop("code")) == 0:
                taken.append(found)
                print(f"{' '.join(job.words[:2])} {json.dumps(found)}", file=sys.stderr, flush=True)
            elif job.kill_after is not None and code == -signal.SIGKILL:
                killed.append(found["seconds"])
                job.was_killed, job.kill_after = True, None
                waiting.append(job)
            else:
                raise SystemExit(f"{' '.join(job.words)} failed with code {code}")
            job.kill_after = None
    return taken, killed


class Measured:
    """The processes of a run, and what they left on the disk."""

    def __init__(self, jobs: int, kills: int) -> None:
        self._jobs, self._kills = jobs, kills
        self._random = random.Random(0)
        self.commands: list[dict[str, Any]] = []

    def run(self, name: str, work: Path, commands: list[list[str]], folder: Path | None = None) -> None:
        """Run commands at the same time, then look at the folder they wrote, and ask `status`."""
        shards = "--shard" in commands[0]
        taken, killed = run(commands, self._jobs if shards else 1, self._kills if shards else 0, self._random)
        files = [path.stat().st_size for path in folder.rglob("*") if path.is_file()] if folder else []
        ((status,), _) = run([["status", "--work", str(work)]], 1, 0, self._random)
        self.commands.append(
            {
                "command": name,
                "processes": taken,
                "killed_after_seconds": killed,
                "bytes": sum(files),
                "files": len(files),
                "status_seconds": status["seconds"],
            }
        )
        print(json.dumps(self.commands[-1]), file=sys.stderr, flush=True)


def digest_of(folder: Path) -> str:
    return str(json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["digest"])


def measure(asked: argparse.Namespace, folder: Path, measured: Measured) -> dict[str, bool] | None:
    """Run all commands.

    Returns:
        For every number of shards, whether the bytes are those of runs without shards; None if there were none.
    """
    copies = ["--wordnet", str(asked.copies), "--back-translate", "0", "--workers", "1"]
    commands = {
        "sentences": ["augment", str(folder / "lines.txt"), *copies],
        "teacher-vectors": [
            *("teacher-embed", "--teacher", str(folder / "teacher")),
            *("--dtype", "float32", "--store", "float16"),
        ],
    }
    whole = folder / "whole"
    for kind, words in commands.items() if asked.whole else ():
        measured.run(words[0], whole, [[*words, "--work", str(whole), "--quiet"]], whole / kind / "main")
    equal, work = dict[str, bool](), whole
    for count in asked.shards:
        work = folder / f"work-{count}"
        placed = ["--work", str(work), "--quiet"]
        for kind, words in commands.items():
            shards = [[*words, *placed, "--shard", f"{n}/{count}"] for n in range(1, count + 1)]
            measured.run(f"{words[0]} --shard n/{count}", work, shards, work / kind / ".main.shards")
            merge = ["merge", f"{kind}/main", *placed]
            measured.run(f"merge {kind} of {count}", work, [merge], work / kind / "main")
        if asked.whole:
            equal[str(count)] = all(
                digest_of(work / kind / "main") == digest_of(whole / kind / "main") for kind in commands
            )
    if asked.steps:
        placed = ["--work", str(work), "--quiet"]
        measured.run("fit-pca", work, [["fit-pca", "--dim", "16", *placed]])
        training = f"distill --method hpd --student teacher:1 --dim 16 --max-steps {asked.steps} --dtype float32"
        measured.run("distill", work, [[*training.split(), *placed]])
    return equal or None


def page(document: Mapping[str, Any]) -> str:
    """The result as Markdown."""
    lines = [
        f"# {document['sentences']:,} sentences in {_listed(document['shards'])} shards",
        "",
        "Time, memory and disk of each command when it is divided into shards. Sentences of 4 to 8 words, WordNet "
        f"copies of each: {document['copies']}; a random teacher of one layer and {WIDTH} dimensions; float16 vectors; "
        f"{document['jobs']} processes at a time with one thread each, on {document['machine']['cores']} cores "
        f"({document['machine']['processor']}). {document['load']}",
        "",
        f"`{document['line']}`",
        "",
        "| command | processes | killed | seconds of each | processor seconds of each | peak memory | left on the disk "
        "| files | seconds of `status` afterwards |",
        "|---|---|---|---|---|---|---|---|---|",
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
    for command in document["commands"]:
        if after := command["killed_after_seconds"]:
            lines += [
                "",
                f"{command['command']}: killed after {', '.join(map(str, sorted(after)))} seconds, and run again.",
            ]
    for count, equal in (document["bytes_equal_those_of_one_run"] or {}).items():
        told = "equal" if equal else "DIFFER FROM"
        lines += [
            "",
            f"In {count} shard{'s' * (count != '1')}, the merged bytes {told} those of the run without shards.",
        ]
    return "\n".join(lines) + "\n"


def _row(command: Mapping[str, Any]) -> str:
    processes: Sequence[Mapping[str, Any]] = command["processes"]
    seconds, computed = (_range([one[key] for one in processes]) for key in ("seconds", "processor_seconds"))
    peak = max(one["peak_bytes"] for one in processes)
    size = f"{command['bytes'] / 1e6:,.0f} MB | {command['files']:,}" if command["files"] else "- | -"
    return (
        f"| {command['command']} | {len(processes)} | {len(command['killed_after_seconds'])} | {seconds} | {computed} "
        f"| {peak / 1e6:,.0f} MB | {size} "
        f"| {'-' if command['status_seconds'] is None else command['status_seconds']} |"
    )


def _listed(numbers: Sequence[int]) -> str:
    *before, last = map(str, numbers)
    return f"{', '.join(before)} and {last}" if before else last


def _range(values: Sequence[float]) -> str:
    return f"{min(values):,} to {max(values):,}" if len(values) > 1 else f"{values[0]:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=10_000_000)
    parser.add_argument("--shards", type=int, nargs="+", default=[8])
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
        measured = Measured(asked.jobs, asked.kills)
        equal = measure(asked, folder, measured)
    document = {
        "machine": machine(),
        "line": f"python benchmarks/shards.py {' '.join(_said(sys.argv[1:]))}",
        **{name: getattr(asked, name) for name in ("sentences", "shards", "jobs", "copies", "kills", "load")},
        "text_bytes": text_bytes,
        "commands": measured.commands,
        "bytes_equal_those_of_one_run": equal,
    }
    write_results(asked.name, document, page(document))
    print(page(document))
    if equal and not all(equal.values()):
        raise SystemExit("the bytes differ")


def _said(words: Sequence[str]) -> list[str]:
    """The options, without those that say nothing about what was measured."""
    left_out = {place + step for place, word in enumerate(words) if word in ("--folder", "--load") for step in (0, 1)}
    return [word for place, word in enumerate(words) if place not in left_out]


if __name__ == "__main__":
    main()
