"""The options of `sentcompress eval-search`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt
from sentcompress.commands.shared import LEAST_PASSAGES, ReferenceOptions, Runtime

TEST, ALL = "test", "all"
PARTS = ("dev", TEST, ALL)


@dataclass(frozen=True, kw_only=True)
class Params(ReferenceOptions):
    """The models, and what is searched."""

    command: ClassVar[str] = "eval-search"

    documents: Annotated[
        str | None,
        Opt(
            "Documents, made by split-documents; the held-out part is searched.",
            affects="input",
            names="documents",
            default="the newest",
        ),
    ] = None
    query_part: Annotated[
        str | None,
        Opt(
            "Held-out queries of --documents: test, dev (used to choose checkpoints and quantizers) or all.",
            flag="part",
            choices=PARTS,
            default=TEST,
        ),
    ] = None
    collection: Annotated[
        Path | None,
        Opt("Folder with corpus and queries (BEIR, MS MARCO), instead of --documents.", affects="input"),
    ] = None
    split: Annotated[
        str | None,
        Opt("Split of --collection, if it has one file of queries per split.", default="dev, else the first"),
    ] = None
    keep_index: Annotated[
        bool, Opt("Search the vectors of --compare with the queries of --model (asymmetric search).")
    ] = False
    runtime: Runtime = "torch"
    stored: Annotated[
        bool, Opt("Search the documents' vectors as the model's quantizer stores them; queries stay float32.")
    ] = False
    max_queries: Annotated[int, Opt("Maximum number of queries, sampled with the seed.", minimum=1)] = 2000
    max_passages: Annotated[
        int,
        Opt("Maximum number of passages searched, sampled with the seed.", minimum=LEAST_PASSAGES, maximum=2_000_000),
    ] = 50_000

    @property
    def own_part(self) -> str | None:
        """The part of the held-out queries that is measured; None for all."""
        part = self.query_part or TEST
        return None if part == ALL else part

    def faults(self) -> list[str]:
        faults = super().faults()
        if self.documents is not None and self.collection is not None:
            faults.append("`documents` and `collection` cannot both be given")
        if self.split is not None and self.collection is None:
            faults.append("`split` is for `collection`")
        if self.query_part is not None and self.collection is not None:
            faults.append("`query_part` is for `documents`; a collection has no parts")
        if self.stored and self.keep_index:
            faults.append(
                "`stored` and `keep_index` cannot both be given: the documents' vectors are those of `compare`"
            )
        return faults


COMMAND = Command(
    Params,
    "Compare a model's search results with its teacher's. Needs no labels.",
    makes="evaluations",
    shared="encoding",
    version=4,  # intervals over documents
)
