"""Graded pairs in the layouts of others: SentEval's downstream folder, and data sets on the hub.

SentEval's folder is read as its download script leaves it. The sentences of a year's subset and their gold scores are
in two files, line by line; a blank gold line means that the pair was never graded. A data set on the hub is named
`owner/name` or `owner/name:configuration`; `mteb` means the seven sets of the papers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sentcompress.corpora.byte_streams import COMPRESSED, format_extension
from sentcompress.corpora.delimited import find_columns, wrong_width
from sentcompress.corpora.hub import HubInput, hub_input
from sentcompress.corpora.readers import ReadOptions
from sentcompress.corpora.text_files import BadRecords, HeldText, open_lines
from sentcompress.errors import InputError
from sentcompress.models.sources import HUB_PREFIX
from sentcompress.quantities import counted

COLUMNS = ("score", "sentence1", "sentence2")
_YEAR_FOLDER = re.compile(r"(STS1[2-6])-en-test", re.IGNORECASE)
_BENCHMARK_FILE = re.compile(r"sts-(train|dev|test)\.csv")
_SICK_FILES = {"SICK_train.txt": "train", "SICK_trial.txt": "dev", "SICK_test_annotated.txt": "test"}
_SICK_COLUMNS = ("relatedness_score", "sentence_A", "sentence_B")
# Columns of STSBenchmark's files, which have no header: genre, file, year, number, score, two sentences, licences.
_BENCHMARK_COLUMNS = (4, 5, 6)
_HUB_ALL = "mteb"
_HUB_BENCHMARK = "mteb/stsbenchmark-sts"
_HUB_SEVEN = (*(f"mteb/sts{year}-sts" for year in (12, 13, 14, 15, 16)), _HUB_BENCHMARK, "mteb/sickr-sts")
_HUB_SPLITS = {"dev": "validation"}
_HUB_NAME = re.compile(r"([A-Za-z0-9][\w.-]*/[\w.-]+)(?::([\w.-]+))?")
_FILE_EXTENSIONS = ("tsv", "tab", "csv", "txt")


@dataclass(frozen=True)
class GradedLine:
    """A pair as it is in a file or data set, its score not parsed yet; `number` counts lines from 1."""

    path: Path | str
    number: int
    score: str
    first: str
    second: str


@dataclass(frozen=True)
class StsPart:
    """One split of one subset: where it belongs and how to read it.

    Attributes:
        set_name, subset, split: its place; `subset` is empty for sets without subsets.
        files: all that is read; none for data sets on the hub.
        lines: reads the pairs. Raises InputError.
        hub: reference and digest of a data set on the hub.
    """

    set_name: str
    subset: str
    split: str
    files: tuple[Path, ...]
    lines: Callable[[BadRecords], Iterator[GradedLine]]
    hub: tuple[str, str] | None = None

    @property
    def place(self) -> str:
        """Its name in errors."""
        return self.hub[0] if self.hub else str(self.files[0])


def senteval_parts(folder: Path) -> list[StsPart]:
    """The parts whose files are directly in this folder, if it is one of SentEval's.

    Raises:
        InputError: sentences without their gold file.
    """
    year = _YEAR_FOLDER.fullmatch(folder.resolve().name)
    if year:
        return _year(year[1], folder)
    return [part for path in sorted(folder.iterdir()) if (part := senteval_file(path))]


def senteval_file(path: Path) -> StsPart | None:
    """The part in a file of STSBenchmark or SICK, which are recognised by their names."""
    match = _BENCHMARK_FILE.fullmatch(path.name)
    if match:
        return StsPart("STSBenchmark", "", match[1], (path,), partial(_benchmark_lines, path))
    if path.name in _SICK_FILES:
        return StsPart("SICK", "", _SICK_FILES[path.name], (path,), partial(_sick_lines, path))
    return None


def hub_names(source: str | Path, split: str) -> list[str]:
    """The data sets that a value of --sts means; none if it means a file or folder."""
    if isinstance(source, Path) or (Path(source).exists() and not source.startswith(HUB_PREFIX)):
        return []
    if source == _HUB_ALL:
        # Of the seven, only STS-B has other splits that are graded and are not part of the years' test sets.
        return list(_HUB_SEVEN) if split == "test" else [_HUB_BENCHMARK]
    name = source.removeprefix(HUB_PREFIX)
    is_file = format_extension(name) in _FILE_EXTENSIONS or Path(name).suffix in COMPRESSED
    return [name] if _HUB_NAME.fullmatch(name) and not is_file else []


def hub_part(name: str, split: str) -> StsPart:
    """One split of a data set, `owner/name` or `owner/name:configuration`.

    Raises:
        InputError: if there is no data set of that name, or the hub cannot be reached.
    """
    match = _HUB_NAME.fullmatch(name)
    if match is None:
        raise InputError(f"{name!r} is not the name of a data set", "give owner/name or owner/name:configuration")
    repository, configuration = match[1], match[2]
    source = hub_input(repository, configuration, None, ReadOptions(split=_HUB_SPLITS.get(split, split)))
    short = repository.partition("/")[2].removesuffix("-sts")
    set_name = f"{short}-{configuration}" if configuration else short
    return StsPart(set_name, "", split, (), partial(_hub_lines, source), (source.reference, source.digest))


def _hub_lines(source: HubInput, bad: BadRecords) -> Iterator[GradedLine]:
    is_checked = False
    for number, row in source.rows():
        if not is_checked:
            find_columns(source.reference, COLUMNS, list(row))
            is_checked = True
        score, first, second = ("" if row.get(name) is None else str(row[name]) for name in COLUMNS)
        yield GradedLine(source.reference, number, score, first, second)


def _year(name: str, folder: Path) -> list[StsPart]:
    parts = []
    for sentences in sorted(folder.glob("STS.input.*.txt")):
        subset = sentences.name.removeprefix("STS.input.").removesuffix(".txt")
        gold = folder / f"STS.gs.{subset}.txt"
        if not gold.is_file():
            raise InputError(f"{sentences} has no gold scores", f"they belong in {gold}")
        parts.append(StsPart(name, subset, "test", (sentences, gold), partial(_year_lines, sentences, gold)))
    return parts


def _year_lines(sentences: Path, gold: Path, bad: BadRecords) -> Iterator[GradedLine]:
    pairs = [(number, line.split("\t")) for number, line in _held_lines(sentences)]
    scores = [line for _, line in _held_lines(gold)]
    # A blank line beyond the last pair is the end of the file, not a pair that was never graded.
    while len(scores) > len(pairs) and not scores[-1].strip():
        scores.pop()
    if len(pairs) != len(scores):
        message = f"{sentences} has {counted(len(pairs), 'line')}, {gold.name} has {len(scores)}"
        raise InputError(message, "each sentence pair needs one line with its score")
    for (number, fields), score in zip(pairs, scores, strict=True):
        if len(fields) < 2:
            bad.add(f"{sentences}, line {number}: found 1 sentence, expected 2", "a line is sentence1<TAB>sentence2")
            continue
        yield GradedLine(gold, number, score, fields[0], fields[1])


def _held_lines(path: Path) -> Iterator[tuple[int, str]]:
    held = HeldText(path)
    for number, line in open_lines(path):
        held.add(line)
        yield number, line


def _benchmark_lines(path: Path, bad: BadRecords) -> Iterator[GradedLine]:
    for number, line in open_lines(path, bad=bad):
        if line.strip():
            yield from _pick(path, number, line.split("\t"), _BENCHMARK_COLUMNS, bad)


def _sick_lines(path: Path, bad: BadRecords) -> Iterator[GradedLine]:
    places: tuple[int, ...] = ()
    for number, line in open_lines(path, bad=bad):
        fields = line.split("\t")
        if not places:
            places = tuple(find_columns(str(path), _SICK_COLUMNS, [field.strip() for field in fields]))
        elif line.strip():
            yield from _pick(path, number, fields, places, bad)


def _pick(path: Path, number: int, fields: list[str], places: tuple[int, ...], bad: BadRecords) -> Iterator[GradedLine]:
    if len(fields) <= max(places):
        message = f"{path}, line {number}: {wrong_width(fields, max(places) + 1)}"
        bad.add(message, "fix the line, or copy SentEval's file again")
        return
    score, first, second = (fields[place] for place in places)
    yield GradedLine(path, number, score, first, second)
