"""Sentence pairs graded for similarity: our `score<TAB>sentence1<TAB>sentence2` files, alone or in folders.

A folder holds sets. A sub-folder is one set, and so is a loose file; files that share a year (`sts13-FNWN.tsv`)
or a sub-folder (`sts13/FNWN.test.tsv`) are subsets of one set. A file may name its split last in its stem
(`test.tsv`, `FNWN.test.tsv`); a file that names none counts as test. SentEval's own layout is read as it is,
wherever it stands in the folder.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentcompress.corpora import sts_senteval
from sentcompress.corpora.sts_senteval import SPLITS, Line
from sentcompress.corpora.text_files import COMPRESSED, find_columns, format_extension, open_lines
from sentcompress.errors import InputError

COLUMNS = ("score", "sentence1", "sentence2")
# What counts as a file of ours in a folder. Not .txt: SentEval's folder is full of other things called so.
EXTENSIONS = ("tsv", "tab")
# Every name under which a published set is found -> the name that papers print.
KNOWN_SETS = {
    **{f"sts{year}": f"STS{year}" for year in (12, 13, 14, 15, 16)},
    **dict.fromkeys(("stsb", "stsbenchmark", "stsbench"), "STS-B"),
    **dict.fromkeys(("sick", "sickr"), "SICK-R"),
}
YEAR = re.compile(r"(sts1[2-6])(?:-en-test)?(?:[-_.](.+))?", re.IGNORECASE)


@dataclass(frozen=True)
class StsSubset:
    """Graded pairs of one file.

    Attributes:
        name: what the subset is called within its set; empty when the set has no subsets.
        scores: the gold scores, any scale.
        first, second: the two sentences of each pair.
        files: what was read.
        dropped: pairs without a gold score.
        empty: pairs with an empty sentence, dropped as well.
    """

    name: str
    scores: tuple[float, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]
    files: tuple[Path, ...]
    dropped: int = 0
    empty: int = 0

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True)
class StsSet:
    """One set of the papers' tables: all its subsets of one split."""

    name: str
    subsets: tuple[StsSubset, ...]

    def __len__(self) -> int:
        return sum(len(subset) for subset in self.subsets)


def read_sts(paths: Sequence[Path], split: str = "test") -> list[StsSet]:
    """All sets found under files and folders, the published ones first, in the order of the papers' tables.

    A file that is named itself is read whatever split its name carries.

    Raises:
        InputError: nothing there, nothing of that split, a set found twice, or a file that cannot be read.
    """
    sets: list[StsSet] = []
    for path in paths:
        if not path.exists():
            raise InputError(f"no such file or folder: {path}", "give graded pairs: score<TAB>sentence1<TAB>sentence2")
        for found in _read_folder(path, split) if path.is_dir() else [_read_named_file(path)]:
            if any(found.name == other.name for other in sets):
                raise InputError(f"{found.name} occurs twice in what --sts names", "name each set once")
            sets.append(found)
    order = list(dict.fromkeys(KNOWN_SETS.values()))
    return sorted(sets, key=lambda s: (order.index(s.name) if s.name in order else len(order), s.name))


def read_sts_file(path: Path, name: str = "") -> StsSubset:
    """Graded pairs of one of our files, `.gz` and `.zst` too. A header line may name the columns in any order.

    Raises:
        InputError: too few columns or a score that is no number (with file and line), or no pair at all.
    """
    return _subset(name, _our_lines(path), (path,))


def set_name(raw: str) -> str:
    """The name that papers print for a published set, else the name as it is."""
    return KNOWN_SETS.get(re.sub(r"[-_ ]", "", raw.lower()), raw)


def _our_lines(path: Path) -> Iterator[Line]:
    places: list[int] | None = None
    for number, line in open_lines(path):
        if not line.strip():
            continue
        fields = line.split("\t")
        if places is None:
            names = [field.strip().lower() for field in fields]
            if "score" in names:
                places = find_columns(str(path), COLUMNS, names)
                continue
            places = [0, 1, 2]
        if len(fields) <= max(places):
            raise InputError(
                f"{path}, line {number}: {len(fields)} columns where {max(places) + 1} are needed",
                "a line is score<TAB>sentence1<TAB>sentence2",
            )
        score, first, second = (fields[place] for place in places)
        yield Line(path, number, score, first, second)


