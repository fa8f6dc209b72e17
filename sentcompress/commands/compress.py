"""The options of `sentcompress compress`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import MODEL, Opt, Options
from sentcompress.commands.shared import (
    MOST_VECTOR_BYTES,
    READ_NAME,
    IdColumn,
    Seed,
    SkipBad,
    TextAs,
    no_file,
    nothing_at,
)


@dataclass(frozen=True, kw_only=True)
class Params(Options):
    """The documents, and the budget."""

    command: ClassVar[str] = "compress"

    inputs: Annotated[
        tuple[str, ...],
        Opt(
            "Texts that will be searched: folders or files (txt, md, rst, html, jsonl, csv, tsv, parquet; also .gz, "
            ".zst).",
            positional=True,
            metavar="DOCUMENTS...",
        ),
    ]
    max_bytes: Annotated[
        str,
        Opt(
            "Maximum size of the model's int8 ONNX graph.",
            metavar="SIZE",
            reads="sentcompress.quantities:read_bytes",
        ),
    ] = "10MB"
    vector_bytes: Annotated[
        int | None,
        Opt(
            "Maximum bytes per stored vector.",
            minimum=1,
            maximum=MOST_VECTOR_BYTES,
            default="one per dimension of the teacher",
        ),
    ] = None
    time: Annotated[
        str,
        Opt(
            "Time for everything but --judged, such as 30m or 2h.",
            metavar="TIME",
            reads="sentcompress.quantities:read_seconds",
        ),
    ] = "30m"
    prefer: Annotated[
        str,
        Opt(
            "Preference among the models that fit: quality (the most similar to the teacher) or speed (at most half of "
            "the teacher's computation).",
            choices=("quality", "speed"),
        ),
    ] = "quality"
    teacher: Annotated[
        str, Opt("Model to copy: embedded (all-MiniLM-L6-v2), a folder, or a hub name.", names=MODEL)
    ] = "embedded"
    queries: Annotated[tuple[Path, ...], Opt("File of your users' queries, one per line; can be repeated.")] = ()
    general_text: Annotated[
        tuple[str, ...],
        Opt(
            "File or folder of other text to train on, to reduce the loss on such text; can be repeated.",
            metavar="PATH",
        ),
    ] = ()
    judged: Annotated[
        Path | None,
        Opt("Folder of queries with relevance judgements (BEIR, MS MARCO), to report nDCG@10.", metavar="FOLDER"),
    ] = None
    column: Annotated[
        tuple[str, ...],
        Opt(
            "Column with text, in csv, tsv, jsonl and parquet; if repeated, the columns are joined.",
            default="found by name",
        ),
    ] = ()
    id_column: IdColumn = None
    text_as: TextAs = None
    skip_bad: SkipBad = False
    keep_index: Annotated[bool, Opt("For an existing index of teacher vectors: the student encodes only queries.")] = (
        False
    )
    name: Annotated[
        str | None,
        Opt("Name of the plan and all results.", reads=READ_NAME, default="that of the first file or folder"),
    ] = None
    dry_run: Annotated[bool, Opt("Read the documents and print the plan, but run nothing.", affects="run")] = False
    force: Annotated[bool, Opt("Replace the plan and all results of the same name.", affects="run")] = False
    seed: Seed = 0

    def faults(self) -> list[str]:
        faults = ["name at least one file or folder of documents"] if not self.inputs else []
        faults += [
            f"{'standard input' if one == '-' else one} can be read only once, and texts are read more than once; save "
            "them to a file"
            for one in (*self.inputs, *self.general_text)
            if one == "-" or Path(one).is_fifo()
        ]
        faults += [nothing_at(one) for one in self.inputs if _is_missing(one)]
        faults += [nothing_at(one, "general_text") for one in self.general_text if _is_missing(one)]
        if self.dry_run and self.force:
            faults.append("`dry_run` replaces nothing, so it cannot be given with `force`; choose another `name`")
        faults += [fault for path in self.queries for fault in no_file("queries", path)]
        if self.judged and not self.judged.exists():
            faults.append(f"`judged` {self.judged}: no such folder")
        if self.keep_index and self.vector_bytes is not None:
            faults.append(
                "`vector_bytes` and `keep_index` cannot both be given: the index keeps the vectors of `teacher`"
            )
        return faults


def _is_missing(name: str) -> bool:
    """Whether this is the path of a file or folder that does not exist, and names nothing else."""
    from sentcompress.corpora.documents_artifact import names_documents
    from sentcompress.corpora.inputs import is_hub_data

    return name != "-" and not (Path(name).exists() or names_documents(name) or is_hub_data(name))


COMMAND = Command(
    Params, "Make a small embedding model for your documents. Trains, measures and exports it, and writes a report."
)
