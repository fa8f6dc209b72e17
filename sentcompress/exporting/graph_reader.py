"""Running an exported ONNX graph as the model card describes: with tokenizers and onnxruntime, without torch."""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sentcompress.encoding.batches import plan_batches
from sentcompress.errors import InputError, reason_of
from sentcompress.exporting.formats import BATCH
from sentcompress.extras import require
from sentcompress.json_documents import read_json
from sentcompress.models.library_errors import reading
from sentcompress.models.token_batches import Ids, TokenRows, padded
from sentcompress.plain_text import printable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from sentcompress.models.text_settings import TextSettings

Vectors = npt.NDArray[np.float32]
Tokens = Sequence[int] | npt.NDArray[np.integer]
INPUTS = ("input_ids", "attention_mask")
# Tokens of a batch that one thread runs, padding included: the activations of 512 fit into its caches. For texts of 128
# tokens, 2,048 are 14% slower.
BATCH_TOKENS = 512
# The protobuf encoding of the key that names a tensor's external file.
EXTERNAL_DATA = b"\x08location\x12"
AGAIN = "rebuild the folder with sentcompress export --force, or export it without graphs: --format folder"
LONGEST_REASON = 300


class GraphReader:
    """Computes unit vectors of texts.

    Args:
        folder: the exported folder.
        file: path of the graph within the folder.
        prepare: text preprocessing before tokenisation (`TextSettings.prepare`).
        max_length: maximum number of tokens per text.
        threads: threads for a batch, or for batches side by side in `run_all`; by default onnxruntime decides how many
            run a batch, and batches run one after another.

    Raises:
        InputError: if the graph or its tokenizer is damaged, or was not written by `export`.
    """

    def __init__(
        self,
        folder: Path,
        file: str,
        *,
        prepare: Callable[[str], str],
        max_length: int,
        threads: int | None = None,
    ) -> None:
        settings = folder / "tokenizer_config.json"
        self.tokenizer = _read_tokenizer(folder / "tokenizer.json", max_length, _truncation_side(settings))
        self.padding = _padding(self.tokenizer, settings)
        self.prepare = prepare
        self._tokenizer_path, self._path = folder / "tokenizer.json", folder / file
        self._threads = threads or 1
        self.session = _open_session(self._path, threads)
        self._single_threaded: Any = None
        self._dimension: int | None = None

    @classmethod
    def of_text(cls, folder: Path, file: str, text: TextSettings, threads: int | None = None) -> GraphReader:
        """A reader that prepares and truncates texts as a model does.

        Args:
            text: the model's text settings.

        Raises:
            InputError: as the class.
        """
        return cls(folder, file, prepare=text.prepare, max_length=text.max_length, threads=threads)

    def vectors(self, texts: Sequence[str], batch: int = BATCH) -> Vectors:
        """[N, D] vectors of N texts, in batches in the given order; use `batch=1` for the vectors of single queries.

        Raises:
            InputError: see `tokenize` and `run`.
        """
        parts = (texts[start : start + batch] for start in range(0, len(texts), batch))
        return np.concatenate([self.run(self.tokenize(part)) for part in parts])

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text without padding, at least one per text.

        Raises:
            InputError: if the tokenizer fails.
        """
        prepared = [self.prepare(text) for text in texts]
        with reading(f"{self._tokenizer_path} is not a usable tokenizer", AGAIN):
            return [one.ids or [self.padding] for one in self.tokenizer.encode_batch_fast(prepared)]

    def run(self, tokens: Sequence[Tokens]) -> Vectors:
        """[B, D] vectors of B token sequences, padded to the longest one.

        Raises:
            InputError: if onnxruntime cannot run the graph, or the output is not one finite vector per sequence.
        """
        return self._run(self.session, *padded(tokens, self.padding))

    def run_all(
        self,
        tokens: Sequence[Tokens] | TokenRows,
        batch_tokens: int = BATCH_TOKENS,
        finished: Callable[[npt.NDArray[np.int64]], None] | None = None,
    ) -> Vectors:
        """[N, D] vectors of N token sequences, in batches of similar length, one batch per thread at a time.

        A batch on one thread takes less of the processor than a batch on all of them, because some operators of
        onnxruntime use a single thread, and threads wait for each other after each operator. The batches do not depend
        on the number of threads.

        Args:
            tokens: at least one sequence.
            batch_tokens: maximum tokens of a batch, padding included; a longer sequence is a batch by itself.
            finished: called with the indices of each batch when its vectors are there.

        Raises:
            InputError: see `run`.
        """
        if len(tokens) == 1 and finished is None:
            return self.run([tokens[0]])
        rows = tokens if isinstance(tokens, TokenRows) else TokenRows.of(tokens)
        batches = plan_batches(rows.lengths, batch_tokens)
        vectors = None
        for batch, part in zip(batches, self._run_each(rows, batches), strict=True):
            if vectors is None:
                vectors = np.empty((len(rows), part.shape[1]), dtype=np.float32)
            vectors[batch] = part
            if finished:
                finished(batch)
        assert vectors is not None
        return vectors

    def _run_each(self, rows: TokenRows, batches: Sequence[npt.NDArray[np.int64]]) -> Iterator[Vectors]:
        if self._threads == 1 or len(batches) < self._threads:
            yield from (self._run(self.session, *rows.padded(batch, self.padding)) for batch in batches)
            return
        if self._single_threaded is None:
            self._single_threaded = _open_session(self._path, 1)
        session = self._single_threaded
        with ThreadPoolExecutor(self._threads) as pool:
            yield from pool.map(lambda batch: self._run(session, *rows.padded(batch, self.padding)), batches)

    def _run(self, session: Any, ids: Ids, mask: Ids) -> Vectors:
        inputs = dict(zip(INPUTS, (ids, mask), strict=True))
        with _graph_faults(self._path, "cannot be run"):
            output = session.run(None, inputs)[0]
        return self._checked(output, len(ids))

    def _checked(self, output: Any, rows: int) -> Vectors:
        shape = getattr(output, "shape", None)
        if shape is None or output.dtype != np.float32 or len(shape) != 2 or shape[0] != rows or not shape[1]:
            gives = "no array" if shape is None else f"{output.dtype} of shape {list(shape)}"
            raise InputError(f"{self._path} returns {gives} for {rows} texts, not one float32 vector per text", AGAIN)
        if self._dimension not in (None, shape[1]):
            raise InputError(f"{self._path} returns vectors of {self._dimension} and of {shape[1]} dimensions", AGAIN)
        # The first is one call, and only vectors that are not of unit length can exceed the range of their sum.
        if not math.isfinite(np.vdot(output, output)) and not np.isfinite(output).all():
            raise InputError(f"{self._path} returns vectors with NaN or infinity", AGAIN)
        self._dimension = shape[1]
        vectors: Vectors = output
        return vectors


def _read_tokenizer(path: Path, max_length: int, side: str) -> Tokenizer:
    from tokenizers import Tokenizer

    read_json(path)  # a clearer error if the file is not JSON
    with reading(f"{path} is not a usable tokenizer", AGAIN):
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.enable_truncation(max_length, direction=side)
        tokenizer.no_padding()
    return tokenizer


def _truncation_side(path: Path) -> str:
    """The side on which long texts are cut, as transformers reads it, because tokenizer.json may lack it."""
    settings = read_json(path)
    side = settings.get("truncation_side", "right") if isinstance(settings, dict) else None
    if side not in ("left", "right"):
        raise InputError(f"{path} does not say on which side texts are truncated", AGAIN)
    return str(side)


def _padding(tokenizer: Tokenizer, path: Path) -> int:
    """The id of the padding token; 0 if there is none, since padding is masked anyway."""
    settings = read_json(path)
    pad = settings.get("pad_token") if isinstance(settings, dict) else path
    pad = pad.get("content") if isinstance(pad, dict) else pad
    if not isinstance(pad, str | None):
        raise InputError(f"{path} does not name the padding token", AGAIN)
    return int(tokenizer.token_to_id(pad) or 0) if pad is not None else 0


def _open_session(path: Path, threads: int | None) -> Any:
    onnxruntime = require("onnxruntime")
    if not path.is_file():
        raise InputError(f"{path} is missing", AGAIN)
    if _has_external_data(path):
        raise InputError(f"the weights of {path} are in other files, which is not supported", AGAIN)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # we report its errors
    if threads is not None:
        options.intra_op_num_threads = threads
    with _graph_faults(path, "cannot be opened"):
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"], enable_fallback=0)
        inputs = {given.name: given.type for given in session.get_inputs()}
        outputs = len(session.get_outputs())
    if inputs != dict.fromkeys(INPUTS, "tensor(int64)") or not outputs:
        takes = ", ".join(f"{printable(name)} ({kind})" for name, kind in inputs.items()) or "nothing"
        raise InputError(f"{path} expects {takes} instead of {' and '.join(INPUTS)}, both int64", AGAIN)
    return session


def _has_external_data(path: Path) -> bool:
    """Whether a graph refers to external files, which onnxruntime would read although no digest covers them."""
    with path.open("rb") as stream:
        if not path.stat().st_size:
            return False
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(EXTERNAL_DATA) >= 0


@contextmanager
def _graph_faults(path: Path, what: str) -> Iterator[None]:
    """Turn onnxruntime's errors into InputError."""
    kinds = _kinds_of_faults()
    try:
        yield
    except kinds as error:
        raise InputError(f"the graph {path} {what}: {_reason(error)}", AGAIN) from None


@cache
def _kinds_of_faults() -> tuple[type[Exception], ...]:
    """What onnxruntime raises. Its errors have no common base class, so all are looked up."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    found = [kind for kind in vars(state).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    return (*found, RuntimeError, ValueError, TypeError, MemoryError)


def _reason(error: BaseException) -> str:
    return printable(reason_of(error))[:LONGEST_REASON]
