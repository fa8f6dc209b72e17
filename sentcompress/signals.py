"""Ctrl-C, SIGTERM and SIGUSR1 at any time: a two-line message and an exit code, never a traceback.

While a command runs, a signal raises an exception, so that cleanup code runs. Before and after that, and if a second
signal arrives during the cleanup, the process prints the message and ends immediately, with the exit code of the first
signal: a launcher sends SIGTERM to the other processes of a job as soon as one has ended. In a block `Held`, a signal
waits for the next call of `check`, where the state can be saved.

This module must not import anything slow: signals are not handled until `install` has been called.
"""

from __future__ import annotations

import _thread
import atexit
import os
import sys
import time

from sentcompress.exit_codes import INTERRUPTED, REQUEUE, TERMINATED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable
    from types import FrameType
    from typing import NoReturn
else:
    import _signal as signal  # the C module behind `signal`, which imports faster

SIGINT = signal.SIGINT
GO_ON = "run the same command again: it resumes where it was interrupted"
# The message and the exit code for each signal.
ENDS: dict[int, tuple[str, int]] = {
    SIGINT: ("interrupted", INTERRUPTED),
    signal.SIGTERM: ("stopped by SIGTERM", TERMINATED),
    signal.SIGUSR1: ("stopped by SIGUSR1", REQUEUE),
}
SHOW_CURSOR = "\x1b[?25h"
# An exception during an import can get lost in an interpreter callback or in C code, and leaves half-loaded modules
# behind. A signal therefore waits until the import has ended, or until `check` is called, but no longer than this.
PATIENCE_SECONDS = 20.0
PAUSE_SECONDS = 0.02
# A terminal and torchrun may each pass on the same Ctrl-C; a person needs longer for a second one.
BOUNCE_SECONDS = 0.3


class StoppedError(KeyboardInterrupt):
    """A signal that ends the command.

    Attributes:
        number: the signal.
        whole: whether `check` raised it, so that the state can be saved.
        hint: what was kept, and what to do.
    """

    def __init__(self, number: int, *, whole: bool = False, hint: str | None = None) -> None:
        super().__init__()
        self.number, self.whole, self.hint = number, whole, hint

    def __str__(self) -> str:
        return ENDS[self.number][0]


class _State:
    """State of the handler. Signals are handled only in the main thread, so one instance is enough."""

    main_thread: int | None = None
    working = False
    raised: int | None = None
    waiting_since: float | None = None
    sent_again = False
    # In a block `Held`: the signal that waits for `check`, when it came, and whether it was raised.
    held = False
    noted: int | None = None
    noted_at = 0.0
    noted_raised = False


_state = _State()


class Working:
    """A `with` block in which a signal raises StoppedError, once."""

    def __enter__(self) -> None:
        _state.working, _state.raised = True, None

    def __exit__(self, *_: object) -> None:
        _state.working = False


class Held:
    """A `with` block in which a signal waits for `check`, for up to PATIENCE_SECONDS.

    Until the end of the block, further signals change nothing, because schedulers and launchers send several: what
    `check` raised can be caught here to save the state. Only a second Ctrl-C ends the process at once.
    """

    def __enter__(self) -> None:
        _state.held, _state.noted, _state.noted_raised = True, None, False

    def __exit__(self, kind: object, *_: object) -> None:
        _state.held = False
        if _state.noted is None:
            return
        _state.working = False  # the next signal ends the process at once
        if kind is None and not _state.noted_raised:
            _raise_noted(whole=False)


def asked() -> int | None:
    """The signal that waits for `check`, if there is one."""
    return None if _state.noted_raised else _state.noted


def check() -> None:
    """Raise the signal that arrived in a block `Held`, if there is one; called where the state can be saved."""
    if asked() is not None:
        _raise_noted(whole=True)


