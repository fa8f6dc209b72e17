"""The contract of every reader of untrusted data: in bounded time and memory, a result or a helpful error."""

from __future__ import annotations

import math
import resource
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from sentcompress.errors import SentcompressError, UsageError

# Of processor time, which does not depend on what else the machine does; and of waiting for what never comes.
SECONDS, WAITING = 20, 60
MEMORY = 3 * 2**30
LONGEST_MESSAGE = 4000
# Of a UsageError, which lists faults.
LONGEST_LIST = 30_000
Result = TypeVar("Result")


class ContractError(AssertionError):
    """A reader violated the contract."""


class _TooSlowError(BaseException):
    """Not an Exception, so that no reader treats it as a fault of the file."""


def kept(call: Callable[[], Result], *names: str | Path) -> Result | SentcompressError:
    """The result of a call, or the SentcompressError that it raised.

    Args:
        call: reads something; a stream has to be read to its end.
        names: the names of the files; the message must contain one of them.

    Raises:
        ContractError: any other exception; an error without message, hint or name of a file; NaN or infinity in the
            result; more than SECONDS or MEMORY.
    """
    try:
        with _limited():
            result = call()
    except SentcompressError as error:
        _check_error(error, [str(name) for name in names])
        return error
    except (Exception, _TooSlowError) as error:
        raise ContractError(f"{type(error).__name__}: {error}") from error
    for number in _numbers(result):
        if not math.isfinite(number):
            raise ContractError(f"{number} in the result")
    return result


def _check_error(error: SentcompressError, names: list[str]) -> None:
    longest = LONGEST_LIST if isinstance(error, UsageError) else LONGEST_MESSAGE
    if not error.message.strip() or len(error.message) > longest:
        raise ContractError(f"a message of {len(error.message)} characters: {error.message[:200]}") from error
    if not error.hint or not error.hint.strip() or len(error.hint) > LONGEST_MESSAGE:
        raise ContractError(f"no hint, or a long one: {error.message}") from error
    if names and not any(name in error.message for name in names):
        raise ContractError(f"the file is not named: {error.message}") from error


@contextmanager
def _limited() -> Iterator[None]:
    """Limit the call to SECONDS and WAITING, and to MEMORY on top of what the process uses now."""

    def ring(signum: int, frame: FrameType | None) -> None:
        raise _TooSlowError(f"more than {SECONDS if signum == signal.SIGPROF else WAITING} seconds")

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    timers = {signal.ITIMER_PROF: (signal.SIGPROF, SECONDS), signal.ITIMER_REAL: (signal.SIGALRM, WAITING)}
    handlers = {number: signal.signal(number, ring) for number, _ in timers.values()}
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, before[1]))
    for timer, (_, seconds) in timers.items():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer in timers:
            signal.setitimer(timer, 0)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def _numbers(value: Any) -> Iterator[float]:
    """Every float within a result."""
    if isinstance(value, float | np.floating):
        yield float(value)
    elif isinstance(value, np.ndarray):
        yield from (np.ravel(value).tolist() if np.issubdtype(value.dtype, np.floating) else ())
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _numbers(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _numbers(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _numbers(inner)
