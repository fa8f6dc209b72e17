"""Sentence pairs graded for similarity: our `score<TAB>sentence1<TAB>sentence2` files, alone or in folders.

A folder holds sets. A sub-folder is one set, and so is a loose file; files that share a year (`sts13-FNWN.tsv`)
or a sub-folder (`sts13/FNWN.test.tsv`) are subsets of one set. A file may name its split last in its stem
(`test.tsv`, `FNWN.test.tsv`); a file that names none counts as test. SentEval's own layout is read as it is,
wherever it stands in the folder, and the hub's data sets are read by their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sentcompress.corpora import sts_hub, sts_senteval
from sentcompress.corpora.columns import find_columns
from sentcompress.corpora.holding import Held
from sentcompress.corpora.numbers import USABLE, parse_number
from sentcompress.corpora.sts_names import EXTENSIONS, KNOWN_SETS, place_of, set_name, split_stem
from sentcompress.corpora.sts_senteval import Line
from sentcompress.corpora.text_files import BadRecords, format_extension, open_lines
from sentcompress.errors import InputError

COLUMNS = ("score", "sentence1", "sentence2")
FORM = "a line is score<TAB>sentence1<TAB>sentence2"


@dataclass(frozen=True)
class StsSubset:
    """Graded pairs of one file, or of one data set of the hub.

    Attributes:
        name: what the subset is called within its set; empty when the set has no subsets.
        scores: the gold scores, any scale.
        first, second: the two sentences of each pair.
        files: what was read.
        dropped: pairs without a gold score.
        empty: pairs with an empty sentence, dropped as well.
        bad: lines that cannot be read, skipped on demand.
        hub: what a request records of a data set: its reference and digest.
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
    subsets: tuple[StsSubset, ...]

    def __len__(self) -> int:
        return sum(len(subset) for subset in self.subsets)


def read_sts(sources: Sequence[Path | str], split: str = "test", bad: BadRecords | None = None) -> list[StsSet]:
    """All sets found under files, folders and names of the hub, the published ones first, as the papers order them.

    A file that is named itself is read whatever split its name carries.

    Args:
        bad: what to do with a line that cannot be read; by default the first one is an error.

    Raises:
        InputError: nothing there, nothing of that split, a set found twice, or a file that cannot be read.
    """
    bad = bad or BadRecords()
    sets: list[StsSet] = []
    for source in sources:
        for found in _read_source(source, split, bad):
            if any(found.name == other.name for other in sets):
                raise InputError(f"{found.name} occurs twice in what --sts names", "name each set once")
            sets.append(found)
    order = list(dict.fromkeys(KNOWN_SETS.values()))
    return sorted(sets, key=lambda s: (order.index(s.name) if s.name in order else len(order), s.name))


def read_sts_file(path: Path, name: str = "", bad: BadRecords | None = None) -> StsSubset:
    """Graded pairs of one of our files, `.gz` and `.zst` too. A header line may name the columns in any order.

    Raises:
        InputError: too few columns or a score that is no number (with file and line), or no pair at all.
    """
    bad = bad or BadRecords()
    return _subset(name, _our_lines(path, bad), (path,), bad)


def read_dev(path: Path) -> StsSubset:
    """Graded pairs that choose a checkpoint.

    Raises:
        InputError: see `read_sts_file`; or all pairs have the same score.
    """
    pairs = read_sts_file(path)
    if len(set(pairs.scores)) < 2:
        raise InputError(f"{path}: all pairs have the same score", "graded pairs have to differ in their likeness")
    return pairs


def _read_source(source: Path | str, split: str, bad: BadRecords) -> list[StsSet]:
    if names := sts_hub.names_of(source, split):
        return [_read_hub(sts_hub.find_part(name, split), bad) for name in names]
    path = Path(source)
    if not path.exists():
        raise InputError(f"no such file or folder: {path}", "give graded pairs: score<TAB>sentence1<TAB>sentence2")
    return _read_folder(path, split, bad) if path.is_dir() else [_read_named_file(path, bad)]