def stopped(number: int, *, whole: bool = False, hint: str | None = None) -> StoppedError:
    """The error to raise for a signal, which may have reached another process that this one works with.

    From now on, other signals end the process at once, or in a block `Held` change nothing.

    Args:
        number: the signal.
        whole, hint: see `StoppedError`.
    """
    _state.raised = number
    if _state.held:
        _state.noted, _state.noted_raised, _state.noted_at = number, True, time.monotonic()
    else:
        _state.working = False
    return StoppedError(number, whole=whole, hint=hint)


def strongest(numbers: Iterable[int]) -> int:
    """Of signals that several processes got, the one that all of them end with: an order before a request."""
    return max(numbers, key=lambda number: ENDS[number][1])


def pass_on(number: int) -> None:
    """Send this process a signal that another one got, unless it got one itself; from any thread.

    Does nothing if signals are not handled here, as when stages are called from Python. Can be called again and again:
    a signal that waits for the end of an import is not sent a second time, which would end the process at once.
    """
    if _state.main_thread is None or signal.getsignal(number) is not _take:
        return
    if _state.noted is None and _state.raised is None and _state.waiting_since is None:
        signal.pthread_kill(_state.main_thread, number)


def _raise_noted(*, whole: bool) -> NoReturn:
    assert _state.noted is not None
    raise stopped(_state.noted, whole=whole)


def install() -> None:
    """Handle SIGINT, SIGTERM and SIGUSR1, except a signal that is already ignored, as under `nohup`."""
    _state.main_thread = _thread.get_ident()
    for number in ENDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _take)
    sys.unraisablehook = _unraisable
    atexit.register(_ignore)  # the first to be registered, so the last to be called


def _ignore() -> None:
    """Ignore signals during interpreter shutdown, which restores the default handlers: the work is done."""
    for number in ENDS:
        signal.signal(number, signal.SIG_IGN)


def leave(number: int) -> NoReturn:
    """Print the message and end the process, without anything that could be interrupted again.

    The exit code is that of the signal which was raised before, if there is one.
    """
    reason, code = ENDS[_state.raised or number]
    shown = SHOW_CURSOR if os.isatty(2) else ""
    try:
        os.write(2, f"{shown}error: {reason}\nhelp:  {GO_ON}\n".encode())
    finally:  # also if standard error is closed
        os._exit(code)


def _take(number: int, frame: FrameType | None) -> None:
    again, _state.sent_again = _state.sent_again, False
    if _state.held and _state.working:
        _hold(number, again)
        return
    if not _state.working or (_state.waiting_since is not None and not again):
        leave(number)
    if _is_importing(frame):
        began = _state.waiting_since or time.monotonic()
        if time.monotonic() - began < PATIENCE_SECONDS:
            _state.waiting_since = began
            _send_again(number)
            return
    _state.working, _state.waiting_since, _state.raised = False, None, number
    raise StoppedError(number)


def _hold(number: int, again: bool) -> None:
    """Note a signal in a block `Held`; raise the noted one if `check` was not called for too long."""
    if _state.noted is None:
        now = time.monotonic()
        _state.noted, _state.noted_at = number, now
        _send_again(number, PATIENCE_SECONDS, lambda: _state.held and asked() is not None and _state.noted_at == now)
    elif again and not _state.noted_raised:
        _raise_noted(whole=False)
    elif not again and number == SIGINT and time.monotonic() - _state.noted_at > BOUNCE_SECONDS:
        leave(number)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _send_again(number: int, seconds: float = PAUSE_SECONDS, wanted: Callable[[], bool] = lambda: True) -> None:
    main_thread = _thread.get_ident()  # the one that runs handlers

    def send() -> None:
        time.sleep(seconds)
        if wanted():
            _state.sent_again = True
            signal.pthread_kill(main_thread, number)

    _thread.start_new_thread(send, ())


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Send the signal again if its exception was lost in a destructor or a callback."""
    if _state.raised is not None and issubclass(unraisable.exc_type, KeyboardInterrupt):
        _state.working, _state.waiting_since, _state.noted_raised = True, time.monotonic(), False
        _send_again(_state.raised)
    else:
        sys.__unraisablehook__(unraisable)
