"""export --quantizer: what is written into the folder, and the lines of the card."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from search_documents import make_documents
from tiny_models import load_model, make_sentences, make_tiny_model

import sentcompress
from sentcompress.cli.main import _run
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.errors import DamagedError, InputError
from sentcompress.quantization.codecs import CODECS
from sentcompress.quantization.quantizer import FOLDER, Quantizer
from sentcompress.stages import encode, export, fit_quantizer
from sentcompress.store import Artifact, WorkDirectory

TEXTS = make_sentences(200, seed=6)
SIZES = {"float32": 40, "float16": 20, "int8": 11, "int4": 7, "binary": 3, "pq": 8}


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    found = WorkDirectory(tmp_path / "work")
    make_documents(found, TEXTS, [" ".join(text.split()[:4]) for text in TEXTS[:20]])
    return found


def fit(work: WorkDirectory, model: Path, name: str = "int8") -> Artifact:
    asked = {"model": str(model), "compare": str(model), "vector_bytes": SIZES[name], "store": name, "name": name}
    return fit_quantizer.run(fit_quantizer.Params(**asked, device="cpu"), work)  # type: ignore[arg-type]


def exported(work: WorkDirectory, model: Path, quantizer: str | None, name: str) -> Artifact:
    return export.run(export.Params(model=str(model), formats=("folder",), quantizer=quantizer, name=name), work)


@pytest.mark.parametrize("name", CODECS)
def test_the_lines_of_the_card_store_and_decode_as_the_quantizer_does(
    work: WorkDirectory, tiny_model: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = exported(work, tiny_model, fit(work, tiny_model, name).name, name)
    quantizer = Quantizer.load(made.path / FOLDER)
    card = (made.path / "README.md").read_text(encoding="utf-8")
    section = card.split("## Stored vectors")[1].split("\n## ")[0]
    (lines,) = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    vectors = EncodeEngine(load_model(made.path), dtype="float32").encode(TEXTS)

    class Model:
        def encode_document(self, texts: list[str]) -> np.ndarray:
            return vectors[[TEXTS.index(text) for text in texts]]

        encode_query = encode_document

    monkeypatch.chdir(made.path)
    scope = {"model": Model(), "documents": TEXTS, "queries": TEXTS[:7]}
    exec(re.sub(r"(?m)^documents, queries = .*$", "", lines), scope)
    codes = np.asarray(scope["codes"])
    expected = quantizer.encode(vectors)
    assert codes.view(np.uint8).reshape(200, -1).shape == (200, SIZES[name]) == expected.shape
    if name not in ("float32", "float16"):
        assert (codes == expected).mean() > 0.99
    np.testing.assert_allclose(scope["scores"], quantizer.scores(vectors[:7], expected), atol=2e-3)
    empty = np.zeros((1, 32), dtype=np.float32)  # what a static student gives for an empty text
    codes_of_all = np.concatenate((expected, quantizer.encode(empty)))
    np.testing.assert_allclose(scope["decoded"](codes_of_all), quantizer.decode(codes_of_all), atol=1e-5)
    assert not scope["rotated"](empty).any()
    assert "Scale a prefix to unit length again" in section
    assert f"in {SIZES[name]} bytes each ({name}, {quantizer.dimension} of 32 dimensions)" in section
    assert "| 32 " in section
    assert "was chosen with these queries" in section


def test_the_lines_of_the_card_run_as_they_are_pasted(
    work: WorkDirectory, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = exported(work, tiny_model, fit(work, tiny_model).name, "pasted")
    monkeypatch.chdir(made.path)
    scope: dict[str, Any] = {}
    for lines in re.findall(r"```python\n(.*?)```", (made.path / "README.md").read_text(encoding="utf-8"), re.DOTALL):
        exec(lines.replace("path/of/this/folder", "."), scope)
    assert scope["codes"].shape == (2, SIZES["int8"])
    assert scope["scores"].shape == (1, 2)


@pytest.mark.parametrize("name", ["float16", "int4"])
def test_the_lines_of_the_card_read_what_encode_wrote(
    work: WorkDirectory, tiny_model: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = exported(work, tiny_model, fit(work, tiny_model, name).name, name)
    monkeypatch.chdir(made.path)
    Path("docs.jsonl").write_text("".join(f'{{"id": "d{row}", "text": "{text}"}}\n' for row, text in enumerate(TEXTS)))
    card = Path("README.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"`sentcompress (encode docs.jsonl .*?)`", card)
    assert _run([*shlex.split(line.replace("path/of/this/folder", ".")), "--dtype", "float32", "--quiet"]) == 0
    (block,) = (lines for lines in re.findall(r"```python\n(.*?)```", card, re.DOTALL) if "def decoded" in lines)
    scope: dict[str, Any] = {}
    exec(block.split("\ndocuments, queries")[0], scope)
    (reading,) = re.findall(r"`(decoded\(np\.load\(.*?\)\))`", card)
    stored = sentcompress.read_vectors("stored")
    np.testing.assert_allclose(eval(reading, scope), stored.to_array(), atol=1e-5)
    assert json.loads(Path("stored/ids-00000.json").read_text()) == stored.ids == [f"d{row}" for row in range(200)]


def test_encode_uses_the_quantizer_of_the_exported_folder(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    made = exported(work, tiny_model, fit(work, tiny_model, "int4").name, "small")
    assert {"vectors/quantizer.json", "vectors/quantizer.safetensors"} <= set(made.manifest["files"])
    assert made.inputs["quantizers/int4"] == work.get("quantizers", "int4").digest
    assert made.facts["vectors"]["format"] == "int4"
    moved = shutil.copytree(made.path, tmp_path / "elsewhere")
    (tmp_path / "a.txt").write_text("\n".join(TEXTS[:5]) + "\n")
    params = encode.Params(
        lines=str(tmp_path / "a.txt"), output=tmp_path / "a.npy", model=str(moved), store="int4", dtype="float32"
    )
    assert encode.run(params, WorkDirectory(tmp_path / "none")).bytes_per_vector == 7
    from sentence_transformers import SentenceTransformer

    vectors = SentenceTransformer(str(moved), device="cpu").encode(TEXTS[:5])
    codes = np.load(tmp_path / "a.npy")
    np.testing.assert_allclose(Quantizer.load(moved / FOLDER).scores(vectors, codes).argmax(axis=1), range(5))


def test_without_a_quantizer_nothing_is_said_of_one(work: WorkDirectory, tiny_model: Path) -> None:
    made = exported(work, tiny_model, None, "plain")
    assert "Stored vectors" not in (made.path / "README.md").read_text(encoding="utf-8")
    assert "vectors" not in made.facts
    assert not (made.path / FOLDER).exists()


def test_a_quantizer_of_another_model_is_refused(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    fit(work, tiny_model)
    other = make_tiny_model(tmp_path / "other", seed=8)
    with pytest.raises(InputError, match=r"quantizers/int8 was fitted to tiny-model, not to other") as raised:
        exported(work, other, "int8", "small")
    assert raised.value.hint == f"run: sentcompress fit-quantizer --model {other} --work {work.path}"
    assert work.names("exports") == []


def test_a_changed_quantizer_is_refused(work: WorkDirectory, tiny_model: Path) -> None:
    path = fit(work, tiny_model).path / FOLDER / "quantizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()), indent=1, sort_keys=True) + " ")
    with pytest.raises(DamagedError, match=r"quantizer.json"):
        exported(work, tiny_model, "int8", "small")