def _our_lines(path: Path, bad: BadRecords) -> Iterator[Line]:
    places: list[int] | None = None
    for number, line in open_lines(path, bad=bad):
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
            bad.add(f"{path}, line {number}: {len(fields)} columns where {max(places) + 1} are needed", FORM)
            continue
        score, first, second = (fields[place] for place in places)
        yield Line(path, number, score, first, second)


def _subset(name: str, lines: Iterable[Line], files: tuple[Path, ...], bad: BadRecords) -> StsSubset:
    pairs: list[tuple[float, str, str]] = []
    dropped = empty = 0
    bad_before = bad.count
    where = str(files[0]) if files else "the data set"
    held = Held(where)
    for line in lines:
        held.add(line.first, line.second)
        left, right = line.first.strip(), line.second.strip()
        if not line.score.strip():
            dropped += 1
        elif not left or not right:
            empty += 1
        elif (score := _number(line, bad)) is not None:
            pairs.append((score, left, right))
    if not pairs:
        raise InputError(f"{where} holds no graded pair", bad.first or FORM)
    scores, first, second = zip(*pairs, strict=True)
    return StsSubset(name, scores, first, second, files, dropped, empty, bad.count - bad_before)


def _number(line: Line, bad: BadRecords) -> float | None:
    value = parse_number(line.score)
    if value is None:
        score = line.score.strip()[:40]
        bad.add(f"{line.path}, line {line.number}: the score {score!r} is not {USABLE}", FORM)
    return value


def _read_hub(part: sts_hub.HubPart, bad: BadRecords) -> StsSet:
    source = part.source
    subset = replace(_subset("", part.lines(), (), bad), hub=(source.reference, source.digest))
    return StsSet(set_name(part.set_name), (subset,))


def _read_named_file(path: Path, bad: BadRecords) -> StsSet:
    senteval = sts_senteval.recognise_file(path)
    if senteval:
        return StsSet(set_name(senteval.set_name), (_subset("", senteval.lines(), senteval.files, bad),))
    stem, _ = split_stem(path)
    return StsSet(set_name(stem or path.resolve().parent.name), (read_sts_file(path, bad=bad),))


def _read_folder(folder: Path, split: str, bad: BadRecords) -> list[StsSet]:
    """Sets of a folder and its sub-folders; `found` maps split -> set -> subset -> how to read it."""
    found: dict[str, dict[str, list[tuple[str, Path | sts_senteval.Part]]]] = {}
    inside = sorted(path for path in [folder, *folder.rglob("*")] if path.is_dir())
    for place in inside:
        parts = sts_senteval.recognise(place)
        for part in parts:
            found.setdefault(part.split, {}).setdefault(set_name(part.set_name), []).append((part.subset, part))
        for path in () if parts else sorted(place.iterdir()):
            if path.is_file() and format_extension(path) in EXTENSIONS and not path.name.startswith("."):
                set_, subset, in_split = place_of(path, is_top=place == folder)
                found.setdefault(in_split, {}).setdefault(set_, []).append((subset, path))
    if split not in found:
        there = f"splits there: {', '.join(sorted(found))}" if found else "its files end in .tsv, .tsv.gz or .tsv.zst"
        raise InputError(f"{folder} has no graded pairs of the split {split!r}", there)
    return [_read_set(name, members, bad) for name, members in found[split].items()]


def _read_set(name: str, members: list[tuple[str, Path | sts_senteval.Part]], bad: BadRecords) -> StsSet:
    subsets: list[StsSubset] = []
    for subset, source in members:
        if name == "STS13" and subset.upper() == "SMT":
            continue  # its licence keeps it out of every copy, so no published score contains it
        if any(subset == other.name for other in subsets):
            raise InputError(f"{name} {subset} occurs twice".rstrip(), f"one of them: {source}")
        if isinstance(source, Path):
            subsets.append(read_sts_file(source, subset, bad))
        else:
            subsets.append(_subset(subset, source.lines(), source.files, bad))
    if not subsets:
        raise InputError(f"{name} has only the subset SMT, which is never scored", "add its other files")
    return StsSet(name, tuple(subsets))
