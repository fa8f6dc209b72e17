"""Reports errors that other libraries raise while reading a model folder as errors of that folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from safetensors import SafetensorError

from sentcompress.errors import Hint, InputError, SentcompressError
from sentcompress.models.model_files import DAMAGED

# Raised if the Rust code of tokenizers panics: a BaseException that no module exports.
PANIC = "PanicException"
# torch's class, by name: a process that only runs ONNX graphs does not load torch.
OUT_OF_MEMORY = "OutOfMemoryError"


@contextmanager
def reading(what: str, hint: Hint = DAMAGED) -> Iterator[None]:
    """Turn any error that a library raises while it reads a model folder into an InputError about that folder.

    SENTCOMPRESS_DEBUG=1 shows the original error.

    Args:
        what: the first half of the message, such as "all-MiniLM cannot be loaded".
        hint: what the user can do about it.

    Raises:
        InputError: instead of the library's error.
    """
    try:
        yield
    except (SentcompressError, MemoryError):
        raise
    except SafetensorError as error:
        raise InputError(
            f"{what}: its weights are damaged: {first_line(error)}", "copy or download the model again"
        ) from error
    except ImportError as error:
        raise InputError(f"{what}: {first_line(error)}", "install the package that it needs") from error
    except BaseException as error:
        # Any class: tokenizers raises bare Exception, and transformers validates little, so a wrong value can raise any
        # error (AttributeError, IndexError, ZeroDivisionError, those of strict data classes).
        name = type(error).__name__
        if name == OUT_OF_MEMORY or (not isinstance(error, Exception) and name != PANIC):
            raise
        raise InputError(f"{what}: {first_line(error)}", hint) from error


def first_line(error: BaseException) -> str:
    """The first line of an error of another library, cut to a length that a terminal can show.

    If it ends with a colon, the next line belongs to it.
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    told = " ".join(line.strip() for line in lines[:2]) if lines[0].endswith(":") else lines[0]
    return told[:300]
