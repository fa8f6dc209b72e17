"""Outliers of activations: the graph computes the same, and its int8 graph is nearer to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import two_layers
from tracing import operators_found_once

from sentcompress.exporting import dynamic_quantisation
from sentcompress.exporting.dynamic_quantisation import quantise
from sentcompress.exporting.graph_reader import INPUTS
from sentcompress.exporting.onnx import OUTPUT, write_graph
from sentcompress.exporting.outliers import best_factors, scale_outliers
from sentcompress.models.encoder import Encoder
from sentcompress.models.weight_formats import INT4, INT8

onnxruntime = pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
SCALE = 30.0
TOKENS = [[1, *np.random.default_rng(seed).integers(2, 600, 20).tolist()] for seed in range(30)]


@pytest.fixture(scope="module", autouse=True)
def faster() -> Iterator[None]:
    with operators_found_once():
        yield


def make_encoder(kind: str) -> Encoder:
    """A model in which one channel is many times as large as all others, but has small weights."""
    encoder = two_layers(kind, 64, initializer_range=0.1)
    model: Any = encoder.body
    if kind == "albert":
        layer = model.encoder.albert_layer_groups[0].albert_layers[0]
        parts = [(layer.attention.LayerNorm, layer.ffn, layer.full_layer_layer_norm)]
    else:
        parts = [
            (layer.attention.output.LayerNorm, layer.intermediate.dense, layer.output.LayerNorm)
            for layer in model.encoder.layer
        ]
    with torch.no_grad():
        for before, dense, after in parts:
            before.weight[7] = SCALE
            dense.weight[:, 7] /= SCALE
            after.weight[7] = 1 / SCALE
    return encoder


def vectors(path: Path) -> np.ndarray[Any, Any]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    ids = np.random.default_rng(99).integers(1, 600, (8, 12))
    found = session.run([OUTPUT], dict(zip(INPUTS, (ids, np.ones_like(ids)), strict=True)))[0]
    assert isinstance(found, np.ndarray)
    return found


@pytest.mark.parametrize("kind", ["bert", "albert"])
def test_the_scaled_graph_gives_the_same_vectors_and_its_int8_graph_nearer_ones(kind: str, tmp_path: Path) -> None:
    """ALBERT's layers share their weights, so all activations that a weight is multiplied with are scaled alike."""
    import onnx

    path = tmp_path / "graph.onnx"
    write_graph(make_encoder(kind), path)
    model = onnx.load(path)
    factors = scale_outliers(model, TOKENS, 0)
    assert factors
    onnx.save(model, tmp_path / "scaled.onnx")
    exact = vectors(path)
    np.testing.assert_allclose(vectors(tmp_path / "scaled.onnx"), exact, atol=1e-5)
    for weight_format in (INT8, INT4):
        plain, scaled = tmp_path / f"{weight_format}.onnx", tmp_path / f"{weight_format}-scaled.onnx"
        quantise(path, plain, weight_format)
        quantise(path, scaled, weight_format, TOKENS, 0)
        errors = [float(np.square(vectors(one) - exact).mean()) for one in (plain, scaled)]
        assert errors[1] < (0.7 if weight_format == INT8 else 1.1) * errors[0], (weight_format, errors)
        assert scaled.stat().st_size < 1.1 * plain.stat().st_size + 20_000


@pytest.mark.parametrize("kind", ["bert", "albert"])
@pytest.mark.parametrize("weight_format", [INT8, INT4])
def test_the_result_of_attention_is_divided_without_an_operator(
    kind: str, weight_format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its values are divided instead: by their scales and biases, so that their weights stay as they are."""
    import onnx

    encoder = make_encoder(kind)
    model: Any = encoder.body
    if kind == "albert":
        values = [model.encoder.albert_layer_groups[0].albert_layers[0].attention.value]
    else:
        values = [layer.attention.self.value for layer in model.encoder.layer]
    with torch.no_grad():
        for value in values:
            value.weight[5] *= SCALE
    write_graph(encoder, tmp_path / "graph.onnx")
    exact = vectors(tmp_path / "graph.onnx")
    found = {}
    for name in ("folded", "plain"):
        if name == "plain":
            monkeypatch.setattr(dynamic_quantisation, "fold_divisors", lambda model: None)
        quantise(tmp_path / "graph.onnx", tmp_path / f"{name}.onnx", weight_format, TOKENS, 0)
        onnx.checker.check_model(str(tmp_path / f"{name}.onnx"), full_check=True)
        kinds = [node.op_type for node in onnx.load(tmp_path / f"{name}.onnx").graph.node]
        found[name] = vectors(tmp_path / f"{name}.onnx"), kinds.count("Mul")
    assert found["folded"][1] == found["plain"][1] - 2, "one in each of two layers"
    cosine = [(one * exact).sum(axis=1) for one, _ in found.values()]
    np.testing.assert_allclose(*cosine, atol=2e-3 if weight_format == INT8 else 2e-2)
    np.testing.assert_allclose(found["folded"][0], found["plain"][0], atol=0.01)


def test_only_channels_beyond_all_others_are_scaled() -> None:
    random = np.random.default_rng(0)
    values, weights = random.normal(size=(400, 64)).astype(np.float32), random.normal(size=(64, 48)).astype(np.float32)
    assert best_factors(values, weights) is None, "nothing to gain"
    values[::20, 5] *= 40
    factors = best_factors(values, weights)
    assert factors is not None
    assert factors[5] > 10
    assert np.median(factors) == 1
    assert (factors >= 1).all()


def test_activations_of_zeros_are_left_alone() -> None:
    assert best_factors(np.zeros((10, 64), np.float32), np.ones((64, 8), np.float32)) is None


def test_a_graph_without_products_is_left_alone() -> None:
    from onnx import TensorProto, helper

    node = helper.make_node("Identity", ["a"], ["b"])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "ab"]
    model = helper.make_model(helper.make_graph([node], "none", ends[:1], ends[1:]))
    before = model.SerializeToString()
    assert scale_outliers(model, TOKENS, 0) == {}
    assert model.SerializeToString() == before
