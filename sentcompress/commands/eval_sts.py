"""The options of `sentcompress eval-sts`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt
from sentcompress.commands.shared import EvaluationOptions, Runtime


@dataclass(frozen=True, kw_only=True)
class Params(EvaluationOptions):
    """The STS sets, and the aggregation of their scores."""

    command: ClassVar[str] = "eval-sts"

    sts: Annotated[
        tuple[str, ...],
        Opt(
            "STS data: a file score<TAB>sentence1<TAB>sentence2, a folder of such files, SentEval's downstream folder, "
            "a hub data set (mteb/sts13-sts), or mteb for all seven; can be repeated.",
            affects="input",
        ),
    ]
    aggregate: Annotated[
        str,
        Opt(
            "Score of a set with subsets: all (one correlation over all pairs), mean, or wmean (weighted by pairs).",
            choices="sentcompress.evaluation.sts:AGGREGATES",
        ),
    ] = "all"
    split: Annotated[
        str, Opt("Split to score, of a folder or hub data set: test, dev or train.", choices=("test", "dev", "train"))
    ] = "test"
    runtime: Runtime = "torch"

    def faults(self) -> list[str]:
        return [] if self.sts else ["name a file or folder of graded pairs with `sts`"]


COMMAND = Command(
    Params,
    "Score a model on semantic textual similarity. The score is Spearman x 100 between cosines and gold scores.",
    makes="evaluations",
    version=3,  # the split is that of the files, also of those that were named themselves
    shared="encoding",
)
