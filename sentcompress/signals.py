"""Ctrl-C, SIGTERM and SIGUSR1 at any time: a two-line message and an exit code, never a traceback.

While a command runs, a signal raises an exception, so that cleanup code runs. Before and after that, and if a second
signal arrives during the cleanup, the process prints the message and ends immediately, with the exit code of the first
signal: a launcher sends SIGTERM to the other processes of a job as soon as one has ended. In a block `Held`, a signal
waits for the next call of `check`, where the state can be saved.

Python runs signal handlers in the main thread, between two instructions of Python code: not while it is in a long call
of a library. A thread therefore hears every signal as well. It says that the command is stopping, if that takes longer
than TOLD_AFTER_SECONDS, and ends the process if a second signal arrives.

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
# Said where it is not known whether the command keeps parts of a result.
GO_ON = "run the same command again; finished results are kept"
# The message and the exit code for each signal.
ENDS: dict[int, tuple[str, int]] = {
    SIGINT: ("interrupted", INTERRUPTED),
    signal.SIGTERM: ("stopped by SIGTERM", TERMINATED),
    signal.SIGUSR1: ("stopped by SIGUSR1", REQUEUE),
}
# Clears the current line of a terminal, and shows the cursor, which a progress bar hides.
NEW_LINE = "\r\x1b[K\x1b[?25h"
# An exception during an import can get lost in an interpreter callback or in C code, and leaves half-loaded modules
# behind. A signal therefore waits until the import has ended, or until `check` is called, but no longer than this.
PATIENCE_SECONDS = 20.0
# In a block `Unchanged`, a signal that waits for `check` is raised after this time.
UNCHANGED_SECONDS = 2.0
PAUSE_SECONDS = 0.02
# A terminal and torchrun may each pass on the same Ctrl-C; a person needs longer for a second one.
BOUNCE_SECONDS = 0.3
# How long a thread that wants to end the process waits for another one that is writing the message: on a busy machine
# or a slow disk this takes a while, and into a full pipe it never ends.
MESSAGE_SECONDS = 2.0
# Most commands have ended by then.
TOLD_AFTER_SECONDS = 0.5
# What this process sends to itself to have a handler called; ignored by default, and used by nothing else.
AGAIN = signal.SIGURG


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
    """State of the handlers, which run only in the main thread, and of the thread that hears signals."""

    main_thread: int | None = None
    working = False
    # Whether what the command does is over, or was given up: it says itself how it ended.
    over = False
    raised: int | None = None
    # Whether a signal has arrived, perhaps in a call of a library, at the end of which it will be handled.
    heard = False
    # The signal that waits for the end of an import, and since when.
    waiting: int | None = None
    waiting_since = 0.0
    # Whether nothing was begun that would have to be put in order.
    starting = True
    # The exit code, once the command has said how it ended.
    code: int | None = None
    # What shows a line to the user; None writes it to standard error.
    tell: Callable[[str], None] | None = None
    # In a block `Held`: the signal that waits for `check`, when it came, and whether it was raised.
    held = False
    noted: int | None = None
    noted_at = 0.0
    noted_raised = False
    # Whether the state is that of the last call of `check`.
    unchanged = False


_state = _State()
# The thread that ends the process: not a lock, so that a handler that interrupts it can tell.
_leaver: dict[str, int] = {}


class Working:
    """A `with` block in which a signal raises StoppedError, once."""

    def __enter__(self) -> None:
        _state.working, _state.raised, _state.starting, _state.over = True, None, False, False

    def __exit__(self, *_: object) -> None:
        _state.working, _state.over = False, True


class Loading:
    """A `with` block that imports what a command needs: a signal ends the process without waiting for the import."""

    def __enter__(self) -> None:
        self._before, _state.starting = _state.starting, True

    def __exit__(self, *_: object) -> None:
        _state.starting = self._before


class Telling:
    """A `with` block in which `tell` shows the line that the command is stopping; called by another thread."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def __enter__(self) -> None:
        _state.tell = self._tell

    def __exit__(self, *_: object) -> None:
        _state.tell = None


