"""Unfinished builds: `.name.partial`, which the same request resumes and another one replaces."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sentcompress.errors import InputError, SentcompressError
from sentcompress.json_documents import parse_json, read_json, to_json, write_json
from sentcompress.plain_text import shortened
from sentcompress.progress import Reporter
from sentcompress.store import atomic
from sentcompress.store.atomic import SCAFFOLD, beside
from sentcompress.store.request import REQUEST, Request

# Where an unfinished build keeps the error that ended it.
FAILURE = f"{SCAFFOLD}/failure.json"
# Differences between two requests that an error shows, and characters of each value.
SHOWN_CHANGES, SHOWN_TEXT = 3, 60


def changes_between(said: Mapping[str, Any], request: Request) -> str:
    """The differences between a request and an earlier one, in words; empty if there are none.

    Args:
        said: the manifest or the request of the earlier artifact; empty if there is none.
    """
    if not said:
        return ""
    if said.get("command") != request.command:
        return f"by {said.get('command')}"
    before, now = said.get("parameters"), request.as_dict()["parameters"]
    if not isinstance(before, Mapping):
        return ""
    now = parse_json(to_json(now), "the request")
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    shown = [f"{name}: {_short(before.get(name))}, now {_short(now.get(name))}" for name in names[:SHOWN_CHANGES]]
    return "; ".join([*shown, *(["..."] if len(names) > SHOWN_CHANGES else [])])


def _short(value: Any) -> str:
    text = "not given" if value is None else value if isinstance(value, str) else to_json(value, indent=None)
    return shortened(text, SHOWN_TEXT)


def is_empty(partial: Path) -> bool:
    """Whether a build has written nothing, so that there is nothing to resume."""
    return [path.name for path in partial.iterdir()] == [REQUEST]


def open_partial(request: Request, target: Path, force: bool, reporter: Reporter) -> tuple[Path, bool]:
    """The unfinished build of a request, and whether it is resumed; another one is removed. Needs the lock."""
    partial = beside(target, "partial")
    asked = partial / REQUEST
    if partial.exists() or partial.is_symlink():
        if (why := _why_not_resumed(partial, request, force)) is None:
            reporter.step(f"{request.command}: resuming the unfinished {request.kind}/{request.name}")
            remove_leftovers(partial)
            atomic.remove(partial / FAILURE)
            return partial, True
        reporter.step(f"{request.command}: discarding the unfinished {request.kind}/{request.name} ({why})")
        atomic.drop(partial, first=REQUEST)
    partial.mkdir()
    atomic.fsync(partial.parent)
    said = {
        **request.as_dict(),
        "line": list(request.line),
        "fingerprint": request.fingerprint,
        **({"forced": True} if force else {}),
    }
    with atomic.written(asked) as path:
        write_json(path, said)
    return partial, False


def remove_leftovers(partial: Path) -> None:
    """Remove the temporary files of a killed process: our `.name.tmp` and safetensors' `.tmpXXXXXX`."""
    for pattern in (".*.tmp", ".tmp*"):
        for leftover in list(partial.rglob(pattern)):
            atomic.remove(leftover)


def _why_not_resumed(partial: Path, request: Request, force: bool) -> str | None:
    """Why a partial build cannot be resumed, or None.

    Raises:
        InputError: if it could be, but has files with further hard links: to write to them would change other files.
    """
    found = [] if partial.is_symlink() else [path.lstat() for path in partial.rglob("*")]
    files = [one for one in found if not stat.S_ISDIR(one.st_mode)]
    if partial.is_symlink() or not all(stat.S_ISREG(one.st_mode) for one in files):
        return "it contains links or special files"
    said = read_request(partial)
    if said.get("fingerprint") != request.fingerprint:
        return "its parameters or inputs differ"
    linked = any(one.st_nlink > 1 for one in files)
    # --force starts over once: after an interruption, the same command resumes that rebuild.
    if force and (linked or not said.get("forced")):
        return "`force`"
    if linked:
        raise InputError(
            f"the unfinished {request.kind}/{request.name} has hard links, as after `cp -al`",
            (f"replace {partial} by a copy of it (cp -a)", "use `force` to start over"),
        )
    return None


def drop_superseded(request: Request, target: Path, reporter: Reporter) -> None:
    """Remove the unfinished rebuild of an interrupted --force, if the finished artifact is used."""
    partial = beside(target, "partial")
    said = read_request(partial)
    if partial.is_dir() and (not said or said.get("fingerprint") == request.fingerprint):
        reporter.note(f"{request.command}: removed the unfinished rebuild of an interrupted `force`")
        atomic.drop(partial, first=REQUEST)


def keep_failure(partial: Path, error: SentcompressError) -> None:
    """Keep the error that ended a build, for `status`; not if nothing was written that could be resumed."""
    if partial.is_dir() and not is_empty(partial):
        with suppress(OSError), atomic.written(partial / FAILURE) as path:
            write_json(path, [error.message, *error.alternatives])


def read_failure(partial: Path) -> SentcompressError | None:
    """The error that ended an unfinished build; None if it was interrupted, or is still running."""
    try:
        message, *alternatives = map(str, read_json(partial / FAILURE))
    except (InputError, OSError, TypeError, ValueError):
        return None
    return SentcompressError(message, alternatives)


def read_request(partial: Path) -> dict[str, Any]:
    """The request of an unfinished build; an empty dict if it cannot be read."""
    try:
        said = read_json(partial / REQUEST)
    except (InputError, OSError):
        return {}
    return said if isinstance(said, dict) else {}
