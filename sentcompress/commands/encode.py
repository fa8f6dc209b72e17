"""The options of `sentcompress encode`."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt
from sentcompress.commands.shared import (
    STDIN,
    Device,
    EncodingDtype,
    EncodingTokens,
    Format,
    Hub,
    IdColumn,
    Model,
    Runtime,
    Sharded,
    SkipBad,
    TextColumns,
)

NPY, PARQUET = ".npy", ".parquet"
SUFFIXES = (NPY, PARQUET)
# Suffixes of files that are not written, and what is instead; a folder of such a name is hardly meant.
_INSTEAD = {
    **dict.fromkeys((".csv", ".txt", ".json", ".jsonl", ".tsv", ".pt", ".npz", ".safetensors"), NPY),
    **dict.fromkeys((".bin", ".h5", ".hdf5", ".pickle", ".pkl", NPY), NPY),
    **dict.fromkeys((".arrow", ".feather", ".pq", PARQUET), PARQUET),
}


@dataclass(frozen=True, kw_only=True)
class Params(Sharded, Hub):
    """The texts, the model, and the output."""

    command: ClassVar[str] = "encode"

    lines: Annotated[
        str,
        Opt(
            "Texts: a text file (one per line); jsonl, csv, tsv or parquet; md, rst or html (one document); also .gz "
            "or .zst; a folder of documents or in BEIR's layout; or - for standard input.",
            positional=True,
            metavar="FILE",
        ),
    ]
    output: Annotated[
        Path,
        Opt(
            "Output: a .npy or .parquet file, or a folder of numbered files (a name without suffix).",
            short="o",
        ),
    ]
    model: Model = None
    prompt_name: Annotated[
        str | None,
        Opt(
            "Named prompt of the model to put before every text, such as query or document.",
            default="the default prompt, if the model has one",
        ),
    ] = None
    store: Annotated[
        str,
        Opt(
            "Number format: float32, float16, or quantizer (that of the model's quantizer). int8, int4, binary and pq: "
            "as quantizer, but an error if its format differs.",
            choices="sentcompress.quantization.codecs:STORES",
        ),
    ] = "float32"
    passages: Annotated[
        bool, Opt("Cut the documents into passages, as compress and search do, and encode the passages.")
    ] = False
    texts: Annotated[
        bool, Opt("Also write the texts: a column of the Parquet file, or files of the folder, as with the ids.")
    ] = False
    column: TextColumns = ()
    id_column: IdColumn = None
    format: Format = None
    skip_bad: SkipBad = False
    runtime: Runtime = "torch"
    dtype: EncodingDtype = "auto"
    device: Device = "auto"
    batch_tokens: EncodingTokens = None

    @property
    def to_folder(self) -> bool:
        """Whether numbered files are written into a folder."""
        return self.output.suffix not in SUFFIXES

    def faults(self) -> list[str]:
        faults = self.faults_of_shard()
        if self.shard is not None and not self.to_folder:
            faults.append(f"`shard` needs a folder as `output`, a name without suffix, not {self.output}")
        if self.runtime != "torch" and (self.dtype != "auto" or self.batch_tokens is not None):
            faults.append(f"`dtype` and `batch_tokens` are for `runtime` torch, not {self.runtime}")
        if self.skip_bad and self.output.suffix == NPY:
            faults.append("`skip_bad` leaves texts out, and .npy has no ids: name a .parquet file or a folder")
        if self.texts and self.output.suffix == NPY:
            faults.append("`texts` keeps texts beside ids, and .npy has neither: name a .parquet file or a folder")
        if self.id_column is not None and self.output.suffix == NPY:
            faults.append("`id_column` names the column of ids, and .npy has no ids: name a .parquet file or a folder")
        return faults + self._faults_of_output()

    def _faults_of_output(self) -> list[str]:
        if str(self.output) == STDIN:
            return ["`output` is a .npy or .parquet file, or a folder: standard output (-) is for the summary"]
        if instead := _file_instead_of(self.output):
            return [f"`output` is a .npy or .parquet file, or a folder: name it {instead}"]
        if not self.output.absolute().parent.is_dir():
            return [f"`output` {self.output}: there is no folder {self.output.parent}"]
        if not os.access(self.output.absolute().parent, os.W_OK):
            return [f"`output` {self.output}: no permission to write to {self.output.absolute().parent}"]
        return []


def _file_instead_of(output: Path) -> Path | None:
    """The file to name in place of one that is not written; None if the output can be written."""
    if output.suffix in SUFFIXES:
        return None
    whole = output.with_suffix("") if output.suffix.lower() in (".gz", ".zst") else output
    instead = _INSTEAD.get(whole.suffix.lower())
    return whole.with_suffix(instead) if instead else None


COMMAND = Command(
    Params,
    "Encode texts with any model. Writes a .npy or .parquet file, or a folder of numbered files with ids.",
    version=4,  # a Markdown file is one text; all rows are read, whatever their column `split` says
)
