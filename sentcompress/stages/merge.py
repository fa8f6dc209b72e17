"""Merge the shards of an artifact: the result has the bytes of a run without shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentcompress.augmentations.sharded_table import join_tables
from sentcompress.commands.merge import Params
from sentcompress.encoding.sharded_folder import is_joined, join_folder
from sentcompress.encoding.sharded_vectors import join_vectors
from sentcompress.encoding.vector_folder import read_vectors
from sentcompress.errors import MissingArtifactError, UsageError, did_you_mean
from sentcompress.mining.sharded_mining import join_mined
from sentcompress.progress import LOGGED, Reporter
from sentcompress.store import KINDS, MANIFEST, Artifact, Build, WorkDirectory
from sentcompress.store.merging import begin_merge, check_merged, mark_of, plan_of, whole
from sentcompress.store.shard_plan import count_of
from sentcompress.store.shards import Shards

# The command whose shards are not in a work directory.
ENCODE = "encode"
Joiner = Callable[[Artifact, Sequence[Artifact], Build, Reporter], Mapping[str, Any]]
# Command -> what writes the files of the merged artifact and returns its facts.
JOINERS: Mapping[str, Joiner] = {
    "augment": join_tables,
    "mine-negatives": join_mined,
    "teacher-embed": join_vectors,
}


@dataclass(frozen=True)
class MergedFolder:
    """The output folder of `encode`, its vectors, and the number of shards; None if it was merged before."""

    path: str
    rows: int
    shards: int | None


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact | MergedFolder:
    """Write the artifact, or the folder of `encode`, whose shards are finished, and remove the shards.

    A killed run goes on after its last whole file.

    Raises:
        MissingArtifactError: if there are no such shards.
        UsageError: if more than one artifact could be meant.
        InputError: that names the shards that are missing, damaged, doubled or of something else.
    """
    params.check()
    if params.what is not None and not _names_artifact(params.what, work):
        shards = Shards.of_folder(Path(params.what))
        if shards.folder.is_dir() or (shards.target / MANIFEST).is_file():
            with shards.lock(reporter):
                return _merge_folder(shards, reporter)
    shards = _find(params.what, work)
    with shards.lock(reporter):
        return _merge(shards, work, reporter)


def _merge_folder(shards: Shards, reporter: Reporter) -> MergedFolder:
    plan = shards.plan()
    if plan is None:
        check_merged(shards)
        shards.drop()  # something may be left of them
        return MergedFolder(str(shards.target), len(read_vectors(shards.target)), None)
    if plan.manifest["command"] != ENCODE:
        raise UsageError(f"{shards.target} is in a work directory", "name it as KIND/NAME, and its folder with `work`")
    shards.request(plan)
    if not is_joined(shards.target, plan):
        parts = whole(shards, plan, reporter)
        _compare_libraries(parts, reporter)
        join_folder(shards.target, plan, parts, reporter)
    shards.drop()
    return MergedFolder(str(shards.target), sum(plan.facts["files"]), count_of(plan))


def _merge(shards: Shards, work: WorkDirectory, reporter: Reporter) -> Artifact:
    plan = shards.plan()
    kind, _, name = shards.reference.partition("/")
    finished = work.find(kind, name)
    if plan is None:
        check_merged(shards)  # perhaps while this process waited for it
        shards.drop()
        if finished is not None:
            return finished
        raise _missing(shards.reference, work)
    if finished is None or plan_of(finished) != mark_of(plan)["plan"]:
        request = shards.request(plan)
        parts = whole(shards, plan, reporter)
        _compare_libraries(parts, reporter)
        with work.build(request, force=bool(plan.facts["forced"]), merging=True, reporter=reporter) as build:
            if build.fresh:
                finished = build.fresh
            else:
                begin_merge(build, plan)
                facts = JOINERS[request.command](plan, parts, build, reporter)
                finished = build.finish({**facts, **mark_of(plan)})
    shards.drop()
    return finished


def _compare_libraries(parts: Sequence[Artifact], reporter: Reporter) -> None:
    """Warn of shards that were made with other versions of a library than the first."""
    first = parts[0].manifest["libraries"]
    for part in parts:
        if other := [
            f"{name} {version}"
            for name, version in part.manifest["libraries"].items()
            if first.get(name) not in (None, version)
        ]:
            reporter.warn(
                f"{part.reference} was made with {', '.join(other)}, the first shard with "
                f"{', '.join(f'{name} {first[name]}' for name in (one.split()[0] for one in other))}"
            )
            return


def _find(what: str | None, work: WorkDirectory) -> Shards:
    kind, _, name = (what or "").partition("/")
    candidates = [(each, one) for each in KINDS if kind in ("", each) for one in work.sharded(each)]
    if kind in KINDS and name:
        if name not in work.sharded(kind) and work.find(kind, name) is None:
            raise _missing(f"{kind}/{name}", work)
        return Shards.of(work, kind, name)
    if what and (kind not in KINDS or name):
        raise UsageError(
            f"{what} is neither an artifact nor the output folder of shards of encode", did_you_mean(kind, KINDS)
        )
    if not candidates:
        raise _missing(what, work)
    if len(candidates) > 1:
        listed = ", ".join("/".join(one) for one in candidates)
        raise UsageError("the shards of more than one artifact can be merged", f"name one of: {listed}")
    return Shards.of(work, *candidates[0])


def _names_artifact(what: str, work: WorkDirectory) -> bool:
    kind, _, name = what.partition("/")
    return kind in KINDS and (name in work.sharded(kind) or work.has(kind, name))


def _missing(what: str | None, work: WorkDirectory) -> MissingArtifactError:
    of = f" of {what}" if what else ""
    return MissingArtifactError(
        f"there are no shards{of} in {work.path}",
        "run a command with --shard 1/N to --shard N/N first",
    )
