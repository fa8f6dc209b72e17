"""distill --student teacher:static: what it makes, what it refuses, and what else works with the student."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from distilling import make_work
from sentence_transformers import SentenceTransformer
from tiny_models import make_sentences

from sentcompress.encoding.engine import EncodeEngine
from sentcompress.errors import InputError, UsageError
from sentcompress.models.catalog import find_model
from sentcompress.models.static_encoder import StaticEncoder
from sentcompress.stages import average, eval_search, export, split_documents
from sentcompress.stages import distill as stage
from sentcompress.stages.distill import Params
from sentcompress.store import Artifact, WorkDirectory

TEXTS = make_sentences(400)
SHORT: dict[str, Any] = {
    "student": "teacher:static",
    "epochs": 2,
    "batch_size": 64,
    "lr": 5e-3,
    "options": ("normalise=true", "reduction=sum"),
}


@pytest.fixture
def work(tmp_path: Path, tiny_model: Path) -> WorkDirectory:
    return make_work(tmp_path / "work", tiny_model, TEXTS)


def loaded(work: WorkDirectory, student: Artifact) -> StaticEncoder:
    found = find_model(work, student.reference).load()
    assert isinstance(found, StaticEncoder)
    return found


@pytest.mark.parametrize("start", ["weights", "sentences"])
def test_token_vectors_are_trained(work: WorkDirectory, start: str) -> None:
    made = stage.run(Params(**SHORT, start=start), work)
    assert made.name == "lrn-kd-teacher-static" + ("-sentences" if start == "sentences" else "") + "-" + made.name[-6:]
    encoder = loaded(work, made)
    facts = made.facts
    assert facts["dev"] > facts["dev_before_training"] > 10
    assert (facts["parameters"], facts["dimension"], facts["compute_dtype"]) == (68 * 32, 32, "float32")
    texts = [*TEXTS[:50], ""]
    theirs = SentenceTransformer(str(made.path / "model"), device="cpu").encode(texts)
    vectors = EncodeEngine(encoder, device="cpu").encode(texts)
    np.testing.assert_allclose(vectors, theirs, atol=1e-6)
    assert not vectors[-1].any()  # the mean of no token


def test_frequent_tokens_start_short(work: WorkDirectory) -> None:
    """Their mean over the text is zero too: what all texts share says nothing of any."""
    encoder = loaded(work, stage.run(Params(**SHORT | {"lr": 1e-12}), work))
    table, vocabulary = encoder.embedding.weight.detach(), encoder.tokenizer.get_vocab()
    counts = torch.bincount(torch.tensor(list(chain.from_iterable(encoder.tokenize(TEXTS)))), minlength=len(table))
    shares = counts / counts.sum()
    weights = 1e-3 / (1e-3 + shares)
    torch.testing.assert_close(shares @ (table / weights.unsqueeze(1)), torch.zeros(32), atol=1e-5, rtol=0)
    lengths = table.norm(dim=1)
    assert lengths[vocabulary["##s"]] > 3 * lengths[counts.argmax()]
    assert lengths[vocabulary["[PAD]"]] == 0


def test_a_narrow_table_has_a_dense_layer(work: WorkDirectory) -> None:
    made = stage.run(Params(**SHORT, token_dim=16, vocabulary=60), work)
    encoder = loaded(work, made)
    assert (tuple(encoder.embedding.weight.shape), encoder.dimension) == ((60, 16), 32)
    assert made.facts["dev"] > made.facts["dev_before_training"]
    texts = TEXTS[:20]
    theirs = SentenceTransformer(str(made.path / "model"), device="cpu").encode(texts)
    np.testing.assert_allclose(EncodeEngine(encoder, device="cpu").encode(texts), theirs, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"feed_forward": 8}, "`feed_forward` is for layers"),
        ({"passes": 2}, "`passes` is for layers"),
        ({"pooling": "cls"}, "`pooling` is for layers"),
        ({"start": "random"}, "`start random` is for layers"),
    ],
)
def test_options_of_layers_are_refused(work: WorkDirectory, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        stage.run(Params(**SHORT | given), work)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"token_dim": 32}, "is not below the 32 dimensions"),
        ({"method": "simtde", "options": ()}, "a static student has none"),
        ({"method": "pkd", "options": ()}, "a static student has none"),
    ],
)
def test_what_does_not_fit_is_refused(work: WorkDirectory, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        stage.run(Params(**SHORT | given), work)


def test_a_teacher_that_knows_no_token_of_the_sentences_is_refused(tmp_path: Path, tiny_model: Path) -> None:
    strange = make_work(tmp_path / "strange", tiny_model, [f"zq{number}" for number in range(20)])
    with pytest.raises(InputError, match="knows none of the tokens of the sentences"):
        stage.run(Params(**SHORT), strange)


def test_a_static_model_cannot_be_cut(work: WorkDirectory, tmp_path: Path) -> None:
    made = stage.run(Params(**SHORT, name="small"), work)
    other = make_work(tmp_path / "other", made.path / "model", TEXTS)
    for student in ("teacher:1", "teacher:static"):
        with pytest.raises(InputError, match="from which no student can be cut"):
            stage.run(Params(student=student, epochs=1), other)
    with pytest.raises(InputError, match="no random start"):
        stage.run(Params(student="small", start="random", method="lrn-kd", epochs=1), work)


def test_what_follows_distill_takes_it(work: WorkDirectory, tmp_path: Path) -> None:
    """It is trained further, averaged, searched with and exported like any other student."""
    pytest.importorskip("onnxruntime")
    first = stage.run(Params(**SHORT, name="first"), work)
    second = stage.run(Params(student="first", epochs=1, batch_size=64, lr=1e-3, name="second"), work)
    assert second.facts["method"] == "lrn-kd"
    mean = average.run(average.Params(inputs=("first", "second"), name="mean"), work)
    tables = [loaded(work, one).embedding.weight for one in (first, second, mean)]
    torch.testing.assert_close(tables[2], (tables[0] + tables[1]) / 2)
    (tmp_path / "documents.txt").write_text("\n".join(TEXTS[:200]) + "\n", encoding="utf-8")
    split_documents.run(split_documents.Params(inputs=(str(tmp_path / "documents.txt"),)), work)
    found = eval_search.run(eval_search.Params(model="mean", query_part="all"), work)
    assert found.facts["scores"]
    made = export.run(export.Params(model="mean", formats=("onnx", "int8"), float16=True), work)
    assert made.facts["checked"]["onnx"]["min_cosine"] > 0.9999
    assert (made.path / "model.safetensors").stat().st_size < 2 * 68 * 32 + 4 * 68 + 300
