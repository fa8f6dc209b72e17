"""Entity resolution: records and the entries of a catalogue that they may be about."""

from __future__ import annotations

from pathlib import Path

from sentcompress.corpora.collections import Collection, DataSet, in_memory
from sentcompress.corpora.pairs import DELIMITERS, ENTITY_COLUMNS, read_pairs
from sentcompress.corpora.splits import pick_split, stem
from sentcompress.corpora.text_files import format_extension
from sentcompress.errors import InputError


def entities_data_set(path: Path, split: str | None) -> DataSet:
    """The data set of a file of (query, entity, label) pairs, or of a folder of such files, one a split.

    The catalogue is all distinct entities of the file, or of all files of the folder; the queries are those with a
    pair of label 1, in a folder those with one in the file of the split.

    Raises:
        InputError: if there is no such file, folder or split.
    """
    if path.is_dir():
        files = {stem(file): file for file in sorted(path.iterdir()) if format_extension(file) in ("tsv", "csv")}
        if not files:
            raise InputError(f"{path} holds no .tsv or .csv file", f"a line is: {', '.join(ENTITY_COLUMNS)}")
        chosen = pick_split(str(path), list(files), split)
        paths, named = tuple(files.values()), files[chosen]
        return DataSet("entities", path.resolve().name, chosen, paths, lambda: _read(paths, named))
    if not path.exists():
        raise InputError(f"no such file: {path}", "check the path")
    if format_extension(path) not in DELIMITERS:
        raise InputError(f"{path}: cannot tell how its columns are separated", "name it .csv or .tsv (.gz, .zst)")
    if split is not None:
        raise InputError(f"{path} is a single file and has no splits", "leave out --split, or give the folder")
    # Such files are called test.tsv, and it is their folder that says of what. The extension tells the file, whose
    # catalogue is its own, from the same split of the folder.
    name = f"{path.resolve().parent.name}-{path.name}".lstrip("-")
    return DataSet("entities", name, None, (path,), lambda: _read((path,), path))


def _read(paths: tuple[Path, ...], chosen: Path) -> Collection:
    documents: dict[str, int] = {}
    wanted: dict[str, dict[int, int]] = {}
    asked: dict[str, None] = {}
    warnings = []
    for path in paths:
        pairs = read_pairs(path, ENTITY_COLUMNS)
        if pairs.empty:
            warnings.append(f"{path}: {pairs.empty} pairs with an empty side left out")
        for pair in pairs.rows:
            row = documents.setdefault(pair.second, len(documents))
            if pair.duplicate:
                # What another split calls a match is one, whichever split the query is asked in.
                wanted.setdefault(pair.first, {})[row] = 1
                if path == chosen:
                    asked.setdefault(pair.first)
    if not asked:
        raise InputError(f"{chosen} has no pair of label 1", "without any there is nothing to find")
    return Collection(in_memory(documents), tuple(asked), tuple(wanted[query] for query in asked), tuple(warnings))
