"""Logistic regression by SentEval's protocol against a plain loop over scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from sentcompress.evaluation.similarity import UndefinedError
from sentcompress.evaluation.transfer import (
    NESTED_GRID,
    SPLIT_GRID,
    Classifiers,
    Examples,
    check_classes,
    fits_of,
    pair_features,
)


def examples(count: int, seed: int, classes: int = 2) -> Examples:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, size=count)
    centres = np.random.default_rng(99).normal(size=(classes, 6))
    return Examples((centres[labels] + 1.5 * generator.normal(size=(count, 6))).astype(np.float32), labels)


def plain_best(features: np.ndarray, labels: np.ndarray, folds: int, grid: tuple[float, ...]) -> float:
    """The best C by cross-validation, every classifier fitted from nothing."""
    means = []
    for c in grid:
        scores = []
        for train, test in StratifiedKFold(folds, shuffle=True, random_state=1111).split(features, labels):
            fitted = LogisticRegression(C=c, max_iter=1000).fit(features[train], labels[train])
            scores.append(fitted.score(features[test], labels[test]))
        means.append(round(100 * np.mean(scores), 2))
    return grid[int(np.argmax(means))]


def test_the_grids_are_sentevals() -> None:
    assert NESTED_GRID == (0.25, 0.5, 1, 2, 4, 8)
    assert SPLIT_GRID == (0.5, 1, 2, 4, 8, 16, 32)


def test_nested_folds_equal_a_plain_loop() -> None:
    data = examples(120, seed=0)
    fits = []
    found = Classifiers(folds=3, fitted=lambda: fits.append(1)).nested(data)
    assert len(fits) == fits_of(1, 3)
    outer = StratifiedKFold(3, shuffle=True, random_state=1111).split(data.features, data.labels)
    for number, (train, test) in enumerate(outer):
        best = plain_best(data.features[train], data.labels[train], 3, NESTED_GRID)
        assert found.chosen[number] == best
        fitted = LogisticRegression(C=best, max_iter=1000).fit(data.features[train], data.labels[train])
        np.testing.assert_array_equal(found.predicted[test], fitted.predict(data.features[test]))
    assert found.unfinished == 0


def test_any_seed_can_be_given() -> None:
    found = [Classifiers(folds=2, seed=seed).nested(examples(40, seed=0)) for seed in (7, 2**32 + 7)]
    np.testing.assert_array_equal(*(one.predicted for one in found))


def test_a_test_split_and_folds_of_the_training_split() -> None:
    train, test = examples(150, seed=1, classes=3), examples(60, seed=2, classes=3)
    fits = []
    found = Classifiers(folds=3, fitted=lambda: fits.append(1)).on_test(train, test.features)
    best = plain_best(train.features, train.labels, 3, SPLIT_GRID)
    assert found.chosen == (best,)
    expected = LogisticRegression(C=best, max_iter=1000).fit(train.features, train.labels).predict(test.features)
    np.testing.assert_array_equal(found.predicted, expected)
    assert len(fits) == fits_of(2, 3)


def test_a_dev_split_chooses_and_is_not_trained_on() -> None:
    train, dev, test = examples(80, seed=3), examples(40, seed=4), examples(40, seed=5)
    fits = []
    found = Classifiers(fitted=lambda: fits.append(1)).on_test_by_dev(train, dev, test.features)
    models = [LogisticRegression(C=c, max_iter=1000).fit(train.features, train.labels) for c in NESTED_GRID]
    best = models[int(np.argmax([round(100 * m.score(dev.features, dev.labels), 2) for m in models]))]
    assert found.chosen == (best.C,)
    np.testing.assert_array_equal(found.predicted, best.predict(test.features))
    assert len(fits) == fits_of(3, 10)


def test_vectors_of_zeros_give_the_majority() -> None:
    labels = np.array([0] * 30 + [1] * 10)
    found = Classifiers(folds=3).nested(Examples(np.zeros((40, 4), np.float32), labels))
    assert (found.predicted == 0).all()


@pytest.mark.parametrize("folds", [2, 3, 5])
def test_the_least_examples_of_a_class_are_those_that_all_folds_can_divide(folds: int) -> None:
    for nested, least in ((False, folds), (True, folds + 2)):
        few, enough = (np.array([0] * 30 + [1] * count) for count in (least - 1, least))
        with pytest.raises(UndefinedError, match=f"folds need at least {least}"):
            check_classes(few, folds, nested=nested)
        check_classes(enough, folds, nested=nested)
        with warnings.catch_warnings():  # scikit-learn's, if a fold lacks a class
            warnings.simplefilter("error")
            examples = Examples(np.ones((len(enough), 2), np.float32), enough)
            classifiers = Classifiers(folds)
            classifiers.nested(examples) if nested else classifiers.on_test(examples, examples.features)


def test_features_of_pairs() -> None:
    first, second = np.array([[1.0, -2.0]]), np.array([[3.0, 5.0]])
    np.testing.assert_array_equal(pair_features(first, second), [[2, 7, 3, -10]])


@pytest.mark.parametrize("size", [1e29, 1e16, np.nan])
def test_products_that_no_classifier_can_be_fitted_on_are_refused(size: float) -> None:
    vectors = np.full((2, 3), size, np.float32)
    with pytest.raises(UndefinedError, match="too large for a classifier"):
        Examples(pair_features(vectors, vectors), np.arange(2))
    whole = np.full((2, 3), 1e14, np.float32)
    assert len(Examples(pair_features(whole, whole), np.arange(2)).labels) == 2
