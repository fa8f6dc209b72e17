"""An exported ONNX graph as a source of vectors: a model as it is deployed, for evaluations and `encode`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from sentcompress.commands.spelling import work_words
from sentcompress.encoding.batches import TokenizedWindow, WindowProgress, encode_distinct, prefetch, tokenized, windows
from sentcompress.encoding.embedder import Embedder, Vectors
from sentcompress.encoding.embedder_sources import EmbedderSource
from sentcompress.encoding.token_counts import TokenCounts, count_tokens
from sentcompress.errors import InputError
from sentcompress.exporting.graph_reader import GraphReader
from sentcompress.exporting.onnx import FLOAT32_FILE, INT8_FILE
from sentcompress.extras import check_installed
from sentcompress.models.catalog import NamedModel
from sentcompress.plain_text import shell_line
from sentcompress.progress import SILENT, Reporter, Task
from sentcompress.store import WorkDirectory, file_digest

TORCH = "torch"
# Runtime -> the graph that it runs, and its number format.
GRAPHS: Mapping[str, tuple[str, str]] = {"onnx": (FLOAT32_FILE, "float32"), "onnx-int8": (INT8_FILE, "int8")}


@dataclass(frozen=True)
class Graph:
    """A graph in the exported folder of a model; nothing is loaded yet.

    Attributes:
        runtime: a key of GRAPHS.
        digest: SHA-256 of the graph's file.
    """

    model: NamedModel
    runtime: str
    digest: str

    @property
    def path(self) -> Path:
        """The graph's file."""
        return self.model.source.path / GRAPHS[self.runtime][0]

    @property
    def inputs(self) -> Mapping[str, str]:
        """The inputs to record in a request in addition to the model."""
        return {} if self.model.covers_all_files else {f"file:{self.path.resolve()}": self.digest}

    def load(self, prompt: str | None = None) -> GraphEmbedder:
        """Open the graph, on as many threads as torch has.

        Args:
            prompt: what precedes every text in place of the model's default prompt; None: the default prompt.

        Raises:
            InputError: if the graph or the model's own files are damaged.
        """
        return GraphEmbedder(self, prompt)


class GraphEmbedder:
    """Runs a graph on the CPU, see `GraphReader.run_all`; its vectors always have unit length.

    The vectors of an int8 graph depend somewhat on the batch, unless the ranges of its activations are fixed (`export
    --calibrate`).
    """

    device = torch.device("cpu")
    dtype_reason = "the exported graph's"

    def __init__(self, graph: Graph, prompt: str | None = None) -> None:
        encoder = graph.model.load()
        text = encoder.text if prompt is None else replace(encoder.text, prompt=prompt)
        self._tokenizer, self._text = encoder.tokenizer, text
        self._parameters = encoder.count_parameters()
        self.graph = graph
        file, _ = GRAPHS[graph.runtime]
        self._reader = GraphReader.of_text(graph.model.source.path, file, text, torch.get_num_threads())
        self._dimension = int(self._reader.vectors([""]).shape[1])

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def compute_dtype(self) -> str:
        """The number format of the graph's weights."""
        return GRAPHS[self.graph.runtime][1]

    def encode(self, texts: Sequence[str], task: Task | None = None) -> Vectors:
        return encode_distinct(self.stream, self.dimension, texts, task)

    def stream(self, chunks: Iterable[Sequence[str]], task: Task | None = None) -> Iterator[Vectors]:
        reader = self._reader
        for window in prefetch(tokenized(texts, reader.tokenize, reader.padding) for texts in windows(chunks)):
            yield self._encode_window(window, task)

    def _encode_window(self, window: TokenizedWindow, task: Task | None) -> Vectors:
        progress = WindowProgress(window, task)
        return self._reader.run_all(window.tokens, finished=progress.advance)[window.places]

    def described(self) -> dict[str, Any]:
        return {
            "dimension": self.dimension,
            "parameters": self._parameters,
            "dtype": self.compute_dtype,
        }

    def count_tokens(self, texts: Sequence[str]) -> TokenCounts | None:
        return count_tokens(self._tokenizer, self._text, texts)


@dataclass(frozen=True, kw_only=True)
class GraphSource(EmbedderSource):
    """A graph as a source of vectors, under the reference and digest of its model."""

    graph: Graph

    @property
    def inputs(self) -> Mapping[str, str]:
        """The inputs to record in a request: digest by reference."""
        return {**super().inputs, **self.graph.inputs}

    @property
    def described(self) -> dict[str, Any]:
        """The facts that an evaluation records: those of the model, the runtime and the bytes of the graph."""
        return {**super().described, "runtime": self.graph.runtime, "graph_bytes": self.graph.path.stat().st_size}

    def open_bare(self, *, device: str = "auto", dtype: str = "float32", reporter: Reporter = SILENT) -> Embedder:
        """Open the graph; `device` and `dtype` have no effect on it.

        Raises:
            InputError: see `Graph.load`.
        """
        key = f"{self.digest[:20]}{self.graph.digest[:20]}-{self.graph.runtime}{self.bare_key}"
        return self.cached(self.graph.load(prompt=""), key, reporter)


def find_graph(work: WorkDirectory, model: NamedModel, runtime: str) -> Graph:
    """The graph of a model that `export` wrote.

    Raises:
        InputError: if onnxruntime is not installed, or the model's folder has no such graph.
    """
    check_installed("onnxruntime")
    graph = Graph(model, runtime, "")
    if not graph.path.is_file():
        raise InputError(
            f"{model.label} has no graph for `runtime` {runtime}: {graph.path} is missing",
            f"name an export of it as `model`, such as exports/{model.slug}; to make one, run: "
            + shell_line(["sentcompress", "export", "--model", model.name, *work_words(work.path)]),
        )
    return Graph(model, runtime, file_digest(graph.path))


def in_runtime(work: WorkDirectory, source: EmbedderSource, runtime: str) -> EmbedderSource:
    """The source itself for torch, otherwise the graph in its model's folder.

    Raises:
        InputError: see `find_graph`; also if the source is a file of vectors.
    """
    if runtime == TORCH:
        return source
    if source.model is None:
        raise InputError(f"{source.label} is a file of vectors, which has no graph", f"use `runtime` {TORCH}")
    return GraphSource(
        f"{source.label}, {runtime}",
        source.reference,
        source.digest,
        source.model,
        cache=source.cache,
        prompt=source.prompt,
        graph=find_graph(work, source.model, runtime),
    )


def with_runtime(protocol: Mapping[str, Any], runtime: str) -> dict[str, Any]:
    """A protocol with the runtime of the model, in its statement and as a setting; torch goes without saying."""
    if runtime == TORCH:
        return dict(protocol)
    told = f"vectors of the model by its exported {GRAPHS[runtime][1]} ONNX graph"
    return {**protocol, "statement": f"{protocol['statement']}; {told}", "runtime": runtime}
