"""The work directory: finding artifacts, and building them under a lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from sentcompress.commands import takes_name
from sentcompress.errors import (
    BusyError,
    DamagedError,
    InputError,
    MissingArtifactError,
    SentcompressError,
    UsageError,
)
from sentcompress.progress import SILENT, Reporter
from sentcompress.signals import StoppedError
from sentcompress.store import atomic
from sentcompress.store.atomic import beside
from sentcompress.store.build import Build
from sentcompress.store.locking import PATIENCE_SECONDS, holder_of, locked_when_free
from sentcompress.store.lookup import Lookup, is_being_written, is_sharded, merge_command
from sentcompress.store.manifests import Artifact
from sentcompress.store.names import check_name
from sentcompress.store.request import Request
from sentcompress.store.running import PROGRESS
from sentcompress.store.unfinished import (
    changes_between,
    drop_superseded,
    is_empty,
    keep_failure,
    open_partial,
    read_request,
)

# What a signal left of a build.
KEPT = "finished parts are kept; run the same command again to resume"
NOTHING_KEPT = "no part was finished yet; run the same command again"


class WorkDirectory(Lookup):
    """The folder that holds all artifacts of one compression project."""

    def __init__(self, path: Path | str, *, wait: float = 0.0) -> None:
        """A work directory, which need not exist.

        Args:
            wait: seconds that `build` waits for another process that makes the same artifact.
        """
        super().__init__(path)
        self.wait = wait
        self._looking = False

    def waiting(self, seconds: float) -> Self:
        """The same work directory with another `wait`."""
        return self._with(wait=seconds)

    def looking(self) -> Self:
        """The same work directory, read-only: to build what is not up to date raises MissingArtifactError."""
        return self._with(_looking=True)

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
        self,
        request: Request,
        *,
        force: bool = False,
        merging: bool = False,
        may_take: Callable[[], bool] = lambda: True,
        reporter: Reporter = SILENT,
    ) -> Iterator[Build]:
        """Build the artifact of `request` under a lock, resuming an interrupted build.

        `build.fresh` is the finished artifact if the same request was completed before and `force` is not given; then
        there is nothing to do. `force` rebuilds it; if interrupted, the same request with `force` resumes.

        Args:
            merging: whether the artifact is merged from its shards.
            may_take: whether the name of the request is still free, for a name that was chosen because it was. It is
                called under the lock, before anything is replaced, even with `force`; also repeatedly while another
                process holds the lock, so that a process which has taken the name is not waited for.

        Raises:
            BusyError: if another process is building the same artifact, or has taken the name.
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
        with locked_when_free(beside(target, "lock"), str(target), patience, reporter, may_take) as lock:
            atomic.recover(target)
            if not force and (done := self._fresh(request, reporter)):
                drop_superseded(request, target, reporter)
                yield Build(request, target, target, done, resumed=False)
                return
            if not may_take():
                raise BusyError(
                    f"{request.kind}/{request.name} was taken by another process meanwhile", "run the command again"
                )
            if not force:
                self._keep_what_is_there(request, target)
                if not merging and is_sharded(target):
                    raise UsageError(
                        f"{request.command}: {request.kind}/{request.name} is being made in shards",
                        (
                            f"run: {merge_command(request.kind, request.name, self.path)}",
                            "choose another `name`",
                            "use `force` to make it without shards",
                        ),
                    )
            partial, resumed = open_partial(request, target, force, reporter)
            build = Build(request, target, partial, None, resumed)
            build.check = lock.check
            with _kept_for_resuming(partial), build.until_finished as until_finished:
                until_finished.enter_context(reporter.recorded(partial / PROGRESS))
                yield build

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
        """Raise MissingArtifactError with the reason why an artifact is not up to date, if nothing may be built."""
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
                renamed = ["choose another `name`"] if takes_name(request.command) else []
                raise UsageError(
                    f"{request.command}: {what}{request.kind}/{request.name} already exists with different options "
                    f"({changes})",
                    (*renamed, "use `force` to replace it"),
                )

    def _make_folder(self, folder: Path) -> None:
        self._check()
        try:
            atomic.make_folder(folder)
        except (FileExistsError, NotADirectoryError):
            raise InputError(
                f"cannot create {folder}: a file is in the way", "name another folder with `work`"
            ) from None


@contextmanager
def _kept_for_resuming(partial: Path) -> Iterator[None]:
    """Keep what a build has written if it fails, unless the same request would fail again or nothing was written."""
    try:
        yield
    except UsageError:
        atomic.remove(partial)  # a wrong request fails again, so there is nothing to resume
        raise
    except BusyError:
        raise  # another process may have begun to build the same
    except SentcompressError as error:
        keep_failure(partial, error)
        raise
    except StoppedError as stop:
        if partial.is_dir():  # otherwise the artifact is complete
            stop.hint = stop.hint or (NOTHING_KEPT if is_empty(partial) else KEPT)
        raise
    finally:
        if partial.is_dir() and is_empty(partial):
            atomic.remove(partial)  # nothing was written, so there is nothing to resume


def _check_request(request: Request) -> None:
    check_name(request.name)
    if (own := f"{request.kind}/{request.name}") in request.inputs:
        raise UsageError(f"{own} cannot be its own input", "choose another `name`")
