"""An artifact in shards, which processes on any machines make one by one before they are merged.

    WORK/<kind>/.<name>.shards/plan/       the request, the number of shards, and how the work is divided
    WORK/<kind>/.<name>.shards/3-of-16/    a shard, with a manifest, a digest and a lock of its own
    WORK/<kind>/.<name>.shards.lock        held while the plan is made, and while shards are merged

The first shard that runs makes the plan. It and every shard are built like an artifact. Readers of the work directory
do not see the hidden folder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sentcompress.commands import version_of
from sentcompress.documents import to_json
from sentcompress.errors import BusyError, DamagedError, InputError, SentcompressError, UsageError
from sentcompress.plain_text import shell_line
from sentcompress.progress import SILENT, Reporter
from sentcompress.store import atomic
from sentcompress.store.artifacts import PLAN, Build, WorkDirectory, is_being_written
from sentcompress.store.atomic import MANIFEST, SCAFFOLD, beside
from sentcompress.store.locking import locked_when_free
from sentcompress.store.manifests import DEFAULT_WORK, REQUEST, Artifact, Request
from sentcompress.store.shard import MOST_SHARDS, Shard
from sentcompress.store.unfinished import changes_between

# How long a shard waits for the one that makes the plan, which may have to read all of the input.
PLAN_SECONDS = 7200.0
# The folder of what shards share.
SHARED = ".shared"
# Faults that an error lists.
MOST_LISTED = 20
# In the artifact that is merged: the plan of the shards that its files come from.
MERGED_FROM = f"{SCAFFOLD}/merged-from"
_NAME = re.compile(r"([1-9][0-9]*)-of-([1-9][0-9]*)", re.ASCII)
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
        inputs = {**asked.inputs, f"plan:{self.plan.name}": _identity(self.plan)}
        parameters = {key: value for key, value in asked.parameters.items() if key != "shard"}
        parts = _Parts(self.plan.path.parent / SHARED)
        with parts.build(Request(asked.kind, name, asked.command, parameters, inputs)) as build:
            yield build

    def finish(self, facts: Mapping[str, Any]) -> Artifact:
        """Write the manifest of the shard."""
        made = self.build.finish({"shard": str(self.shard), "of": self.build.request.kind, **facts})
        return replace(made, manifest={**made.manifest, "kind": self.build.request.kind})


@dataclass(frozen=True)
class Progress:
    """How many shards there are, are finished, and are being made now."""

    count: int
    done: int
    running: int


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
        return self._parts.find(self.reference, PLAN)

    def progress(self) -> Progress | None:
        """How many are finished; None if there is no plan, or it cannot be read."""
        try:
            plan = self.plan()
            count = count_of(plan) if plan else 0
        except DamagedError:
            return None
        if plan is None:
            return None
        folders = [self.folder / Shard(number, count).name for number in range(1, count + 1)]
        done = sum((folder / MANIFEST).is_file() for folder in folders)
        return Progress(len(folders), done, sum(map(is_being_written, folders)))

    def request(self, plan: Artifact) -> Request:
        """What the merged artifact is, as it was asked for.

        Raises:
            UsageError: if another version of the command planned the shards.
        """
        said = plan.manifest
        if said["version"] != (now := version_of(said["command"])):
            raise UsageError(
                f"the shards of {self.reference} were planned by version {said['version']} of {said['command']}, "
                f"now {now}",
                self._start_over,
            )
        kind, _, name = self.reference.partition("/")
        return Request(kind, name, said["command"], plan.parameters, plan.inputs, tuple(said["line"]))

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
            request: of the merged artifact.
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
            {**request.inputs, f"plan:{request.name}": _identity(plan)},
            (*request.line, "--shard", str(shard)),
        )
        with self._parts.build(mine, force=force, reporter=reporter) as build:
            yield Part(shard, plan, build)

    def _planned(self, request: Request, shard: Shard, planner: Planner, force: bool, reporter: Reporter) -> Artifact:
        try:
            plan = self.plan()
        except DamagedError:
            if not force:
                raise
            self.drop()
            plan = None
        if plan is not None and (fault := self._difference(plan, request, shard)):
            if not force:
                raise UsageError(*fault)
            reporter.note(f"{request.command}: discarding the shards of {self.reference}, which were planned otherwise")
            self.drop()
            plan = None
        if plan is not None and plan.damage() is None:
            return plan
        if plan is None and not force and beside(self.target, "partial").exists():
            raise UsageError(
                f"{request.command}: an unfinished {self.reference} was begun without shards",
                "finish it without `shard`, or use `force` to make it in shards",
            )
        asked = Request(self.reference, PLAN, request.command, request.parameters, request.inputs, request.line)
        # By force: an unfinished plan of another request has no shards yet, so nothing is lost with it.
        with self._parts.build(asked, force=True) as build:
            try:
                facts = planner(build)
            except SentcompressError:
                _clear(build)  # with a fixed input, the request differs
                raise
            build.finish({**facts, "shards": shard.count, "forced": force})
        plan = self.plan()
        assert plan is not None
        return plan

    def _difference(self, plan: Artifact, request: Request, shard: Shard) -> tuple[str, str] | None:
        """Why a request is not that of the plan, with a hint; None if it is."""
        start, now = f"{request.command}: ", version_of(request.command)
        hint = self._start_over
        if plan.manifest["command"] == request.command and plan.manifest["version"] != now:
            made = f"version {plan.manifest['version']} of {request.command}"
            return f"{start}the shards of {self.reference} were planned by {made}, now {now}", hint
        if changes := changes_between(plan.manifest, request):
            return f"{start}the shards of {self.reference} were planned with different options ({changes})", hint
        if changed := _changed_inputs(plan.inputs, request.inputs):
            return f"{start}the inputs of shard {shard} of {self.reference} are not those of the plan: {changed}", hint
        if count_of(plan) != shard.count:
            return (
                f"{start}{self.reference} is being made in {count_of(plan)} shards, so that {shard} is none of them",
                f"run its shards as 1/{count_of(plan)} to {count_of(plan)}/{count_of(plan)}; {hint}",
            )
        return None

    def whole(self, plan: Artifact, reporter: Reporter = SILENT) -> list[Artifact]:
        """All shards, in order, compared with their digests. Needs the lock.

        Raises:
            InputError: that names every shard that is missing, being written, damaged, doubled or of something else.
        """
        shards = [Shard(number, count_of(plan)) for number in range(1, count_of(plan) + 1)]
        there = {path.name for path in self.folder.iterdir() if not path.name.startswith(".")} - {PLAN}
        found: dict[str, Artifact] = {}
        faults = []
        with reporter.track("checking", total=len(there), unit="shards") as task:
            for name in sorted(there):
                if fault := self._fault_of(name, plan, found):
                    faults.append(fault)
                task.advance()
        missing = [shard for shard in shards if shard.name not in there]
        running = [shard for shard in shards if is_being_written(self.folder / shard.name)]
        begun = [shard for shard in missing if shard not in running and self._is_begun(shard)]
        faults = [
            *_told([shard for shard in missing if shard not in running + begun], "is missing", "are missing"),
            *_told(begun, "is unfinished", "are unfinished"),
            *_told(running, "is being written", "are being written"),
            *faults,
        ]
        if faults:
            more = [f"and {len(faults) - MOST_LISTED} more"] if len(faults) > MOST_LISTED else []
            raise InputError(
                f"{self.reference} cannot be merged: {'; '.join([*faults[:MOST_LISTED], *more])}",
                f"run: {self.command_of(missing[0], plan)}" if missing else f"look into {self.folder}",
            )
        return [found[shard.name] for shard in shards]

    def command_of(self, shard: Shard, plan: Artifact) -> str:
        """What to type for a shard."""
        work = str(self.target.parents[1])
        place = ["--work", work] if "/" in self.reference and work != DEFAULT_WORK else []
        return shell_line(["sentcompress", *plan.manifest["line"], "--shard", str(shard), *place])

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

    def _is_begun(self, shard: Shard) -> bool:
        return beside(self.folder / shard.name, "partial").is_dir()

    def _fault_of(self, name: str, plan: Artifact, found: dict[str, Artifact]) -> str | None:
        """What is wrong with a folder among the shards; None if it is a shard, which is added to `found`."""
        try:
            artifact = self._parts.find(self.reference, name)
        except DamagedError as error:
            return error.message
        count = count_of(plan)
        of_this = artifact is not None and _identity(plan) in artifact.inputs.values()
        own = str(artifact.parameters.get("shard")) if artifact and of_this else ""
        if not _is_name(name, count):
            return f"{name} is a copy of shard {own}" if own else f"{name} is none of the {count} shards"
        if artifact is None or not own:
            return f"{name} is of another plan: its request, inputs or number of shards differ"
        if own.replace("/", "-of-") != name:
            return f"{name} is a copy of shard {own}"
        if damage := artifact.damage(contents=True):
            return f"{name} is damaged ({damage})"
        found[name] = artifact
        return None


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


def count_of(plan: Artifact) -> int:
    """The number of shards.

    Raises:
        DamagedError: if the plan does not say it.
    """
    count = plan.facts.get("shards")
    if type(count) is not int or not 1 <= count <= MOST_SHARDS:
        raise DamagedError(f"{plan.path / MANIFEST} is not a plan of shards", "use `force` to start over")
    return count


def plan_of(artifact: Artifact) -> Any:
    """What identifies the plan that an artifact was merged from; None without shards."""
    return artifact.facts.get("plan")


def mark_of(plan: Artifact) -> dict[str, Any]:
    """What a merged artifact records of its shards."""
    return {"shards": count_of(plan), "plan": _identity(plan)}


def begin_merge(build: Build, plan: Artifact) -> None:
    """Prepare a build for the files of shards: what an interrupted run made otherwise is removed."""
    if build.has(MERGED_FROM) and (build.path / MERGED_FROM).read_text(encoding="utf-8") == _identity(plan):
        return
    _clear(build)
    with build.write(MERGED_FROM) as path:
        path.write_text(_identity(plan), encoding="utf-8")


def _clear(build: Build) -> None:
    """Remove what a build has written."""
    for path in list(build.path.iterdir()) if build.path.is_dir() else []:
        if path.name != REQUEST:
            build.remove(path.name)


def _identity(plan: Artifact) -> str:
    """SHA-256 of all that shards depend on; a plan that is made again, with the same result, is the same one."""
    said = {name: value for name, value in plan.facts.items() if name != "forced"}
    return hashlib.sha256(to_json([plan.fingerprint, plan.digest, said], indent=None).encode()).hexdigest()


def _is_name(name: str, count: int) -> bool:
    found = _NAME.fullmatch(name)
    return found is not None and int(found[2]) == count and int(found[1]) <= count


def _told(shards: Sequence[Shard], one: str, several: str) -> list[str]:
    if not shards:
        return []
    names = [str(shard) for shard in shards[:MOST_LISTED]] + (["..."] if len(shards) > MOST_LISTED else [])
    return [f"shard {names[0]} {one}" if len(shards) == 1 else f"shards {', '.join(names)} {several}"]


def _changed_inputs(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    changed = [f"{_plain(name)} has changed" for name in before if name in now and now[name] != before[name]]
    others = [f"{_plain(name)} was used" for name in before if name not in now]
    return ", ".join([*changed, *others, *(f"{_plain(name)} is used now" for name in now if name not in before)])


def _plain(reference: str) -> str:
    kind, _, name = reference.partition(":")
    return name if kind in ("file", "model", "stdin", "hub") and name else reference
