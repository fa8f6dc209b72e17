"""The process under the shim: loads everything, runs every stage without faults, then one trial after another.

Reads a trial as a line of JSON on standard input, writes its result as a line on standard output; the first line that
it writes lists the operations of every stage. campaign.py starts it.
"""

from __future__ import annotations

import functools
import gc
import json
import math
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults import oracle, planted, runs, stages
from faults.disk import Disk
from faults.runs import Ended
from faults.shim import NO_FAULT, VARIABLE, Fault, Operation, Shim
from faults.stages import Stage
from faults.trials import Trial


@dataclass(frozen=True)
class Unbroken:
    """What a stage does when nothing happens to it."""

    tree: oracle.Tree
    cache: dict[tuple[str, str], bytes]
    operations: list[Operation]
    seconds: float


class Worker:
    """A folder with a box, in which commands run, and all that is needed to run them again."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder, self.box, self.store = folder, folder / "box", folder / "store"
        self.store.mkdir(parents=True)
        self.shim = Shim(Path(os.environ[VARIABLE]), self.box, self.store)
        self.stages = {stage.name: stage for stage in stages.all_stages() if stage.name in names}
        self.unbroken: dict[str, Unbroken] = {}
        self.mapped = self.commands = 0

    def prepare(self) -> None:
        """Make the inputs, warm this process up, lay out every stage's start, and run it unbroken."""
        stages.write_inputs(self.folder)
        made = warm_up(self.folder, self.stages)
        left: dict[tuple[str, ...], Path] = {}  # by a command without --force: what its unbroken run leaves
        for stage in self.stages.values():
            start = self._start_of(stage)
            if found := left.get(tuple(stage.before)):
                shutil.copytree(found, start)
            else:
                self._clear()
                stages.lay_out(stage, made, self.box, self._must)
                shutil.copytree(self.box, start)
            self.unbroken[stage.name] = self._unbroken(stage)
            if not stage.before:
                left[tuple(stage.words)] = shutil.copytree(self.box, self.folder / "left" / stage.name)
        gc.collect()
        gc.freeze()

    def _unbroken(self, stage: Stage) -> Unbroken:
        # A command twice: what differs between two unbroken runs would be taken for the faults' work.
        trees = []
        for _ in range(1 if stage.before else 2):
            self._begin(stage)
            disk = Disk(self.box, self.store)
            started = time.monotonic()
            self._run(stage, Fault(at=-1, torn="least"), must=True)
            seconds = time.monotonic() - started
            trees.append(oracle.read_tree(self.box))
        operations = self.shim.operations()
        disk.replay(operations)
        if self.shim.mapped or (found := disk.unlike()):
            raise AssertionError(f"{stage.name} changes files unseen: {found}")
        if found := oracle.differences(trees[0], trees[-1]):
            raise AssertionError(f"{stage.name} is not the same twice: {found}")
        return Unbroken(trees[0], oracle.read_cache(self.box)[0], operations, seconds)

    def try_one(self, trial: Trial) -> dict[str, Any]:
        """Run a trial; failures are listed under "wrong"."""
        stage, rng = self.stages[trial.stage], random.Random(trial.seed)
        hook = planted.BUGS[trial.planted] if trial.planted else None
        again = stage.force and rng.random() < 0.5  # who forced it may force it again, or not
        self._begin(stage)
        self.commands, self.mapped = 0, 0
        found: list[str] = []
        hits: list[tuple[str, str]] = []
        for round_, fault in enumerate((trial.first, trial.second)):
            if fault == NO_FAULT and round_:
                continue
            disk = Disk(self.box, self.store) if fault.torn else None
            ended = self._run(stage, fault, hook=hook, force=again or round_ == 0)
            operations = self.shim.operations()
            if self.shim.fired is not None:
                hits.append((operations[self.shim.fired].kind, fault.label))
            elif fault.torn:
                hits.append(("end", fault.label))
            if disk and ended.code is not None:
                disk.replay(operations)
                disk.leave(fault.torn, rng)
            found += self._after_fault(stage, fault, ended, rng)
        last = self._run(stage, NO_FAULT, hook=hook, force=again)
        if last.code is None:
            found.append(oracle.STUCK)
        elif last.code != 0:
            found.append(f"the same command again ends with {last.code}: {' / '.join(last.stderr.splitlines()[-2:])}")
        expected = self.unbroken[trial.stage]
        found += oracle.differences(oracle.read_tree(self.box), expected.tree)
        found += oracle.differences_of_cache(self.box, expected.cache)
        found += oracle.faults_of_artifact(self.box, stage.makes)[1]
        found += [f"{self.mapped} files were mapped for writing"] if self.mapped else []
        return {"hits": hits, "wrong": found, "stuck": oracle.STUCK in found, "commands": self.commands}

    def _after_fault(self, stage: Stage, fault: Fault, ended: Ended, rng: random.Random) -> list[str]:
        found = [] if ended.killed else oracle.faults_of_message(ended.code, ended.stderr, fault.error)
        if ended.code == 0:
            # What a command has reported as done is there, whatever happens to the power then; only what it had removed
            # may be back, until the next command.
            lacking = oracle.differences(oracle.read_tree(self.box), self.unbroken[stage.name].tree)
            found += [line for line in lacking if not line.startswith(oracle.LEFT_OVER)]
        if rng.random() < 0.5:  # a reader may finish what a writer left, so half the time there is none
            artifact, wrong = oracle.faults_of_artifact(self.box, stage.makes)
            found += wrong
            if stage.before and stage.makes and artifact is None and not wrong:
                found.append("a finished artifact is gone")
        return found

    def _run(
        self, stage: Stage, fault: Fault, *, hook: runs.Hook | None = None, force: bool = True, must: bool = False
    ) -> Ended:
        words = [*stage.words, *(["--force"] if stage.force and force else [])]
        self.shim.arm(fault)
        ended = self._command(words, hook)
        self.shim.disarm()
        self.mapped += self.shim.mapped
        self.commands += 1
        if must and ended.code != 0:
            raise AssertionError(f"{words} ends with {ended.code}: {ended.stderr}")
        return ended

    def _must(self, words: Sequence[str]) -> None:
        ended = self._command(words, None)
        if ended.code != 0:
            raise AssertionError(f"{words} ends with {ended.code}: {ended.stderr}")

    def _command(self, words: Sequence[str], hook: runs.Hook | None) -> Ended:
        return runs.run([*words, "--work", "box/work"], self.folder, self.folder / "stderr.txt", hook)

    def _begin(self, stage: Stage) -> None:
        self._clear()
        shutil.copytree(self._start_of(stage), self.box)

    def _start_of(self, stage: Stage) -> Path:
        return self.folder / "starts" / stage.name

    def _clear(self) -> None:
        if self.box.exists():
            shutil.rmtree(self.box)


