"""Ctrl-C and SIGTERM, from the first instruction of ours to the last: two lines and an exit code, never a traceback.

While a command works, a signal raises an exception, so that what it was doing is put in order. Before and after that,
and when a second signal arrives while the first one is dealt with, the process says so and ends at once.

Nothing that takes time may be imported here: before `install` is called, a signal is not ours.
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
    import _signal as signal  # what `signal` gives names to, and the import takes no time

GO_ON = "run the same command again: it resumes where it was interrupted"
# What is said, and the exit code, by signal.
ENDS: dict[int, tuple[str, int]] = {signal.SIGINT: ("interrupted", 130), signal.SIGTERM: ("stopped by SIGTERM", 143)}
SHOW_CURSOR = "\x1b[?25h"
# An exception in the middle of an import can vanish in a callback of the interpreter or in a library's C code, and
# leaves half-loaded modules behind. So a signal waits for the end of the import, but no longer than this.
PATIENCE_SECONDS = 20.0
PAUSE_SECONDS = 0.02


class StoppedError(KeyboardInterrupt):
    """SIGTERM, which schedulers of clusters send: everything is put in order as after Ctrl-C."""


class _State:
    """What the handler knows; there is one process, and one main thread that handles its signals."""

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
    """Take SIGINT and SIGTERM from now on; one that the process was started to ignore, as after `nohup`, stays so."""
    for number in ENDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _take)
    sys.unraisablehook = _unraisable
    atexit.register(_ignore)  # the first to be registered, so the last to be called


def _ignore() -> None:
    """What is left is the interpreter's own end, before which it gives signals back to the system: too late to stop."""
    for number in ENDS:
        signal.signal(number, signal.SIG_IGN)


def leave(number: int) -> NoReturn:
    """Say why and end the process, without anything that could be interrupted again."""
    reason, code = ENDS[number]
    shown = SHOW_CURSOR if os.isatty(2) else ""
    try:
        os.write(2, f"{shown}error: {reason}\nhelp:  {GO_ON}\n".encode())
    finally:  # where nobody listens any more, the exit code says it
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
    """Send a signal once more whose exception came where none can be raised: in a destructor or a callback."""
    if _state.raised is not None and issubclass(unraisable.exc_type, KeyboardInterrupt):
        _state.working, _state.waiting_since = True, time.monotonic()
        _send_again(_state.raised)
    else:
        sys.__unraisablehook__(unraisable)
