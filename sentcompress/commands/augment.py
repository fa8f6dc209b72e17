"""The options of `sentcompress augment`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt
from sentcompress.commands.shared import Named, Reading, Seed, Sharded, SkipBad


@dataclass(frozen=True, kw_only=True)
class Params(Sharded, Reading, Named):
    """What to read, and which sentences to add."""

    command: ClassVar[str] = "augment"

    wordnet: Annotated[
        int | None, Opt("Copies of each sentence with WordNet synonyms.", minimum=0, default="1; 0 for documents")
    ] = None
    back_translate: Annotated[
        int | None, Opt("Back-translated copies of each sentence.", minimum=0, default="1; 0 for documents")
    ] = None
    translator: Annotated[
        tuple[str, ...],
        Opt(
            "Translator: apertium; nlpaug (facebook/wmt19 models); a pair of models FROM,TO; or auto: apertium, else "
            "nlpaug's models if they are in the local cache. Repeat it for several copies.",
            default="auto",
        ),
    ] = ()
    aug_p: Annotated[float, Opt("Share of the words to replace by WordNet synonyms.", above=0, maximum=1)] = 0.3
    seed: Seed = 0
    separate_columns: Annotated[bool, Opt("Read each --column as a sentence of its own instead of joining them.")] = (
        False
    )
    domain: Annotated[
        str | None, Opt("Column with the domain of each row, for the method metakd.", default="domain, if there is one")
    ] = None
    queries_per_text: Annotated[
        float,
        Opt("Queries to make from each text of 20 words or more; 0.5: from every second text.", minimum=0, maximum=10),
    ] = 0.0
    words: Annotated[
        int | None,
        Opt("Total number of words to sample, in equal parts from the inputs.", minimum=1, default="all"),
    ] = None
    share: Annotated[
        tuple[str, ...],
        Opt(
            "Weight of an input in --words; 0 leaves it out. Can be repeated.",
            default="1 for each input",
            metavar="INPUT=WEIGHT",
        ),
    ] = ()
    min_length: Annotated[int, Opt("Drop sentences with fewer characters.", minimum=0)] = 1
    max_length: Annotated[
        int | None, Opt("Drop sentences with more characters (HPD's code: 256).", minimum=1, default="no limit")
    ] = None
    limit: Annotated[int | None, Opt("Stop after this many original sentences.", minimum=1, default="no limit")] = None
    skip_bad: SkipBad = False
    workers: Annotated[
        int | None, Opt("Number of worker processes.", minimum=1, affects="run", default="one per core")
    ] = None

    def faults(self) -> list[str]:
        from sentcompress.augmentations.back_translation import check_translators
        from sentcompress.corpora.mixing import weights_of

        faults = self.faults_of_inputs() + self.faults_of_shard()
        if self.separate_columns and len(self.column) < 2:
            faults.append("`separate_columns` needs `column` at least twice")
        if self.max_length is not None and self.max_length < self.min_length:
            faults.append(f"`max_length` {self.max_length} is below `min_length` {self.min_length}")
        if self.share and self.words is None:
            faults.append("`share` needs `words`")
        copies = 1 if self.back_translate is None else self.back_translate
        if 0 < copies < (given := len(self.translator)):
            faults.append(f"`translator` is given {given} times, which needs `back_translate` {given}, not {copies}")
        try:
            weights_of(self.share, self.inputs)
        except ValueError as error:
            faults.append(str(error))
        return faults + check_translators(self.translator)


COMMAND = Command(
    Params,
    "Collect the texts to train on, and add augmented copies. Copies are made with WordNet or by back-translation.",
    makes="sentences",
    version=5,  # words are whole where soft hyphens or ligatures are in them
)
