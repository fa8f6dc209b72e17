"""Options of the commands that train: the numbers of a recipe, spelt and explained once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from sentcompress.training.settings import Overrides

RECIPE = "By default as in the recipe: sentcompress methods show METHOD; for teachers, docs/train-teacher.md."

Epochs = Annotated[int | None, typer.Option("--epochs", help=f"Passes over the data. {RECIPE}")]
LearningRate = Annotated[float | None, typer.Option("--lr", help="Highest learning rate.")]
BatchSize = Annotated[int | None, typer.Option("--batch-size", help="Sentences, or triplets, a batch.")]
BatchTokens = Annotated[
    int | None, typer.Option("--batch-tokens", help="Most tokens a batch; by default 64 for each text of it.")
]
GradAccum = Annotated[
    int,
    typer.Option(
        "--grad-accum", help="Batches that make one step; contrastive methods see all their rows as negatives."
    ),
]
WarmupSteps = Annotated[
    int | None, typer.Option("--warmup-steps", help="Steps of rising learning rate, at most a tenth of all.")
]
WarmupRatio = Annotated[
    float | None, typer.Option("--warmup-ratio", help="The same as a share of all steps, without that limit.")
]
Schedule = Annotated[str | None, typer.Option("--schedule", help="cosine, linear or constant.")]
WeightDecay = Annotated[float | None, typer.Option("--weight-decay", help="AdamW's, on matrices only.")]
Clip = Annotated[float | None, typer.Option("--clip", help="Largest norm of the gradients; 0 is no limit.")]
MaxLength = Annotated[
    int | None, typer.Option("--max-length", help="Tokens that are read of a sentence while training.")
]
Dropout = Annotated[float | None, typer.Option("--dropout", help="In place of the student's own; 0 is faster too.")]
Dev = Annotated[
    Path | None,
    typer.Option(
        "--dev",
        help="Graded pairs, score<TAB>sentence1<TAB>sentence2, that choose the best checkpoint (never a test set). "
        "By default data that is held out does.",
    ),
]
EvalEvery = Annotated[int | None, typer.Option("--eval-every", help="Steps between two dev scores.")]
Patience = Annotated[
    float | None, typer.Option("--patience", help="Stop after so many epochs without a better dev score.")
]
MaxSteps = Annotated[int | None, typer.Option("--max-steps", help="Stop after so many steps.")]
Ema = Annotated[
    float | None,
    typer.Option(
        "--ema", metavar="DECAY", help="Keep a running mean of the weights, say 0.998: its dev score is what counts."
    ),
]
Switches = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A switch of the method; may be given several times."),
]
CheckpointEvery = Annotated[
    float, typer.Option("--checkpoint-every", help="Seconds between checkpoints; no influence on the result.")
]


def overrides(given: Mapping[str, Any]) -> Overrides:
    """The numbers among a command's parameters."""
    from dataclasses import fields

    from sentcompress.training.settings import Overrides

    names = {field.name for field in fields(Overrides)}
    return Overrides(**{name: value for name, value in given.items() if name in names})
