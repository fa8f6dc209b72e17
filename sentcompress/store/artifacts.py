"""Reading and building the artifacts of a work directory."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from sentcompress.documents import to_json
from sentcompress.errors import BusyError, DamagedError, InputError, MissingArtifactError, UsageError, did_you_mean
from sentcompress.plain_text import shell_line, shell_word
from sentcompress.progress import SILENT, Reporter
from sentcompress.signals import StoppedError
from sentcompress.store import atomic
from sentcompress.store.atomic import MANIFEST, SCAFFOLD, beside
from sentcompress.store.locking import PATIENCE_SECONDS, PAUSE_SECONDS, holder_of, is_locked, locked, locked_when_free
from sentcompress.store.manifests import (
    KINDS,
    LOG,
    REQUEST,
    Artifact,
    Request,
    combined_digest,
    damaged,
    file_digest,
    installed_libraries,
    read_artifact,
    sealed,
)
from sentcompress.store.names import check_name, fault_of_name
from sentcompress.store.running import PROGRESS
from sentcompress.store.unfinished import (
    changes_between,
    drop_superseded,
    is_empty,
    open_partial,
    read_request,
    remove_leftovers,
)

# How long a reader waits for a living writer that is between the two renames of a swap.
SWAP_SECONDS = 5.0
# The kind that is looked up by what an artifact was made of, and never chosen as the newest.
SEARCHED = "evaluations"
# What a signal left of a build.
KEPT = "finished parts are kept; run the same command again to resume"
NOTHING_KEPT = "no part was finished yet; run the same command again"
# In the folder of an artifact's shards, the one that says how it is divided.
PLAN = "plan"


class Build:
    """An artifact that is being built; see `WorkDirectory.build`."""

    def __init__(self, request: Request, target: Path, partial: Path, fresh: Artifact | None, resumed: bool) -> None:
        # What ends before the artifact is put in its place.
        self.until_finished = ExitStack()
        self.request = request
        self.target = target
        self.path = partial
        self.fresh = fresh
        self.resumed = resumed
        self._started = time.monotonic()

    def has(self, name: str) -> bool:
        """Whether a file of this name is complete, written by this run or by the run that it resumes."""
        return (self.path / name).exists()

    def write(self, name: str) -> AbstractContextManager[Path]:
        """A path to write a file or folder to; it gets its final name when the block ends without an error.

        Files that are needed only during the build go into the folder SCAFFOLD, which `finish` removes.
        """
        return atomic.written(self.path / name)

    def remove(self, name: str) -> None:
        """Remove a file or folder that an interrupted run wrote."""
        atomic.remove(self.path / name)

    def finish(self, facts: Mapping[str, Any]) -> Artifact:
        """Write the manifest and move the artifact into place, replacing an older one."""
        self.until_finished.close()
        remove_leftovers(self.path)
        files: dict[str, dict[str, Any]] = {
            path.relative_to(self.path).as_posix(): {"sha256": file_digest(path), "bytes": path.stat().st_size}
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and self._is_lasting(path)
        }
        lasting = {name: entry["sha256"] for name, entry in files.items() if Path(name).name != LOG}
        manifest = {
            **self.request.as_dict(),
            "line": list(self.request.line),
            "fingerprint": self.request.fingerprint,
            "digest": combined_digest(lasting),
            "files": files,
            "facts": dict(facts),
            "libraries": installed_libraries(),
            "seconds": round(time.monotonic() - self._started, 3),
            "finished": datetime.now(UTC).isoformat(timespec="microseconds"),
        }
        atomic.fsync_tree(self.path)
        with self.write(MANIFEST) as path:
            path.write_text(to_json(sealed(manifest)) + "\n", encoding="utf-8")
        atomic.swap(self.path, self.target)
        return read_artifact(self.target, self.target)

    def _is_lasting(self, path: Path) -> bool:
        """Whether a file of the build belongs to the finished artifact and its digest."""
        name = path.relative_to(self.path)
        return name.parts[0] != SCAFFOLD and str(name) not in (MANIFEST, REQUEST)


class WorkDirectory:
    """The folder that holds all artifacts of one compression project."""

    def __init__(self, path: Path | str, *, wait: float = 0.0) -> None:
        """A work directory, which need not exist.

        Args:
            wait: seconds that `build` waits for another process that makes the same artifact.
        """
        self.path = Path(path)
        self.wait = wait
        # Kind -> names, the newest last, of what defaults may be chosen from; None for everything.
        self._made: Mapping[str, Sequence[str]] | None = None
        self._looking = False

    def waiting(self, seconds: float) -> Self:
        """The same work directory with another `wait`."""
        return self._with(wait=seconds)

    def within(self, made: Mapping[str, Sequence[str]]) -> Self:
        """The same work directory, in which only these artifacts count as `names`, `newest` and defaults.

        Evaluations are not restricted: they are looked up by the digest of what they measured.

        Args:
            made: kind -> names, the newest last; what is added to it later counts too.
        """
        return self._with(_made=made)

    def looking(self) -> Self:
        """The same work directory, in which nothing is built: what is not up to date is a MissingArtifactError."""
        return self._with(_looking=True)

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
        self._finish_swap(target)
        for _ in range(3):  # a writer may swap the folders between the two calls
            try:
                if where := atomic.where_complete(target):
                    return read_artifact(where, target)
            except FileNotFoundError:
                continue
        return None

    def _finish_swap(self, target: Path) -> None:
        deadline = time.monotonic() + SWAP_SECONDS
        while not (target / MANIFEST).exists() and atomic.interrupted(target):
            if not os.access(target.parent, os.W_OK) or time.monotonic() > deadline:
                return  # a colleague's folder or a read-only disk: leave it as it is
            try:
                with locked(beside(target, "lock"), str(target), patience=0):
                    atomic.recover(target)
            except BusyError:
                time.sleep(PAUSE_SECONDS)  # the writer is alive, between the two renames
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
        # A date in the future is wrong: count it as the oldest, or it would remain the newest.
        return sorted(found, key=lambda a: (not a.from_the_future, a.finished)), damaged

    def names(self, kind: str) -> list[str]:
        """Names of the undamaged finished artifacts of a kind, the newest last."""
        if self._made is not None and kind != SEARCHED:
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

    def sharded(self, kind: str) -> list[str]:
        """Names of the artifacts that are being made in shards."""
        folder = self.path / kind
        names = sorted(p.name[1:-7] for p in folder.glob(".*.shards")) if folder.is_dir() else []
        return [name for name in names if is_sharded(folder / name)]

    def get(self, kind: str, name: str | None = None) -> Artifact:
        """The artifact of that name; without a name, the newest.

        Raises:
            MissingArtifactError: if there is none; the hint is the command that makes one.
            DamagedError: if one of its files is missing or has a different size.
        """
        command = f"{KINDS[kind].usage} --work {shell_word(self.path)}"
        what = kind.replace("-", " ")
        if name is None:
            names = self.names(kind)
            if not names and self._made is not None:
                hint = "name one, or add the stage that makes it before this one"
                raise MissingArtifactError(f"no earlier stage of the recipe makes {what}", hint)
            if not names:
                missing = "" if self.path.exists() else " (there is no such folder)"
                if sharded := self.sharded(kind):
                    missing = " (shards are not merged yet)"
                    command = _merging(kind, sharded[0], self.path)
                raise MissingArtifactError(f"no {what} in {self.path}{missing}", f"run: {command}")
            name = names[-1]
        artifact = self.find(kind, name)
        if artifact is None:
            names = self.names(kind)
            hint = did_you_mean(name, names) if names else f"run: {command}"
            if not fault_of_name(name) and is_sharded(self._target(kind, name)):
                hint = f"its shards are not merged yet; run: {_merging(kind, name, self.path)}"
            raise MissingArtifactError(f"no {what} named {name!r} in {self.path}", hint)
        if damage := artifact.damage():
            raise damaged(artifact, damage)
        return artifact

    def settled(self, request: Request, *, force: bool = False, reporter: Reporter = SILENT) -> Artifact | None:
        """The finished artifact, if the same request was completed before and `force` is not given.

        Raises:
            UsageError: as `build` does.
        """
        _check_request(request)
        if force:
            return None
        if done := self._fresh(request, reporter):
            return done
        self._refuse_to_build(request)
        self._keep_what_is_there(request, self._target(request.kind, request.name))
        return None

    @contextmanager
    def build(
        self, request: Request, *, force: bool = False, merging: bool = False, reporter: Reporter = SILENT
    ) -> Iterator[Build]:
        """Build the artifact of `request` under a lock, resuming an interrupted build.

        `build.fresh` is the finished artifact if the same request was completed before and `force` is not given; then
        there is nothing to do. `force` rebuilds it; if interrupted, the same request with `force` resumes.

        Args:
            merging: the artifact is put together of its shards.

        Raises:
            BusyError: if another process is building the same artifact.
            MissingArtifactError: if it is not up to date, in a work directory that is `looking`.
            UsageError: if the artifact would replace one of its own inputs, or, without `force`, a finished or
                unfinished artifact that was requested with different options, or one that is being made in shards.
        """
        _check_request(request)
        target = self._target(request.kind, request.name)
        if not self._looking:
            self._make_folder(target.parent)
        writable = os.access(target.parent, os.W_OK) and not self._looking
        if not writable and not force and (done := self._fresh(request, reporter)):
            yield Build(request, target, target, done, resumed=False)  # nothing to write, no lock to take
            return
        self._refuse_to_build(request)
        patience = max(self.wait, PATIENCE_SECONDS)
        with locked_when_free(beside(target, "lock"), str(target), patience, reporter):
            atomic.recover(target)
            if not force and (done := self._fresh(request, reporter)):
                drop_superseded(request, target, reporter)
                yield Build(request, target, target, done, resumed=False)
                return
            if not force:
                self._keep_what_is_there(request, target)
                if not merging and is_sharded(target):
                    raise UsageError(
                        f"{request.command}: {request.kind}/{request.name} is being made in shards",
                        f"run: {_merging(request.kind, request.name, self.path)}; or choose another `name`, or use "
                        "`force` to make it without shards",
                    )
            partial, resumed = open_partial(request, target, force, reporter)
            build = Build(request, target, partial, None, resumed)
            try:
                with build.until_finished as until_finished:
                    until_finished.enter_context(reporter.recorded(partial / PROGRESS))
                    yield build
            except UsageError:
                atomic.remove(partial)  # a wrong request fails again, so there is nothing to resume
                raise
            except StoppedError as stop:
                stop.hint = stop.hint or (NOTHING_KEPT if is_empty(partial) else KEPT)
                raise
            finally:
                if partial.is_dir() and is_empty(partial):
                    atomic.remove(partial)  # nothing was written, so there is nothing to resume

    def _fresh(self, request: Request, reporter: Reporter) -> Artifact | None:
        """The finished, undamaged artifact of the same request, or None."""
        try:
            current = self.find(request.kind, request.name)
        except DamagedError as error:
            reporter.warn(f"{error.message}; it will be rebuilt")
            return None
        if current is None or current.fingerprint != request.fingerprint:
            return None
        if damage := current.damage():
            reporter.warn(f"{current.reference} is damaged ({damage}); it will be rebuilt")
            return None
        reporter.note(f"{request.command}: {current.reference} is up to date, skipped (`force` to rerun)")
        return current

    def _refuse_to_build(self, request: Request) -> None:
        """Say why an artifact is not up to date, if that is all that is asked."""
        if not self._looking:
            return
        target = self._target(request.kind, request.name)
        if is_being_written(target):
            state = f"is being written by {holder_of(beside(target, 'lock'))}"
        elif is_sharded(target):
            state = "is being made in shards, which are not merged yet"
        elif self.has(request.kind, request.name):
            state = "is not up to date: it was made with other options or inputs, or is damaged"
        else:
            state = "is unfinished" if beside(target, "partial").is_dir() else "is missing"
        raise MissingArtifactError(f"{request.kind}/{request.name} {state}")

    def _keep_what_is_there(self, request: Request, target: Path) -> None:
        """Refuse to replace a finished or unfinished artifact that was requested with different options.

        It is rebuilt if only its inputs have changed, or if an older version of the command made it.
        """
        try:
            finished = self.find(request.kind, request.name)
        except DamagedError:
            finished = None
        partial = read_request(beside(target, "partial"))
        for said, what in ((finished.manifest if finished else {}, ""), (partial, "an unfinished ")):
            if said.get("command") == request.command and said.get("version") != request.version:
                continue
            if changes := changes_between(said, request):
                raise UsageError(
                    f"{request.command}: {what}{request.kind}/{request.name} already exists with different options "
                    f"({changes})",
                    "choose another `name`, or use `force` to replace it",
                )

    def _check(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"the work directory {self.path} is a file", "name a folder with `work`")

    def _make_folder(self, folder: Path) -> None:
        self._check()
        try:
            atomic.make_folder(folder)
        except (FileExistsError, NotADirectoryError):
            raise InputError(
                f"cannot create {folder}: a file is in the way", "name another folder with `work`"
            ) from None


def _check_request(request: Request) -> None:
    check_name(request.name)
    if (own := f"{request.kind}/{request.name}") in request.inputs:
        raise UsageError(f"{own} cannot be its own input", "choose another `name`")


def is_sharded(target: Path) -> bool:
    """Whether the artifact at `target` is being made in shards."""
    return (beside(target, "shards") / PLAN / MANIFEST).is_file()


def _merging(kind: str, name: str, work: Path) -> str:
    return shell_line(["sentcompress", "merge", f"{kind}/{name}", "--work", str(work)])


def is_being_written(target: Path) -> bool:
    """Whether a living process holds the lock of the artifact at `target`."""
    return is_locked(beside(target, "lock"))


def _name_of(path: Path) -> str:
    """The name of the artifact that a folder, or the hidden folder next to it, belongs to."""
    hidden = path.name.startswith(".") and path.suffix in (".partial", ".old")
    return path.name[1:].removesuffix(path.suffix) if hidden else path.name
