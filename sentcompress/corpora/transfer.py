"""The seven transfer tasks, from `label<TAB>text` files or SentEval's downstream folder.

Our files are in a folder named after the task: `MR/all.tsv`, `TREC/train.tsv` and `TREC/test.tsv`, `SST-2/dev.tsv`
too, and `MRPC/*.tsv` with two texts. SentEval's files, as its script leaves them, are recognised by their names in any
folder.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sentcompress.corpora.byte_streams import COMPRESSED, open_bytes
from sentcompress.corpora.delimited import headed_rows, wrong_width
from sentcompress.corpora.text_files import BadRecords, HeldText, open_lines
from sentcompress.errors import InputError, UsageError, did_you_mean

ALL, TRAIN, DEV, TEST = "all", "train", "dev", "test"
# The splits of each task, in the order of the papers' tables, and the number of examples in the published ones.
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
# SentEval's tasks of two files, one per class; the first has label 1.
_TWO_FILES = {
    "MR": ("rt-polarity.pos", "rt-polarity.neg"),
    "CR": ("custrev.pos", "custrev.neg"),
    "MPQA": ("mpqa.pos", "mpqa.neg"),
    "SUBJ": ("subj.objective", "subj.subjective"),
}
_TREC = {TRAIN: "train_5500.label", TEST: "TREC_10.label"}
_MRPC = {TRAIN: "msr_paraphrase_train.txt", TEST: "msr_paraphrase_test.txt"}
_MRPC_TEXTS = (3, 4)
_SST = {split: f"sentiment-{split}" for split in (TRAIN, DEV, TEST)}
# The fine-grained SST has files of the same names, in another folder and with the label first.
_SST_FOLDER = "binary"
_BLOCK = 2**20


@dataclass(frozen=True)
class Split:
    """Examples of one split, in SentEval's order: by the number of words and the label, else as in the file.

    Attributes:
        labels: one per example.
        first: the texts; of a pair, the first one.
        second: the second texts of pairs; empty for other tasks.
        files: what was read.
        empty: examples without text, dropped.
        bad: lines that cannot be read and were skipped on request.
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


@dataclass(frozen=True)
class _Example:
    """A line as it is in a file."""

    path: Path
    number: int
    label: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class _SplitFiles:
    """The files of one split and how to read them."""

    files: tuple[Path, ...]
    read: Callable[[BadRecords], Iterator[_Example]]


def read_transfer(folder: Path, only: Sequence[str] = (), bad: BadRecords | None = None) -> list[TransferTask]:
    """The tasks found in a folder and its sub-folders, in the order of the papers' tables.

    Args:
        folder: with our files or SentEval's.
        only: names of tasks; by default all that are there.
        bad: what to do with a line that cannot be read; by default the first one is an error.

    Raises:
        UsageError: an unknown name in `only`.
        InputError: no task there, a requested task or a split is missing, or a file that cannot be read.
    """
    bad = bad or BadRecords()
    requested = {_requested(name) for name in only}
    if not folder.is_dir():
        what = f"{folder} is a file, not a folder" if folder.exists() else f"no such folder: {folder}"
        raise InputError(what, "give a folder with sub-folders such as MR, TREC or MRPC")
    found = _find(folder)
    missing = requested - found.keys()
    if missing or not found:
        what = f"the task {', '.join(sorted(missing))}" if missing else "any of the seven tasks"
        there = f"there: {', '.join(found)}" if found else f"a task is a folder such as MR with all.tsv; {FORM}"
        raise InputError(f"{folder} does not hold {what}", there)
    names = [name for name in TASKS if name in found and (not requested or name in requested)]
    return [_read_task(folder, name, found[name], bad) for name in names]


def task_name(raw: str) -> str | None:
    """The task that a folder or a user means: `sst2`, `SST` and `sst-2` are SST-2; None for any other name."""
    plain = raw.upper().replace("-", "").replace("_", "")
    return {**{name.replace("-", ""): name for name in TASKS}, "SST": "SST-2"}.get(plain)


def _requested(raw: str) -> str:
    name = task_name(raw)
    if name is None:
        raise UsageError(f"no transfer task {raw!r}", did_you_mean(raw.upper(), TASKS))
    return name


def _find(folder: Path) -> dict[str, dict[str, _SplitFiles]]:
    """Task -> split -> its files."""
    found: dict[str, dict[str, _SplitFiles]] = {}
    for place in sorted(path for path in [folder, *folder.rglob("*")] if path.is_dir()):
        for name, splits in [*_senteval_files(place).items(), *_our_files(place).items()]:
            if name in found:
                raise InputError(f"{name} occurs twice in {folder}", f"the second time in {place}")
            found[name] = splits
    return found


def _read_task(folder: Path, name: str, there: Mapping[str, _SplitFiles], bad: BadRecords) -> TransferTask:
    missing = [split for split in TASKS[name] if split not in there]
    if missing:
        files = ", ".join(str(path) for split in there.values() for path in split.files)
        raise InputError(f"{folder}: {name} has no {' and no '.join(missing)} split", f"there: {files}")
    splits = {split: _read_split(name, there[split].files, there[split].read(bad), bad) for split in TASKS[name]}
    return TransferTask(name, splits)


