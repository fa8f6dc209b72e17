"""Int8 graphs with weights in 4 bits: the graph of the rounded model, in a smaller file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import two_layers
from tracing import operators_found_once

from sentcompress.exporting.dynamic_quantisation import quantise
from sentcompress.exporting.graph_reader import INPUTS
from sentcompress.exporting.onnx import OUTPUT, write_graph
from sentcompress.exporting.packed_weights import round_weights
from sentcompress.exporting.static_quantisation import fix_ranges
from sentcompress.models.encoder import Encoder
from sentcompress.models.int4 import RoundedWeights
from sentcompress.models.weight_formats import INT4

onnxruntime = pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")


@pytest.fixture(scope="module", autouse=True)
def faster() -> Iterator[None]:
    with operators_found_once():
        yield


def make_encoder(kind: str) -> Encoder:
    # An odd number of tokens, as the number of their zero points then is.
    return two_layers(kind, 192, vocab_size=601)


def vectors(path: Path) -> np.ndarray[Any, Any]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    ids = np.random.default_rng(0).integers(1, 600, (5, 12))
    found = session.run([OUTPUT], dict(zip(INPUTS, (ids, np.ones_like(ids)), strict=True)))[0]
    assert isinstance(found, np.ndarray)
    return found


@pytest.mark.parametrize("kind", ["bert", "albert"])
def test_the_packed_graph_computes_what_the_int8_graph_of_the_rounded_model_does(kind: str, tmp_path: Path) -> None:
    """ALBERT's layers share their weights, so each matrix is unpacked once and multiplied several times."""
    encoder = make_encoder(kind)
    float32, packed, plain = (tmp_path / f"{name}.onnx" for name in ("float32", "packed", "plain"))
    write_graph(encoder, float32)
    quantise(float32, packed, INT4)
    with RoundedWeights(encoder).in_place():
        write_graph(encoder, tmp_path / "rounded.onnx")
    quantise(tmp_path / "rounded.onnx", plain)
    np.testing.assert_array_equal(vectors(packed), vectors(plain))
    assert np.abs(vectors(packed) - vectors(float32)).max() > 1e-3
    quantise(float32, tmp_path / "int8.onnx")
    assert packed.stat().st_size < 0.85 * (tmp_path / "int8.onnx").stat().st_size

    tokens = [list(range(1, 20)), list(range(5, 12))]
    for path in (packed, plain):
        fix_ranges(path, tmp_path / f"fixed-{path.name}", tokens, 0)
    np.testing.assert_array_equal(vectors(tmp_path / "fixed-packed.onnx"), vectors(tmp_path / "fixed-plain.onnx"))


@pytest.mark.parametrize("kind", ["bert", "albert"])
def test_weights_are_fitted_to_a_sample_and_trained_ones_stay(kind: str, tmp_path: Path) -> None:
    """ALBERT's matrices are fitted to the activations of all the places that they are used in."""
    import onnx

    encoder = make_encoder(kind)
    tokens = np.random.default_rng(1).integers(1, 600, (150, 12)).tolist()
    write_graph(encoder, tmp_path / "float32.onnx")
    exact = vectors(tmp_path / "float32.onnx")
    errors = {}
    for name, sample in (("fitted", tokens), ("nearest", [])):
        model = onnx.load(tmp_path / "float32.onnx")
        codes = round_weights(model, sample, 0)
        onnx.save(model, tmp_path / f"{name}.onnx")
        errors[name] = float(np.square(vectors(tmp_path / f"{name}.onnx") - exact).mean())
        # What is stored already stays as it is, with and without a sample.
        for other in (sample, tokens[:20], []):
            again = round_weights(onnx.load(tmp_path / f"{name}.onnx"), other, 0)
            assert all(
                torch.equal(one, other)
                for stored in codes
                for one, other in zip(codes[stored], again[stored], strict=True)
            )
    assert errors["fitted"] < 0.95 * errors["nearest"]


def test_nothing_is_computed_but_constants_before_the_graph_runs(tmp_path: Path) -> None:
    """The nodes that unpack weights depend on constants only, so that a runtime computes them once."""
    import onnx

    write_graph(make_encoder("bert"), tmp_path / "float32.onnx")
    quantise(tmp_path / "float32.onnx", tmp_path / "int8.onnx", INT4)
    graph = onnx.load(tmp_path / "int8.onnx").graph
    onnx.checker.check_model(str(tmp_path / "int8.onnx"))
    known = {weight.name for weight in graph.initializer}
    unpacking = [node for node in graph.node if node.output[0].startswith("int4_node_")]
    assert len(unpacking) > 80
    for node in unpacking:
        assert set(node.input) <= known
        known |= set(node.output)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    onnxruntime.InferenceSession(tmp_path / "int8.onnx", options, providers=["CPUExecutionProvider"])
    left = {node.op_type for node in onnx.load(tmp_path / "optimised.onnx").graph.node}
    assert not left & {"BitShift", "BitwiseAnd", "QuantizeLinear"}
