"""The fused graph: right for every batch, length and padding, for each kind of student."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tracing import operators_found_once
from transformers import BertConfig, BertModel, ElectraConfig, ElectraModel, RobertaConfig, RobertaModel

from sentcompress.cli.failures import explain
from sentcompress.errors import InputError, SentcompressError
from sentcompress.exporting import onnx as module
from sentcompress.exporting.dynamic_quantisation import quantise
from sentcompress.exporting.graph_formats import OnnxGraph
from sentcompress.exporting.graph_reader import INPUTS
from sentcompress.exporting.onnx import OUTPUT, require_packages, write_graph
from sentcompress.extras import installing
from sentcompress.models.encoder import Dense, Encoder, TextSettings
from sentcompress.models.repeated import repeated
from sentcompress.models.transformer_encoder import TransformerEncoder

onnxruntime = pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
MAX_LENGTH = 24
SHAPES = ((1, 1), (1, 2), (1, MAX_LENGTH), (2, 1), (3, 5), (9, 17))


@pytest.fixture(scope="module", autouse=True)
def faster() -> Iterator[None]:
    with operators_found_once():
        yield


class FakeTokenizer:
    def __init__(self, pad: int) -> None:
        self.pad_token_id = pad


def make_encoder(kind: str, **parts: Any) -> Encoder:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "vocab_size": 60,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": MAX_LENGTH + 2,
        "initializer_range": 0.3,
    }
    pad = 1 if kind == "roberta" else 0
    models: dict[str, Any] = {
        "bert": lambda: BertModel(BertConfig(**sizes), add_pooling_layer=False),
        "roberta": lambda: RobertaModel(RobertaConfig(**sizes, pad_token_id=1), add_pooling_layer=False),
        "electra": lambda: ElectraModel(ElectraConfig(**sizes, embedding_size=8)),
    }
    settings = {"text": TextSettings(MAX_LENGTH), "dense": [Dense(16, 6)]} | parts
    return TransformerEncoder(models[kind](), FakeTokenizer(pad), **settings).eval()


def batch(rows: int, length: int, pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random tokens; every row but the first is padded on the right, by another amount each."""
    generator = torch.Generator().manual_seed(rows * 100 + length)
    ids = torch.randint(4, 60, (rows, length), generator=generator)
    lengths = torch.randint(1, length + 1, (rows,), generator=generator)
    lengths[0] = length
    mask = (torch.arange(length)[None] < lengths[:, None]).long()
    return torch.where(mask == 1, ids, pad), mask


def check(encoder: Encoder, path: Path) -> None:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for rows, length in SHAPES:
        ids, mask = batch(rows, length, encoder.tokenizer.pad_token_id)
        found = session.run([OUTPUT], dict(zip(INPUTS, (ids.numpy(), mask.numpy()), strict=True)))[0]
        with torch.no_grad():
            expected = torch.nn.functional.normalize(encoder.embed(ids, mask), dim=1).numpy()
        np.testing.assert_allclose(found, expected, atol=2e-6, err_msg=f"{rows} x {length}")


def check_constants(path: Path) -> None:
    """Shapes of heads, and the row of the token type: for single queries, the nodes that compute them take time."""
    import onnx

    onnx.checker.check_model(str(path), full_check=True)
    graph = onnx.load(path).graph
    constants = {constant.name for constant in graph.initializer}
    assert all(node.input[1] in constants for node in graph.node if node.op_type == "Reshape")
    types = [node for node in graph.node if node.op_type == "Gather" and "token_type" in node.input[0]]
    assert [node.input[1] in constants for node in types] == [True]
    used = {name for node in graph.node for name in node.input} | {OUTPUT}
    assert constants <= used
    assert all(used & set(node.output) for node in graph.node)


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("bert", {"pooling": ("cls", "max"), "dense": [], "normalize": False}),
        ("roberta", {"pooling": ("weightedmean",)}),
        ("electra", {"pooling": ("lasttoken",)}),
    ],
    ids=["bert-cls-max", "roberta-weightedmean", "electra-lasttoken"],
)
def test_the_graph_gives_the_encoders_vectors_and_computes_no_constants(
    kind: str, parts: dict[str, Any], tmp_path: Path
) -> None:
    encoder = make_encoder(kind, **parts)
    write_graph(encoder, tmp_path / "graph.onnx")
    check(encoder, tmp_path / "graph.onnx")
    check_constants(tmp_path / "graph.onnx")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Encoder, Path]:
    encoder = make_encoder("bert", dense=[Dense(16, 8), Dense(8, 6, activation="Tanh")])
    path = tmp_path_factory.mktemp("graph") / "graph.onnx"
    write_graph(encoder, path)
    return encoder, path


def test_the_graph_gives_the_vectors_of_dense_layers(written: tuple[Encoder, Path]) -> None:
    check(*written)


