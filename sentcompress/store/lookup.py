"""Finding the artifacts of a work directory: by name, the newest of a kind, and what is damaged or unfinished."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from sentcompress.errors import BusyError, DamagedError, InputError, MissingArtifactError, did_you_mean
from sentcompress.plain_text import shell_line, shell_word
from sentcompress.store import atomic
from sentcompress.store.atomic import MANIFEST, beside
from sentcompress.store.locking import PAUSE_SECONDS, is_locked, locked
from sentcompress.store.manifests import Artifact, damaged, read_artifact
from sentcompress.store.names import fault_of_name
from sentcompress.store.request import EVALUATIONS, KINDS, TEACHER_VECTORS, Kind

# How long a reader waits for a living writer that is between the two renames of a swap.
SWAP_SECONDS = 5.0
# A student is distilled from teacher vectors; without any, this is the command to begin with.
WHOLE = Kind("compress", arguments="DOCUMENTS")
# In the folder of an artifact's shards, the one that says how it is divided.
PLAN = "plan"


class Lookup:
    """Finds the artifacts of a work directory, which need not exist; the reading half of `WorkDirectory`."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        # Kind -> names, the newest last, of what defaults may be chosen from; None for everything.
        self._made: Mapping[str, Sequence[str]] | None = None

    def within(self, made: Mapping[str, Sequence[str]]) -> Self:
        """The same work directory, in which only these artifacts count as `names`, `newest` and defaults.

        Evaluations are not restricted: they are looked up by the digest of what they measured.

        Args:
            made: kind -> names, the newest last; what is added to it later counts too.
        """
        return self._with(_made=made)

    def _with(self, **changes: Any) -> Self:
        other = copy.copy(self)
        vars(other).update(changes)
        return other

    def _target(self, kind: str, name: str) -> Path:
        return self.path / kind / name

    def find(self, kind: str, name: str) -> Artifact | None:
        """The finished artifact of that name, or None. Completes an interrupted swap first.

        Raises:
            DamagedError: if it cannot be read.
        """
        self._check()
        if fault_of_name(name):
            return None
        target = self._target(kind, name)
        if (found := self._find_at(target)) is None:
            atomic.look_again(target)
            found = self._find_at(target)
        return found

    def at(self, reference: str) -> Artifact | None:
        """The finished artifact of a reference, `KIND/NAME`; None also for a reference to anything else.

        Raises:
            DamagedError: if it cannot be read.
        """
        kind, _, name = reference.partition("/")
        return self.find(kind, name) if kind in KINDS else None

    def _find_at(self, target: Path) -> Artifact | None:
        self._finish_swap(target)
        for _ in range(3):  # a writer may swap the folders between the two calls
            try:
                if where := atomic.where_complete(target):
                    return read_artifact(where, target)
            except FileNotFoundError:
                continue
        return None

    def _finish_swap(self, target: Path) -> None:
        pauses = round(SWAP_SECONDS / PAUSE_SECONDS)  # not a time, in which this process may be paused itself
        while not (target / MANIFEST).exists() and atomic.interrupted(target):
            if not os.access(target.parent, os.W_OK) or not pauses:
                return  # a colleague's folder or a read-only disk: leave it as it is
            try:
                with locked(beside(target, "lock"), str(target), patience=0):
                    atomic.recover(target)
            except BusyError:
                time.sleep(PAUSE_SECONDS)  # the writer is alive, between the two renames
                pauses -= 1
            except (InputError, PermissionError):
                return  # no locks here: treat it like a read-only disk

    def _names_by_state(self, kind: str) -> tuple[list[Artifact], dict[str, str]]:
        self._check()
        folder = self.path / kind
        found, damaged = [], {}
        for name in sorted({_name_of(path) for path in folder.iterdir()}) if folder.is_dir() else []:
            try:
                artifact = self.find(kind, name)
            except DamagedError as error:
                damaged[name] = error.message
            except PermissionError as error:
                damaged[name] = f"no permission to read {error.filename}"
            else:
                found += [artifact] if artifact else []
        return sorted(found, key=lambda artifact: artifact.age), damaged

    def names(self, kind: str) -> list[str]:
        """Names of the undamaged finished artifacts of a kind, the newest last."""
        if self._made is not None and kind != EVALUATIONS:
            return [name for name in self._made.get(kind, ()) if self.has(kind, name)]
        return [artifact.name for artifact in self._names_by_state(kind)[0]]

    def has(self, kind: str, name: str) -> bool:
        """Whether `names` has that name; reads no other artifact."""
        try:
            return self.find(kind, name) is not None
        except (DamagedError, PermissionError):
            return False

    def newest(self, kind: str) -> Iterator[Artifact]:
        """The undamaged artifacts of a kind, newest first."""
        for name in reversed(self.names(kind)):
            artifact = self.find(kind, name)
            if artifact is not None and artifact.damage() is None:
                yield artifact

    def damaged(self, kind: str) -> dict[str, str]:
        """Names of the artifacts of a kind that cannot be read, with the reason."""
        return self._names_by_state(kind)[1]

    def unfinished(self, kind: str) -> list[str]:
        """Names with an unfinished build, running or interrupted."""
        folder = self.path / kind
        return sorted(p.name[1:-8] for p in folder.glob(".*.partial")) if folder.is_dir() else []

    def _being_written_for(self, kind: str) -> str | None:
        """`<kind>/<name>` that a living process is making, of this kind or one before it in KINDS; None without one."""
        kinds = list(KINDS)
        made = ((one, name) for one in kinds[: kinds.index(kind) + 1] for name in self.unfinished(one))
        return next((f"{one}/{name}" for one, name in made if is_being_written(self._target(one, name))), None)

    def sharded(self, kind: str) -> list[str]:
        """Names of the artifacts that are being made in shards."""
        return [name for name in self._with_shards(kind) if is_sharded(self.path / kind / name)]

    def unplanned(self, kind: str) -> list[str]:
        """Names whose first shard is making the plan of all, or was interrupted while it did."""
        names = [name for name in self._with_shards(kind) if not is_sharded(self.path / kind / name)]
        folders = {name: beside(self.path / kind / name, "shards") for name in names}
        return [name for name, folder in folders.items() if beside(folder / PLAN, "partial").is_dir()]

    def _with_shards(self, kind: str) -> list[str]:
        folder = self.path / kind
        return sorted(p.name[1:-7] for p in folder.glob(".*.shards")) if folder.is_dir() else []

    def _maker(self, kind: str) -> Kind:
        """The command to name where there is no artifact of that kind."""
        return WHOLE if kind == "students" and not self.names(TEACHER_VECTORS) else KINDS[kind]

    def get(self, kind: str, name: str | None = None) -> Artifact:
        """The artifact of that name; without a name, the newest.

        Raises:
            MissingArtifactError: if there is none; the hint is the command that makes one.
            DamagedError: if one of its files is missing or has a different size.
        """
        command = f"{self._maker(kind).usage} --work {shell_word(self.path)}"
        what = kind.replace("-", " ")
        if name is None:
            names = self.names(kind)
            if not names and self._made is not None:
                hint = "name one, or add the stage that makes it before this one"
                raise MissingArtifactError(f"no earlier stage of the recipe makes {what}", hint)
            if not names:
                missing = "" if self.path.exists() else " (there is no such folder)"
                if written := self._being_written_for(kind):
                    missing = f" ({written} is being made)"
                    command = f"sentcompress status --work {shell_word(self.path)}"
                if sharded := self.sharded(kind):
                    missing = " (shards are not merged yet)"
                    command = merge_command(kind, sharded[0], self.path)
                raise MissingArtifactError(f"no {what} in {self.path}{missing}", f"run: {command}")
            name = names[-1]
        artifact = self.find(kind, name)
        if artifact is None:
            names = self.names(kind)
            hint = did_you_mean(name, names) if names else f"run: {command}"
            if not fault_of_name(name) and is_sharded(self._target(kind, name)):
                hint = f"its shards are not merged yet; run: {merge_command(kind, name, self.path)}"
            raise MissingArtifactError(f"no {what} named {name!r} in {self.path}", hint)
        if damage := artifact.damage():
            raise damaged(artifact, damage)
        return artifact

    def _check(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"the work directory {self.path} is a file", "name a folder with `work`")


def is_sharded(target: Path) -> bool:
    """Whether the artifact at `target` is being made in shards."""
    return (beside(target, "shards") / PLAN / MANIFEST).is_file()


def merge_command(kind: str, name: str, work: Path) -> str:
    """The command that merges the shards of an artifact."""
    return shell_line(["sentcompress", "merge", f"{kind}/{name}", "--work", str(work)])


def is_being_written(target: Path) -> bool:
    """Whether a living process holds the lock of the artifact at `target`."""
    return is_locked(beside(target, "lock"))


def _name_of(path: Path) -> str:
    """The name of the artifact that a folder, or the hidden folder next to it, belongs to."""
    hidden = path.name.startswith(".") and path.suffix in (".partial", ".old")
    return path.name[1:].removesuffix(path.suffix) if hidden else path.name
