"""Checks that all shards of an artifact are complete and from one plan, and records this for the merge."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sentcompress.commands.spelling import work_words
from sentcompress.errors import DamagedError, InputError
from sentcompress.plain_text import shell_line
from sentcompress.progress import SILENT, Reporter
from sentcompress.store.atomic import MANIFEST, SCAFFOLD, beside
from sentcompress.store.build import Build
from sentcompress.store.lookup import PLAN, is_being_written
from sentcompress.store.manifests import Artifact
from sentcompress.store.shard import Shard
from sentcompress.store.shard_plan import count_of, identity_of
from sentcompress.store.shards import Shards

# Faults that an error lists.
MOST_LISTED = 20
# In the artifact that is merged: the plan of the shards that its files come from.
MERGED_FROM = f"{SCAFFOLD}/merged-from"
_NAME = re.compile(r"([1-9][0-9]*)-of-([1-9][0-9]*)", re.ASCII)


def plan_of(artifact: Artifact) -> Any:
    """What identifies the plan that an artifact was merged from; None without shards."""
    return artifact.facts.get("plan")


def mark_of(plan: Artifact) -> dict[str, Any]:
    """The facts that a merged artifact records about its shards."""
    return {"shards": count_of(plan), "plan": identity_of(plan)}


def begin_merge(build: Build, plan: Artifact) -> None:
    """Prepare a build for the files of shards, without files that an interrupted run made differently."""
    if build.has(MERGED_FROM) and (build.path / MERGED_FROM).read_text(encoding="utf-8") == identity_of(plan):
        return
    build.clear()
    with build.write(MERGED_FROM) as path:
        path.write_text(identity_of(plan), encoding="utf-8")


def check_merged(shards: Shards) -> None:
    """Raise InputError if there are shards without their plan: of merged ones, the plan is removed last."""
    if any(shards.folder.glob(f"*/{MANIFEST}")):
        raise InputError(
            f"{shards.reference} cannot be merged: the plan of its shards is missing ({shards.folder / PLAN})",
            "copy it there, or run one of the shards again, which plans them anew and keeps those of the same plan",
        )


def whole(shards: Shards, plan: Artifact, reporter: Reporter = SILENT) -> list[Artifact]:
    """All shards, in order, compared with their digests. Needs the lock of `shards`.

    Raises:
        InputError: that names every shard that is missing, being written, damaged, doubled or of something else.
    """
    wanted = [Shard(number, count_of(plan)) for number in range(1, count_of(plan) + 1)]
    there = {path.name for path in shards.folder.iterdir() if not path.name.startswith(".")} - {PLAN}
    found: dict[str, Artifact] = {}
    faults = []
    with reporter.track("checking", total=len(there), unit="shards") as task:
        for name in sorted(there):
            if fault := _fault_of(shards, name, plan, found):
                faults.append(fault)
            task.advance()
    missing = [shard for shard in wanted if shard.name not in there]
    running = [shard for shard in wanted if is_being_written(shards.folder / shard.name)]
    begun = [shard for shard in missing if shard not in running and _is_begun(shards, shard)]
    faults = [
        *_told([shard for shard in missing if shard not in running + begun], "is missing", "are missing"),
        *_told(begun, "is unfinished", "are unfinished"),
        *_told(running, "is being written", "are being written"),
        *faults,
    ]
    if faults:
        more = [f"and {len(faults) - MOST_LISTED} more"] if len(faults) > MOST_LISTED else []
        unmade = [shard for shard in missing if shard not in running]
        wait = "wait for the shards that are being written" if running else f"look into {shards.folder}"
        raise InputError(
            f"{shards.reference} cannot be merged: {'; '.join([*faults[:MOST_LISTED], *more])}",
            f"run: {_command_of(shards, unmade[0], plan)}" if unmade else wait,
        )
    return [found[shard.name] for shard in wanted]


def _command_of(shards: Shards, shard: Shard, plan: Artifact) -> str:
    """The command that makes a shard."""
    place = work_words(shards.target.parents[1]) if "/" in shards.reference else []
    return shell_line(["sentcompress", *plan.manifest["line"], "--shard", str(shard), *place])


def _is_begun(shards: Shards, shard: Shard) -> bool:
    return beside(shards.folder / shard.name, "partial").is_dir()


def _fault_of(shards: Shards, name: str, plan: Artifact, found: dict[str, Artifact]) -> str | None:
    """What is wrong with a folder among the shards; None if it is a shard, which is added to `found`."""
    try:
        artifact = shards.find(name)
    except DamagedError as error:
        return error.message
    count = count_of(plan)
    of_this = artifact is not None and identity_of(plan) in artifact.inputs.values()
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


def _is_name(name: str, count: int) -> bool:
    found = _NAME.fullmatch(name)
    return found is not None and int(found[2]) == count and int(found[1]) <= count


def _told(shards: Sequence[Shard], one: str, several: str) -> list[str]:
    if not shards:
        return []
    names = [str(shard) for shard in shards[:MOST_LISTED]] + (["..."] if len(shards) > MOST_LISTED else [])
    return [f"shard {names[0]} {one}" if len(shards) == 1 else f"shards {', '.join(names)} {several}"]
