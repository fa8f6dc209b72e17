"""Starts from what a teacher does with sentences: the states that tokens have on their way into a layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import WORDS, load_model, make_sentences, make_tiny_model, tiny_transformer

from sentcompress.errors import InputError
from sentcompress.models.encoder import Encoder
from sentcompress.models.factorised import factorised
from sentcompress.models.layout import save_encoder
from sentcompress.models.shape import SENTENCES, WEIGHTS, Shape
from sentcompress.models.sources import resolve
from sentcompress.models.students import InitialStudent
from sentcompress.models.token_states import TokenStates, measure_token_states

# Without the last three words of the vocabulary.
TEXTS = [text for text in make_sentences(300) if not set(text.split()) & set(WORDS[-3:])]
LAYERS, WIDTH = 4, 32


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("teacher"), layers=LAYERS, width=WIDTH)


def one_by_one(encoder: Encoder, rows: list[list[int]], layer: int) -> list[np.ndarray[Any, Any]]:
    """The states [T, H] of each row on its way into the layer, without any batching."""
    with torch.inference_mode():
        return [
            encoder.transformer(input_ids=torch.tensor([row]), output_hidden_states=True)
            .hidden_states[layer][0]
            .double()
            .numpy()
            for row in rows
        ]


def test_states_are_means_over_the_sample_with_a_little_of_what_a_token_is_alone(folder: Path) -> None:
    encoder = load_model(folder)
    found = measure_token_states(encoder, 2, TEXTS)
    rows = encoder.tokenize(TEXTS)
    states = one_by_one(encoder, rows, 2)
    size = len(encoder.tokenizer)
    tokens, flat = np.concatenate([np.array(row) for row in rows]), np.concatenate(states)
    counts = np.bincount(tokens, minlength=size)
    assert np.array_equal(found.counts.numpy(), counts)
    cls, sep = rows[0][0], rows[0][-1]
    alone = np.stack([one[1] for one in one_by_one(encoder, [[cls, t, sep] for t in range(size)], 2)])
    means = np.stack([flat[tokens == t].mean(0) if counts[t] else np.zeros(WIDTH) for t in range(size)])
    # Weighted ridge regression, by scikit-learn.
    from sklearn.linear_model import Ridge

    weight = np.minimum(counts, 100)
    centred = alone - np.average(alone, axis=0, weights=weight)
    ridge = 0.01 * (weight[:, None] * centred**2).sum() / WIDTH
    prior = Ridge(alpha=ridge).fit(alone, means, sample_weight=weight).predict(alone)
    wanted = (counts[:, None] * means + 3 * prior) / (counts[:, None] + 3)
    np.testing.assert_allclose(found.states.numpy(), wanted, atol=1e-4)
    unseen = encoder.tokenizer.convert_tokens_to_ids(WORDS[-1])
    assert counts[unseen] == 0
    np.testing.assert_allclose(found.states[unseen].numpy(), prior[unseen], atol=1e-4)
    # What is left over at a position, shrunk as if twenty more had nothing.
    assert len(found.positions) == max(map(len, rows))
    for place in (0, 3, 15):
        left = [one[place] - wanted[row[place]] for one, row in zip(states, rows, strict=True) if len(row) > place]
        np.testing.assert_allclose(found.positions[place].numpy(), np.sum(left, 0) / (len(left) + 20), atol=1e-4)


def test_the_embedding_layer_puts_out_the_states_and_their_principal_axes(folder: Path) -> None:
    transformer: Any = load_model(folder).transformer
    generator = torch.Generator().manual_seed(3)
    size = transformer.config.vocab_size
    # Ten directions, so that a table of width 12 loses nothing.
    states = torch.randn(size, 10, generator=generator).double() @ torch.randn(10, WIDTH, generator=generator).double()
    counts = torch.randint(0, 50, (size,), generator=generator).double()
    positions = 1e-3 * torch.randn(20, 10, generator=generator).double() @ states[:10]

    def put_out(width: int, found: TokenStates) -> torch.Tensor:
        student: Any = factorised(transformer, width, "it", found)
        with torch.inference_mode():
            ids = torch.arange(size).unsqueeze(1)
            return student.embeddings_project(student.embeddings(ids))[:, 0].double()  # type: ignore[no-any-return]

    plain = TokenStates(counts, states, torch.zeros(20, WIDTH, dtype=torch.float64))
    longest = states.sub(states.mean(0)).norm(dim=1) > 0.9 * states.sub(states.mean(0)).norm(dim=1).max()
    errors = {width: (put_out(width, plain) - states)[~longest].norm() / states.norm() for width in (4, 8, 12)}
    assert errors[4] > errors[8] > errors[12]
    assert errors[12] < 1e-4
    moved = put_out(12, TokenStates(counts, states, positions)) - put_out(12, plain)
    torch.testing.assert_close(moved[~longest], positions[:1].expand(size, -1)[~longest], atol=2e-2, rtol=0.1)
    with pytest.raises(InputError, match="states of it, which are 32 wide"):
        factorised(transformer, WIDTH, "it", plain)
    with pytest.raises(InputError, match="`token_dim` 2 cannot hold"):
        factorised(transformer, 2, "it", plain)


@pytest.mark.parametrize("narrowed", [{"token_dim": 16}, {"feed_forward": 24}, {"token_dim": 16, "feed_forward": 24}])
def test_such_a_student_starts_nearer_to_its_teacher(folder: Path, narrowed: dict[str, int]) -> None:
    source, other = resolve(str(folder)), make_sentences(60, seed=9)

    def vectors(encoder: Encoder) -> torch.Tensor:
        rows = []
        with torch.inference_mode():
            for row in encoder.tokenize(other):
                ids = torch.tensor([row])
                rows.append(encoder(ids, torch.ones_like(ids))[0])
        found = torch.stack(rows)
        return torch.nn.functional.normalize(found - found.mean(0), dim=1)

    wanted, kept = vectors(load_model(folder)), {}
    for start in (WEIGHTS, SENTENCES):
        student = InitialStudent("teacher:2", source, Shape(2, **narrowed, start=start))  # type: ignore[arg-type]
        kept[start] = float((vectors(student.load((), TEXTS).eval()) * wanted).sum(1).mean())
    assert kept[SENTENCES] > kept[WEIGHTS] + (0.0 if narrowed == {"feed_forward": 24} else 0.1)


def test_the_start_is_a_part_of_the_name(folder: Path) -> None:
    student = InitialStudent("teacher:2", resolve(str(folder)), Shape(2, token_dim=8, start=SENTENCES))
    assert student.slug == "teacher-2-e8-sentences"


def test_a_start_from_sentences_needs_sentences(folder: Path) -> None:
    student = InitialStudent("teacher:2", resolve(str(folder)), Shape(2, token_dim=8, start=SENTENCES))
    with pytest.raises(ValueError, match="needs a sample"):
        student.load()


@pytest.mark.parametrize("asked", [{"token_dim": WIDTH}, {"token_dim": 8, "feed_forward": 65}])
def test_widths_that_cannot_be_are_refused_before_the_teacher_is_watched(
    folder: Path, asked: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def watched(*_: object) -> None:
        raise AssertionError("the teacher was watched")

    monkeypatch.setattr("sentcompress.models.students.measure_token_states", watched)
    student = InitialStudent("teacher:2", resolve(str(folder)), Shape(2, start=SENTENCES, **asked))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"cannot hold states|64 neurons in a layer"):
        student.load((), TEXTS)


def test_architectures_without_such_tables_are_refused_before_the_teacher_is_watched(tmp_path: Path) -> None:
    encoder = load_model(make_tiny_model(tmp_path / "teacher"))
    encoder.transformer = tiny_transformer("mpnet", tokens=100)
    save_encoder(encoder, tmp_path / "other")
    source = resolve(str(tmp_path / "other"))
    student = InitialStudent("teacher:2", source, Shape(2, token_dim=8, start=SENTENCES))
    with pytest.raises(InputError, match="'mpnet'"):
        student.load((), TEXTS)
