"""Verification of an export: whether the exported model gives the encoder's vectors.

The vectors are computed as a user would: with sentence-transformers' loader and tokenisation, or with onnxruntime and
the folder's `tokenizer.json`. This detects a lost Dense layer, a wrong maximum length or a different tokenizer,
whichever file is at fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from sentcompress.errors import SentcompressError
from sentcompress.exporting.formats import BATCH, Format, Reader
from sentcompress.models.cautions import padding_cosine
from sentcompress.models.encoder import Encoder
from sentcompress.models.pretrained import hush_transformers
from sentcompress.models.token_batches import by_length
from sentcompress.numeric import at_least, at_most
from sentcompress.progress import Reporter
from sentcompress.quantities import counted

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Vectors = npt.NDArray[np.float32]
LEAST_COSINE = 0.9999
# Largest relative error of a vector's length; a lost Normalize module exceeds it.
LENGTH_TOLERANCE = 1e-3
ZERO = 1e-12
# Below this, a quantised format lost more than rounding of its weights can explain.
LEAST_MEAN_COSINE = 0.95
# Truncation is verified, with a text beyond the maximum length, up to this maximum length in tokens. Attention over
# longer texts takes too much memory; the longest text then has LONG tokens.
LONGEST = 8192
LONG = 1024
# Tokens of a batch, padding included; a batch of short texts has fewer.
BATCH_TOKENS = 512 * BATCH
# No token has more characters than this.
TOKEN_CHARACTERS = 40
# Used when the work directory has no sentences.
BUILT_IN_SAMPLE = (
    "A man is playing the guitar on the corner of the street.",
    "How do I learn a new language quickly?",
    "The company's profit fell by 3.5% in the second quarter, to $1.2 million.",
    "Two dogs run through the snow.",
    "Is it going to rain tomorrow?",
    "She said: 'We'll see', and closed the door behind her without another word.",
    "Zürich, São Paulo and 東京 are cities.",
    "The committee, which had met eleven times since the spring, could not agree on a date for the vote.",
)


@dataclass(frozen=True)
class VectorAgreement:
    """Agreement of vectors with the encoder's: cosines, and the largest relative error of a vector's length."""

    texts: int
    min_cosine: float
    mean_cosine: float
    length_error: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def with_extremes(texts: Sequence[str], encoder: Encoder) -> list[str]:
    """The texts in order of length, with a long one and one of a single word added.

    The long one is far beyond the maximum length, or of about LONG tokens if that exceeds LONGEST.
    """
    limit = encoder.text.max_length
    wanted = limit if limit <= LONGEST else LONG
    most = TOKEN_CHARACTERS * wanted
    long = " ".join(texts)
    single = long.split()[0][:12]
    while (tokens := len(encoder.tokenize([long])[0])) < wanted and len(long) < most:
        long = f"{long} {long}"
    # Doubled, so that text with one token per character is truncated too.
    long = f"{long} {long}"[:most] if limit <= LONGEST else long[: len(long) * wanted // max(tokens, wanted)]
    return sorted({*texts, long, single}, key=lambda text: (len(text), text))


def encoder_vectors(encoder: Encoder, texts: Sequence[str]) -> Vectors:
    """The reference vectors, [N, D] float32; each text is encoded alone, so that padding cannot hide an error."""
    encoder.eval()
    rows = []
    with torch.inference_mode():
        for ids in encoder.tokenize(texts):
            tokens = torch.tensor([ids], device=encoder.device)
            rows.append(encoder(tokens, torch.ones_like(tokens)).float().cpu().numpy()[0])
    return np.stack(rows)


def open_folder(folder: Path, *, trust_remote_code: bool) -> SentenceTransformer:
    """`SentenceTransformer(folder)` on the CPU.

    Args:
        trust_remote_code: whether the user allows the model to run its own code.
    """
    from sentence_transformers import SentenceTransformer

    hush_transformers()
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True, trust_remote_code=trust_remote_code)


@dataclass(frozen=True)
class EncodeReader:
    """Computes vectors with a method of a SentenceTransformer, such as `encode`."""

    encode: Callable[..., Any]

    def vectors(self, texts: Sequence[str], batch: int = BATCH) -> Vectors:
        return np.asarray(self.encode(list(texts), batch_size=batch, show_progress_bar=False), dtype=np.float32)


@dataclass(frozen=True)
class BoundedReader:
    """Reads texts in batches of at most BATCH_TOKENS tokens; a longer text is a batch by itself."""

    reader: Reader
    tokenize: Callable[[Sequence[str]], list[list[int]]]

    def vectors(self, texts: Sequence[str], batch: int = BATCH) -> Vectors:
        lengths = np.array([len(ids) for ids in self.tokenize(texts)])
        whole = (np.arange(start, min(start + batch, len(texts))) for start in range(0, len(texts), batch))
        parts = [rows[part] for rows in whole for part in by_length(lengths[rows], BATCH_TOKENS)]
        vectors = np.concatenate([self.reader.vectors([texts[row] for row in part], batch) for part in parts])
        return np.asarray(vectors[np.argsort(np.concatenate(parts))], dtype=np.float32)


def agreement(found: Vectors, expected: Vectors) -> VectorAgreement:
    """Compare two [N, D] row by row.

    If a vector is zero, or contains NaN or infinity, the cosine of that row is 0 and the length error is 1.

    Raises:
        SentcompressError: if the dimensions differ.
    """
    if found.shape != expected.shape:
        raise SentcompressError(
            f"the export failed verification: vectors of {found.shape[1]} dimensions instead of {expected.shape[1]}",
            "nothing was written; a module of the model, such as a Dense layer, cannot be exported",
        )
    lengths, wanted = (np.linalg.norm(vectors.astype(np.float64), axis=1) for vectors in (found, expected))
    usable = np.isfinite(lengths) & np.isfinite(wanted) & (lengths > 0) & (wanted > 0)
    cosines, errors = np.zeros(len(found)), np.ones(len(found))
    products = (found[usable].astype(np.float64) * expected[usable].astype(np.float64)).sum(axis=1)
    cosines[usable] = products / (lengths[usable] * wanted[usable])
    errors[usable] = np.abs(lengths[usable] - wanted[usable]) / wanted[usable]
    return VectorAgreement(len(found), float(cosines.min()), float(cosines.mean()), float(errors.max()))


def require_agreement(found: Vectors, expected: Vectors, what: str) -> VectorAgreement:
    """The agreement of a float32 format.

    Raises:
        SentcompressError: if a vector contains NaN or infinity, a cosine is below LEAST_COSINE, or the relative error
            of a length is above LENGTH_TOLERANCE.
    """
    for vectors, whose in ((expected, "the model"), (found, what)):
        if broken := _broken(vectors):
            raise SentcompressError(
                f"the export failed verification: {whose} gives NaN or infinity for {broken} of {len(vectors)} "
                "sentences",
                "nothing was written; copy or download the model again, or train it again with a lower learning rate",
            )
    result = agreement(found, expected)
    if not at_least(result.min_cosine, LEAST_COSINE):
        raise SentcompressError(
            f"the export failed verification: a vector of {what} has a cosine of {result.min_cosine:.6f} to the "
            f"model's own (float32 must reach {LEAST_COSINE})",
            "nothing was written; the installed libraries may not be compatible with the model's folder",
        )
    if not at_most(result.length_error, LENGTH_TOLERANCE):
        raise SentcompressError(
            f"the export failed verification: the vectors of {what} have a different length", "nothing was written"
        )
    return result


def unit(vectors: Vectors) -> Vectors:
    """Rows scaled to unit length, as in the ONNX graphs."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)


