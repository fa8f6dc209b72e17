"""Transfer tasks: logistic regression on frozen vectors, with SentEval's folds, splits and grids.

Conneau and Kiela, "SentEval: An Evaluation Toolkit for Universal Sentence Representations" (2018). SentEval's
classifier is a PyTorch training loop or scikit-learn's LogisticRegression; this is the latter with the solver lbfgs,
which changes scores by a few tenths. Fits along a grid of C are warm-started. A fit stops near the optimum, at
scikit-learn's tolerance, so a fit from zero can differ in a few predictions, and so can the C that is selected.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sentcompress.commands.eval_transfer import SEED
from sentcompress.evaluation.similarity import Floats, UndefinedError
from sentcompress.numeric import at_most
from sentcompress.quantities import counted

Labels = npt.NDArray[np.int64]
# SentEval's values of C: for nested folds or a dev split, and for a test split only.
NESTED_GRID = tuple(2.0**power for power in range(-2, 4))
SPLIT_GRID = tuple(2.0**power for power in range(-1, 6))
SOLVER = "lbfgs"
MAX_ITERATIONS = 1000
# From 1e37 on, lbfgs makes no step in float32, and the classifier predicts a single class.
LARGEST = 1e30
# scikit-learn has fewer seeds than our options.
SEEDS = 2**32
TOO_LARGE = f"the model's vectors, or the products of two, are too large for a classifier (above {LARGEST:g})"


@dataclass(frozen=True)
class Prediction:
    """Predictions for held-out examples.

    Attributes:
        predicted: [N] class numbers.
        chosen: the selected C of each outer fold.
        unfinished: fits that stopped at `MAX_ITERATIONS`.
    """

    predicted: Labels
    chosen: tuple[float, ...]
    unfinished: int = 0


@dataclass(frozen=True)
class Examples:
    """Features [N, F] and class numbers [N].

    Raises:
        UndefinedError: if features are NaN, infinite, or too large to fit a classifier.
    """

    features: Floats
    labels: Labels

    def __post_init__(self) -> None:
        if not at_most(float(np.abs(self.features).max(initial=0)), LARGEST):
            raise UndefinedError(TOO_LARGE)


class Classifiers:
    """Fits classifiers, and counts the fits that did not converge.

    Args:
        folds: folds of each cross-validation; see `check_classes`.
        seed: seed of the folds.
        fitted: called after every fit, for a progress bar.
    """

    def __init__(self, folds: int = 10, seed: int = SEED, fitted: Callable[[], None] = lambda: None) -> None:
        self._folds = folds
        self._seed = seed
        self._fitted = fitted
        self._unfinished = 0

    def nested(self, examples: Examples) -> Prediction:
        """Nested cross-validation: each fold is predicted from the others, whose own folds select C."""
        self._unfinished = 0
        predicted = np.empty_like(examples.labels)
        chosen = []
        for train, test in self._split(examples):
            best = self._best_by_folds(train, NESTED_GRID)
            predicted[test] = self._fit(train, best).predict(examples.features[test])
            chosen.append(best)
        return Prediction(predicted, tuple(chosen), self._unfinished)

    def on_test(self, train: Examples, test: Floats) -> Prediction:
        """Predict a test split; C is selected by cross-validation on the training split."""
        self._unfinished = 0
        best = self._best_by_folds(train, SPLIT_GRID)
        return Prediction(self._fit(train, best).predict(test), (best,), self._unfinished)

    def on_test_by_dev(self, train: Examples, dev: Examples, test: Floats) -> Prediction:
        """Predict a test split; C is selected on the dev split, and only the training split is fitted."""
        self._unfinished = 0
        best = _best(NESTED_GRID, [self._path(train, dev, NESTED_GRID)])
        return Prediction(self._fit(train, best).predict(test), (best,), self._unfinished)

    def _split(self, examples: Examples) -> list[tuple[Examples, npt.NDArray[np.int64]]]:
        """Stratified folds: training examples and the held-out rows."""
        from sklearn.model_selection import StratifiedKFold

        folds = StratifiedKFold(self._folds, shuffle=True, random_state=self._seed % SEEDS)
        return [
            (Examples(examples.features[train], examples.labels[train]), test)
            for train, test in folds.split(examples.features, examples.labels)
        ]

    def _best_by_folds(self, train: Examples, grid: Sequence[float]) -> float:
        splits = self._split(train)
        return _best(grid, [self._path(part, Examples(train.features[h], train.labels[h]), grid) for part, h in splits])

    def _path(self, train: Examples, held: Examples, grid: Sequence[float]) -> list[float]:
        """Accuracy on the held-out examples for each C, in ascending order of C."""
        classifier = _classifier(warm_start=True)
        return [
            float((self._run(classifier, train, c).predict(held.features) == held.labels).mean()) for c in sorted(grid)
        ]

    def _fit(self, train: Examples, c: float) -> Any:
        return self._run(_classifier(warm_start=False), train, c)

    def _run(self, classifier: Any, train: Examples, c: float) -> Any:
        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # counted instead
            classifier.set_params(C=c).fit(train.features, train.labels)
        self._unfinished += int(max(classifier.n_iter_) >= MAX_ITERATIONS)
        self._fitted()
        return classifier


def check_classes(labels: Labels, folds: int, *, nested: bool) -> None:
    """Check that every class has enough examples for the folds.

    Args:
        nested: whether the examples that one fold leaves are divided into as many folds again.

    Raises:
        UndefinedError: if one has too few.
    """
    # A fold takes one example in `folds` of a class, rounded up.
    kind, least = ("nested folds", folds + 2) if nested else ("folds", folds)
    rarest = int(np.bincount(labels).min())
    if rarest < least:
        raise UndefinedError(f"a class has {counted(rarest, 'example')}, but {folds} {kind} need at least {least}")


def fits_of(splits: int, folds: int) -> int:
    """Number of fits for a task with one split (nested folds), two or three."""
    if splits == 1:
        return folds * (folds * len(NESTED_GRID) + 1)
    return folds * len(SPLIT_GRID) + 1 if splits == 2 else len(NESTED_GRID) + 1


def pair_features(first: Floats, second: Floats) -> Floats:
    """|u - v| and u * v, concatenated: two [N, D] -> [N, 2 D] (SentEval, for MRPC)."""
    with np.errstate(over="ignore", invalid="ignore"):  # `Examples` rejects infinite values
        return np.concatenate([np.abs(first - second), first * second], axis=1)


def _classifier(*, warm_start: bool) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(solver=SOLVER, max_iter=MAX_ITERATIONS, warm_start=warm_start)


def _best(grid: Sequence[float], scores: Sequence[Sequence[float]]) -> float:
    """The C with the best mean accuracy (rounded to two decimals in percent, as in SentEval); the smallest on ties."""
    means = np.round(100 * np.mean(scores, axis=0), 2)
    return sorted(grid)[int(np.argmax(means))]
