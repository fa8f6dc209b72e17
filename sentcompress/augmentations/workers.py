"""Worker processes that augment one piece of the table at a time and never outlive their parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import ModuleType

from sentcompress.augmentations.base import Augmenter, AugmenterSpec
from sentcompress.errors import SentcompressError
from sentcompress.signals import ENDS

# nlpaug and nltk import these for things that workers never do: 8 seconds and 400 MB each. Both work without them.
HIDDEN_LIBRARIES = ("torch", "transformers", "scipy", "sklearn")


@dataclass(frozen=True)
class Piece:
    """Consecutive sentences of the table, and the augmentation (a key of the specs) and copy to make of them."""

    number: int
    augmentation: str
    copy: int
    first_row: int
    texts: list[str]


@dataclass
class _Worker:
    process: SpawnProcess
    pipe: Connection
    piece: Piece | None = None


def augment_pieces(
    specs: Mapping[str, AugmenterSpec], pieces: Iterable[Piece], workers: int
) -> Generator[tuple[Piece, list[str]], None, None]:
    """The new sentences of each piece, in the order in which pieces are finished.

    `pieces` is read lazily, one ahead of each worker.

    Raises:
        SentcompressError: from an augmenter, or because a worker died.
    """
    pending = iter(pieces)
    running = _start(specs, workers)
    try:
        busy = {worker.pipe: worker for worker in running if _give(worker, pending)}
        while busy:
            for ready in wait(list(busy)):
                worker = busy.pop(ready)  # type: ignore[call-overload]
                piece, new = worker.piece, _receive(worker)
                if _give(worker, pending):
                    busy[worker.pipe] = worker
                assert piece is not None
                yield piece, new
    finally:
        for worker in running:
            worker.process.kill()  # SIGTERM is left to this process
        for worker in running:
            worker.process.join()
            worker.pipe.close()


def _start(specs: Mapping[str, AugmenterSpec], workers: int) -> list[_Worker]:
    context = multiprocessing.get_context("spawn")
    started = []
    with _signals_held_back(), _main_module_left_out():
        for _ in range(workers):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, dict(specs)), daemon=True)
            process.start()
            theirs.close()
            started.append(_Worker(process, ours))
    return started


def _give(worker: _Worker, pending: Iterator[Piece]) -> bool:
    worker.piece = next(pending, None)
    if worker.piece is None:
        return False
    try:
        worker.pipe.send(worker.piece)
    except BrokenPipeError:
        raise _death(worker) from None
    return True


def _receive(worker: _Worker) -> list[str]:
    try:
        answer = worker.pipe.recv()
    except (EOFError, ConnectionResetError):
        raise _death(worker) from None
    if isinstance(answer, SentcompressError):
        raise answer
    return list(answer)


def _death(worker: _Worker) -> SentcompressError:
    worker.process.join(timeout=60)  # its pipe is closed, so it is about to end
    code = worker.process.exitcode
    if code == -signal.SIGKILL:
        return SentcompressError("a worker was killed", "if memory ran out, use fewer `workers`; then run again")
    return SentcompressError(f"a worker ended with exit code {code}", "run the same command again to resume")


def _serve(pipe: Connection, specs: dict[str, AugmenterSpec]) -> None:
    """The main function of a worker."""
    threading.Thread(target=_die_with_parent, daemon=True).start()
    warnings.simplefilter("ignore")  # of nltk and nlpaug, about things that do not concern the user
    for name in HIDDEN_LIBRARIES:
        # With None in its place, importing a library fails as if it were not installed.
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]
    loaded: dict[str, Augmenter] = {}
    while True:
        try:
            piece: Piece = pipe.recv()
        except EOFError:
            return
        try:
            if piece.augmentation not in loaded:
                loaded[piece.augmentation] = specs[piece.augmentation].load()
            pipe.send(loaded[piece.augmentation].augment(piece.texts, piece.first_row, piece.copy))
        except SentcompressError as error:
            pipe.send(type(error)(error.message, error.hint))


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


@contextmanager
def _main_module_left_out() -> Iterator[None]:
    """Keep children from running the script of this process again: they need nothing of it.

    A script that calls the library at its top level would otherwise start itself in every child.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _signals_held_back() -> Iterator[None]:
    """Block signals while children are started, so that they leave them to their parent from the beginning.

    A terminal and a scheduler send signals to all processes of a job. The children inherit the blocked signals. This
    process receives them at the end of the block.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set(ENDS))
    try:
        # Otherwise the first child would start it, and that unblocks some of the signals.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, set(ENDS))
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
