"""Sentence pairs graded for similarity: `score<TAB>sentence1<TAB>sentence2` files, alone or in folders.

A folder holds sets. A sub-folder is one set, and so is a file at the top; files that share a year (`sts13-FNWN.tsv`)
or a sub-folder (`sts13/FNWN.test.tsv`) are subsets of one set. The stem of a file can end in its split (`test.tsv`,
`FNWN.test.tsv`); a file without one counts as test. Other layouts are in `sts_sources.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sentcompress.corpora.byte_streams import COMPRESSED, format_extension
from sentcompress.corpora.delimited import USABLE, headed_rows, parse_number
from sentcompress.corpora.sts_sources import (
    COLUMNS,
    GradedLine,
    StsPart,
    hub_names,
    hub_part,
    senteval_file,
    senteval_parts,
)
from sentcompress.corpora.text_files import BadRecords, HeldText
from sentcompress.errors import InputError, path_hint

SPLITS = ("train", "dev", "test")
STS_B = "STS-B"
FORM = "a line is score<TAB>sentence1<TAB>sentence2"
# Files of ours in a folder. Not .txt: SentEval's folder has many other files with that extension.
EXTENSIONS = ("tsv", "tab")
# Every name under which a published set is found -> the name that papers print.
KNOWN_SETS = {
    **{f"sts{year}": f"STS{year}" for year in (12, 13, 14, 15, 16)},
    **dict.fromkeys(("stsb", "stsbenchmark", "stsbench"), STS_B),
    **dict.fromkeys(("sick", "sickr"), "SICK-R"),
}
# Graded pairs of the published test sets. Copies of other sizes are in circulation, and their scores are not
# comparable: STS13 with SMT, and a SICK-R with the training pairs in it.
OFFICIAL_PAIRS = {
    "STS12": 3108,
    "STS13": 1500,
    "STS14": 3750,
    "STS15": 3000,
    "STS16": 1186,
    "STS-B": 1379,
    "SICK-R": 4927,
}
_YEAR = re.compile(r"(sts1[2-6])(?:-en-test)?(?:[-_.](.+))?", re.IGNORECASE)


@dataclass(frozen=True)
class StsSubset:
    """Graded pairs of one file, or of one data set on the hub.

    Attributes:
        name: the name of the subset within its set; empty if the set has no subsets.
        scores: the gold scores, on any scale.
        first, second: the two sentences of each pair.
        files: what was read.
        dropped: pairs without a gold score.
        empty: pairs with an empty sentence, dropped as well.
        bad: lines that cannot be read and were skipped on request.
        hub: reference and digest of a data set on the hub, for the request.
    """

    name: str
    scores: tuple[float, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]
    files: tuple[Path, ...]
    dropped: int = 0
    empty: int = 0
    bad: int = 0
    hub: tuple[str, str] | None = None

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True)
class StsSet:
    """One set of the papers' tables: all its subsets of one split."""

    name: str
    split: str
    subsets: tuple[StsSubset, ...]

    def __len__(self) -> int:
        return sum(len(subset) for subset in self.subsets)


def read_sts(sources: Sequence[Path | str], split: str = "test", bad: BadRecords | None = None) -> list[StsSet]:
    """All sets in files, folders and data sets on the hub: the published ones in the order of the papers, then others.

    A file that is named itself is read regardless of the split in its name.

    Args:
        sources: paths and names.
        split: one of SPLITS.
        bad: what to do with a line that cannot be read; by default the first one is an error.

    Raises:
        InputError: a missing source, no pairs of that split, a set found twice, or a file that cannot be read.
    """
    bad = bad or BadRecords()
    sets: list[StsSet] = []
    for source in sources:
        for found in _read_source(source, split, bad):
            if any(found.name == other.name for other in sets):
                raise InputError(f"{found.name} occurs twice in `sts`", "name each set once")
            sets.append(found)
    order = list(dict.fromkeys(KNOWN_SETS.values()))
    return sorted(sets, key=lambda s: (order.index(s.name) if s.name in order else len(order), s.name))


def read_sts_file(path: Path, bad: BadRecords | None = None) -> StsSubset:
    """Graded pairs of one of our files, also `.gz` and `.zst`. A header line can name the columns in any order.

    Raises:
        InputError: too few columns or a score that is not a number (with file and line), or no pair at all.
    """
    return _read_part(_our_part("", "", "", path), bad or BadRecords())


def read_dev(path: Path) -> StsSubset:
    """Graded pairs for checkpoint selection.

    Raises:
        InputError: see `read_sts_file`; or all pairs have the same score.
    """
    pairs = read_sts_file(path)
    if len(set(pairs.scores)) < 2:
        raise InputError(f"{path}: all pairs have the same score", "at least two different scores are needed")
    return pairs


def graded_dev_file(folder: Path) -> Path | None:
    """A file of graded pairs in a folder or its sub-folders that is named as a dev split; None if there is none."""
    for place in _folders(folder):
        for path in _our_files(place):
            if _split_stem(path)[1] == "dev":
                try:
                    read_dev(path)
                except InputError:
                    continue
                return path
    return None


def set_name(raw: str) -> str:
    """The name that papers print for a published set; other names unchanged."""
    return KNOWN_SETS.get(re.sub(r"[-_ ]", "", raw.lower()), raw)


