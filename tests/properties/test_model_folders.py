"""The contract for model folders: two texts get finite vectors, or an error names the folder and its fault."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hostile import write_code
from hypothesis import example, given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tiny_models import load_model

from sentcompress.errors import SentcompressError
from sentcompress.models.encoder import Dense
from sentcompress.models.layout import save_encoder
from sentcompress.models.transformer_encoder import TransformerEncoder
from sentcompress.stages import encode
from sentcompress.store import WorkDirectory

TEXTS = ["the dog reads a book, quietly", "xylophone \u4e2d \U0001f600"]
# Far more than any of this takes on a busy machine.
SECONDS = 120
JSON_FILES = (
    "1_WordWeights/config.json",
    "2_Pooling/config.json",
    "3_Dense/config.json",
    "config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "sentence_bert_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
)
WEIGHTS = ("1_WordWeights/model.safetensors", "3_Dense/model.safetensors", "model.safetensors")
FILES = (*JSON_FILES, *WEIGHTS)
# Types and extremes, names of things that exist elsewhere, and requests for code.
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    7,
    64,
    10**6,
    2**31,
    2**63,
    10**30,
    0.5,
    -0.0,
    1e300,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\0",
    "\ud800",
    "../config.json",
    "/etc/passwd",
    "3_Dense",
    "[UNK]",
    "gelu",
    "bert",
    "roberta",
    "albert",
    "distilbert",
    "electra",
    "t5",
    "gpt2",
    "PreTrainedTokenizerFast",
    "RobertaTokenizer",
    "T5Tokenizer",
    "RagTokenizer",
    "cls",
    "own.OwnModel",
    "owner/kernel",
    "sentence_transformers.models.Normalize",
    [],
    [0],
    ["x"],
    [["a", "b"]],
    {},
    {"x": 1},
    {"auto_map": {"AutoModel": "own.OwnModel"}},
    {"AutoModel": "own.OwnModel", "AutoTokenizer": ["own.OwnTokenizer", None], "AutoConfig": "own.OwnConfig"},
)
KEYS = (
    "auto_map",
    "attn_implementation",
    "quantization_config",
    "transformers_weights",
    "is_decoder",
    "add_cross_attention",
    "tie_word_embeddings",
    "output_hidden_states",
    "return_dict",
    "use_return_dict",
    "torch_dtype",
    "position_embedding_type",
    "pad_token_id",
    "pooling_mode",
    "prompts",
    "default_prompt_name",
    "max_length",
    "model_max_length",
    "extra_special_tokens",
    "added_tokens_decoder",
    "chat_template",
    "backend",
    "from_slow",
    "tokenizer_object",
    "vocab_file",
    "name_or_path",
    "per_layer_config",
    "fusion_config",
)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """A model with every module that can be read, and a module of code that nobody asks for."""
    encoder, folder = load_model(tiny_model), tmp_path_factory.mktemp("whole") / "model"
    torch.manual_seed(1)
    weights = torch.linspace(0.1, 1, len(encoder.tokenizer))
    save_encoder(TransformerEncoder(**encoder.parts() | {"dense": [Dense(32, 8)], "token_weights": weights}), folder)
    return folder


class TooSlowError(BaseException):
    """Not an Exception, so that nothing takes it for the fault of the folder."""


@contextmanager
def in_time() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TooSlowError(f"not done after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def keeps_the_contract(original: Path, mutate: Callable[[Path], object]) -> None:
    """Load a changed copy of the model and encode with it; an error must have a message."""
    error = outcome(original, mutate)
    assert error is None or (error.message.strip(" :") and error.hint)


def outcome(original: Path, mutate: Callable[[Path], object]) -> SentcompressError | None:
    """What a model with a fault was refused with; None where two texts got their vectors."""
    with tempfile.TemporaryDirectory() as place:
        folder, mark = Path(place, "model"), Path(place, "ran")
        shutil.copytree(original, folder)
        write_code(folder, mark)
        mutate(folder)
        lines, output = Path(place, "lines.txt"), Path(place, "vectors.npy")
        lines.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
        asked = encode.Params(lines=str(lines), output=output, model=str(folder), device="cpu", dtype="float32")
        try:
            with in_time():
                encode.run(asked, WorkDirectory(Path(place, "work")))
        except SentcompressError as error:
            assert not output.exists()
            return error
        finally:
            assert not mark.exists()
        vectors = np.load(output)
        assert vectors.ndim == len(vectors) == 2
        assert np.isfinite(vectors).all()
    return None


def paths_of(document: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value of a document, at most three of each long list or table."""
    if isinstance(document, dict):
        inner = list(document.items())
    else:
        inner = list(enumerate(document)) if isinstance(document, list) else []
    found = [before]
    for key, value in inner if len(inner) < 50 else (inner[0], inner[len(inner) // 2], inner[-1]):
        found += paths_of(value, (*before, key))
    return found


def replace(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    document[path[0]] = replace(document[path[0]], path[1:], value)
    return document


def remove(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        document = document[key]
    del document[path[-1]]
    return document


def edit(path: Path, change: Callable[[Any], Any]) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(change(document)), encoding="utf-8")


places = st.integers(0, 10**6)
values = st.sampled_from(VALUES)


@given(name=st.sampled_from(JSON_FILES), place=places, value=values)
def test_any_value_of_any_setting(original: Path, name: str, place: int, value: Any) -> None:
    def change(document: Any) -> Any:
        paths = paths_of(document)
        return replace(document, paths[place % len(paths)], value)

    keeps_the_contract(original, lambda folder: edit(folder / name, change))


@given(changes=st.lists(st.tuples(st.sampled_from(JSON_FILES), st.sampled_from(KEYS), values), min_size=1, max_size=3))
@example(changes=[("config.json", "is_decoder", True)])
def test_settings_that_were_not_there(original: Path, changes: list[tuple[str, str, Any]]) -> None:
    def mutate(folder: Path) -> None:
        for name, key, value in changes:
            edit(folder / name, lambda found, key=key, value=value: _with(found, key, value))

    keeps_the_contract(original, mutate)


def _with(found: Any, key: str, value: Any) -> Any:
    return [*found[:-1], {**found[-1], key: value}] if isinstance(found, list) else {**found, key: value}


@given(name=st.sampled_from(JSON_FILES), place=places, value=values, first=st.booleans())
def test_a_key_that_occurs_twice(original: Path, name: str, place: int, value: Any, first: bool) -> None:
    def mutate(folder: Path) -> None:
        path = folder / name
        text = path.read_text(encoding="utf-8")
        document = json.loads(text)
        table = document[0] if isinstance(document, list) else document
        if not table:
            return
        key = [*table, *KEYS][place % (len(table) + len(KEYS))]
        twice = f"{json.dumps(key)}: {json.dumps(value)}"
        if first:
            path.write_text(text.replace("{", "{" + twice + ",", 1), encoding="utf-8")
        else:
            path.write_text(f"{text.rstrip().rstrip('}]')}, {twice}}}" + ("]" if text[0] == "[" else ""))

    keeps_the_contract(original, mutate)


@given(name=st.sampled_from(JSON_FILES), place=places)
def test_any_setting_removed(original: Path, name: str, place: int) -> None:
    def change(document: Any) -> Any:
        paths = paths_of(document)[1:]
        if paths:
            remove(document, paths[place % len(paths)])
        return document

    keeps_the_contract(original, lambda folder: edit(folder / name, change))


@given(name=st.sampled_from(FILES), flips=st.lists(st.tuples(places, st.integers(1, 255)), min_size=1, max_size=4))
def test_flipped_bytes(original: Path, name: str, flips: list[tuple[int, int]]) -> None:
    def mutate(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        for place, bits in flips:
            content[place % len(content)] ^= bits
        (folder / name).write_bytes(content)

    keeps_the_contract(original, mutate)


@given(place=places, size=st.integers(1, 8), content=st.binary(min_size=8, max_size=8))
def test_changed_headers_of_weights(original: Path, place: int, size: int, content: bytes) -> None:
    def mutate(folder: Path) -> None:
        path = folder / WEIGHTS[place % len(WEIGHTS)]
        found = path.read_bytes()
        start = place % (8 + int.from_bytes(found[:8], "little"))
        path.write_bytes(found[:start] + content[:size] + found[start + size :])

    keeps_the_contract(original, mutate)


@given(name=st.sampled_from(FILES), place=places, added=st.binary(max_size=20))
def test_files_that_end_elsewhere(original: Path, name: str, place: int, added: bytes) -> None:
    def mutate(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: place % (len(content) + 1)] + added)

    keeps_the_contract(original, mutate)


@given(name=st.sampled_from((*FILES, "1_WordWeights", "2_Pooling", "3_Dense")), how=st.sampled_from(("gone", "folder")))
def test_files_that_are_gone_or_folders(original: Path, name: str, how: str) -> None:
    def mutate(folder: Path) -> None:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        if how == "folder":
            path.mkdir()

    keeps_the_contract(original, mutate)


@given(rows=st.lists(st.sampled_from(("dog", "reads", "[CLS]", "[UNK]")), min_size=1), number=st.floats(width=32))
@example(rows=["dog"], number=3e38)
def test_any_numbers_in_the_rows_of_some_words(original: Path, rows: list[str], number: float) -> None:
    """Numbers that are finite themselves can be too large for the vectors of those texts alone that have the word."""

    def mutate(folder: Path) -> None:
        vocabulary = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
        tensors = load_file(folder / "model.safetensors")
        for word in rows:
            table = tensors["embeddings.word_embeddings.weight"][vocabulary[word]]
            table[::2], table[1::2] = number, -number
        save_file(tensors, folder / "model.safetensors")

    keeps_the_contract(original, mutate)


def test_the_model_itself_is_sound(original: Path) -> None:
    assert outcome(original, lambda folder: None) is None