class Held:
    """A `with` block in which a signal waits for `check`, or a block `Unchanged`, for up to PATIENCE_SECONDS.

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


class Unchanged:
    """A part of a block `Held` that can take long and changes no state: a signal need not wait for `check`.

    It is raised here, as by `check`, if it has waited for UNCHANGED_SECONDS.
    """

    def __enter__(self) -> None:
        _state.unchanged = True

    def __exit__(self, *_: object) -> None:
        _state.unchanged = False


def asked() -> int | None:
    """The signal that waits for `check`, if there is one."""
    return None if _state.noted_raised else _state.noted


def received() -> int | None:
    """The signal that this process stops for, or will: the one that was raised, or that waits for `check`."""
    return _state.raised or asked()


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
    """The signal that all processes end with if they got different ones: an order takes precedence over a request."""
    return max(numbers, key=lambda number: ENDS[number][1])


def pass_on(number: int) -> None:
    """Send this process a signal that another one got, unless it got one itself; from any thread.

    Does nothing if signals are not handled here, as when stages are called from Python. Can be called again and again:
    a signal that waits for the end of an import or of a library's call is not sent a second time, which would end the
    process at once.
    """
    if _state.main_thread is None or signal.getsignal(number) is not _take or _state.heard:
        return
    _state.heard = True
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
    signal.signal(AGAIN, _again)
    heard, arrived = os.pipe()
    os.set_blocking(arrived, False)
    signal.set_wakeup_fd(arrived, warn_on_full_buffer=False)
    _thread.start_new_thread(_listen, (heard,))
    sys.unraisablehook = _unraisable
    atexit.register(_end)  # the first to be registered, so the last to be called


def ends_with(code: int) -> None:
    """Note that the command has said how it ended, and the exit code of the process."""
    _state.code = code


def _end() -> None:
    """End the process, without freeing its memory piece by piece: for torch's modules that takes a second, or many.

    Otherwise the interpreter would restore the default handlers first. The work is done, so signals are ignored.
    """
    for number in ENDS:
        signal.signal(number, signal.SIG_IGN)
    if _state.code is None:
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        return  # the interpreter reports it
    os._exit(_state.code)


def leave(number: int) -> NoReturn:
    """Print the message and end the process, without anything that could be interrupted again.

    The exit code is that of the signal which was raised before, if there is one. Can be called in any thread.
    """
    reason, code = ENDS[_state.raised or number]
    said = _state.raised is not None and _state.code is not None
    try:
        own = _thread.get_ident()
        if _leaver.setdefault("thread", own) != own:
            time.sleep(MESSAGE_SECONDS)
        elif not said:
            if _state.starting and "--json" in sys.argv:
                os.write(1, f'{{\n  "error": "{reason}",\n  "help": "{GO_ON}",\n  "exit_code": {code}\n}}\n'.encode())
            _write(f"error: {reason}\nhelp:  {GO_ON}")
    finally:  # also if standard error is closed
        os._exit(code)


def _is_leaving() -> bool:
    """Whether this handler has interrupted `leave`, which can then go on; `_listen` ends the process if it cannot."""
    return _leaver.get("thread") == _thread.get_ident()


def _write(lines: str) -> None:
    os.write(2, f"{NEW_LINE if os.isatty(2) else ''}{lines}\n".encode())


def _listen(heard: int) -> None:
    """Hear every signal when it arrives; in a thread of its own."""
    first, since = 0, 0.0
    while arrived := os.read(heard, 1):
        number = arrived[0]
        if number not in ENDS:
            continue
        if not first:
            _state.heard = True
            first, since = number, time.monotonic()
            _thread.start_new_thread(_tell_later, (number,))
        elif time.monotonic() - since > BOUNCE_SECONDS and (number == SIGINT or not _state.held):
            leave(number if _state.held else first)


def _tell_later(number: int) -> None:
    """Say that the command is stopping, unless it has stopped."""
    time.sleep(TOLD_AFTER_SECONDS)
    if not _state.over:
        (_state.tell or _write)(stopping(number, held=_state.held))


def stopping(number: int, *, held: bool) -> str:
    """The line that a command which takes a while to stop shows."""
    what = "stopping after this step, to save the state" if held else "stopping"
    if number != SIGINT:
        return f"{what} ({ENDS[number][0].removeprefix('stopped by ')})"
    return f"{what}; press Ctrl-C again to stop at once{' without saving' if held else ''}"


def _take(number: int, frame: FrameType | None) -> None:
    """Handle a signal that was sent to this process."""
    if _is_leaving():
        return
    if _state.held and _state.working:
        _hold(number)
    elif not _state.working or _state.waiting is not None:
        leave(_state.waiting or number)
    else:
        _state.waiting_since = time.monotonic()
        _raise_after_import(number, frame)


def _again(_: int, frame: FrameType | None) -> None:
    """Handle a signal that waits: `_send_again` has sent another one for this."""
    waiting, _state.waiting = _state.waiting, None
    if not _state.working or _is_leaving():
        return
    if _state.held:
        if asked() is not None:
            if _state.unchanged or time.monotonic() - _state.noted_at >= PATIENCE_SECONDS:
                _raise_noted(whole=_state.unchanged)
            _look_again()
        elif waiting is not None and _state.noted is None:  # the block began after the import
            _hold(waiting)
    elif waiting is not None:
        _raise_after_import(waiting, frame)


def _raise_after_import(number: int, frame: FrameType | None) -> None:
    if _is_importing(frame):
        if _state.starting:
            leave(number)
        if time.monotonic() - _state.waiting_since < PATIENCE_SECONDS:
            _state.waiting = number
            _send_again()
            return
    _state.working, _state.waiting, _state.raised = False, None, number
    raise StoppedError(number)


def _hold(number: int) -> None:
    """Note a signal in a block `Held`; it is raised later if `check` is not called for too long."""
    if _state.noted is None:
        _state.noted, _state.noted_at = number, time.monotonic()
        _look_again()
    elif number == SIGINT and time.monotonic() - _state.noted_at > BOUNCE_SECONDS:
        leave(number)


def _look_again() -> None:
    """Look later whether the noted signal still waits."""
    noted_at = _state.noted_at
    _send_again(UNCHANGED_SECONDS, lambda: _state.held and asked() is not None and _state.noted_at == noted_at)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _send_again(seconds: float = PAUSE_SECONDS, wanted: Callable[[], bool] = lambda: True) -> None:
    main_thread = _thread.get_ident()  # the one that runs handlers

    def send() -> None:
        time.sleep(seconds)
        if wanted():
            signal.pthread_kill(main_thread, AGAIN)

    _thread.start_new_thread(send, ())


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Raise the signal again if its exception was lost in a destructor or a callback."""
    if _state.raised is not None and issubclass(unraisable.exc_type, KeyboardInterrupt):
        _state.working, _state.waiting, _state.waiting_since = True, _state.raised, time.monotonic()
        _state.noted_raised = False
        _send_again()
    else:
        sys.__unraisablehook__(unraisable)
