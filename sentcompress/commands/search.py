"""The options of `sentcompress search`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt
from sentcompress.commands.shared import (
    Compare,
    Device,
    Dtype,
    Hub,
    IdColumn,
    IndexKind,
    IndexOptions,
    Model,
    SkipBad,
    TextColumns,
    Wait,
    no_file,
)


@dataclass(frozen=True, kw_only=True)
class Params(IndexOptions, Hub):
    """The queries, the collection and the models."""

    command: ClassVar[str] = "search"

    query: Annotated[
        tuple[str, ...],
        Opt(
            "Queries; without any, only the index is built.",
            positional=True,
            metavar="[QUERY]...",
            affects="run",
        ),
    ] = ()
    queries: Annotated[
        Path | None, Opt("File of queries: one per line, or a table with a column query or text.", affects="run")
    ] = None
    collection: Annotated[
        str | None,
        Opt(
            "What to search: a folder (its files are cut into passages), a file as for encode, a folder in BEIR's "
            "layout, or documents/NAME.",
            affects="input",
            default="that of the last index, or the last documents if newer",
        ),
    ] = None
    model: Model = None
    compare: Compare = None
    keep_index: Annotated[
        bool,
        Opt("Search the vectors of --compare with the queries of --model (asymmetric search).", affects="run"),
    ] = False
    top: Annotated[int, Opt("Number of results per query.", minimum=1, maximum=1000, affects="run")] = 10
    index: IndexKind = "flat"
    column: TextColumns = ()
    id_column: IdColumn = None
    passages: Annotated[
        bool, Opt("Also cut the rows of a table into passages, like the files of a folder.", affects="input")
    ] = False
    skip_bad: SkipBad = False
    force: Annotated[bool, Opt("Build the index again.", affects="run")] = False
    wait: Wait = None
    device: Device = "auto"
    dtype: Dtype = "float32"

    def faults(self) -> list[str]:
        from sentcompress.corpora.text_files import is_encodable

        faults = no_file("queries", self.queries) if self.queries else []
        if any(query and not query.strip() for query in self.query):
            faults.append("`query` must not be blank")
        if not all(map(is_encodable, self.query)):
            faults.append("`query` must be UTF-8 text")
        if self.keep_index and self.compare is None:
            faults.append("`keep_index` needs `compare`, the model of the documents, usually teacher")
        return faults + self.faults_of_settings([self.index])


COMMAND = Command(
    Params,
    "Search a collection with one model, or two side by side.",
    version=5,  # all rows are read, whatever their column `split` says
)