def test_inputs_and_output_are_what_the_documentation_says(written: tuple[Encoder, Path]) -> None:
    session = onnxruntime.InferenceSession(written[1], providers=["CPUExecutionProvider"])
    assert [(given.name, given.type, given.shape) for given in session.get_inputs()] == [
        (name, "tensor(int64)", ["batch", "length"]) for name in INPUTS
    ]
    (output,) = session.get_outputs()
    assert (output.name, output.type, output.shape) == (OUTPUT, "tensor(float)", ["batch", 6])


def test_the_oldest_onnxruntime_that_reads_the_graphs_is_the_documented_one(
    written: tuple[Encoder, Path], tmp_path: Path
) -> None:
    import onnx

    quantise(written[1], tmp_path / "int8.onnx")
    # onnxruntime's table of versions: 1.17 reads IR version 9 and opset 20, 1.18 reads 10 and 21.
    for path in (written[1], tmp_path / "int8.onnx"):
        graph = onnx.load(path)
        assert (graph.ir_version, [opset.version for opset in graph.opset_import if not opset.domain]) == (10, [20])
    page = Path(__file__).parents[2] / "docs" / "export.md"
    assert "onnxruntime 1.18 or later" in page.read_text(encoding="utf-8")


def test_the_mask_of_a_text_is_one_row(written: tuple[Encoder, Path]) -> None:
    """Not one row per token: for single queries, the nodes that would build it take time."""
    import onnx

    nodes = onnx.load(written[1]).graph.node
    mask = [node for node in nodes if node.op_type == "Where"]
    assert len(mask) == 1
    [added] = [node for node in nodes if mask[0].output[0] in node.input]
    assert added.op_type == "Add"
    assert not {"GatherND", "Range"} & {node.op_type for node in nodes}


@pytest.mark.parametrize(
    ("dense", "divided"),
    [
        ([], False),
        ([Dense(16, 6, bias=False)], False),
        ([Dense(16, 6)], True),
        ([Dense(16, 6, bias=False, activation="Tanh")], True),
    ],
    ids=["none", "linear", "bias", "activation"],
)
def test_states_are_summed_where_only_the_direction_counts(dense: list[Dense], divided: bool, tmp_path: Path) -> None:
    """The vector is normalised, so the number of tokens matters only to what is not linear."""
    import onnx

    encoder = make_encoder("bert", dense=dense)
    write_graph(encoder, tmp_path / "graph.onnx")
    nodes = [node.op_type for node in onnx.load(tmp_path / "graph.onnx").graph.node]
    assert nodes.count("Div") == 1 + divided
    assert nodes.count("ReduceSum") == 2 * divided
    check(encoder, tmp_path / "graph.onnx")
    check_constants(tmp_path / "graph.onnx")


def test_nothing_of_this_machine_is_in_the_file(written: tuple[Encoder, Path]) -> None:
    import sentcompress

    content = written[1].read_bytes()
    for folder in (Path(sentcompress.__file__).parent, Path(torch.__file__).parent, written[1].parent):
        assert str(folder).encode() not in content
    assert b"stack_trace" not in content


def test_the_weights_are_in_the_file(written: tuple[Encoder, Path]) -> None:
    encoder, path = written
    assert path.stat().st_size > 4 * encoder.count_parameters()
    assert list(path.parent.iterdir()) == [path]


def test_the_same_encoder_gives_the_same_bytes(written: tuple[Encoder, Path], tmp_path: Path) -> None:
    write_graph(written[0], tmp_path / "graph.onnx")
    assert (tmp_path / "graph.onnx").read_bytes() == written[1].read_bytes()


def test_the_encoder_is_as_before(written: tuple[Encoder, Path]) -> None:
    assert written[0].transformer.config._attn_implementation == "sdpa"


