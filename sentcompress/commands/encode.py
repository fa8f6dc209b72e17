"""The options of `sentcompress encode`."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt
from sentcompress.commands.shared import Device, EncodingDtype, EncodingTokens, Hub, Model, Store


@dataclass(frozen=True, kw_only=True)
class Params(Hub):
    """The texts, the model, and the output file."""

    command: ClassVar[str] = "encode"

    lines: Annotated[
        str,
        Opt("Text, one sentence per line, also .gz or .zst; - is standard input.", positional=True, metavar="FILE"),
    ]
    output: Annotated[Path, Opt("The .npy file to write.", short="o")]
    model: Model = None
    store: Store = "float32"
    dtype: EncodingDtype = "auto"
    device: Device = "auto"
    batch_tokens: EncodingTokens = None

    def faults(self) -> list[str]:
        if self.output.suffix not in ("", ".npy"):
            return [f"`output` is written in NumPy's format: name it {self.output.with_suffix('.npy')}"]
        if not self.output.absolute().parent.is_dir():
            return [f"`output` {self.output}: there is no folder {self.output.parent}"]
        if not os.access(self.output.absolute().parent, os.W_OK):
            return [f"`output` {self.output}: no permission to write to {self.output.absolute().parent}"]
        return []


COMMAND = Command(Params, "Encode lines of text with any model into one .npy file, one row per line.")
