"""The options of `sentcompress split-documents`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt
from sentcompress.commands.shared import IdColumn, Named, Reading, Seed, SkipBad, no_file

PASSAGE_WORDS = 160


@dataclass(frozen=True, kw_only=True)
class Params(Reading, Named):
    """What to read, how to cut it, and what to hold out."""

    command: ClassVar[str] = "split-documents"

    id_column: IdColumn = None
    passage_words: Annotated[
        int,
        Opt("Maximum words per passage; 160 words and their title fit into 256 tokens.", minimum=10, maximum=100_000),
    ] = PASSAGE_WORDS
    queries: Annotated[
        tuple[Path, ...],
        Opt("Your own query log: a text file with one query per line, or a table; can be repeated.", affects="input"),
    ] = ()
    per_passage: Annotated[
        int, Opt("Queries to make from each training passage.", flag="queries-per-passage", minimum=0, maximum=100)
    ] = 2
    held_out: Annotated[
        float | None,
        Opt("Share of the documents to hold out.", above=0, maximum=0.5, default="0.05, but 50 to 500 documents"),
    ] = None
    corpus_passages: Annotated[
        int, Opt("Passages in the held-out collection, filled up with training passages.", minimum=1)
    ] = 20_000
    seed: Seed = 0
    skip_bad: SkipBad = False
    # Not of documents: those of all splits are searched.
    split: Annotated[str, Opt("Split of a hub data set, or of a table of pairs with a column split.")] = "train"

    def faults(self) -> list[str]:
        missing = [fault for path in self.queries for fault in no_file("queries", path)]
        return self.faults_of_inputs() + missing


COMMAND = Command(
    Params,
    "Cut documents into passages and make queries from them. Some documents are held out for measuring.",
    makes="documents",
    version=10,  # words are whole where soft hyphens or ligatures are in them
)
