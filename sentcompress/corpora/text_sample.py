"""A sample of distinct sentences from files and folders of any size, in memory for the sample only."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentcompress.corpora.readers import read_records
from sentcompress.corpora.text_files import (
    COMPRESSED,
    HALF_A_CHARACTER,
    BadRecords,
    format_extension,
    is_encodable,
)
from sentcompress.errors import InputError

EXTENSIONS = ("txt", "text", "jsonl", "ndjson", "csv", "tsv", "tab", "parquet", "pq")


@dataclass(frozen=True)
class TextSample:
    """Distinct sentences in an order that depends on the seed alone.

    Attributes:
        texts: the sample; all distinct sentences where there are no more.
        read: sentences read, repetitions included.
        complete: whether the sample holds every distinct sentence.
    """

    texts: tuple[str, ...]
    read: int
    complete: bool


def find_text_files(paths: Sequence[Path]) -> list[Path]:
    """The files named, and those of known formats in the folders named and below, sorted; hidden ones left out.

    Raises:
        InputError: a path that does not exist, or a folder without such a file.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = [file for file in sorted(path.rglob("*")) if _is_text_file(file, path)]
            if not found:
                raise InputError(f"{path} holds no file of sentences", f"files end in .{', .'.join(EXTENSIONS)}")
            files += found
        elif path.exists():
            files.append(path)
        else:
            raise InputError(f"no such file or folder: {path}", "give a text file with one sentence a line")
    return list(dict.fromkeys(files))


def texts_of_files(files: Iterable[Path], bad: BadRecords) -> Iterator[str]:
    """Every sentence of some files, stripped; empty ones left out.

    Raises:
        InputError: for whatever is wrong with a file; faults of single lines go through `bad`.
    """
    for file in files:
        for number, record in enumerate(read_records(file, bad=bad), start=1):
            if is_encodable("".join(record.texts)):
                yield from (stripped for text in record.texts if (stripped := text.strip()))
            else:
                bad.add(f"{file}, record {number}: {HALF_A_CHARACTER}")


def sample_texts(texts: Iterable[str], size: int, seed: int) -> TextSample:
    """Draw distinct sentences with equal chances, whatever their number and order.

    Kept are the `size` sentences whose keyed hashes are the smallest (a bottom-k sample), so repetitions fall
    together and memory holds the sample only.
    """
    key = seed.to_bytes(8, "little")
    kept: dict[int, str] = {}
    largest: list[int] = []
    read, complete = 0, True
    for text in texts:
        read += 1
        mark = int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8, key=key).digest(), "little")
        if mark in kept or (len(kept) == size and mark > -largest[0]):
            complete = complete and mark in kept
            continue
        kept[mark] = text
        heapq.heappush(largest, -mark)
        if len(kept) > size:
            complete = False
            del kept[-heapq.heappop(largest)]
    return TextSample(tuple(kept[mark] for mark in sorted(kept)), read, complete)


def _is_text_file(file: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    plain = file.with_suffix("") if file.suffix.lower() in COMPRESSED else file
    return file.is_file() and not hidden and format_extension(plain) in EXTENSIONS
