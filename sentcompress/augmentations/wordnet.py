"""WordNet: the specification of the augmentation, where the database is on this machine, and a small reader of it.

nltk's reader needs a file that Debian's package does not have, takes seconds to load in every worker, and nlpaug tries
to download the database if it is missing. Its format is documented in WordNet's manual pages wndb(5WN) and
morphy(7WN); this reader gives the same synonyms as nltk's (a test compares them).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
import mmap
import os
import re
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sentcompress.augmentations.base import Augmenter
from sentcompress.errors import InputError
from sentcompress.extras import check_installed

INSTALL_WORDNET = "install it: apt-get install wordnet-base, or: python -m nltk.downloader wordnet"
# nltk's names of the parts of speech, and the names of their files.
PARTS = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
_FILES = (
    *(f"{kind}.{part}" for part in PARTS.values() for kind in ("index", "data")),
    *(f"{part}.exc" for part in PARTS.values()),
    "cntlist.rev",
)
_SENSE_PARTS = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
_ENDINGS = {
    "n": "s:|ses:s|ves:f|xes:x|zes:z|ches:ch|shes:sh|men:man|ies:y",
    "v": "s:|ies:y|es:e|es:|ed:e|ed:|ing:e|ing:",
    "a": "er:|est:|er:e|est:e",
    "r": "",
}
_RULES = {
    part: [(old, new) for old, _, new in (rule.partition(":") for rule in rules.split("|")) if old]
    for part, rules in _ENDINGS.items()
}
_MARKER = re.compile(r"\((?:a|p|ip)\)$")
_TAGGER = "averaged_perceptron_tagger_eng"


@dataclass(frozen=True)
class DataFolder:
    """A folder of data files, or a zip archive of one, as from nltk's downloader."""

    path: Path

    def read(self, name: str) -> bytes:
        """All bytes of one file.

        Raises:
            InputError: if it is missing or cannot be read.
        """
        try:
            if self.path.suffix == ".zip":
                with zipfile.ZipFile(self.path) as archive:
                    return archive.read(f"{self.path.stem}/{name}")
            return (self.path / name).read_bytes()
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise InputError(
                f"{self.path} is incomplete: {name} cannot be read ({error})", "install it again"
            ) from None

    def view(self, name: str) -> bytes | mmap.mmap:
        """Like `read`, but mapped into memory if possible, so that processes share it."""
        if self.path.suffix == ".zip":
            return self.read(name)
        with (self.path / name).open("rb") as stream:
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)

    def digest(self, names: tuple[str, ...]) -> str:
        """SHA-256 over the named files, 64 hex digits."""
        whole = hashlib.sha256()
        for name in names:
            whole.update(hashlib.sha256(self.read(name)).digest())
        return whole.hexdigest()


def find_wordnet() -> DataFolder | None:
    """WordNet in nltk's data folders (NLTK_DATA first), or from Debian's package wordnet-base."""
    places = [root / "corpora" / name for root in _nltk_roots() for name in ("wordnet", "wordnet.zip")]
    return _first([*places, Path("/usr/share/wordnet")], "data.noun")


def find_tagger() -> DataFolder | None:
    """nltk's English perceptron tagger, if its data is installed."""
    places = [root / "taggers" / name for root in _nltk_roots() for name in (_TAGGER, f"{_TAGGER}.zip")]
    return _first(places, f"{_TAGGER}.weights.json")


def wordnet_digest(folder: DataFolder) -> str:
    """Identifies the release of the database."""
    return folder.digest(_FILES)


def tagger_digest(folder: DataFolder) -> str:
    """Identifies the release of the tagger."""
    return folder.digest(tuple(f"{_TAGGER}.{part}.json" for part in ("weights", "tagdict", "classes")))


def read_tagger(folder: DataFolder) -> tuple[Any, Any, Any]:
    """The tagger's weights, its dictionary of unambiguous words, and its tags."""
    weights, words, tags = (
        json.loads(folder.read(f"{_TAGGER}.{part}.json")) for part in ("weights", "tagdict", "classes")
    )
    return weights, words, tags


@dataclass(frozen=True)
class WordNetSpec:
    """Replace some words by synonyms, with nlpaug's SynonymAug.

    Attributes:
        wordnet: the folder of the database.
        tagger: the folder of nltk's tagger; with None, WordNet's counts decide the part of speech.
        share: the share of a sentence's tokens to replace (nlpaug's aug_p), at least one token and at most ten.
        seed: for the choice of words and synonyms.
    """

    wordnet: Path
    tagger: Path | None
    share: float = 0.3
    seed: int = 0

    source = "wordnet"
    in_workers = True

    @property
    def summary(self) -> str:
        return f"WordNet in {self.wordnet}, parts of speech by {'nltk' if self.tagger else 'WordNet itself'}"

    def describe(self) -> dict[str, Any]:
        tagger = f"nltk {tagger_digest(DataFolder(self.tagger))[:16]}" if self.tagger else "WordNet's counts"
        return {
            "aug_p": self.share,
            "seed": self.seed,
            "wordnet": wordnet_digest(DataFolder(self.wordnet))[:16],
            "tagger": tagger,
            "nlpaug": importlib.metadata.version("nlpaug"),
        }

    def load(self) -> Augmenter:
        from sentcompress.augmentations.synonyms import SynonymAugmenter

        return SynonymAugmenter(self)