def test_the_int8_graph_is_small_near_and_alike_on_every_machine(written: tuple[Encoder, Path], tmp_path: Path) -> None:
    import onnx

    encoder, path = written
    quantise(path, tmp_path / "int8.onnx")
    assert [p.name for p in tmp_path.iterdir()] == ["int8.onnx"]
    graph = onnx.load(tmp_path / "int8.onnx").graph
    weights = [onnx.numpy_helper.to_array(w) for w in graph.initializer if w.data_type == onnx.TensorProto.INT8]
    matrices = [weight for weight in weights if weight.ndim == 2]
    assert len(matrices) >= 7
    # seven bits: processors without VNNI overflow with eight
    products = {name for node in graph.node if node.op_type == "MatMulInteger" for name in node.input}
    multiplied = [w for w in graph.initializer if w.name in products and w.data_type == onnx.TensorProto.INT8]
    assert len(multiplied) >= 6
    for weight in multiplied:
        assert np.abs(onnx.numpy_helper.to_array(weight).astype(int)).max() <= 64
    # zero points of weights are zero, which is what none means
    assert all(len(node.input) == 3 for node in graph.node if node.op_type == "MatMulInteger")
    onnx.checker.check_model(str(tmp_path / "int8.onnx"), full_check=True)
    session = onnxruntime.InferenceSession(tmp_path / "int8.onnx", providers=["CPUExecutionProvider"])
    for rows, length in SHAPES:
        ids, mask = batch(rows, length, 0)
        found = session.run(None, dict(zip(INPUTS, (ids.numpy(), mask.numpy()), strict=True)))[0]
        with torch.no_grad():
            cosine = (found * encoder(ids, mask).numpy()).sum(axis=1)
        assert cosine.min() > 0.9, (rows, length)
    quantise(path, tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == (tmp_path / "int8.onnx").read_bytes()


def test_a_graph_that_a_full_disk_cuts_short_leaves_nothing_and_is_told_as_such(
    written: tuple[Encoder, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import onnx

    source = tmp_path / "graph.onnx"
    source.write_bytes(written[1].read_bytes())
    infer = onnx.shape_inference.infer_shapes_path

    def cut_short(given: str, inferred: str) -> None:
        infer(given, inferred)
        os.truncate(inferred, Path(inferred).stat().st_size // 2)

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes_path", cut_short)
    with pytest.raises(Exception, match="Error parsing message") as raised:
        quantise(source, tmp_path / "int8.onnx")
    assert explain(raised.value)[0] == "the disk is full"
    assert list(tmp_path.iterdir()) == [source]


def test_every_product_of_reused_layers_is_quantised(tmp_path: Path) -> None:
    import onnx

    encoder = make_encoder("electra")
    encoder.transformer = repeated(encoder.transformer, 2)
    write_graph(encoder, tmp_path / "graph.onnx")
    graph = onnx.load(tmp_path / "graph.onnx").graph
    weights = {weight.name for weight in graph.initializer}
    assert not [node for node in graph.node if node.op_type == "Transpose" and node.input[0] in weights]
    assert weights == weights & {name for node in graph.node for name in node.input}
    quantise(tmp_path / "graph.onnx", tmp_path / "int8.onnx")
    quantised = onnx.load(tmp_path / "int8.onnx").graph
    # six matrices of a layer, the projection of the token table, and the dense layer
    assert sum(node.op_type == "MatMulInteger" for node in quantised.node) == 2 * 6 + 2
    assert not quantised.value_info  # with shapes, onnxruntime picks slower kernels
    for rows, length in SHAPES:
        ids, mask = batch(rows, length, 0)
        inputs = dict(zip(INPUTS, (ids.numpy(), mask.numpy()), strict=True))
        with torch.no_grad():
            expected = encoder(ids, mask).numpy()
        for file, least in (("graph.onnx", 0.99999), ("int8.onnx", 0.9)):
            session = onnxruntime.InferenceSession(tmp_path / file, providers=["CPUExecutionProvider"])
            assert (session.run(None, inputs)[0] * expected).sum(axis=1).min() > least


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "onnxruntime" else real(name, *a))
    with pytest.raises(InputError, match="onnxruntime") as caught:
        require_packages()
    assert installing("onnxruntime") in str(caught.value.hint)
    assert "`formats` folder" in str(caught.value.hint)


def test_more_weights_than_a_file_can_hold_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_GRAPH", 1000)
    with pytest.raises(SentcompressError, match="do not fit into one ONNX file") as caught:
        write_graph(make_encoder("bert"), tmp_path / "graph.onnx")
    assert "`formats` folder" in str(caught.value.hint)
    assert not list(tmp_path.iterdir())


def test_a_tokenizer_that_only_python_has_is_refused(tmp_path: Path) -> None:
    """That of PhoBERT, for example: nothing but transformers could read texts for the graph."""
    encoder = make_encoder("roberta")
    encoder.tokenizer = type("Slow", (FakeTokenizer,), {"is_fast": False})(1)
    with pytest.raises(SentcompressError, match="the tokenizer of the roberta model has no tokenizer") as caught:
        OnnxGraph().write(encoder, tmp_path)
    assert caught.value.hint == "export with `formats` folder"


def test_a_model_that_cannot_be_traced_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder = make_encoder("bert")

    def depends_on_values(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return states[:, int(mask.sum()) % 2]

    monkeypatch.setattr(encoder, "head", depends_on_values)
    with pytest.raises(SentcompressError, match="a bert model cannot be converted to ONNX"):
        write_graph(encoder, tmp_path / "graph.onnx")
    assert encoder.transformer.config._attn_implementation == "sdpa"
    assert capsys.readouterr() == ("", ""), "torch prints hundreds of lines"
