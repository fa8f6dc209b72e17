"""What users should know about a model before they spend hours on its vectors."""

from __future__ import annotations

import torch
from torch.nn import functional

from sentcompress.models.encoder import Encoder, TextSettings
from sentcompress.models.families import FAMILIES
from sentcompress.models.layout import has_modules, similarity_of
from sentcompress.models.model_files import MODULES, named_simcse
from sentcompress.models.sources import ModelSource
from sentcompress.models.token_batches import padded

# Least cosine of the vectors of a text with and without padding. Those of other models differ only by rounding errors.
LEAST_COSINE = 0.9999
# A short and a longer text.
SAMPLE = ("a word", "a text of some more words, with which the short one is padded")


def told_guess(source: ModelSource, label: str, pooling: str) -> str:
    """A warning that nothing says how the model is pooled; empty if its files, its name or an option does.

    Args:
        label: the name to show.
        pooling: the option of `layout.load_encoder`.
    """
    if pooling != "auto" or has_modules(source) or named_simcse(source.path):
        return ""
    return (
        f"{label} does not say how it is pooled (it has no {MODULES}): the mean of its token states is used. If it was "
        "trained with another pooling, save it with the Pooling module of sentence-transformers, or name the pooling "
        "with teacher-embed --pooling"
    )


def told_similarity(encoder: Encoder, label: str) -> str:
    """A warning that the model was made for another similarity than cosines; empty if it was not.

    Args:
        label: the name to show.
    """
    similarity = similarity_of(encoder)
    if similarity == TextSettings.similarity:
        return ""
    return (
        f"{label} compares vectors by their {similarity} similarity (similarity_fn_name), which depends on their "
        "lengths. Its student is trained and compared with it by cosines: what it finds by its own similarity is not "
        "measured"
    )


def told_padding(encoder: Encoder, label: str) -> str:
    """A warning that the vectors depend on padding, as those of ConvBERT do; empty if they do not.

    Args:
        label: the name to show.
    """
    if encoder.architecture in (*FAMILIES, "static"):
        return ""
    cosine = padding_cosine(encoder, *SAMPLE)
    if cosine is None:
        return ""
    return (
        f"the vectors of {label} ({encoder.architecture}) depend on the padding of their batch: those of a short "
        f"text alone and beside a longer one have a cosine of {cosine:.3f}. Other batch sizes give other vectors, and "
        "export refuses such a model"
    )


def padding_cosine(encoder: Encoder, short: str, longer: str) -> float | None:
    """The cosine of a text's vectors with and without padding; None if they differ only by rounding errors.

    Args:
        longer: the text with which it is padded.
    """
    vectors = []
    with torch.inference_mode():
        for texts in ([short], [short, longer]):
            batch = padded(encoder.tokenize(texts), encoder.padding)
            ids, mask = (torch.from_numpy(part).to(encoder.device) for part in batch)
            vectors.append(encoder(ids, mask)[0].double())
    cosine = float(functional.cosine_similarity(vectors[0], vectors[1], dim=0))
    # Vectors that are not finite are reported elsewhere.
    return cosine if cosine < LEAST_COSINE else None
