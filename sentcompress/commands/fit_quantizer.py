"""The options of `sentcompress fit-quantizer`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt
from sentcompress.commands.shared import LEAST_PASSAGES, MOST_VECTOR_BYTES, ReferenceOptions


@dataclass(frozen=True, kw_only=True)
class Params(ReferenceOptions):
    """The model, the texts, and how large a stored vector may be."""

    command: ClassVar[str] = "fit-quantizer"

    vector_bytes: Annotated[int, Opt("Maximum bytes per stored vector.", minimum=1, maximum=MOST_VECTOR_BYTES)] = 128
    store: Annotated[
        str,
        Opt(
            "Number format: float32, float16, int8, int4, binary or pq; or auto: the best of those that fit.",
            choices="sentcompress.quantization.codecs:FORMATS",
        ),
    ] = "auto"
    dim: Annotated[int | None, Opt("Dimensions to keep.", minimum=1, default="as many as fit")] = None
    documents: Annotated[
        str | None,
        Opt(
            "Documents to fit on and choose by, made by split-documents.",
            affects="input",
            names="documents",
            default="the newest, if there is one",
        ),
    ] = None
    sentences: Annotated[
        str | None,
        Opt("Sentence table, instead of --documents; a part of it is held out.", affects="input", names="sentences"),
    ] = None
    sample: Annotated[int, Opt("Texts to fit on, sampled at random.", minimum=2)] = 20_000
    max_queries: Annotated[int, Opt("Maximum number of held-out queries to choose by.", minimum=1)] = 2000
    max_passages: Annotated[
        int, Opt("Maximum number of held-out passages that are searched.", minimum=LEAST_PASSAGES)
    ] = 20_000

    def faults(self) -> list[str]:
        faults = super().faults()
        if self.documents is not None and self.sentences is not None:
            faults.append("`documents` and `sentences` cannot both be given")
        return faults


COMMAND = Command(
    Params,
    "Choose how vectors are stored within --vector-bytes. Tries number formats and numbers of dimensions.",
    makes="quantizers",
    version=6,  # the protocol names the part of the queries
)
