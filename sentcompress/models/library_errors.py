"""Errors of other libraries over what a model folder holds, told as the fault of that folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from safetensors import SafetensorError

from sentcompress.errors import InputError, SentcompressError


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Tells whatever a library raises over the content of a model folder as the fault of that folder.

    Args:
        what: the first half of the message, such as "all-MiniLM cannot be loaded".

    Raises:
        InputError: in place of the library's error.
    """
    try:
        yield
    except (SentcompressError, MemoryError, torch.OutOfMemoryError):
        raise
    except SafetensorError as error:
        raise InputError(
            f"{what}: its weights are damaged: {first_line(error)}", "was the download or the copy complete?"
        ) from error
    except Exception as error:
        # Any class: tokenizers raises bare Exception, and transformers checks little, so that which error a wrong value
        # ends in is an accident (AttributeError, IndexError, ZeroDivisionError, those of strict data classes).
        raise InputError(f"{what}: {first_line(error)}", "is the model folder complete and undamaged?") from error


def first_line(error: Exception) -> str:
    """The first line of an error of another library, cut to a length that a terminal can show."""
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