def _subset(name: str, lines: Iterable[Line], files: tuple[Path, ...]) -> StsSubset:
    scores: list[float] = []
    first: list[str] = []
    second: list[str] = []
    dropped = empty = 0
    for line in lines:
        left, right = line.first.strip(), line.second.strip()
        if not line.score.strip():
            dropped += 1
        elif not left or not right:
            empty += 1
        else:
            scores.append(_number(line))
            first.append(left)
            second.append(right)
    if not scores:
        raise InputError(f"{files[0]} holds no graded pair", "a line is score<TAB>sentence1<TAB>sentence2")
    return StsSubset(name, tuple(scores), tuple(first), tuple(second), files, dropped, empty)


def _number(line: Line) -> float:
    try:
        value = float(line.score)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            f"{line.path}, line {line.number}: the score {line.score.strip()[:40]!r} is no number",
            "a line is score<TAB>sentence1<TAB>sentence2",
        )
    return value


def _read_named_file(path: Path) -> StsSet:
    senteval = sts_senteval.recognise_file(path)
    if senteval:
        return StsSet(set_name(senteval.set_name), (_subset("", senteval.lines(), senteval.files),))
    stem, _ = _split_stem(path)
    return StsSet(set_name(stem or path.resolve().parent.name), (read_sts_file(path),))


def _read_folder(folder: Path, split: str) -> list[StsSet]:
    """Sets of a folder and its sub-folders; `found` maps split -> set -> subset -> how to read it."""
    found: dict[str, dict[str, list[tuple[str, Path | sts_senteval.Part]]]] = {}
    inside = sorted(path for path in [folder, *folder.rglob("*")] if path.is_dir())
    for place in inside:
        parts = sts_senteval.recognise(place)
        for part in parts:
            found.setdefault(part.split, {}).setdefault(set_name(part.set_name), []).append((part.subset, part))
        for path in () if parts else sorted(place.iterdir()):
            if path.is_file() and format_extension(path) in EXTENSIONS and not path.name.startswith("."):
                set_, subset, in_split = _place_of(path, is_top=place == folder)
                found.setdefault(in_split, {}).setdefault(set_, []).append((subset, path))
    if split not in found:
        there = f"splits there: {', '.join(sorted(found))}" if found else "its files end in .tsv, .tsv.gz or .tsv.zst"
        raise InputError(f"{folder} has no graded pairs of the split {split!r}", there)
    return [_read_set(name, members) for name, members in found[split].items()]


def _read_set(name: str, members: list[tuple[str, Path | sts_senteval.Part]]) -> StsSet:
    subsets: list[StsSubset] = []
    for subset, source in members:
        if name == "STS13" and subset.upper() == "SMT":
            continue  # its licence keeps it out of every copy, so no published score contains it
        if any(subset == other.name for other in subsets):
            raise InputError(f"{name} {subset} occurs twice".rstrip(), f"one of them: {source}")
        if isinstance(source, Path):
            subsets.append(read_sts_file(source, subset))
        else:
            subsets.append(_subset(subset, source.lines(), source.files))
    if not subsets:
        raise InputError(f"{name} has nothing but the subset SMT, which is never scored")
    return StsSet(name, tuple(subsets))


def _split_stem(path: Path) -> tuple[str, str]:
    """`FNWN.test.tsv.gz` -> ("FNWN", "test"); without a split in its name, test."""
    name = Path(path.name)
    while name.suffix.lower() in COMPRESSED or format_extension(name) in (*EXTENSIONS, "txt"):
        name = name.with_suffix("")
    match = re.fullmatch(rf"(?:(.*)[-_.])?({'|'.join(SPLITS)})", str(name), re.IGNORECASE)
    return (match[1] or "", match[2].lower()) if match else (str(name), "test")


def _place_of(path: Path, *, is_top: bool) -> tuple[str, str, str]:
    """Set, subset and split of one of our files."""
    stem, split = _split_stem(path)
    folder = path.resolve().parent.name
    year = YEAR.fullmatch(stem)
    if year:
        return set_name(year[1]), year[2] or "", split
    if not stem:
        return set_name(folder), "", split
    if not is_top or set_name(folder) in KNOWN_SETS.values():
        return set_name(folder), "" if set_name(stem) == set_name(folder) else stem, split
    return set_name(stem), "", split
