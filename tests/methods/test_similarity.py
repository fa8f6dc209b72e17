"""InfoNCE and relations, against plain sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from gradients import differences, rows

from sentcompress.methods.similarity import contrast, relation_error

random = np.random.default_rng(0)
QUERIES, KEYS = random.normal(size=(4, 6)), random.normal(size=(7, 6))


def info_nce(queries: np.ndarray, keys: np.ndarray, scale: float) -> float:
    losses = []
    for i, query in enumerate(queries):
        powers = [math.exp(scale * float(rows(query) @ rows(key))) for key in keys]
        losses.append(-math.log(powers[i] / sum(powers)))
    return sum(losses) / len(losses)


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_contrast_is_info_nce_with_all_keys_in_the_denominator(scale: float) -> None:
    queries = torch.tensor(QUERIES, requires_grad=True)
    keys = torch.tensor(KEYS, requires_grad=True)
    loss = contrast(queries, keys, scale)
    loss.backward()
    assert float(loss) == pytest.approx(info_nce(QUERIES, KEYS, scale), rel=1e-9)
    for tensor, function in (
        (queries, lambda moved: info_nce(moved, KEYS, scale)),
        (keys, lambda moved: info_nce(QUERIES, moved, scale)),
    ):
        assert tensor.grad is not None
        np.testing.assert_allclose(tensor.grad.numpy(), differences(function, tensor.detach().numpy()), atol=1e-7)


def test_relations_are_cosines_of_different_sentences() -> None:
    first, second = random.normal(size=(5, 3)), random.normal(size=(5, 8))

    def equation(first: np.ndarray) -> float:
        squares = []
        for i in range(5):
            for j in range(5):
                if i != j:
                    ours, theirs = rows(first[i]) @ rows(first[j]), rows(second[i]) @ rows(second[j])
                    squares.append((ours - theirs) ** 2)
        return float(np.mean(squares))

    student = torch.tensor(first, requires_grad=True)
    error = relation_error(student, torch.tensor(second))
    error.backward()
    assert float(error) == pytest.approx(equation(first), rel=1e-9)
    assert student.grad is not None
    np.testing.assert_allclose(student.grad.numpy(), differences(equation, first), atol=1e-8)


def test_a_rotation_changes_no_relation() -> None:
    vectors = torch.randn(6, 4, dtype=torch.float64)
    rotation, _ = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64))
    assert float(relation_error(vectors, vectors @ rotation)) == pytest.approx(0, abs=1e-20)


def test_one_sentence_has_no_relations() -> None:
    assert float(relation_error(torch.randn(1, 4), torch.randn(1, 6))) == 0