def _read_split(task: str, files: tuple[Path, ...], examples: Iterable[_Example], bad: BadRecords) -> Split:
    rows: list[tuple[str, tuple[str, ...]]] = []
    held, empty, bad_before = HeldText(files[0]), 0, bad.count
    for example in examples:
        held.add(example.label, *example.texts)
        label = example.label.strip().removesuffix(".0")  # as pandas writes integers if some are missing
        texts = tuple(text.strip() for text in example.texts)
        if not label:
            bad.add(f"{example.path}, line {example.number}: no label", FORM)
        elif not all(texts):
            empty += 1
        else:
            rows.append((label.partition(":")[0] if task in COARSE else label, texts))
    if len({label for label, _ in rows}) < 2:
        what = f"one class only ({rows[0][0][:40]})" if rows else "no example"
        raise InputError(f"{', '.join(map(str, files))}: {what}", bad.first or FORM)
    # SentEval's order, by words and label, which decides what its folds hold.
    rows.sort(key=lambda row: (*(len(text.split()) for text in row[1]), row[0]))
    second = tuple(texts[1] for _, texts in rows) if task in PAIRS else ()
    labels, first = tuple(label for label, _ in rows), tuple(texts[0] for _, texts in rows)
    return Split(labels, first, second, files, empty, bad.count - bad_before)


def _our_files(place: Path) -> dict[str, dict[str, _SplitFiles]]:
    name = task_name(place.resolve().name)
    if name is None:
        return {}
    files = {split: path for split in (ALL, TRAIN, DEV, TEST) if (path := _one_of(place, split)) is not None}
    splits = {split: _SplitFiles((path,), partial(_our_lines, path, name)) for split, path in files.items()}
    return {name: splits} if splits else {}


def _one_of(place: Path, stem: str) -> Path | None:
    names = (f"{stem}{extension}{packed}" for extension in EXTENSIONS for packed in ("", *COMPRESSED))
    return next((place / name for name in names if (place / name).is_file()), None)


def _our_lines(path: Path, task: str, bad: BadRecords) -> Iterator[_Example]:
    columns = ("label", "text1", "text2") if task in PAIRS else ("label", "text")
    for number, (label, *texts) in headed_rows(path, columns, FORM, bad):
        yield _Example(path, number, label, tuple(texts))


def _senteval_files(place: Path) -> dict[str, dict[str, _SplitFiles]]:
    """SentEval's files directly in this folder; a task may lack a split.

    Raises:
        InputError: if only one of a task's two files is there.
    """
    found: dict[str, dict[str, _SplitFiles]] = {}
    for name, (first, second) in _TWO_FILES.items():
        files = (place / first, place / second)
        missing = [path for path in files if not path.is_file()]
        if len(missing) == 1:
            raise InputError(f"{place} has no {missing[0].name}", f"{name} needs both {first} and {second}")
        if not missing:
            found[name] = {ALL: _SplitFiles(files, partial(_two_files, files))}
    layouts = [("TREC", _TREC, _trec_lines), ("MRPC", _MRPC, _mrpc_lines)]
    if place.resolve().name == _SST_FOLDER:
        layouts.append(("SST-2", _SST, _sst_lines))
    for task, names, read in layouts:
        there = {split: place / name for split, name in names.items() if (place / name).is_file()}
        if there:
            found[task] = {split: _SplitFiles((path,), partial(read, path)) for split, path in there.items()}
    return found


def _two_files(files: tuple[Path, Path], bad: BadRecords) -> Iterator[_Example]:
    for label, path in zip(("1", "0"), files, strict=True):
        for number, line in open_lines(path, encoding=_encoding(path)):
            yield _Example(path, number, label, (line,))


def _trec_lines(path: Path, bad: BadRecords) -> Iterator[_Example]:
    for number, line in open_lines(path, encoding=_encoding(path)):
        label, blank, text = line.strip().partition(" ")
        if blank and ":" in label:
            yield _Example(path, number, label, (text,))
        elif label:
            bad.add(f"{path}, line {number}: no `LABEL:kind question`", FORM)


def _sst_lines(path: Path, bad: BadRecords) -> Iterator[_Example]:
    for number, line in open_lines(path, bad=bad):
        text, tab, label = line.strip().rpartition("\t")
        if tab:
            yield _Example(path, number, label, (text,))
        elif label:
            bad.add(f"{path}, line {number}: no `text<TAB>label`", FORM)


def _mrpc_lines(path: Path, bad: BadRecords) -> Iterator[_Example]:
    for number, line in open_lines(path, bad=bad):
        fields = line.split("\t")
        if number == 1 or not line.strip():
            continue  # the header
        if len(fields) <= max(_MRPC_TEXTS):
            bad.add(f"{path}, line {number}: {wrong_width(fields, max(_MRPC_TEXTS) + 1)}", FORM)
        else:
            yield _Example(path, number, fields[0], tuple(fields[place] for place in _MRPC_TEXTS))


def _encoding(path: Path) -> str:
    """SentEval reads these files as latin-1, but copies converted to UTF-8 are in circulation as well."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_bytes(path) as stream:
        try:
            while block := stream.read(_BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "latin-1"
    return "utf-8"
