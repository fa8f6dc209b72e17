"""The runtimes of a model: torch in two number formats, and onnxruntime with two graphs.

A job is plain data until it is loaded, possibly in another process. Unpickling one imports only what its runtime needs,
so a process that runs a graph does not load torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from sentcompress.exporting.graph_reader import BATCH_TOKENS, GraphReader
from sentcompress.models.text_settings import TextSettings

if TYPE_CHECKING:
    from sentcompress.models.catalog import NamedModel
    from sentcompress.models.encoder import Encoder

# Descriptions of the runtimes, for the help and the documentation.
RUNTIMES: Mapping[str, str] = {
    "float32": "torch, the encode engine in float32",
    "bfloat16": "torch, the encode engine in bfloat16",
    "onnx": "onnxruntime on the CPU, the float32 graph of an export",
    "onnx-int8": "onnxruntime on the CPU, the int8 graph of an export",
}
Vectors = npt.NDArray[np.float32]


class LoadedRuntime(Protocol):
    """A model loaded in a runtime."""

    batch_tokens: int

    def encode(self, texts: Sequence[str]) -> Vectors:
        """N texts -> [N, D]; in batches of similar length with at most `batch_tokens` tokens each."""


class Job(Protocol):
    """Everything needed to load a model in one runtime."""

    @property
    def device(self) -> str:
        """The device that it runs on."""

    def import_libraries(self) -> None:
        """Import the libraries that loading needs, to separate their memory from the model's."""

    def load(self) -> LoadedRuntime:
        """Load the model."""


@dataclass(frozen=True)
class TorchJob:
    """A model for the encode engine."""

    model: NamedModel
    dtype: str
    device: str
    threads: int

    def import_libraries(self) -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer  # noqa: F401

        import sentcompress.encoding.engine  # noqa: F401

        torch.set_num_threads(self.threads)

    def load(self, encoder: Encoder | None = None) -> LoadedRuntime:
        """Load the model, or use an encoder that is already loaded."""
        from sentcompress.encoding.engine import EncodeEngine

        return _TorchEngine(EncodeEngine(encoder or self.model.load(), device=self.device, dtype=self.dtype))


class _TorchEngine:
    def __init__(self, engine: Any) -> None:
        self._engine = engine

    @property
    def batch_tokens(self) -> int:
        return int(self._engine.plan.batch_tokens)

    @batch_tokens.setter
    def batch_tokens(self, tokens: int) -> None:
        self._engine.plan = replace(self._engine.plan, batch_tokens=tokens)

    def encode(self, texts: Sequence[str]) -> Vectors:
        vectors: Vectors = self._engine.encode(texts)
        return vectors


@dataclass(frozen=True)
class GraphJob:
    """A graph of an exported folder for onnxruntime."""

    folder: Path
    file: str
    text: TextSettings
    threads: int
    device: str = "cpu"

    def import_libraries(self) -> None:
        import onnxruntime  # noqa: F401
        import tokenizers  # noqa: F401

    def load(self) -> LoadedRuntime:
        """Load the graph."""
        return _GraphEngine(GraphReader.of_text(self.folder, self.file, self.text, self.threads))


class _GraphEngine:
    batch_tokens = BATCH_TOKENS

    def __init__(self, reader: GraphReader) -> None:
        self._reader = reader

    def encode(self, texts: Sequence[str]) -> Vectors:
        return self._reader.run_all(self._reader.tokenize(texts), self.batch_tokens)
