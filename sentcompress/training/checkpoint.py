"""Checkpoints for resuming a run: the last state and the best weights, in the unfinished artifact."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Self

import torch
from torch import Tensor, nn

from sentcompress.errors import InputError
from sentcompress.json_documents import read_json, write_json
from sentcompress.progress import SILENT, Reporter
from sentcompress.signals import Held, StoppedError
from sentcompress.store import LOG, Build, file_digest
from sentcompress.training.background import Background, on_cpu

State = dict[str, Any]
Weights = dict[str, dict[str, Tensor]]
# Lists the files of the newest checkpoint with their SHA-256; written last.
INDEX = "checkpoint.json"


class Checkpoints:
    """`last-<step>.pt`, `best-<step>.pt` and INDEX in a folder of the build.

    Each checkpoint has its own files, and INDEX is replaced only after they are on disk. So the files listed in INDEX
    are always complete and consistent, whenever the process is killed.

    As a context manager, it waits on exit until the last checkpoint is on disk.

    Args:
        background: write in a thread, from a copy on the CPU, while training goes on; for a model on a GPU.
    """

    def __init__(self, build: Build, folder: str, reporter: Reporter = SILENT, *, background: bool = False) -> None:
        self._build = build
        self._folder = folder
        self._reporter = reporter
        self._thread = Background() if background else None
        # SHA-256 of the files that this process has written or verified.
        self._digests: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._thread is None:
            return
        try:
            if kind is None:  # otherwise the error that ended the training is the one to raise
                self.wait()
        finally:
            self._thread.close()

    def save(self, state: Mapping[str, Any], best: Weights | None, best_step: int | None, step: int) -> None:
        """Write the state after `step`, and the best weights if they are not on disk yet.

        In the background, a checkpoint first waits for the one before, and raises its error.
        """
        if self._thread is None:
            self._write_all(state, best, best_step, step)
        else:
            self._thread.start(partial(self._write_all, on_cpu(state), best, best_step, step))

    def check(self) -> None:
        """Raise the error of a checkpoint that could not be written in the background."""
        if self._thread is not None:
            self._thread.check()

    def wait(self) -> None:
        """Wait until the last checkpoint is on disk; raises its error."""
        if self._thread is not None:
            self._thread.wait()

    def _write_all(self, state: Mapping[str, Any], best: Weights | None, best_step: int | None, step: int) -> None:
        last, best_name = f"last-{step}.pt", f"best-{best_step}.pt"
        self._write(last, state)
        if best is not None and best_name not in self._digests:
            self._write(best_name, best)
        kept = {"last": last, **({} if best is None else {"best": best_name})}
        files = {part: {"name": name, "sha256": self._digests[name]} for part, name in kept.items()}
        named = {"files": files, "log_bytes": state["progress"]["log_bytes"]}
        with self._build.write(f"{self._folder}/{INDEX}") as path:
            write_json(path, named)
        self._remove_all_but(set(kept.values()))

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        full = f"{self._folder}/{name}"
        with self._build.write(full) as path, path.open("wb") as stream:
            _save(content, stream)
        self._digests[name] = file_digest(self._build.path / full)

    def _remove_all_but(self, kept: Collection[str]) -> None:
        """Remove files of older checkpoints, and those of an interrupted one."""
        for old in (self._build.path / self._folder).glob("*.pt"):
            if old.name not in kept:
                old.unlink()
        self._digests = {name: digest for name, digest in self._digests.items() if name in kept}

    def exist(self) -> bool:
        """Whether there is a checkpoint to resume from."""
        try:
            return self._files() is not None
        except InputError:
            return False

    def read(self) -> State | None:
        """The last state, on a rank that leaves all files as they are; None if there is no checkpoint."""
        files = self._files()
        return None if files is None else _read(files["last"])

    def load(self) -> tuple[State, Weights | None] | None:
        """The last state and the best weights so far; None if there is no usable checkpoint."""
        try:
            files = self._files()
        except InputError as error:
            self._reporter.warn(f"the last checkpoint cannot be used, training starts over: {error.message}")
            files = None
        if files is None:
            self._build.remove(self._folder)
            return None
        self._remove_all_but({path.name for path in files.values()})
        return _read(files["last"]), _read(files["best"]) if "best" in files else None

    def _files(self) -> dict[str, Path] | None:
        """The files of the newest checkpoint, `last` and possibly `best`; None if there is none.

        Raises:
            InputError: if one is missing or damaged, or if the log is shorter than when the checkpoint was written.
        """
        folder = self._build.path / self._folder
        if not (folder / INDEX).is_file():
            return None
        try:
            index = read_json(folder / INDEX)
            named = {part: (str(entry["name"]), entry["sha256"]) for part, entry in index["files"].items()}
            files = {part: folder / name for part, (name, _) in named.items()}
            last, log_bytes = files["last"], int(index["log_bytes"])
        except (AttributeError, KeyError, TypeError, ValueError):
            raise InputError(f"{folder / INDEX} does not list the files of a checkpoint") from None
        for part, path in {"last": last, **files}.items():
            if path.parent != folder or not path.is_file():
                raise InputError(f"{path} is missing")
            if file_digest(path) != named[part][1]:
                raise InputError(f"{path} is damaged: its SHA-256 differs")
            self._digests[path.name] = named[part][1]
        log = self._build.path / LOG
        if log_bytes and (not log.is_file() or log.stat().st_size < log_bytes):
            raise InputError(f"{log} is missing or shorter than it was")
        return files


@contextmanager
def saved_if_stopped(save: Callable[[], int | None]) -> Iterator[None]:
    """Hold signals back until `signals.check` is called, where the state is whole; then save it and stop.

    Args:
        save: saves the state; returns its step, None if there was nothing worth saving.
    """
    with Held():
        try:
            yield
        except StoppedError as stop:
            if stop.whole and (step := save()) is not None:
                stop.hint = f"saved after step {step}; run the same command again to resume there"
            raise


class _Remembering:
    """A stream that keeps the system's error, which torch replaces with its own."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.error: OSError | None = None

    def write(self, part: bytes) -> int:
        try:
            return self._stream.write(part)
        except OSError as error:
            self.error = self.error or error
            raise

    def flush(self) -> None:
        self._stream.flush()


def _save(content: Mapping[str, Any], stream: BinaryIO) -> None:
    # Given a path, torch would write the file itself and lose the system's error.
    remembering = _Remembering(stream)
    try:
        torch.save(content, remembering)  # type: ignore[arg-type]
    except RuntimeError:
        if remembering.error is None:
            raise
    if remembering.error is not None:
        raise remembering.error


def _read(path: Path) -> Any:
    return torch.load(path, map_location="cpu", weights_only=True)


def copy_weights(encoder: nn.Module, method: nn.Module) -> Weights:
    """Copies, on the CPU, of the encoder's tensors and the method's parameters, without its queue."""
    return {
        "encoder": {name: tensor.detach().cpu().clone() for name, tensor in encoder.state_dict().items()},
        "method": {name: tensor.detach().cpu().clone() for name, tensor in method.named_parameters()},
    }
