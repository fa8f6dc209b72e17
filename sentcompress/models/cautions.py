"""What users should know about a model before they spend hours on its vectors."""

from __future__ import annotations

from sentcompress.models.layout import has_modules
from sentcompress.models.model_files import MODULES, named_simcse
from sentcompress.models.sources import ModelSource


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
