"""SentEval's downstream folder as its download script leaves it: STS12 to STS16, STSBenchmark and SICK.

The sentences of a year's subset and their gold scores stand in two files, line by line; a blank gold line means
that the pair was never graded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sentcompress.corpora.columns import find_columns
from sentcompress.corpora.holding import Held
from sentcompress.corpora.text_files import open_lines
from sentcompress.errors import InputError

SPLITS = ("train", "dev", "test")
YEAR_FOLDER = re.compile(r"(STS1[2-6])-en-test", re.IGNORECASE)
BENCHMARK_FILE = re.compile(r"sts-(train|dev|test)\.csv")
SICK_FILES = {"SICK_train.txt": "train", "SICK_trial.txt": "dev", "SICK_test_annotated.txt": "test"}
SICK_COLUMNS = ("relatedness_score", "sentence_A", "sentence_B")
# Columns of STSBenchmark's files, which have no header: genre, file, year, number, score, two sentences, licences.
BENCHMARK_COLUMNS = (4, 5, 6)


@dataclass(frozen=True)
class Line:
    """A pair as it stands in a file or data set, its score not yet looked at; `number` counts lines from 1."""

    path: Path | str
    number: int
    score: str
    first: str
    second: str


@dataclass(frozen=True)
class Part:
    """One split of one subset: where it belongs and how to read it."""

    set_name: str
    subset: str
    split: str
    files: tuple[Path, ...]
    read: Callable[[tuple[Path, ...]], Iterator[Line]]

    def lines(self) -> Iterator[Line]:
        return self.read(self.files)


def recognise(folder: Path) -> list[Part]:
    """The parts that stand in this very folder, if it is one of SentEval's; its sub-folders are not looked at.

    Raises:
        InputError: sentences without their gold file.
    """
    year = YEAR_FOLDER.fullmatch(folder.resolve().name)
    if year:
        return _year(year[1], folder)
    return [part for path in sorted(folder.iterdir()) if (part := recognise_file(path))]


def recognise_file(path: Path) -> Part | None:
    """STSBenchmark's and SICK's files are known by their names."""
    match = BENCHMARK_FILE.fullmatch(path.name)
    if match:
        return Part("STSBenchmark", "", match[1], (path,), _benchmark_lines)
    if path.name in SICK_FILES:
        return Part("SICK", "", SICK_FILES[path.name], (path,), _sick_lines)
    return None


def _year(name: str, folder: Path) -> list[Part]:
    parts = []
    for sentences in sorted(folder.glob("STS.input.*.txt")):
        subset = sentences.name.removeprefix("STS.input.").removesuffix(".txt")
        gold = folder / f"STS.gs.{subset}.txt"
        if not gold.is_file():
            raise InputError(f"{sentences} has no gold scores", f"they belong in {gold}")
        parts.append(Part(name, subset, "test", (sentences, gold), _year_lines))
    return parts


def _year_lines(files: tuple[Path, ...]) -> Iterator[Line]:
    sentences, gold = files
    pairs = [(number, line.split("\t")) for number, line in _held_lines(sentences)]
    scores = [line for _, line in _held_lines(gold)]
    # A blank line beyond the last pair is the end of the file, not a pair that was never graded.
    while len(scores) > len(pairs) and not scores[-1].strip():
        scores.pop()
    if len(pairs) != len(scores):
        raise InputError(f"{sentences} has {len(pairs)} lines, {gold.name} has {len(scores)}", "they belong together")
    for (number, fields), score in zip(pairs, scores, strict=True):
        if len(fields) < 2:
            raise InputError(
                f"{sentences}, line {number}: found 1 sentence, expected 2", "a line is sentence1<TAB>sentence2"
            )
        yield Line(gold, number, score, fields[0], fields[1])


def _held_lines(path: Path) -> Iterator[tuple[int, str]]:
    held = Held(path)
    for number, line in open_lines(path):
        held.add(line)
        yield number, line


def _benchmark_lines(files: tuple[Path, ...]) -> Iterator[Line]:
    for number, line in open_lines(files[0]):
        if line.strip():
            yield _pick(files[0], number, line.split("\t"), BENCHMARK_COLUMNS)


def _sick_lines(files: tuple[Path, ...]) -> Iterator[Line]:
    places: tuple[int, ...] = ()
    for number, line in open_lines(files[0]):
        fields = line.split("\t")
        if not places:
            places = tuple(find_columns(str(files[0]), SICK_COLUMNS, [field.strip() for field in fields]))
        elif line.strip():
            yield _pick(files[0], number, fields, places)


def _pick(path: Path, number: int, fields: list[str], places: tuple[int, ...]) -> Line:
    if len(fields) <= max(places):
        message = f"{path}, line {number}: found {len(fields)} columns, expected {max(places) + 1}"
        raise InputError(message, "fix the line, or copy SentEval's file again")
    score, first, second = (fields[place] for place in places)
    return Line(path, number, score, first, second)
