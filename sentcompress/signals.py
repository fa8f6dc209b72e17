"""Ctrl-C and SIGTERM at any time: a two-line message and an exit code, never a traceback.

While a command runs, a signal raises an exception, so that cleanup code runs. Before and after that, and if a second
signal arrives during the cleanup, the process prints the message and ends immediately.

This module must not import anything slow: signals are not handled until `install` has been called.
"""

from __future__ import annotations

import _thread
import atexit
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from types import FrameType
    from typing import NoReturn
else:
    import _signal as signal  # the C module behind `signal`, which imports faster

GO_ON = "run the same command again: it resumes where it was interrupted"
# The message and the exit code for each signal.
ENDS: dict[int, tuple[str, int]] = {signal.SIGINT: ("interrupted", 130), signal.SIGTERM: ("stopped by SIGTERM", 143)}
SHOW_CURSOR = "\x1b[?25h"
# An exception during an import can get lost in an interpreter callback or in C code, and leaves half-loaded modules
# behind. A signal therefore waits until the import has ended, but no longer than this.
PATIENCE_SECONDS = 20.0
PAUSE_SECONDS = 0.02


class StoppedError(KeyboardInterrupt):
    """SIGTERM, as sent by cluster schedulers; handled like Ctrl-C."""


class _State:
    """State of the handler. Signals are handled only in the main thread, so one instance is enough."""

    working = False
    raised: int | None = None
    waiting_since: float | None = None
    sent_again = False


_state = _State()


class Working:
    """A `with` block in which a signal raises KeyboardInterrupt or StoppedError, once."""

    def __enter__(self) -> None:
        _state.working = True

    def __exit__(self, *_: object) -> None:
        _state.working = False


def install() -> None:
    """Handle SIGINT and SIGTERM, except a signal that is already ignored, as under `nohup`."""
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
    """Print the message and end the process, without anything that could be interrupted again."""
    reason, code = ENDS[number]
    shown = SHOW_CURSOR if os.isatty(2) else ""
    try:
        os.write(2, f"{shown}error: {reason}\nhelp:  {GO_ON}\n".encode())
    finally:  # also if standard error is closed
        os._exit(code)


def _take(number: int, frame: FrameType | None) -> None:
    again, _state.sent_again = _state.sent_again, False
    if not _state.working or (_state.waiting_since is not None and not again):
        leave(number)
    if _is_importing(frame):
        began = _state.waiting_since or time.monotonic()
        if time.monotonic() - began < PATIENCE_SECONDS:
            _state.waiting_since = began
            _send_again(number)
            return
    _state.working, _state.waiting_since, _state.raised = False, None, number
    raise StoppedError if number == signal.SIGTERM else KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _send_again(number: int) -> None:
    main_thread = _thread.get_ident()  # the one that runs handlers

    def send() -> None:
        time.sleep(PAUSE_SECONDS)
        _state.sent_again = True
        signal.pthread_kill(main_thread, number)

    _thread.start_new_thread(send, ())


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Send the signal again if its exception was lost in a destructor or a callback."""
    if _state.raised is not None and issubclass(unraisable.exc_type, KeyboardInterrupt):
        _state.working, _state.waiting_since = True, time.monotonic()
        _send_again(_state.raised)
    else:
        sys.__unraisablehook__(unraisable)
