"""The quantizer of a model: in the model's own folder, or fitted to it in the work directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sentcompress.errors import InputError
from sentcompress.models.catalog import NamedModel
from sentcompress.plain_text import shell_word
from sentcompress.quantization.codecs import AUTO
from sentcompress.quantization.quantizer import DOCUMENT, FOLDER, TENSORS, Quantizer, has_quantizer
from sentcompress.store import WorkDirectory, file_inputs, tree_digest

# Kinds of artifacts that `fit-quantizer` takes texts from.
TEXTS = ("documents", "sentences")


@dataclass(frozen=True)
class FoundQuantizer:
    """A quantizer, its folder and the SHA-256 of its files.

    Attributes:
        inputs: the inputs to record in a request in addition to the model: digest by reference.
    """

    quantizer: Quantizer
    folder: Path
    inputs: Mapping[str, str]

    @property
    def digest(self) -> str:
        return tree_digest({name: self.folder / name for name in (DOCUMENT, TENSORS)})


def find_quantizer(work: WorkDirectory, model: NamedModel, number_format: str = AUTO) -> FoundQuantizer:
    """The quantizer in a model's folder; if it has none, the newest one that was fitted to this very model.

    Args:
        number_format: the format that it must have; AUTO for any.

    Raises:
        InputError: if there is none of that format, or it is damaged; the hint is the command that fits one.
    """
    others = []
    for folder, inputs in _folders(work, model):
        found = Quantizer.load(folder)
        if number_format in (AUTO, found.format):
            return FoundQuantizer(found, folder, inputs)
        others.append(found.format)
    wanted = "" if number_format == AUTO else f" for {number_format}"
    there = f" (there is one for {others[0]})" if others else ""
    take = "take that one with `store` quantizer, or " if others else ""
    raise InputError(
        f"{model.label} has no quantizer{wanted}{there}", f"{take}run: {_fitting(work, model, number_format)}"
    )


def _fitting(work: WorkDirectory, model: NamedModel, number_format: str) -> str:
    """The commands that fit a quantizer to a model; documents come first where there are no texts to fit on."""
    place = shell_word(work.path)
    named = shell_word(model.name) + ("" if number_format == AUTO else f" --store {shell_word(number_format)}")
    fit = f"sentcompress fit-quantizer --vector-bytes 128 --model {named} --work {place}"
    if any(work.names(kind) for kind in TEXTS):
        return fit
    return " && ".join((f"sentcompress split-documents DOCUMENTS --work {place}", fit))


def _folders(work: WorkDirectory, model: NamedModel) -> Iterator[tuple[Path, Mapping[str, str]]]:
    own = model.source.path
    if has_quantizer(own):
        # The document holds the SHA-256 of the other file.
        yield own / FOLDER, {} if model.covers_all_files else file_inputs([own / FOLDER / DOCUMENT])
    for artifact in work.newest("quantizers"):
        fitted = artifact.facts["model"]
        if (fitted.get("reference"), fitted.get("digest")) == (model.reference, model.digest):
            yield artifact.path / FOLDER, {artifact.reference: artifact.digest}