def warm_up(folder: Path, names: Collection[str]) -> Path:
    """Run the stages once in this very process, so that a forked child finds everything loaded.

    Returns:
        The work directory, which has what BASE makes.
    """
    import typer.main

    from sentcompress.cli.main import main
    from sentcompress.stages import augment, report
    from sentcompress.store import running

    running.WRITE_EVERY = math.inf  # on a busy machine, a run can take seconds, and would write its progress
    typer.main.get_command = functools.cache(typer.main.get_command)  # a third of the time of a short command
    augment.wordnet_spec = lambda *_: stages.Reversal()
    report._draw = lambda chart: (f"<svg>{chart.name}</svg>", chart.name.encode())  # most of a second each time
    os.chdir(folder)
    (folder / "box" / "out").mkdir(parents=True)
    for words in (*stages.BASE, *(stage.words for stage in stages.PLAIN if stage.name in names)):
        with suppress(SystemExit):
            main([*words, "--work", "box/work"])
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    made = Path(shutil.move(folder / "box" / "work", folder / "made"))
    shutil.rmtree(folder / "box")
    return made


def main() -> None:
    folder, names = Path(sys.argv[1]), json.loads(sys.argv[2])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = Worker(folder, names)
    worker.prepare()
    counted = {
        name: {"seconds": one.seconds, "kinds": [operation.kind for operation in one.operations]}
        for name, one in worker.unbroken.items()
    }
    print(json.dumps(counted), file=answers, flush=True)
    for line in sys.stdin:
        started = time.monotonic()
        result = worker.try_one(Trial.from_json(line))
        print(json.dumps({**result, "seconds": time.monotonic() - started}), file=answers, flush=True)


if __name__ == "__main__":
    main()
