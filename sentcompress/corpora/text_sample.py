"""A random sample of distinct sentences from files and folders; only the sample is held in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentcompress.corpora.byte_streams import format_extension
from sentcompress.corpora.readers import FILE_EXTENSIONS, read_records
from sentcompress.corpora.smallest import Smallest
from sentcompress.corpora.text_files import LONE_SURROGATE, BadRecords, is_encodable
from sentcompress.errors import InputError, path_hint

# In a folder, .json files are usually settings.
EXTENSIONS = tuple(extension for extension in FILE_EXTENSIONS if extension != "json")


@dataclass(frozen=True)
class TextSample:
    """Distinct sentences in an order that depends only on the seed.

    Attributes:
        texts: the sample; all distinct sentences if there are fewer than requested.
        read: the number of sentences read, including repetitions.
        complete: whether the sample holds every distinct sentence.
    """

    texts: tuple[str, ...]
    read: int
    complete: bool


def find_text_files(paths: Sequence[Path]) -> list[Path]:
    """The named files, and those of known formats below the named folders, sorted; hidden ones are skipped.

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
            raise InputError(
                f"no such file or folder: {path}", path_hint(path, "give a text file with one sentence per line")
            )
    return list(dict.fromkeys(files))


def texts_of_files(files: Iterable[Path], bad: BadRecords) -> Iterator[str]:
    """Every sentence of some files, stripped; empty ones are skipped.

    Raises:
        InputError: if a file cannot be read; faults of single lines go through `bad`.
    """
    for file in files:
        for number, record in enumerate(read_records(file, bad=bad), start=1):
            if is_encodable("".join(record.texts)):
                yield from (stripped for text in record.texts if (stripped := text.strip()))
            else:
                bad.add(f"{file}, record {number}: {LONE_SURROGATE}")


def sample_texts(texts: Iterable[str], size: int, seed: int) -> TextSample:
    """Draw distinct sentences with equal probability, independent of their order and repetitions.

    The sample is the `size` sentences with the smallest keyed hashes.
    """
    key = seed.to_bytes(8, "little")
    kept: Smallest[str] = Smallest(size)
    read = 0
    for text in texts:
        read += 1
        mark = hashlib.blake2b(text.encode("utf-8"), digest_size=8, key=key).digest()
        kept.add(int.from_bytes(mark, "little"), text)
    return TextSample(tuple(kept.values()), read, kept.complete)


def _is_text_file(file: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return file.is_file() and not hidden and format_extension(file) in EXTENSIONS
