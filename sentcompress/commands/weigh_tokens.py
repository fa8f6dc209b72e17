"""The options of `sentcompress weigh-tokens`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt
from sentcompress.commands.shared import Hub, ModelOfOthers, Named, Sentences


@dataclass(frozen=True, kw_only=True)
class Params(Hub, Named):
    """The model, and the parameters of its token weights; see `token_weights.sif_weights`."""

    command: ClassVar[str] = "weigh-tokens"

    model: ModelOfOthers = None
    smoothing: Annotated[
        float,
        Opt(
            "a in the token weight a / (a + p), where p is the relative frequency of the token; 0: punctuation only.",
            minimum=0,
        ),
    ] = 0.03
    punctuation: Annotated[float, Opt("Factor on the weight of punctuation.", minimum=0, maximum=1)] = 0.0
    sentences: Sentences = None

    def faults(self) -> list[str]:
        if self.smoothing == 0 and self.punctuation == 1:
            return ["`smoothing` 0 with `punctuation` 1 would weigh all tokens equally"]
        return []


COMMAND = Command(
    Params,
    "Down-weight frequent tokens and punctuation (SIF). Needs no training; best for teachers.",
    makes="students",
    needs=("sentences",),
    version=2,  # named prompts are kept
)
