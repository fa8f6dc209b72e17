"""The options of `sentcompress export`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt
from sentcompress.commands.shared import Hub, Model, Named


@dataclass(frozen=True, kw_only=True)
class Params(Hub, Named):
    """What to export."""

    command: ClassVar[str] = "export"

    model: Model = None
    onnx: Annotated[bool, Opt("Also write fused ONNX graphs, float32 and int8.")] = True
    sts: Annotated[
        tuple[str, ...],
        Opt("Graded pairs, as for eval-sts, to score the int8 graph; can be repeated.", affects="input"),
    ] = ()

    def faults(self) -> list[str]:
        if self.sts and not self.onnx:
            return ["`sts` scores the ONNX graphs, which `onnx` leaves out"]
        return []


COMMAND = Command(
    Params, "Export a model: sentence-transformers folder, ONNX, model card; all are verified.", makes="exports"
)
