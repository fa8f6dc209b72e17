"""The options of `sentcompress augment`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt
from sentcompress.commands.shared import Named, Seed, SkipBad

STDIN = "-"


@dataclass(frozen=True, kw_only=True)
class Params(Named):
    """What to read, and which sentences to add."""

    command: ClassVar[str] = "augment"

    inputs: Annotated[
        tuple[str, ...],
        Opt(
            "Files (jsonl, csv, tsv, parquet, text; also .gz and .zst), - for standard input, or hub data sets.",
            positional=True,
            metavar="INPUT...",
            affects="input",
        ),
    ]
    wordnet: Annotated[
        int | None, Opt("Copies of each sentence with WordNet synonyms.", minimum=0, default="1 if possible")
    ] = None
    back_translate: Annotated[
        int | None, Opt("Copies of each sentence translated and back.", minimum=0, default="1 if possible")
    ] = None
    translator: Annotated[
        tuple[str, ...],
        Opt(
            "apertium; nlpaug (facebook/wmt19 models); two models as FROM,TO (one pair per copy); or auto: apertium, "
            "else nlpaug's models if they are on this disk.",
            default="auto",
        ),
    ] = ()
    aug_p: Annotated[float, Opt("Share of the words that WordNet replaces.", above=0, maximum=1)] = 0.3
    seed: Seed = 0
    format: Annotated[
        str | None,
        Opt("jsonl, csv, tsv, parquet or text.", default="from name and content"),
    ] = None
    column: Annotated[tuple[str, ...], Opt("Column that holds sentences; can be repeated.")] = ()
    domain: Annotated[str | None, Opt("Column with each row's domain, for metakd.", default="domain")] = None
    split: Annotated[str, Opt("Split of a hub data set, or of AllNLI.tsv.")] = "train"
    config: Annotated[str | None, Opt("Configuration of a hub data set.")] = None
    revision: Annotated[str | None, Opt("Revision of a hub data set.")] = None
    min_length: Annotated[int, Opt("Drop sentences with fewer characters.", minimum=0)] = 1
    max_length: Annotated[int | None, Opt("Drop sentences with more characters (HPD's code: 256).", minimum=1)] = None
    limit: Annotated[int | None, Opt("Stop after this many original sentences.", minimum=1)] = None
    skip_bad: SkipBad = False
    workers: Annotated[int | None, Opt("Processes.", minimum=1, affects="run", default="all cores")] = None

    def faults(self) -> list[str]:
        from sentcompress.augmentations.back_translation import check_translators
        from sentcompress.corpora.readers import check_format

        if self.format:
            check_format(self.format)
        faults = []
        if not self.inputs:
            faults.append("name at least one file, data set, or - for standard input")
        if self.inputs.count(STDIN) > 1:
            faults.append("standard input (-) can be read only once")
        if self.max_length is not None and self.max_length < self.min_length:
            faults.append(f"`max_length` {self.max_length} is below `min_length` {self.min_length}")
        return faults + check_translators(self.translator)


COMMAND = Command(
    Params,
    "Read sentences, and add WordNet and back-translated copies.",
    makes="sentences",
    version=2,  # triplets of QQP, QNLI and MRPC
)
