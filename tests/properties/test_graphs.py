"""Whatever a graph, or a file beside it, holds: finite vectors, or an error that names the file and says what to do."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from properties.contract import kept
from properties.mutations import mutated
from tiny_models import WORDS, load_model, make_roberta, make_tiny_model
from tracing import traced_once

from sentcompress.errors import InputError, SentcompressError
from sentcompress.exporting.dynamic_quantisation import quantise
from sentcompress.exporting.graph_reader import GraphReader
from sentcompress.exporting.onnx import FLOAT32_FILE, INT8_FILE, write_graph
from sentcompress.measuring.runtimes import GraphJob
from sentcompress.models.text_settings import TextSettings

onnx = pytest.importorskip("onnx", reason="the onnx extra is not installed")
TOKENIZER, SETTINGS = "tokenizer.json", "tokenizer_config.json"
TEXTS = ["the man plays guitar", "a dog", "x" * 300, "", "\U0001f600 , . \x00"]
LENGTH = 64
Folders = Callable[[], Path]


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exported folder: both graphs, the tokenizer and its configuration."""
    folder = make_tiny_model(tmp_path_factory.mktemp("graphs") / "whole", layers=1, width=8)
    with traced_once():
        write_graph(load_model(folder), folder / FLOAT32_FILE)
    quantise(folder / FLOAT32_FILE, folder / INT8_FILE)
    return folder


@pytest.fixture
def copies(whole: Path, tmp_path: Path) -> Folders:
    """Makes a copy of that folder, a new one at each call."""

    def copy() -> Path:
        folder = tmp_path / uuid.uuid4().hex
        (folder / FLOAT32_FILE).parent.mkdir(parents=True)
        for name in (FLOAT32_FILE, INT8_FILE, TOKENIZER, SETTINGS):
            shutil.copyfile(whole / name, folder / name)
        return folder

    return copy


def read(folder: Path, file: str = FLOAT32_FILE) -> np.ndarray:
    return GraphReader(folder, file, prepare=str, max_length=LENGTH, threads=1).vectors(TEXTS, batch=2)


def check(folder: Path, file: str = FLOAT32_FILE) -> None:
    found = kept(lambda: read(folder, file), folder)
    if not isinstance(found, SentcompressError):
        assert found.shape[0] == len(TEXTS)


def refused(folder: Path, why: str, file: str = FLOAT32_FILE) -> None:
    found = kept(lambda: read(folder, file), folder)
    assert isinstance(found, InputError)
    assert why in found.message


