"""An artifact in shards, which processes on any machines make one by one before they are merged.

    WORK/<kind>/.<name>.shards/plan/       the request, the number of shards, and how the work is divided
    WORK/<kind>/.<name>.shards/3-of-16/    a shard, with a manifest, a digest and a lock of its own
    WORK/<kind>/.<name>.shards.lock        held while the plan is made, and while shards are merged

The first shard that runs makes the plan. It and every shard are built like an artifact. Readers of the work directory
do not see the hidden folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sentcompress.errors import BusyError, DamagedError, SentcompressError, UsageError
from sentcompress.progress import SILENT, Reporter
from sentcompress.signals import GO_ON, StoppedError
from sentcompress.store import atomic
from sentcompress.store.artifacts import NOTHING_KEPT, WorkDirectory
from sentcompress.store.atomic import MANIFEST, beside
from sentcompress.store.build import Build
from sentcompress.store.locking import locked_when_free
from sentcompress.store.lookup import PLAN, is_being_written
from sentcompress.store.manifests import Artifact
from sentcompress.store.request import Request
from sentcompress.store.shard import Shard
from sentcompress.store.shard_plan import count_of, difference, identity_of, request_of

# How long a shard waits for the one that makes the plan, which may have to read all of the input.
PLAN_SECONDS = 7200.0
# The folder of what shards share.
SHARED = ".shared"
Planner = Callable[[Build], Mapping[str, Any]]


@dataclass(frozen=True)
class Part:
    """A shard that is being made.

    Attributes:
        plan: how the work is divided: an artifact with the facts and files that its planner wrote.
        build: the shard, an artifact of its own.
    """

    shard: Shard
    plan: Artifact
    build: Build

    @contextmanager
    def shared(self, name: str) -> Iterator[Build]:
        """Make something that all shards need; `build.fresh` is it, if one of them made it before.

        Raises:
            BusyError: if another process makes it now.
        """
        asked = self.build.request
        inputs = {**asked.inputs, f"plan:{self.plan.name}": identity_of(self.plan)}
        parameters = {key: value for key, value in asked.parameters.items() if key != "shard"}
        parts = _Parts(self.plan.path.parent / SHARED)
        with parts.build(Request(asked.kind, name, asked.command, parameters, inputs)) as build:
            yield build

    def finish(self, facts: Mapping[str, Any]) -> Artifact:
        """Write the manifest of the shard."""
        made = self.build.finish({"shard": str(self.shard), "of": self.build.request.kind, **facts})
        return replace(made, manifest={**made.manifest, "kind": self.build.request.kind})


@dataclass(frozen=True)
class ShardCounts:
    """The number of shards, the number of finished ones, and those that are being made."""

    count: int
    done: int
    running: tuple[Shard, ...]


class _Parts(WorkDirectory):
    """The plan and the shards: artifacts in one folder, whose kind is the artifact that they belong to."""

    def _target(self, kind: str, name: str) -> Path:
        return self.path / name

    def find(self, kind: str, name: str) -> Artifact | None:
        found = super().find(kind, name)
        return found and replace(found, manifest={**found.manifest, "kind": kind})


class Shards:
    """The shards of one artifact.

    Args:
        target: where the artifact will be.
        reference: what it is called: `<kind>/<name>`, or the name of a folder outside of work directories.
    """

    def __init__(self, target: Path, reference: str) -> None:
        self.target, self.reference = target, reference
        self.folder = beside(target, "shards")
        self._parts = _Parts(self.folder)
        self._lock = beside(target, "shards.lock")

    @classmethod
    def of(cls, work: WorkDirectory, kind: str, name: str) -> Shards:
        """Those of an artifact of a work directory."""
        return cls(work.path / kind / name, f"{kind}/{name}")

    @classmethod
    def of_folder(cls, folder: Path) -> Shards:
        """Those of a folder that is not in a work directory."""
        target = folder.resolve()
        return cls(target, target.name)

    @property
    def _start_over(self) -> str:
        if "/" in self.reference:
            return "choose another `name`, or use `force` to start over"
        return f"name another folder, or remove {self.folder} to start over"

    @classmethod
    def of_part(cls, artifact: Artifact) -> Shards:
        """Those that a shard is one of."""
        folder = artifact.path.parent
        return cls(folder.with_name(folder.name[1:].removesuffix(".shards")), str(artifact.facts["of"]))

    def plan(self) -> Artifact | None:
        """How the work is divided; None if there is no plan.

        Raises:
            DamagedError: if it cannot be read.
        """
        return self.find(PLAN)

    def find(self, name: str) -> Artifact | None:
        """The plan or a shard, by the name of its folder; None if there is none.

        Raises:
            DamagedError: if it cannot be read.
        """
        return self._parts.find(self.reference, name)

    def progress(self) -> ShardCounts | None:
        """How many are finished, and which are being made; None if there is no plan, or it cannot be read."""
        try:
            plan = self.plan()
            count = count_of(plan) if plan else 0
        except DamagedError:
            return None
        if plan is None:
            return None
        shards = [Shard(number, count) for number in range(1, count + 1)]
        done = sum((self.folder / shard.name / MANIFEST).is_file() for shard in shards)
        running = tuple(shard for shard in shards if is_being_written(self.folder / shard.name))
        return ShardCounts(count, done, running)

    def request(self, plan: Artifact) -> Request:
        """The request of the merged artifact.

        Raises:
            UsageError: if another version of the command planned the shards.
        """
        # Not `_start_over`: merge has neither of its options.
        again = "run the commands of its shards again, the first one with --force"
        return request_of(plan, self.reference, again if "/" in self.reference else self._start_over)

    @contextmanager
    def lock(self, reporter: Reporter) -> Iterator[None]:
        """Keep other processes from planning and merging; waits for one that does.

        Raises:
            BusyError: if it takes longer than PLAN_SECONDS.
        """
        atomic.make_folder(self.folder.parent)
        with locked_when_free(self._lock, f"the plan of {self.reference}", PLAN_SECONDS, reporter):
            yield

    def wait_for(self, shard: Shard, seconds: float, reporter: Reporter) -> None:
        """Wait until no other process makes a shard. Without the lock, which others need meanwhile.

        Raises:
            BusyError: if it takes longer than `seconds`.
        """
        lock = beside(self.folder / shard.name, "lock")
        if seconds and lock.is_file():
            with locked_when_free(lock, str(self.folder / shard.name), seconds, reporter):
                pass

    @contextmanager
    def part(
        self, request: Request, shard: Shard, planner: Planner, *, force: bool = False, reporter: Reporter = SILENT
    ) -> Iterator[Part]:
        """Start a shard, or go on with it; `build.fresh` is the shard if it was finished before. Needs the lock.

        Args:
            request: the request of the merged artifact.
            planner: called if there is no plan yet, to write its files; returns its facts.
            force: start the shard over, and the whole plan if it was made for another request.

        Raises:
            UsageError: if the shards were planned in another number, or with other options or inputs.
            BusyError: if another process makes this shard, or, with `force` and another plan, any shard.
        """
        plan = self._planned(request, shard, planner, force, reporter)
        mine = Request(
            self.reference,
            shard.name,
            request.command,
            {**request.parameters, "shard": str(shard)},
            {**request.inputs, f"plan:{request.name}": identity_of(plan)},
            (*request.line, "--shard", str(shard)),
        )
        try:
            with self._parts.build(mine, force=force, reporter=reporter) as build:
                yield Part(shard, plan, build)
        except StoppedError as stop:
            if stop.hint == NOTHING_KEPT:
                stop.hint = GO_ON  # other shards may be finished
            raise

    def _planned(self, request: Request, shard: Shard, planner: Planner, force: bool, reporter: Reporter) -> Artifact:
        try:
            plan = self.plan()
        except DamagedError:
            if not force:
                raise
            self.drop()
            plan = None
        if plan is not None and (fault := difference(plan, request, shard, self.reference, self._start_over)):
            if not force:
                raise UsageError(*fault)
            reporter.note(f"{request.command}: discarding the shards of {self.reference}, planned for another request")
            self.drop()
            plan = None
        if plan is not None and plan.damage() is None:
            return plan
        if plan is None and not force and beside(self.target, "partial").exists():
            raise UsageError(
                f"{request.command}: an unfinished {self.reference} was begun without shards",
                ("finish it without `shard`", "use `force` to make it in shards"),
            )
        asked = Request(self.reference, PLAN, request.command, request.parameters, request.inputs, request.line)
        # By force: an unfinished plan of another request has no shards yet, so nothing is lost with it.
        with self._parts.build(asked, force=True, reporter=reporter) as build:
            try:
                facts = planner(build)
            except SentcompressError:
                build.clear()  # with a fixed input, the request differs
                raise
            build.finish({**facts, "shards": shard.count, "forced": force})
        plan = self.plan()
        assert plan is not None
        return plan

    def drop(self) -> None:
        """Remove the shards and then the plan. Needs the lock.

        Raises:
            BusyError: if a shard is being made.
        """
        if not self.folder.is_dir():
            return
        for path in sorted(self.folder.glob(".*.lock")):
            if is_being_written(path.with_name(path.name[1:-5])):
                raise BusyError(
                    f"{self.reference}: shard {path.name[1:-5]} is being written", "wait for it, or stop it first"
                )
        # Without its plan a shard is of no use; a plan that has lost shards only has to have them made again.
        for path in sorted(self.folder.iterdir(), key=lambda path: path.name == PLAN):
            atomic.drop(path, MANIFEST)
        atomic.remove(self.folder)
        atomic.fsync(self.folder.parent)


@contextmanager
def sharded(
    work: WorkDirectory, request: Request, shard: Shard, planner: Planner, *, force: bool, reporter: Reporter
) -> Iterator[Part | Artifact]:
    """A shard of an artifact of a work directory to be made; the artifact or the shard, if it is finished already.

    Args:
        request, shard, planner, force: see `Shards.part`.

    Raises:
        UsageError, BusyError: see `WorkDirectory.build` and `Shards.part`.
    """
    shards = Shards.of(work, request.kind, request.name)
    shards.wait_for(shard, work.wait, reporter)
    with ExitStack() as stack:
        with shards.lock(reporter):
            done: Part | Artifact | None = work.settled(request, force=force, reporter=reporter)
            if done is None:
                part = stack.enter_context(shards.part(request, shard, planner, force=force, reporter=reporter))
                done = part.build.fresh or part
        yield done
