"""One ONNX graph from tokens to normalised vectors: token states, pooling, dense layers and normalisation together.

Servers and libraries that run ONNX graphs pool token states themselves, if at all, and do not support dense layers, so
a graph that ends at the token states would lose a student's projection. The fused graph is complete.

The file names differ from `model.onnx` and `onnx/model.onnx` on purpose: there, sentence-transformers, optimum and
text-embeddings-inference expect token states [B, T, H], and would pool the vectors again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from sentcompress.errors import SentcompressError
from sentcompress.exporting.graph_cleaning import fix_shapes, fix_token_types, fold_transposed_weights, quiet, strip
from sentcompress.exporting.graph_reader import INPUTS
from sentcompress.extras import check_installed
from sentcompress.models.encoder import Encoder
from sentcompress.models.weight_formats import LARGEST_GRAPH
from sentcompress.quantities import told_bytes

FLOAT32_FILE = "onnx/sentence_embedding.onnx"
INT8_FILE = "onnx/sentence_embedding_int8.onnx"
OUTPUT = "sentence_embedding"
# The first opset with a Gelu operator, which onnxruntime runs as one kernel. torch writes IR version 10, which
# onnxruntime reads from 1.18 on.
OPSET = 20
PACKAGES = ("onnx", "onnxruntime", "onnxscript")


class FusedGraph(nn.Module):
    """The traced module: [B, T] token ids and mask -> [B, D] unit vectors.

    It always normalises, even if the encoder does not, so that inner products of its vectors are cosines.
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        # Then the sum of the states has the direction of their mean.
        self.linear = encoder.pooling == ("mean",) and all(
            layer.linear.bias is None and layer.activation_name == "Identity" for layer in encoder.dense_layers
        )

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        # Not `embed`, which a static encoder computes with operators that ONNX does not have.
        states = self.encoder.states(input_ids, attention_mask)
        if self.linear:
            sums = torch.matmul(attention_mask.unsqueeze(1).to(states.dtype), states).squeeze(1)
            vectors = self.encoder.project(sums)
        else:
            vectors = self.encoder.head(states, attention_mask)
        # functional.normalize expands the lengths to [B, D]: two nodes more.
        lengths: Tensor = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
        return vectors / lengths.clamp_min(1e-12)


def require_packages() -> None:
    """Raise InputError if the packages of the `onnx` extra are not installed."""
    check_installed(*PACKAGES, otherwise="export with `formats` folder")


def require_tokenizer(encoder: Encoder) -> None:
    """Raise SentcompressError if the tokenizer is a Python class without a tokenizer.json, as of PhoBERT and XLM."""
    if not encoder.tokenizer.is_fast:
        raise SentcompressError(
            f"the tokenizer of the {encoder.architecture} model has no tokenizer.json, which ONNX graphs are used with",
            "export with `formats` folder",
        )


def write_graph(encoder: Encoder, path: Path) -> None:
    """Write the fused graph in float32, with embedded weights and dynamic batch size and length.

    Inputs `input_ids` and `attention_mask`, int64 [batch, length]; output `sentence_embedding`, float32 [batch, D].
    Token types are fixed to zero. The same encoder gives the same bytes.

    Raises:
        SentcompressError: see `convert`.
    """
    import onnx

    model = convert(encoder)
    fold_transposed_weights(model)
    fix_token_types(model)
    fix_shapes(model)
    strip(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)


def convert(encoder: Encoder) -> Any:
    """The fused graph as torch makes it, an `onnx.ModelProto`.

    Raises:
        SentcompressError: if the architecture cannot be exported, or the weights do not fit into one file.
    """
    size = sum(parameter.numel() * 4 for parameter in encoder.parameters())
    if size > LARGEST_GRAPH:
        raise SentcompressError(
            f"{told_bytes(size)} of weights do not fit into one ONNX file (2 GB)", "export with `formats` folder"
        )
    model = _trace(encoder)
    for given in model.graph.input:
        if any(axis.HasField("dim_value") for axis in given.type.tensor_type.shape.dim):
            raise SentcompressError(
                f"the exporter fixed the batch size or the length of {given.name}", "export with `formats` folder"
            )
    return model


def _trace(encoder: Encoder) -> Any:
    longest = encoder.text.max_length
    length = min(8, longest)
    # A batch with padding: if the mask is all ones, transformers may omit it from the trace.
    mask = torch.ones(2, length, dtype=torch.int64)
    mask[1, length // 2 :] = 0
    pad = encoder.padding
    ids = torch.full((2, length), pad + 1, dtype=torch.int64).where(mask == 1, pad)
    axes = {0: torch.export.Dim("batch", min=1), 1: torch.export.Dim("length", min=1, max=longest)}
    # Unfused attention becomes fewer and simpler nodes than torch's fused attention.
    with encoder.plain_attention(), quiet(), _graph_not_printed(), torch.no_grad():
        try:
            program = torch.onnx.export(
                FusedGraph(encoder).eval(),
                (ids, mask),
                input_names=list(INPUTS),
                output_names=[OUTPUT],
                dynamic_shapes=(axes, axes),
                opset_version=OPSET,
                dynamo=True,
                verbose=False,
            )
        except (torch.onnx.OnnxExporterError, RuntimeError, ValueError, TypeError) as error:
            reason = str(error.__cause__ or error).strip().splitlines()[0][:200]
            raise SentcompressError(
                f"a {encoder.architecture} model cannot be converted to ONNX: {reason}",
                "export with `formats` folder",
            ) from error
    assert program is not None  # None only if the exporter writes the file itself
    return program.model_proto


@contextmanager
def _graph_not_printed() -> Iterator[None]:
    """Without this, torch prints hundreds of lines of a graph that it cannot trace, by the function `print` itself."""
    with mock.patch("torch.export._trace.print", create=True):
        yield