@st.composite
def damage(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """A change of some bytes at a place that is a share of the length."""
    faults = draw(
        st.lists(
            st.tuples(
                st.sampled_from(("cut", "flip", "write", "remove", "insert", "copy")),
                st.floats(0, 1, exclude_max=True),
                st.floats(0, 1, exclude_max=True),
                st.binary(min_size=1, max_size=12),
            ),
            min_size=1,
            max_size=5,
        )
    )

    def apply(content: bytes) -> bytes:
        for what, where, whence, new in faults:
            place, other = int(where * len(content)), int(whence * len(content))
            head, tail, size = content[:place], content[place:], len(new)
            content = {
                "cut": head,
                "flip": head + bytes(a ^ b for a, b in zip(tail, new, strict=False)) + tail[size:],
                "write": head + new + tail[size:],
                "remove": head + tail[size:],
                "insert": head + new + tail,
                "copy": head + content[other : other + 8 * size] + tail[8 * size :],
            }[what]
        return content

    return apply


@pytest.mark.parametrize("file", [FLOAT32_FILE, INT8_FILE])
@given(change=damage())
def test_damaged_graphs(copies: Folders, file: str, change: Callable[[bytes], bytes]) -> None:
    folder = copies()
    (folder / file).write_bytes(change((folder / file).read_bytes()))
    check(folder, file)


@given(content=st.one_of(st.binary(max_size=200), st.just(b"version https://git-lfs.github.com/spec/v1\n")))
@example(content=b"")
def test_something_else_in_place_of_a_graph(copies: Folders, content: bytes) -> None:
    folder = copies()
    (folder / FLOAT32_FILE).write_bytes(content)
    refused(folder, FLOAT32_FILE)


@pytest.mark.parametrize("file", [TOKENIZER, SETTINGS])
@given(change=damage())
def test_damaged_files_beside_it(copies: Folders, file: str, change: Callable[[bytes], bytes]) -> None:
    folder = copies()
    (folder / file).write_bytes(change((folder / file).read_bytes()))
    check(folder)


@given(content=mutated(b'{"pad_token": "[PAD]",\n"unk_token": "[UNK]"}', b":"))
@example(content=b"[]")
@example(content=b'{"pad_token": 7}')
@example(content=b'{"pad_token": {"content": ["a"]}}')
@example(content=b'{"pad_token": null}')
@example(content=b"[" * 100_000)
def test_odd_settings_of_the_tokenizer(copies: Folders, content: bytes) -> None:
    folder = copies()
    (folder / SETTINGS).write_bytes(content)
    check(folder)


# What is put in place of a value of the tokenizer's document.
VALUES = (None, True, 0, -1, 2**31, 2**64, 1e308, "", "a", "\ud800", [], {}, [[]], "[PAD]", {"type": "Nonsense"})


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value within a JSON document; of the vocabulary, to the first few."""
    keys = list(document) if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else []
    few = keys[:8]
    return [found for key in few for found in ((*path, key), *places(document[key], (*path, key)))]


@given(data=st.data())
def test_tokenizers_with_values_of_another_kind(whole: Path, copies: Folders, data: st.DataObject) -> None:
    document = json.loads((whole / TOKENIZER).read_text(encoding="utf-8"))
    *above, last = data.draw(st.sampled_from(places(document)))
    inner = document
    for key in above:
        inner = inner[key]
    if data.draw(st.booleans()):
        del inner[last]
    else:
        inner[last] = data.draw(st.sampled_from(VALUES))
    folder = copies()
    (folder / TOKENIZER).write_text(json.dumps(document), encoding="utf-8")
    check(folder)


def test_a_tokenizer_whose_library_panics(copies: Folders) -> None:
    """A special token of the template that no list of special tokens has: Rust code panics, past `Exception`."""
    folder = copies()
    document = json.loads((folder / TOKENIZER).read_text(encoding="utf-8"))
    post = document["post_processor"]
    assert post["type"] == "TemplateProcessing"
    post["single"][0] = {"SpecialToken": {"id": "[ABSENT]", "type_id": 0}}
    (folder / TOKENIZER).write_text(json.dumps(document), encoding="utf-8")
    refused(folder, TOKENIZER)


def test_the_tokenizer_of_another_model(copies: Folders, tmp_path: Path) -> None:
    """Its tokens are beyond the graph's table."""
    folder, other = copies(), make_roberta(tmp_path / "other")
    shutil.copyfile(other / TOKENIZER, folder / TOKENIZER)
    shutil.copyfile(other / SETTINGS, folder / SETTINGS)
    refused(folder, FLOAT32_FILE)


def test_a_vocabulary_with_tokens_beyond_the_graphs_table(copies: Folders) -> None:
    folder = copies()
    path = folder / TOKENIZER
    path.write_text(path.read_text(encoding="utf-8").replace(f'"{WORDS[0]}": 5', f'"{WORDS[0]}": 5000'))
    refused(folder, "cannot be run")


@pytest.mark.parametrize("missing", [FLOAT32_FILE, TOKENIZER, SETTINGS])
def test_a_missing_file(copies: Folders, missing: str) -> None:
    folder = copies()
    (folder / missing).unlink()
    refused(folder, missing)


def changed(folder: Path, change: Callable[[Any], None]) -> Path:
    model = onnx.load(folder / FLOAT32_FILE)
    change(model)
    onnx.save(model, folder / FLOAT32_FILE)
    return folder


def test_weights_in_other_files_are_not_read(copies: Folders) -> None:
    folder = copies()
    model = onnx.load(folder / FLOAT32_FILE)
    onnx.save(model, folder / FLOAT32_FILE, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (folder / FLOAT32_FILE).with_name("weights.bin").is_file()
    refused(folder, "are in other files")


def test_inputs_of_other_names_or_kinds_are_refused(copies: Folders) -> None:
    def rename(model: Any) -> None:
        model.graph.input[1].name = "mask"
        for node in model.graph.node:
            node.input[:] = ["mask" if name == "attention_mask" else name for name in node.input]

    refused(changed(copies(), rename), "expects input_ids (tensor(int64)), mask (tensor(int64)) instead of")
    extra = onnx.helper.make_tensor_value_info("token_type_ids", onnx.TensorProto.INT64, ["batch", "length"])
    refused(changed(copies(), lambda model: model.graph.input.append(extra)), "token_type_ids (tensor(int64)) instead")


@pytest.mark.parametrize(
    ("kind", "shape", "why"),
    [
        ("Shape", None, "returns int64 of shape [2]"),
        ("Transpose", None, "returns float32 of shape [8, 2]"),
        ("Flatten", 0, "returns float32 of shape [1, 16]"),
    ],
)
def test_outputs_that_are_not_a_vector_a_text_are_refused(
    copies: Folders, kind: str, shape: int | None, why: str
) -> None:
    def append(model: Any) -> None:
        last = model.graph.output[0]
        options = {} if shape is None else {"axis": shape}
        model.graph.node.append(onnx.helper.make_node(kind, [last.name], ["changed"], **options))
        number = onnx.TensorProto.INT64 if kind == "Shape" else onnx.TensorProto.FLOAT
        del model.graph.output[:]
        model.graph.output.append(onnx.helper.make_tensor_value_info("changed", number, None))

    refused(changed(copies(), append), why)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_numbers_are_found_in_the_vectors(copies: Folders, value: float) -> None:
    def spoil(model: Any) -> None:
        for tensor in model.graph.initializer:
            array = onnx.numpy_helper.to_array(tensor)
            if array.dtype == np.float32 and array.ndim == 2:
                tensor.CopyFrom(onnx.numpy_helper.from_array(np.full_like(array, value), tensor.name))

    refused(changed(copies(), spoil), "returns vectors with NaN or infinity")


def test_a_measurement_of_a_damaged_graph_is_refused_as_well(copies: Folders) -> None:
    folder = copies()
    graph = folder / FLOAT32_FILE
    graph.write_bytes(graph.read_bytes()[:5000])
    found = kept(lambda: GraphJob(folder, FLOAT32_FILE, TextSettings(LENGTH), 1).load(), folder)
    assert isinstance(found, InputError)


def test_a_whole_folder_gives_vectors(copies: Folders) -> None:
    folder = copies()
    for file in (FLOAT32_FILE, INT8_FILE):
        vectors = read(folder, file)
        assert vectors.shape == (len(TEXTS), 8)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
