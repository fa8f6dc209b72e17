"""The scores that choose the best checkpoint."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from number_words import TABLE, mean, tokenize
from scipy.stats import pearsonr, spearmanr

from sentcompress.evaluation.search_fidelity import GoldRanking
from sentcompress.training.batches import Batch
from sentcompress.training.dev import LOWEST, AgreementDev, HeldOutDev, held_out_dev, hold_out, score_of, sts_dev
from sentcompress.training.retrieval_dev import RetrievalDev
from sentcompress.training.search_dev import SearchDev
from sentcompress.training.triplets import TripletDev

CPU = torch.device("cpu")


def test_sts_is_spearman_of_cosines() -> None:
    random = np.random.default_rng(0)
    texts = [" ".join(str(random.integers(1, 100)) for _ in range(random.integers(1, 9))) for _ in range(40)]
    first, second, gold = texts[:20] + texts[:1], texts[20:] + texts[:1], random.uniform(0, 5, 21)
    dev = sts_dev(first, second, gold.tolist(), tokenize, 0)
    assert len(dev.tokens) == len(set(texts))

    def vector(text: str) -> np.ndarray:
        found = TABLE[tokenize([text])[0]].mean(0).numpy().astype(np.float64)
        return found / np.linalg.norm(found)

    cosines = [vector(a) @ vector(b) for a, b in zip(first, second, strict=True)]
    assert dev.score(mean, CPU) == pytest.approx(100 * spearmanr(cosines, gold).statistic)


def test_a_student_that_gives_everything_the_same_vector_scores_lowest() -> None:
    dev = sts_dev(["1", "2"], ["3", "4"], [1.0, 2.0], tokenize, 0)
    assert score_of(dev, lambda ids, mask: torch.ones(len(ids), 3), CPU) == LOWEST


def test_one_sentence_without_a_vector_leaves_no_score() -> None:
    """Its cosines are not taken for 0, which would be a score like any other."""
    dev = sts_dev(["1", "2", "3"], ["4", "5", "6"], [1.0, 2.0, 3.0], tokenize, 0)

    def vectors(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        found = torch.nn.functional.one_hot(ids.sum(1) % 7, 7).float() + ids.float().mean(1, keepdim=True)
        return torch.where((ids == ids.max()).any(1, keepdim=True), torch.nan, found)

    assert score_of(dev, vectors, CPU) == LOWEST


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_score_that_is_not_a_number_is_the_lowest(value: float) -> None:
    class Broken:
        measure, protocol, slack = "broken", "broken", 0.0

        def score(self, vectors: object, device: torch.device) -> float:
            return value

    assert score_of(Broken(), mean, CPU) == LOWEST


def test_every_score_says_how_far_it_may_differ_for_the_same_weights() -> None:
    smooth = (sts_dev(["1"], ["2"], [1.0], tokenize, 0), HeldOutDev([], mean, ""), AgreementDev([], ""))
    of_ranks = (RetrievalDev([], [], [], 0, ""), SearchDev([], [], GoldRanking([], 0, 10), 0, ""))
    assert [dev.slack for dev in (*smooth, *of_ranks)] == [0.05, 0.05, 0.05, 0.5, 0.5]
    # Of three anchors in 400, and of so many that the differences of two machines are larger.
    assert [TripletDev([], np.zeros((count, 3), int), 0).slack for count in (400, 30_000)] == [0.75, 0.05]


def test_held_out_is_the_mean_cosine_to_the_target() -> None:
    ids, targets = torch.randint(1, 100, (150, 6)), torch.randn(150, 4)

    def collate(rows: np.ndarray) -> Batch:
        return Batch.of(ids[rows], torch.ones_like(ids[rows]), {"teacher": targets[rows]}, len(rows))

    dev = held_out_dev(np.arange(150), collate, lambda teacher: teacher * 2)
    assert isinstance(dev, HeldOutDev)
    wanted = torch.cosine_similarity(mean(ids, torch.ones_like(ids)), targets, dim=1).mean()
    assert dev.score(mean, CPU) == pytest.approx(100 * wanted.item(), abs=1e-4)
    assert score_of(dev, lambda ids, mask: mean(ids, mask) * float("nan"), CPU) == LOWEST


def test_without_a_target_it_is_how_similarities_agree() -> None:
    ids, teacher = torch.randint(1, 100, (150, 6)), torch.randn(150, 7)

    def collate(rows: np.ndarray) -> Batch:
        return Batch.of(ids[rows], torch.ones_like(ids[rows]), {"teacher": teacher[rows]}, len(rows))

    def cosines(vectors: np.ndarray) -> list[float]:
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return [float(unit[i] @ unit[j]) for i in range(150) for j in range(i)]

    dev = held_out_dev(np.arange(150), collate, None)
    assert isinstance(dev, AgreementDev)
    assert "11,175 held-out pairs" in dev.protocol
    student = mean(ids, torch.ones_like(ids)).numpy()
    wanted = pearsonr(cosines(student), cosines(teacher.numpy())).statistic
    assert dev.score(mean, CPU) == pytest.approx(100 * wanted, abs=1e-4)
    # A space of its own, turned and stretched, is as good.
    turned = torch.linalg.qr(torch.randn(7, 7))[0]
    batches = iter(dev.batches)
    assert dev.score(lambda tokens, mask: 3 * next(batches).targets @ turned, CPU) == pytest.approx(100)
    assert score_of(dev, lambda tokens, mask: torch.ones(len(tokens), 3), CPU) == LOWEST


def test_held_out_sentences_and_what_was_made_of_them_are_not_trained_on() -> None:
    originals = np.full(1000, -1)
    parents = np.concatenate([originals, np.arange(1000), np.arange(1000)])
    rows, held = hold_out(parents, seed=0)
    assert len(held) == 20
    assert (held < 1000).all()
    assert len(rows) == 3000 - 3 * 20
    assert not set(held) & set(rows)
    assert not set(held) & set(parents[rows])


def test_the_choice_is_a_function_of_the_seed() -> None:
    parents = np.full(5000, -1)
    assert np.array_equal(hold_out(parents, 1)[1], hold_out(parents, 1)[1])
    assert not np.array_equal(hold_out(parents, 1)[1], hold_out(parents, 2)[1])


def test_no_more_than_two_thousand_are_held_out() -> None:
    assert len(hold_out(np.full(400_000, -1), 0)[1]) == 2000


def test_more_are_held_out_where_one_says_nothing() -> None:
    rows, held = hold_out(np.full(60, -1), 0)
    assert (len(rows), len(held)) == (50, 10)
    assert [len(part) for part in hold_out(np.full(8, -1), 0)] == [4, 4]


def test_one_sentence_is_held_out_of_very_few() -> None:
    rows, held = hold_out(np.full(3, -1), 0)
    assert (len(rows), len(held)) == (2, 1)
