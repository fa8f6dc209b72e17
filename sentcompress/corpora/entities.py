"""Entity resolution: pairs of a query and an entity of a catalogue, marked as matching or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sentcompress.corpora.byte_streams import format_extension
from sentcompress.corpora.collections import DEV, Collection, DataSet, in_memory, pick_split, stem
from sentcompress.corpora.pairs import ENTITY_COLUMNS, check_file, delimiter_of, dropped, read_pairs
from sentcompress.errors import InputError

SPLITS = ("train", "test", *DEV)
LANGUAGE_COLUMNS = ("language", "lang")
# The language of a row whose language column is empty.
UNKNOWN = "unknown"


@dataclass(frozen=True)
class _Part:
    """A file, the language of its pairs ("" for that of its rows), and whether its queries are evaluated."""

    path: Path
    language: str
    chosen: bool


def entities_data_set(path: Path, split: str | None) -> DataSet:
    """The data set of a file of (query, entity, label) pairs, or of a folder of such files.

    The files of a folder are splits if one of them is named as a split or `split` names one; otherwise each is a
    language. A folder without files has a sub-folder for each language, with one file for each split. A file can have
    a column `language` instead. The catalogue is all distinct entities of all files; the queries are those with a pair
    of label 1, in a folder of splits those with such a pair in the file of the split.

    Raises:
        InputError: if there is no such file, folder or split.
    """
    if path.is_dir():
        parts, chosen = _parts_of(path, split)
        files = tuple(part.path for part in parts)
        return DataSet("entities", path.resolve().name, chosen, files, lambda: _read_entities(parts, path))
    check_file(path, ENTITY_COLUMNS)
    delimiter_of(path)
    if split is not None:
        raise InputError(f"{path} is a single file and has no splits", ("omit `split`", "give the folder"))
    # Such files are called test.tsv, so the folder is part of the name. The extension distinguishes the file, which
    # has a catalogue of its own, from the same split of the folder.
    name = f"{path.resolve().parent.name}-{path.name}".lstrip("-")
    return DataSet("entities", name, None, (path,), lambda: _read_entities([_Part(path, "", True)], path))


def _parts_of(folder: Path, split: str | None) -> tuple[list[_Part], str | None]:
    """The files of a folder, and the chosen split if it has splits."""
    files = _files_in(folder)
    if files and split is None and len(files) > 1 and not set(files) & set(SPLITS):
        return [_Part(file, name, True) for name, file in files.items()], None
    if files:
        chosen = pick_split(str(folder), list(files), split)
        return [_Part(file, "", name == chosen) for name, file in files.items()], chosen
    languages = {inside.name: found for inside in sorted(folder.iterdir()) if (found := _splits_in(inside))}
    if not languages:
        raise InputError(f"{folder} holds no .tsv or .csv file", f"a line is: {', '.join(ENTITY_COLUMNS)}")
    common = [name for name in next(iter(languages.values())) if all(name in found for found in languages.values())]
    if not common:
        raise InputError(f"the languages of {folder} have no split in common", "name their files alike, e.g. test.tsv")
    chosen = pick_split(str(folder), common, split)
    return [
        _Part(file, language, name == chosen) for language, found in languages.items() for name, file in found.items()
    ], chosen


def _splits_in(folder: Path) -> dict[str, Path]:
    return _files_in(folder) if folder.is_dir() else {}


def _files_in(folder: Path) -> dict[str, Path]:
    return {stem(file): file for file in sorted(folder.iterdir()) if format_extension(file) in ("tsv", "csv")}


def _read_entities(parts: Sequence[_Part], path: Path) -> Collection:
    documents: dict[str, int] = {}
    relevant: dict[str, dict[int, int]] = {}
    # A query of two languages is evaluated in both.
    queries: dict[tuple[str, str], None] = {}
    warnings = []
    for part in parts:
        pairs = read_pairs(part.path, ENTITY_COLUMNS, () if part.language else LANGUAGE_COLUMNS)
        if pairs.empty:
            warnings.append(dropped(part.path, pairs))
        for pair in pairs.rows:
            row = documents.setdefault(pair.second, len(documents))
            if pair.match:
                # A match in another file counts too, since the catalogue is that of all files.
                relevant.setdefault(pair.first, {})[row] = 1
                if part.chosen:
                    queries.setdefault((pair.first, part.language or pair.language))
    if not queries:
        chosen = [part.path for part in parts if part.chosen]
        raise InputError(
            f"{chosen[0] if len(chosen) == 1 else path} has no pair of label 1", "at least one pair must have label 1"
        )
    texts = tuple(text for text, _ in queries)
    spoken = tuple(language for _, language in queries)
    return Collection(
        in_memory(documents),
        texts,
        tuple(relevant[text] for text in texts),
        tuple(warnings),
        languages=tuple(language or UNKNOWN for language in spoken) if any(spoken) else (),
    )
