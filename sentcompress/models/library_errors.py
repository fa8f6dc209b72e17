"""Errors of other libraries over what a model folder holds, told as the fault of that folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from safetensors import SafetensorError

from sentcompress.errors import InputError, SentcompressError
from sentcompress.models.model_files import DAMAGED

# What the Rust code of tokenizers raises where it panics: a BaseException that no module exports.
PANIC = "PanicException"


@contextmanager
def reading(what: str, hint: str = DAMAGED) -> Iterator[None]:
    """Report whatever a library raises over the content of a model folder as the fault of that folder.

    SENTCOMPRESS_DEBUG=1 shows the library's own error.

    Args:
        what: the first half of the message, such as "all-MiniLM cannot be loaded".
        hint: what to do about it.

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
    except BaseException as error:
        # Any class: tokenizers raises bare Exception, and transformers checks little, so that which error a wrong value
        # ends in is an accident (AttributeError, IndexError, ZeroDivisionError, those of strict data classes).
        if not isinstance(error, Exception) and type(error).__name__ != PANIC:
            raise
        raise InputError(f"{what}: {first_line(error)}", hint) from error


def first_line(error: BaseException) -> str:
    """The first line of an error of another library, cut to a length that a terminal can show."""
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