def wordnet_spec(share: float, seed: int) -> WordNetSpec:
    """The specification with the data installed on this machine.

    Raises:
        InputError: if WordNet, nlpaug or nltk is not installed.
    """
    wordnet, tagger = find_wordnet(), find_tagger()
    if wordnet is None:
        raise InputError("WordNet is not installed", INSTALL_WORDNET)
    check_installed("nlpaug", "nltk")
    return WordNetSpec(wordnet.path, tagger.path if tagger else None, share, seed)


class WordNet:
    """Synonyms, base forms and frequencies of English words. Parts of speech are n, v, a and r."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._index = {part: dict(self._index_lines(part)) for part in PARTS}
        self._data = {part: folder.view(f"data.{name}") for part, name in PARTS.items()}
        self._irregular = {part: self._exceptions(part) for part in PARTS}
        self._synonyms: dict[tuple[str, str], tuple[str, ...]] = {}

    def base_forms(self, word: str, part: str) -> list[str]:
        """The forms of a word that are entries: "running" as a verb is "run" (morphy(7WN))."""
        lower = word.lower().replace(" ", "_")
        forms = self._irregular[part].get(lower)
        if forms is None:
            forms = [lower[: -len(old)] + new for old, new in _RULES[part] if lower.endswith(old)]
        return [form for form in dict.fromkeys([lower, *forms]) if form in self._index[part]]

    def synonyms(self, word: str, part: str) -> tuple[str, ...]:
        """The words of all synsets of a word, with repetitions, and with underscores for spaces."""
        key = (word.lower(), part)
        known = self._synonyms.get(key)
        if known is None:
            found = (
                self._synset(offset, part)
                for form in self.base_forms(word, part)
                for offset in self._offsets(form, part)
            )
            known = self._synonyms[key] = tuple(name for names in found for name in names)
        return known

    def likely_part(self, word: str) -> str | None:
        """The most frequent part of speech of a word by WordNet's counts; None for unknown words."""
        scores = {
            part: sum(self.counts.get((form, part), 0) for form in forms)
            for part in PARTS
            if (forms := self.base_forms(word, part))
        }
        return max(scores, key=lambda part: scores[part]) if scores else None

    @cached_property
    def counts(self) -> dict[tuple[str, str], int]:
        """How often each (entry, part of speech) occurs in the texts tagged by WordNet's authors."""
        counts: dict[tuple[str, str], int] = {}
        for line in io.StringIO(self._folder.read("cntlist.rev").decode("ascii", "replace")):
            sense, _, number = line.split()
            entry, _, rest = sense.partition("%")
            key = (entry, _SENSE_PARTS[rest[0]])
            counts[key] = counts.get(key, 0) + int(number)
        return counts

    def _index_lines(self, part: str) -> Iterator[tuple[str, str]]:
        for line in self._folder.read(f"index.{PARTS[part]}").decode("utf-8").splitlines():
            if not line.startswith(" "):
                entry, _, rest = line.partition(" ")
                yield entry, rest

    def _offsets(self, entry: str, part: str) -> list[int]:
        # pos synset_cnt p_cnt [ptr_symbol...] sense_cnt tagsense_cnt synset_offset...
        fields = self._index[part][entry].split()
        return [int(offset) for offset in fields[int(fields[2]) + 5 :]]

    def _synset(self, offset: int, part: str) -> list[str]:
        # synset_offset lex_filenum ss_type w_cnt(hex) word lex_id [word lex_id...] ...
        data = self._data[part]
        line = data[offset : data.find(b"\n", offset)].decode("utf-8")
        fields = line.split()
        return [_MARKER.sub("", word) for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2]]

    def _exceptions(self, part: str) -> dict[str, list[str]]:
        lines = self._folder.read(f"{PARTS[part]}.exc").decode("utf-8").splitlines()
        return {fields[0]: fields[1:] for fields in map(str.split, lines) if fields}


def _nltk_roots() -> list[Path]:
    """The folders in which nltk looks for data, without importing nltk."""
    named = [Path(entry) for entry in os.environ.get("NLTK_DATA", "").split(os.pathsep) if entry]
    inside = [Path(sys.prefix) / folder / "nltk_data" for folder in (".", "share", "lib")]
    shared = [Path(base) / "nltk_data" for base in ("/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib")]
    return [*named, Path(os.path.expanduser("~/nltk_data")), *inside, *shared]


def _first(places: list[Path], needed: str) -> DataFolder | None:
    for path in places:
        if (path.suffix == ".zip" and path.is_file()) or (path / needed).is_file():
            return DataFolder(path)
    return None