def _broken(vectors: Vectors) -> int:
    """Number of rows of [N, D] that contain NaN or infinity."""
    return int((~np.isfinite(vectors)).any(axis=1).sum())


def check_inexact(reader: Reader, texts: Sequence[str], expected: Vectors, title: str) -> dict[str, Any]:
    """Agreement of an inexact format with float32, in batches and one text at a time.

    An int8 graph quantises activations by their range in the batch, so a text's vector depends on the other texts of
    the batch; `batch_to_single_min_cosine` measures how much.

    Raises:
        SentcompressError: if a vector is zero, or contains NaN or infinity.
        InputError: if onnxruntime cannot run the graph.
    """
    batched, single = reader.vectors(texts), reader.vectors(texts, batch=1)
    zeros = sum(int((np.abs(vectors) < ZERO).all(axis=1).sum()) for vectors in (batched, single))
    broken = _broken(batched) + _broken(single)
    for count, what in ((broken, "NaN or infinity"), (zeros, "only zeros")):
        if count:
            raise SentcompressError(
                f"the export failed verification: {what} in {counted(count, f'{title} vector')}",
                "nothing was written; remove this format from `formats`",
            )
    in_batch, alone = agreement(batched, expected), agreement(single, expected)
    return {
        "texts": in_batch.texts,
        "min_cosine": in_batch.min_cosine,
        "mean_cosine": in_batch.mean_cosine,
        "single_min_cosine": alone.min_cosine,
        "single_mean_cosine": alone.mean_cosine,
        "batch_to_single_min_cosine": agreement(batched, single).min_cosine,
    }


def verify_formats(
    encoder: Encoder,
    texts: Sequence[str],
    formats: Mapping[str, Format],
    readers: Mapping[str, Reader],
    reporter: Reporter,
) -> dict[str, dict[str, Any]]:
    """Format name -> agreement of its vectors with the model's own; warns if those of an inexact format differ a lot.

    Raises:
        SentcompressError: if a format fails verification, or the model's own vectors depend on padding.
    """
    vectors = encoder_vectors(encoder, texts)
    require_padding_ignored(encoder, texts[0], texts[len(texts) // 2])
    checked: dict[str, dict[str, Any]] = {}
    for name, one in formats.items():
        expected = unit(vectors) if one.unit_length else vectors
        if one.exact:
            what = f"the {one.title}"
            for batch in reversed(one.batches):
                agreed = require_agreement(readers[name].vectors(texts, batch), expected, what)
            checked[name] = agreed.as_dict()
            continue
        checked[name] = found = check_inexact(readers[name], texts, expected, one.title)
        if not at_least(found["mean_cosine"], LEAST_MEAN_COSINE):
            reporter.warn(
                f"{one.title} vectors have a mean cosine of {found['mean_cosine']:.3f} to the model's own; "
                "score them with `sts` before using them"
            )
    return checked


def require_padding_ignored(encoder: Encoder, short: str, longer: str) -> None:
    """Raise SentcompressError if the vector of a text depends on the padding of its batch, as that of ConvBERT does.

    No export of such a model can agree with it in all batches.

    Args:
        longer: the text that it is encoded with.
    """
    cosine = padding_cosine(encoder, short, longer)
    if cosine is not None:
        raise SentcompressError(
            f"the vectors of a {encoder.architecture} model depend on the padding of their batch (cosine "
            f"{cosine:.3f}), so an export cannot be verified",
            "nothing was written; use a model of another architecture",
        )
