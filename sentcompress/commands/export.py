"""The options of `sentcompress export`."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import MODEL, Opt
from sentcompress.commands.shared import Hub, Model, Named, no_file

# What the hub calls licenses and languages.
IDENTIFIER = re.compile(r"[A-Za-z0-9][\w.+-]*")


@dataclass(frozen=True, kw_only=True)
class Params(Hub, Named):
    """What to export."""

    command: ClassVar[str] = "export"

    model: Model = None
    formats: Annotated[
        tuple[str, ...],
        Opt(
            "Formats to write: folder (sentence-transformers; always written), onnx (a fused float32 graph), int8 (the "
            "graph in int8).",
            flag="format",
            metavar="NAME,...",
            choices="sentcompress.exporting.formats:FORMATS",
            commas=True,
        ),
    ] = ("folder", "onnx", "int8")
    float16: Annotated[
        bool, Opt("Store the folder's weights as float16, half the size; computation stays in float32.")
    ] = False
    weight_format: Annotated[
        str | None,
        Opt(
            "Weights of the int8 graph: int8, or int4 (about half the file size; unpacked when the graph is opened).",
            choices="sentcompress.models.weight_formats:WEIGHT_FORMATS",
            default="int8, or int4 if trained for it",
        ),
    ] = None
    quantizer: Annotated[
        str | None,
        Opt(
            "Also write vectors/, the quantizer that fit-quantizer made for this model.",
            affects="input",
            names="quantizers",
            default="none",
        ),
    ] = None
    router: Annotated[
        str | None,
        Opt(
            "Also write router/, a sentence-transformers Router: this model (usually teacher) encodes documents, the "
            "exported model queries.",
            affects="input",
            names=MODEL,
            default="none",
        ),
    ] = None
    sts: Annotated[
        tuple[str, ...],
        Opt("STS data, as for eval-sts, to score the int8 graph; can be repeated.", affects="input"),
    ] = ()

    calibrate: Annotated[
        tuple[str, ...],
        Opt(
            "Texts to calibrate the int8 graph on; fixed activation ranges are kept if they are more exact. Files, "
            "folders, documents/NAME or sentences/NAME; can be repeated.",
            affects="input",
        ),
    ] = ()

    license: Annotated[
        str | None,
        Opt("License for the model card, such as apache-2.0.", default="a comment to fill in"),
    ] = None
    language: Annotated[
        tuple[str, ...],
        Opt("Language code for the model card, such as en; can be repeated.", default="a comment to fill in"),
    ] = ()

    notes: Annotated[
        Path | None,
        Opt(
            "Markdown file to add to the model card, such as training data, licences and limits.",
            metavar="FILE",
            affects="input",
            default="none",
        ),
    ] = None

    def faults(self) -> list[str]:
        wrong = [
            f"`{field}` {value!r} is not {what}"
            for field, what, values in (
                ("license", "an identifier such as apache-2.0", [self.license] if self.license is not None else []),
                ("language", "a code such as en", self.language),
            )
            for value in values
            if not IDENTIFIER.fullmatch(value)
        ]
        wrong += no_file("notes", self.notes) if self.notes is not None else []
        if wrong:
            return wrong
        if not self.formats:
            return ["name at least one of the `formats`, such as folder"]
        if self.sts and set(self.formats) <= {"folder"}:
            return ["`sts` scores the formats besides folder, but `formats` has none"]
        if self.weight_format is not None and "int8" not in self.formats:
            return ["`weight_format` is for the format int8, which `formats` does not name"]
        if self.calibrate and "int8" not in self.formats:
            return ["`calibrate` is for the format int8, which `formats` does not name"]
        return []


COMMAND = Command(
    Params,
    "Export a model: sentence-transformers, ONNX, model card. All files are verified.",
    makes="exports",
    version=5,  # weights of 4 bits are fitted to texts; graphs have fewer operators
)
