"""The options of `sentcompress mine-negatives`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import MODEL, Opt
from sentcompress.commands.shared import (
    READ_NAME,
    Device,
    Dtype,
    Hub,
    IndexKind,
    IndexOptions,
    JudgedCollection,
    Named,
    Sharded,
    Similarity,
    SkipBad,
    unable_to_search,
)

DEFAULT_NAME = "mined"


@dataclass(frozen=True, kw_only=True)
class Params(Sharded, IndexOptions, Hub, Named):
    """The data, the model, and the selection of negatives."""

    command: ClassVar[str] = "mine-negatives"

    pairs: Annotated[
        Path | None,
        Opt(
            "Queries and positives: a csv, tsv, jsonl or parquet file.",
            affects="input",
            default="the triplets of the work directory",
        ),
    ] = None
    columns: Annotated[
        tuple[str, ...], Opt("Column of --pairs; give it twice, for the query and the positive.", flag="column")
    ] = ()
    collection: JudgedCollection = None
    split: Annotated[str | None, Opt("Split of --collection.", default="train")] = None
    sentences: Annotated[
        str | None,
        Opt(
            "Sentence table with triplets, made by augment.",
            affects="input",
            names="sentences",
            default="the newest with triplets",
        ),
    ] = None
    corpus: Annotated[
        Path | None, Opt("File of additional texts to search, in any format that augment reads.", affects="input")
    ] = None
    model: Annotated[
        str,
        Opt(
            "Model to search with: teacher, student (the newest), or any other name of a model.",
            affects="input",
            names=MODEL,
        ),
    ] = "teacher"
    negatives: Annotated[int, Opt("Hard negatives per pair.", minimum=1)] = 8
    skip: Annotated[int, Opt("Skip the top N candidates, which may be unlabelled positives.", minimum=0)] = 0
    depth: Annotated[int, Opt("Candidates to consider after the skipped ones.", minimum=1)] = 100
    max_score: Annotated[
        float | None,
        Opt("Drop candidates that score above this share of the positive's score; 0 for no limit.", above=0, maximum=1),
    ] = 0.95
    strategy: Annotated[
        str, Opt("How to choose negatives among the candidates: random or top.", choices=("random", "top"))
    ] = "random"
    similarity: Similarity = "cosine"
    index: IndexKind = "flat"
    name: Annotated[
        str | None,
        Opt("Name of the result in the work directory.", affects="input", reads=READ_NAME, default=DEFAULT_NAME),
    ] = None
    skip_bad: SkipBad = False
    device: Device = "auto"
    dtype: Dtype = "float32"

    def faults(self) -> list[str]:
        given = [f"`{name}`" for name in ("pairs", "collection", "sentences") if getattr(self, name) is not None]
        faults = [f"{' and '.join(given)}: give one of them"] if len(given) > 1 else []
        if self.columns and (self.pairs is None or len(self.columns) != 2):
            faults.append("give `columns` twice, for the query and for the positive of `pairs`")
        if self.split is not None and self.collection is None:
            faults.append("`split` is for `collection`")
        if 1 <= self.depth < self.negatives:
            faults.append(f"`depth` must be at least `negatives`, {self.negatives}, not {self.depth}")
        faults += unable_to_search(self.similarity, [self.index]) + self.faults_of_settings([self.index])
        return faults + self.faults_of_shard()


COMMAND = Command(
    Params,
    "Mine hard negatives. A hard negative is a text that a model ranks high although it does not answer the query.",
    makes="sentences",
)
