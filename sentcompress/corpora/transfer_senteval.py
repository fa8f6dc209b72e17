"""SentEval's files of the transfer tasks, as its script leaves them in the downstream folder."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sentcompress.corpora.text_files import open_bytes, open_lines
from sentcompress.errors import InputError

# Two files a task, one a class: the first holds label 1.
TWO_FILES = {
    "MR": ("rt-polarity.pos", "rt-polarity.neg"),
    "CR": ("custrev.pos", "custrev.neg"),
    "MPQA": ("mpqa.pos", "mpqa.neg"),
    "SUBJ": ("subj.objective", "subj.subjective"),
}
TREC = {"train": "train_5500.label", "test": "TREC_10.label"}
MRPC = {"train": "msr_paraphrase_train.txt", "test": "msr_paraphrase_test.txt"}
SST = {split: f"sentiment-{split}" for split in ("train", "dev", "test")}
# The fine-grained SST has files of the same names, in another folder and with the label first.
SST_FOLDER = "binary"
MRPC_TEXTS = (3, 4)
_BLOCK = 2**20


@dataclass(frozen=True)
class Example:
    """A line as it stands in a file; `fault` says why it cannot be read, if it cannot."""

    path: Path
    number: int
    label: str
    texts: tuple[str, ...]
    fault: str = ""


@dataclass(frozen=True)
class Reader:
    """One split: its files and how they are read."""

    files: tuple[Path, ...]
    read: Callable[[], Iterator[Example]]


def senteval_files(place: Path) -> dict[str, dict[str, Reader]]:
    """Task -> split -> reader of SentEval's files that stand in this very folder; a split may be missing.

    Raises:
        InputError: if of a task's two files, one a class, only one is there.
    """
    found: dict[str, dict[str, Reader]] = {}
    for name, (first, second) in TWO_FILES.items():
        files = (place / first, place / second)
        missing = [path for path in files if not path.is_file()]
        if len(missing) == 1:
            raise InputError(f"{place} has no {missing[0].name}", f"{name} needs both {first} and {second}")
        if not missing:
            found[name] = {"all": Reader(files, partial(_two_files, files))}
    layouts = [("TREC", TREC, _trec_lines), ("MRPC", MRPC, _mrpc_lines)]
    if place.resolve().name == SST_FOLDER:
        layouts.append(("SST-2", SST, _sst_lines))
    for task, names, read in layouts:
        there = {split: place / name for split, name in names.items() if (place / name).is_file()}
        if there:
            found[task] = {split: Reader((path,), partial(read, path)) for split, path in there.items()}
    return found


def _two_files(files: tuple[Path, Path]) -> Iterator[Example]:
    for label, path in zip(("1", "0"), files, strict=True):
        for number, line in open_lines(path, encoding=_encoding(path)):
            yield Example(path, number, label, (line,))


def _trec_lines(path: Path) -> Iterator[Example]:
    for number, line in open_lines(path, encoding=_encoding(path)):
        label, blank, text = line.strip().partition(" ")
        if label:
            fault = "" if blank and ":" in label else f"{path}, line {number}: no `LABEL:kind question`"
            yield Example(path, number, label, (text,), fault)


def _sst_lines(path: Path) -> Iterator[Example]:
    for number, line in open_lines(path):
        text, tab, label = line.strip().rpartition("\t")
        if line.strip():
            yield Example(path, number, label, (text,), "" if tab else f"{path}, line {number}: no `text<TAB>label`")


def _mrpc_lines(path: Path) -> Iterator[Example]:
    for number, line in open_lines(path):
        fields = line.split("\t")
        if number == 1 or not line.strip():
            continue  # the header
        if len(fields) <= max(MRPC_TEXTS):
            yield Example(path, number, "", (), f"{path}, line {number}: {len(fields)} columns where 5 are needed")
        else:
            yield Example(path, number, fields[0], tuple(fields[place] for place in MRPC_TEXTS))


def _encoding(path: Path) -> str:
    """SentEval reads these files as latin-1; copies that were converted to UTF-8 are about as well."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_bytes(path) as stream:
        try:
            while block := stream.read(_BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "latin-1"
    return "utf-8"
