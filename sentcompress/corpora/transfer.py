"""The seven transfer tasks: our `label<TAB>text` files, or SentEval's downstream folder as its script leaves it.

Ours stand in a folder named after the task: `MR/all.tsv`, `TREC/train.tsv` and `TREC/test.tsv`, `SST-2/dev.tsv` too,
and `MRPC/*.tsv` with two texts. SentEval's files are known by their names, wherever they stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sentcompress.corpora.columns import find_columns
from sentcompress.corpora.holding import Held
from sentcompress.corpora.text_files import COMPRESSED, BadRecords, open_lines
from sentcompress.corpora.transfer_senteval import Example, Reader, senteval_files
from sentcompress.errors import InputError, UsageError, did_you_mean

ALL, TRAIN, DEV, TEST = "all", "train", "dev", "test"
# The splits of each task, in the order of the papers' tables, and how many examples the published ones have.
TASKS: Mapping[str, Mapping[str, int]] = {
    "MR": {ALL: 10662},
    "CR": {ALL: 3775},
    "SUBJ": {ALL: 10000},
    "MPQA": {ALL: 10606},
    "SST-2": {TRAIN: 67349, DEV: 872, TEST: 1821},
    "TREC": {TRAIN: 5452, TEST: 500},
    "MRPC": {TRAIN: 4076, TEST: 1725},
}
PAIRS = ("MRPC",)
# TREC's labels are `coarse:fine`; the task is the coarse one.
COARSE = ("TREC",)
EXTENSIONS = (".tsv", ".tab")
FORM = "a line is label<TAB>text (MRPC: label<TAB>text1<TAB>text2)"


@dataclass(frozen=True)
class Split:
    """Examples of one split.

    Attributes:
        labels: one a row, as the file has them.
        first: the texts; of a pair, the first one.
        second: the second texts of pairs, else empty.
        empty: examples without text, left out.
        bad: lines that cannot be read, skipped on demand.
    """

    labels: tuple[str, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]
    files: tuple[Path, ...]
    empty: int = 0
    bad: int = 0

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class TransferTask:
    """One task with all its splits, in the order of `TASKS`."""

    name: str
    splits: Mapping[str, Split]


def read_transfer(folder: Path, only: Sequence[str] = (), bad: BadRecords | None = None) -> list[TransferTask]:
    """The tasks found in a folder and its sub-folders, in the order of the papers' tables.

    Args:
        only: names of tasks; by default all that are there.
        bad: what to do with a line that cannot be read; by default the first one is an error.

    Raises:
        UsageError: a name in `only` that is no task.
        InputError: no task there, one that was asked for is not, a missing split, or a file that cannot be read.
    """
    bad = bad or BadRecords()
    wanted = {_wanted(name) for name in only}
    if not folder.is_dir():
        raise InputError(f"no such folder: {folder}", "give a folder with sub-folders such as MR, TREC or MRPC")
    found = _find(folder)
    missing = wanted - found.keys()
    if missing or not found:
        what = f"the task {', '.join(sorted(missing))}" if missing else "any of the seven tasks"
        there = f"there: {', '.join(found)}" if found else f"a task is a folder such as MR with all.tsv; {FORM}"
        raise InputError(f"{folder} does not hold {what}", there)
    return [
        _read_task(folder, name, found[name], bad) for name in TASKS if name in found and (not wanted or name in wanted)
    ]


def task_name(raw: str) -> str | None:
    """The task that a folder or a user means: `sst2`, `SST` and `sst-2` are SST-2; None for no task."""
    plain = raw.upper().replace("-", "").replace("_", "")
    return {**{name.replace("-", ""): name for name in TASKS}, "SST": "SST-2"}.get(plain)


def _wanted(raw: str) -> str:
    name = task_name(raw)
    if name is None:
        raise UsageError(f"no transfer task {raw!r}", did_you_mean(raw.upper(), TASKS))
    return name


def _find(folder: Path) -> dict[str, dict[str, Reader]]:
    """Task -> split -> how to read it."""
    found: dict[str, dict[str, Reader]] = {}
    for place in sorted(path for path in [folder, *folder.rglob("*")] if path.is_dir()):
        for name, splits in [*senteval_files(place).items(), *_our_files(place).items()]:
            if name in found:
                raise InputError(f"{name} occurs twice in {folder}", f"the second time in {place}")
            found[name] = splits
    return found


def _our_files(place: Path) -> dict[str, dict[str, Reader]]:
    name = task_name(place.resolve().name)
    if name is None:
        return {}
    files = {split: path for split in (ALL, TRAIN, DEV, TEST) if (path := _one_of(place, split)) is not None}
    splits = {split: Reader((path,), partial(_our_lines, path, name)) for split, path in files.items()}
    return {name: splits} if splits else {}


def _one_of(place: Path, stem: str) -> Path | None:
    names = (f"{stem}{extension}{packed}" for extension in EXTENSIONS for packed in ("", *COMPRESSED))
    return next((place / name for name in names if (place / name).is_file()), None)


def _our_lines(path: Path, task: str) -> Iterator[Example]:
    columns = ("label", "text1", "text2") if task in PAIRS else ("label", "text")
    places: list[int] | None = None
    for number, line in open_lines(path):
        if not line.strip():
            continue
        fields = line.split("\t")
        if places is None:
            names = [field.strip().lower() for field in fields]
            if "label" in names:
                places = find_columns(str(path), columns, names)
                continue
            places = list(range(len(columns)))
        if len(fields) <= max(places):
            why = f"{path}, line {number}: {len(fields)} columns where {max(places) + 1} are needed"
            yield Example(path, number, "", (), why)
            continue
        label, *texts = (fields[place] for place in places)
        yield Example(path, number, label, tuple(texts))


def _read_task(folder: Path, name: str, readers: Mapping[str, Reader], bad: BadRecords) -> TransferTask:
    missing = [split for split in TASKS[name] if split not in readers]
    if missing:
        there = ", ".join(str(path) for reader in readers.values() for path in reader.files)
        raise InputError(f"{folder}: {name} has no {' and no '.join(missing)} split", f"there: {there}")
    splits = {split: _split(name, readers[split].files, readers[split].read(), bad) for split in TASKS[name]}
    return TransferTask(name, splits)


def _split(task: str, files: tuple[Path, ...], examples: Iterable[Example], bad: BadRecords) -> Split:
    rows: list[tuple[str, tuple[str, ...]]] = []
    held, empty, bad_before = Held(files[0]), 0, bad.count
    for example in examples:
        held.add(example.label, *example.texts)
        label = example.label.strip()
        texts = tuple(text.strip() for text in example.texts)
        if example.fault or not label:
            bad.add(example.fault or f"{example.path}, line {example.number}: no label", FORM)
        elif not all(texts):
            empty += 1
        else:
            rows.append((label.partition(":")[0] if task in COARSE else label, texts))
    if len({label for label, _ in rows}) < 2:
        what = f"one class only ({rows[0][0][:40]})" if rows else "no example"
        raise InputError(f"{', '.join(map(str, files))}: {what}", bad.first or FORM)
    second = tuple(texts[1] for _, texts in rows) if task in PAIRS else ()
    labels, first = tuple(label for label, _ in rows), tuple(texts[0] for _, texts in rows)
    return Split(labels, first, second, files, empty, bad.count - bad_before)