def _read_source(source: Path | str, split: str, bad: BadRecords) -> list[StsSet]:
    if names := hub_names(source, split):
        return [_single(hub_part(name, split), bad) for name in names]
    path = Path(source)
    if not path.exists():
        pairs = "give graded pairs: score<TAB>sentence1<TAB>sentence2"
        raise InputError(f"no such file or folder: {path}", path_hint(path, pairs))
    if path.is_dir():
        return _read_folder(path, split, bad)
    return [_single(senteval_file(path) or _named_file(path), bad)]


def _single(part: StsPart, bad: BadRecords) -> StsSet:
    return StsSet(set_name(part.set_name), part.split, (_read_part(part, bad),))


def _named_file(path: Path) -> StsPart:
    """`dev.tsv` is named after its folder and its split, or after a published set if the folder is called so."""
    stem, split = _split_stem(path)
    folder = path.resolve().parent.name
    of_folder = folder if set_name(folder) in KNOWN_SETS.values() else f"{folder}-{split}".lstrip("-")
    return _our_part(stem or of_folder, "", split, path)


def _read_folder(folder: Path, split: str, bad: BadRecords) -> list[StsSet]:
    """The sets of a folder and its sub-folders; `found` maps split -> set -> its parts."""
    found: dict[str, dict[str, list[StsPart]]] = {}
    for place in _folders(folder):
        parts = senteval_parts(place) or [_place(path, is_top=place == folder) for path in _our_files(place)]
        for part in parts:
            found.setdefault(part.split, {}).setdefault(set_name(part.set_name), []).append(part)
    if split not in found:
        there = f"its splits: {', '.join(sorted(found))}" if found else "its files end in .tsv, .tsv.gz or .tsv.zst"
        raise InputError(f"{folder} has no graded pairs of the split {split!r}", there)
    return [_read_set(name, parts, bad) for name, parts in found[split].items()]


def _folders(folder: Path) -> list[Path]:
    """The folder and its sub-folders."""
    return sorted(path for path in [folder, *folder.rglob("*")] if path.is_dir())


def _our_files(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and format_extension(path) in EXTENSIONS and not path.name.startswith(".")
    ]


def _place(path: Path, *, is_top: bool) -> StsPart:
    """One of our files in its place among the sets of a folder."""
    stem, split = _split_stem(path)
    folder = path.resolve().parent.name
    year = _YEAR.fullmatch(stem)
    if year:
        return _our_part(year[1], year[2] or "", split, path)
    if not stem:
        return _our_part(folder, "", split, path)
    if not is_top or set_name(folder) in KNOWN_SETS.values():
        return _our_part(folder, "" if set_name(stem) == set_name(folder) else stem, split, path)
    return _our_part(stem, "", split, path)


def _split_stem(path: Path) -> tuple[str, str]:
    """`FNWN.test.tsv.gz` -> ("FNWN", "test"); test if the name has no split."""
    name = Path(path.name)
    while name.suffix.lower() in COMPRESSED or format_extension(name) in (*EXTENSIONS, "txt"):
        name = name.with_suffix("")
    match = re.fullmatch(rf"(?:(.*)[-_.])?({'|'.join(SPLITS)})", str(name), re.IGNORECASE)
    return (match[1] or "", match[2].lower()) if match else (str(name), "test")


def _our_part(name: str, subset: str, split: str, path: Path) -> StsPart:
    return StsPart(name, subset, split, (path,), partial(_our_lines, path))


def _our_lines(path: Path, bad: BadRecords) -> Iterator[GradedLine]:
    for number, (score, first, second) in headed_rows(path, COLUMNS, FORM, bad, only=True):
        yield GradedLine(path, number, score, first, second)


def _read_set(name: str, parts: list[StsPart], bad: BadRecords) -> StsSet:
    subsets: list[StsSubset] = []
    for part in parts:
        if name == "STS13" and part.subset.upper() == "SMT":
            continue  # its licence forbids copies, so no published score contains it
        if any(part.subset == other.name for other in subsets):
            raise InputError(f"{name} {part.subset} occurs twice".rstrip(), f"one of them: {part.place}")
        subsets.append(_read_part(part, bad))
    if not subsets:
        raise InputError(f"{name} has only the subset SMT, which is never scored", "add its other files")
    return StsSet(name, parts[0].split, tuple(subsets))


def _read_part(part: StsPart, bad: BadRecords) -> StsSubset:
    pairs: list[tuple[float, str, str]] = []
    dropped = empty = 0
    bad_before = bad.count
    held = HeldText(part.place)
    for line in part.lines(bad):
        held.add(line.first, line.second)
        left, right = line.first.strip(), line.second.strip()
        if not line.score.strip():
            dropped += 1
        elif not left or not right:
            empty += 1
        elif (score := _parse_score(line, bad)) is not None:
            pairs.append((score, left, right))
    if not pairs:
        raise InputError(f"{part.place} holds no graded pair", bad.first or FORM)
    scores, first, second = zip(*pairs, strict=True)
    skipped = bad.count - bad_before
    return StsSubset(
        name=part.subset,
        scores=scores,
        first=first,
        second=second,
        files=part.files,
        dropped=dropped,
        empty=empty,
        bad=skipped,
        hub=part.hub,
    )


def _parse_score(line: GradedLine, bad: BadRecords) -> float | None:
    value = parse_number(line.score)
    if value is None:
        score = line.score.strip()[:40]
        bad.add(f"{line.path}, line {line.number}: the score {score!r} is not {USABLE}", FORM)
    return value
