"""Back-translation with apertium, a rule-based translator that runs offline on any CPU.

A batch goes through apertium's pipeline once in each direction. Every sentence ends with a null character, at which
all parts of the pipeline reset their state, so that its translation does not depend on its neighbours. Its number is
appended in a superblank (text that apertium does not translate), so that a lost sentence is detected.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentcompress.augmentations.base import Augmenter
from sentcompress.errors import InputError

INSTALL_APERTIUM = "apt-get install apertium apertium-eng-spa"
# Codes of English in the names of language pairs.
_ENGLISH = ("eng", "en")
# Special characters of apertium's stream format.
_SPECIAL = re.compile(r"([\^$/\[\]{}<>@\\*~])")
_ESCAPED = re.compile(r"\\(.)")
_NUMBERED = re.compile(r"\[(\d+)\]\s*$")
_QUOTED_PATH = re.compile(r"'([^']+)'")
_SENTENCE_END = re.compile(r"[.!?\u2026:;][\"'\u2019\u201d)\]]*$")
# Far above the usual time (3 ms per sentence and direction), to detect a pipeline that hangs.
_SECONDS = 60.0
_SECONDS_PER_SENTENCE = 0.5


@dataclass(frozen=True)
class ApertiumSpec:
    """Translate to other languages and back; copy k uses the k-th of `pivots` ("eng-spa", ...)."""

    pivots: tuple[str, ...]

    source = "back-translation"
    in_workers = True

    @property
    def summary(self) -> str:
        return f"apertium {', '.join(self.pivots)} and back"

    def describe(self) -> dict[str, Any]:
        return {"apertium": {pivot: _pair_digest(pivot) for pivot in self.pivots}}

    def load(self) -> Augmenter:
        return ApertiumAugmenter(self.pivots)


class ApertiumAugmenter:
    """Needs the program `apertium` and the language pairs of its pivots in both directions; see the module."""

    note = ""

    def __init__(self, pivots: Sequence[str]) -> None:
        self._pivots = pivots

    def augment(self, texts: Sequence[str], first_row: int, copy: int) -> list[str]:
        there = self._pivots[copy - 1]
        english, _, foreign = there.partition("-")
        translated = _translate(there, texts)
        returned = _translate(f"{foreign}-{english}", [text or "" for text in translated])
        return [_tidy(new, old) if new else old for old, new in zip(texts, returned, strict=True)]


def find_pivots() -> tuple[str, ...]:
    """The language pairs from English that are installed in both directions, as "eng-spa"."""
    if shutil.which("apertium") is None:
        return ()
    modes = {path.stem for path in _modes_folder().glob("*.mode")}
    names = sorted(modes)
    return tuple(
        name
        for name in names
        if name.count("-") == 1 and name.split("-")[0] in _ENGLISH and "-".join(reversed(name.split("-"))) in modes
    )


def check_apertium(pivots: Sequence[str]) -> None:
    """Raise InputError if an installed pair does not work."""
    for pivot in pivots:
        english, _, foreign = pivot.partition("-")
        for direction in (pivot, f"{foreign}-{english}"):
            try:
                _run(direction, ["test."])
            except _TranslationError as error:
                raise InputError(f"apertium {direction} does not work ({error})", INSTALL_APERTIUM) from None


class _TranslationError(Exception):
    """The translation of a batch is incomplete or failed."""


def _translate(direction: str, texts: Sequence[str]) -> list[str | None]:
    """The translations; None for sentences that apertium cannot translate.

    A batch that fails is split in half until the sentence that caused it is found.
    """
    try:
        return list(_run(direction, texts))
    except _TranslationError:
        if len(texts) == 1:
            return [None]
    middle = len(texts) // 2
    return _translate(direction, texts[:middle]) + _translate(direction, texts[middle:])


def _run(direction: str, texts: Sequence[str]) -> list[str]:
    stops = ["" if _SENTENCE_END.search(text) else "." for text in texts]
    lines = (
        _escape(text) + stop + f"[{number}]\0" for number, (text, stop) in enumerate(zip(texts, stops, strict=True))
    )
    command = ["apertium", "-u", "-z", "-f", "none", direction]
    try:
        done = subprocess.run(
            command,
            input="".join(lines).encode("utf-8", "replace"),
            capture_output=True,
            timeout=_SECONDS + _SECONDS_PER_SENTENCE * len(texts),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _TranslationError(str(error)) from None
    pieces = done.stdout.decode("utf-8", "replace").split("\0")
    if done.returncode != 0 or len(pieces) < len(texts):
        lines_of_error = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise _TranslationError(lines_of_error[-1] if lines_of_error else f"exit code {done.returncode}")
    return [_unwrap(piece, number, stop) for number, (piece, stop) in enumerate(zip(pieces, stops, strict=False))]


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text.replace("\0", " "))


def _unwrap(piece: str, number: int, stop: str) -> str:
    match = _NUMBERED.search(piece)
    if match is None or int(match.group(1)) != number:
        raise _TranslationError(f"the output has no sentence {number}")
    text = _ESCAPED.sub(r"\1", piece[: match.start()]).rstrip()
    return text.removesuffix(stop) if stop else text


def _tidy(new: str, old: str) -> str:
    """One space between words, and an initial capital if the original has one."""
    new = " ".join(new.split())
    if new and old[:1].isupper() and new[:1].islower():
        new = new[0].upper() + new[1:]
    return new


def _modes_folder() -> Path:
    return Path(os.environ.get("APERTIUM_DATADIR", "/usr/share/apertium")) / "modes"


def _pair_digest(pivot: str) -> str:
    """SHA-256 over the pipelines of both directions and all data files they name; the first 16 digits."""
    whole = hashlib.sha256()
    for direction in (pivot, "-".join(reversed(pivot.split("-")))):
        mode = (_modes_folder() / f"{direction}.mode").read_text(encoding="utf-8")
        whole.update(mode.encode())
        for name in _QUOTED_PATH.findall(mode):
            path = Path(name)
            if path.is_file():
                whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:16]
