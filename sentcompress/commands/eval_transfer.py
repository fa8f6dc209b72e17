"""The options of `sentcompress eval-transfer`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt
from sentcompress.commands.shared import EvaluationOptions, Seed

# SentEval's seed.
SEED = 1111


@dataclass(frozen=True, kw_only=True)
class Params(EvaluationOptions):
    """The tasks. The default folds and seed are SentEval's."""

    command: ClassVar[str] = "eval-transfer"

    tasks: Annotated[
        Path,
        Opt("Folder with sub-folders such as MR, TREC or MRPC, or SentEval's downstream folder.", affects="input"),
    ]
    only: Annotated[tuple[str, ...], Opt("Tasks to score, separated by commas.", commas=True, default="all found")] = ()
    normalize: Annotated[
        bool | None,
        Opt(
            "Scale vectors to unit length, or leave out the models' own normalisation, as in the papers.",
            default="as the models do",
        ),
    ] = None
    folds: Annotated[int, Opt("Folds of each cross-validation.", minimum=2)] = 10
    seed: Seed = SEED


COMMAND = Command(
    Params,
    "Score a model's vectors as features of a classifier. The score is the accuracy of logistic regression.",
    makes="evaluations",
    version=3,  # the folds hold the same examples as SentEval's
    shared="encoding",
)
