"""Entity resolution: pairs of a query and an entity of a catalogue, marked as matching or not."""

from __future__ import annotations

from pathlib import Path

from sentcompress.corpora.byte_streams import format_extension
from sentcompress.corpora.collections import Collection, DataSet, in_memory, pick_split, stem
from sentcompress.corpora.pairs import ENTITY_COLUMNS, check_file, delimiter_of, dropped, read_pairs
from sentcompress.errors import InputError


def entities_data_set(path: Path, split: str | None) -> DataSet:
    """The data set of a file of (query, entity, label) pairs, or of a folder of such files, one per split.

    The catalogue is all distinct entities of the file, or of all files of the folder; the queries are those with a
    pair of label 1, in a folder those with such a pair in the file of the split.

    Raises:
        InputError: if there is no such file, folder or split.
    """
    if path.is_dir():
        files = {stem(file): file for file in sorted(path.iterdir()) if format_extension(file) in ("tsv", "csv")}
        if not files:
            raise InputError(f"{path} holds no .tsv or .csv file", f"a line is: {', '.join(ENTITY_COLUMNS)}")
        chosen = pick_split(str(path), list(files), split)
        paths, named = tuple(files.values()), files[chosen]
        return DataSet("entities", path.resolve().name, chosen, paths, lambda: _read_entities(paths, named))
    check_file(path, ENTITY_COLUMNS)
    delimiter_of(path)
    if split is not None:
        raise InputError(f"{path} is a single file and has no splits", "omit `split`, or give the folder")
    # Such files are called test.tsv, so the folder is part of the name. The extension distinguishes the file, which
    # has a catalogue of its own, from the same split of the folder.
    name = f"{path.resolve().parent.name}-{path.name}".lstrip("-")
    return DataSet("entities", name, None, (path,), lambda: _read_entities((path,), path))


def _read_entities(paths: tuple[Path, ...], chosen: Path) -> Collection:
    documents: dict[str, int] = {}
    relevant: dict[str, dict[int, int]] = {}
    queries: dict[str, None] = {}
    warnings = []
    for path in paths:
        pairs = read_pairs(path, ENTITY_COLUMNS)
        if pairs.empty:
            warnings.append(dropped(path, pairs))
        for pair in pairs.rows:
            row = documents.setdefault(pair.second, len(documents))
            if pair.match:
                # A match in another split counts too, since the catalogue is that of all splits.
                relevant.setdefault(pair.first, {})[row] = 1
                if path == chosen:
                    queries.setdefault(pair.first)
    if not queries:
        raise InputError(f"{chosen} has no pair of label 1", "at least one pair must have label 1")
    grades = tuple(relevant[query] for query in queries)
    return Collection(in_memory(documents), tuple(queries), grades, tuple(warnings))
