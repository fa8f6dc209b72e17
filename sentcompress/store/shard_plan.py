"""The plan of shards: an artifact that fixes their number and the request, and how a later request differs from it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from sentcompress.commands import version_of
from sentcompress.errors import DamagedError, UsageError
from sentcompress.json_documents import to_json
from sentcompress.quantities import counted
from sentcompress.store.atomic import MANIFEST
from sentcompress.store.manifests import Artifact
from sentcompress.store.request import Request
from sentcompress.store.shard import MOST_SHARDS, Shard
from sentcompress.store.unfinished import changes_between


def count_of(plan: Artifact) -> int:
    """The number of shards.

    Raises:
        DamagedError: if the plan does not say it.
    """
    count = plan.facts.get("shards")
    if type(count) is not int or not 1 <= count <= MOST_SHARDS:
        raise DamagedError(f"{plan.path / MANIFEST} is not a plan of shards", "use `force` to start over")
    return count


def identity_of(plan: Artifact) -> str:
    """SHA-256 of all that shards depend on; a plan that is made again, with the same result, is the same one."""
    said = {name: value for name, value in plan.facts.items() if name != "forced"}
    return hashlib.sha256(to_json([plan.fingerprint, plan.digest, said], indent=None).encode()).hexdigest()


def request_of(plan: Artifact, reference: str, start_over: str) -> Request:
    """The request of the merged artifact.

    Args:
        reference: reference of the artifact.
        start_over: how to start over, for the hint.

    Raises:
        UsageError: if another version of the command planned the shards.
    """
    said = plan.manifest
    if fault := _other_version(plan, reference):
        raise UsageError(fault, start_over)
    kind, _, name = reference.partition("/")
    return Request(kind, name, said["command"], plan.parameters, plan.inputs, tuple(said["line"]))


def difference(
    plan: Artifact, request: Request, shard: Shard, reference: str, start_over: str
) -> tuple[str, str] | None:
    """Why a request is not that of the plan, with a hint; None if it is.

    Args:
        reference, start_over: see `request_of`.
    """
    start, hint = f"{request.command}: ", start_over
    if plan.manifest["command"] == request.command and (fault := _other_version(plan, reference)):
        return f"{start}{fault}", hint
    if changes := changes_between(plan.manifest, request):
        return f"{start}the shards of {reference} were planned with different options ({changes})", hint
    if changed := _changed_inputs(plan.inputs, request.inputs):
        return f"{start}the inputs of shard {shard} of {reference} are not those of the plan: {changed}", hint
    if (count := count_of(plan)) != shard.count:
        return (
            f"{start}{reference} is being made in {counted(count, 'shard')}, so {shard} is not one of them",
            f"run its shards as 1/{count} to {count}/{count}; {hint}",
        )
    return None


def _other_version(plan: Artifact, reference: str) -> str | None:
    """The message if another version of the command made the plan; None otherwise."""
    command, then = plan.manifest["command"], plan.manifest["version"]
    if then == (now := version_of(command)):
        return None
    return f"the shards of {reference} were planned by version {then} of {command}, now {now}"


def _changed_inputs(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    changed = [f"{_plain(name)} has changed" for name in before if name in now and now[name] != before[name]]
    others = [f"{_plain(name)} was used" for name in before if name not in now]
    return ", ".join([*changed, *others, *(f"{_plain(name)} is used now" for name in now if name not in before)])


def _plain(reference: str) -> str:
    kind, _, name = reference.partition(":")
    return name if kind in ("file", "model", "stdin", "hub") and name else reference
