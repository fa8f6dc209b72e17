"""The options of `sentcompress whiten`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt
from sentcompress.commands.shared import Device, Hub, ModelOfOthers, Named, Seed


@dataclass(frozen=True, kw_only=True)
class Params(Hub, Named):
    """The model, and the sentences to fit on."""

    command: ClassVar[str] = "whiten"

    model: ModelOfOthers = None
    dim: Annotated[int, Opt("Dimensions to keep.", minimum=1)] = 128
    sample: Annotated[int, Opt("Sentences to fit on, sampled at random.", minimum=2)] = 100_000
    seed: Seed = 0
    sentences: Annotated[
        str | None,
        Opt(
            "Sentence table to fit on, made by augment.",
            affects="input",
            names="sentences",
            default="the one the model was trained on, else the newest",
        ),
    ] = None
    device: Device = "auto"


COMMAND = Command(
    Params,
    "Whiten and shorten a model's vectors, without training.",
    makes="students",
    version=2,  # named prompts are kept
)
