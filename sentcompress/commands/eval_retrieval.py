"""The options of `sentcompress eval-retrieval`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import MODEL, Opt
from sentcompress.commands.shared import (
    CUTOFF,
    Bootstrap,
    Compare,
    Device,
    Dtype,
    Hub,
    IndexOptions,
    JudgedCollection,
    Model,
    Named,
    Runtime,
    Similarity,
    unable_to_search,
)


@dataclass(frozen=True, kw_only=True)
class Params(IndexOptions, Hub, Named):
    """The data set, the models, and the indexes."""

    command: ClassVar[str] = "eval-retrieval"

    pairs: Annotated[
        Path | None, Opt("Question pairs: a csv or tsv file with question1, question2, is_duplicate.", affects="input")
    ] = None
    corpus: Annotated[
        str,
        Opt(
            "Corpus of --pairs: all (question2 of all pairs), duplicates (question2 of duplicates), or auto (the one "
            "with HPD's 87,265 documents, else all).",
            choices="sentcompress.corpora.pairs:CORPORA",
        ),
    ] = "auto"
    collection: JudgedCollection = None
    entities: Annotated[
        Path | None,
        Opt("Entity pairs with query, entity, label: a file, or a folder of splits or languages.", affects="input"),
    ] = None
    split: Annotated[str | None, Opt("Split of the data set.", default="test, else dev, else the only one")] = None
    model: Model = None
    document_model: Annotated[
        str | None,
        Opt("Model for the documents, if other than --model, such as teacher.", affects="input", names=MODEL),
    ] = None
    vectors: Annotated[
        Path | None,
        Opt("Folder written by encode: vectors of --collection, made with --model.", affects="input"),
    ] = None
    query_model: Annotated[
        str | None, Opt("Model for the queries, if other than --model, such as student.", affects="input", names=MODEL)
    ] = None
    compare: Compare = None
    runtime: Runtime = "torch"
    similarity: Similarity = "cosine"
    index: Annotated[
        tuple[str, ...],
        Opt(
            "Kinds of index, separated by commas: flat, ivf, ivfpq, pq, hnsw, sq8, fp16, binary.",
            commas=True,
            choices="sentcompress.evaluation.index_plan:KINDS",
        ),
    ] = ("flat", "ivf")
    depth: Annotated[
        int | None,
        Opt("Documents returned per query.", minimum=CUTOFF, default="1,000 for --collection, else 10"),
    ] = None
    threads: Annotated[int, Opt("Threads of FAISS; 0 for all available.", minimum=0, maximum=1024)] = 1
    rounds: Annotated[int, Opt("Timed searches; their median is reported.", minimum=1)] = 5
    bootstrap: Bootstrap = 1000
    device: Device = "auto"
    dtype: Dtype = "float32"

    def faults(self) -> list[str]:
        faults = []
        if not self.index or len(set(self.index)) < len(self.index):
            faults.append("`index` takes distinct kinds, separated by commas")
        faults += unable_to_search(self.similarity, self.index) + self.faults_of_settings(self.index)
        if sum(given is not None for given in (self.pairs, self.collection, self.entities)) != 1:
            faults.append("give one of `pairs`, `collection` and `entities`")
        if self.pairs is not None and self.split is not None:
            faults.append("`split` is for `collection` and `entities`; a file of pairs has no splits")
        if self.vectors is not None and (self.collection is None or self.document_model is not None):
            faults.append("`vectors` needs `collection`, and replaces `document_model`")
        if self.pairs is None and self.corpus != "auto":
            faults.append("`corpus` is for `pairs`")
        if self.document_model is not None and self.query_model is not None:
            given = {"runtime": self.runtime != "torch", "revision": self.revision is not None}
            without = "no effect with both `document_model` and `query_model`"
            faults += [f"`model` has {without}"] if self.model is not None else []
            faults += [f"`{name}` is for `model`, which has {without}" for name, is_given in given.items() if is_given]
        return faults


COMMAND = Command(
    Params,
    "Score a model on retrieval with judgements. Also measures search time, size and loss of each index.",
    makes="evaluations",
    shared="encoding",
    version=4,  # the main score of entities is Accuracy@1
)
