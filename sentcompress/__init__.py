"""sentcompress: compress sentence encoders, and measure the loss.

>>> import sentcompress
>>> work = sentcompress.Workspace("work")
>>> work.augment("sentences.txt")
>>> work.teacher_embed()
>>> student = work.distill(method="lrn-kd", student="teacher:3")
>>> sentcompress.load(student).encode(["A sentence.", "Another one."])

Importing the package is cheap: each name below is loaded on first use.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sentcompress.errors import (
        BusyError,
        DamagedError,
        InputError,
        MissingArtifactError,
        RankError,
        SentcompressError,
        SentcompressWarning,
        TrainingError,
        UsageError,
    )
    from sentcompress.workspace import Model, Scores, Workspace, load, read_vectors

__all__ = [
    "BusyError",
    "DamagedError",
    "InputError",
    "MissingArtifactError",
    "Model",
    "RankError",
    "Scores",
    "SentcompressError",
    "SentcompressWarning",
    "TrainingError",
    "UsageError",
    "Workspace",
    "__version__",
    "load",
    "read_vectors",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'sentcompress' has no attribute {name!r}")
    from importlib import import_module

    in_errors = name.endswith(("Error", "Warning"))
    return getattr(import_module("sentcompress.errors" if in_errors else "sentcompress.workspace"), name)


def __dir__() -> list[str]:
    return __all__
