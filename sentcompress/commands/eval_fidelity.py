"""The options of `sentcompress eval-fidelity`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt
from sentcompress.commands.shared import ReferenceOptions, Sentences, SkipBad


@dataclass(frozen=True, kw_only=True)
class Params(ReferenceOptions):
    """What to compare, and on which sentences."""

    command: ClassVar[str] = "eval-fidelity"

    text: Annotated[
        tuple[Path, ...],
        Opt(
            "Sentences: a text, jsonl, csv, tsv or parquet file, or a folder of such files; can be repeated.",
            affects="input",
            default="held-out rows of the sentence table",
        ),
    ] = ()
    sentences: Sentences = None
    sample: Annotated[int, Opt("Maximum number of sentences, sampled with the seed.", minimum=3)] = 10_000
    neighbours: Annotated[int, Opt("Number of nearest neighbours compared per sentence.", minimum=1)] = 10
    pairwise: Annotated[int, Opt("Number of sentences of which all pairs are compared.", minimum=3)] = 1000
    show: Annotated[int, Opt("Number of sentence pairs to show on which the models disagree most.", minimum=0)] = 10
    skip_bad: SkipBad = False

    def faults(self) -> list[str]:
        faults = ["`text` and `sentences` cannot both be given"] if self.text and self.sentences else []
        return faults + super().faults()


COMMAND = Command(
    Params,
    "Compare a model's vectors with its teacher's. Estimates, without labels, how much of the teacher's behaviour is "
    "kept.",
    makes="evaluations",
    shared="encoding",
    version=3,  # intervals of 0 and 100%
)
