"""Transfer tasks: logistic regression on frozen vectors, with SentEval's folds, splits and grids.

Conneau and Kiela, "SentEval: An Evaluation Toolkit for Universal Sentence Representations" (2018). Its classifier is a
loop in PyTorch or scikit-learn's LogisticRegression; here it is the latter with the solver lbfgs, which moves a score
by a few tenths. Along a grid of C every fit starts from the one before it; the optimum is the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sentcompress.evaluation.metrics import Floats, UndefinedError
from sentcompress.numeric import at_most

Labels = npt.NDArray[np.int64]
# Inverse strengths of the L2 penalty, as SentEval's: with nested folds or a dev split, and with a test split alone.
NESTED_GRID = tuple(2.0**power for power in range(-2, 4))
SPLIT_GRID = tuple(2.0**power for power in range(-1, 6))
SOLVER = "lbfgs"
MAX_ITERATIONS = 1000
# From 1e37 on, lbfgs takes no step in float32, and every classifier predicts a single class.
LARGEST = 1e30
TOO_LARGE = f"the model's vectors, or the products of two, are too large for a classifier (above {LARGEST:g})"
# SentEval's seed.
SEED = 1111


@dataclass(frozen=True)
class Prediction:
    """What a classifier says of every example that it did not see.

    Attributes:
        predicted: [N] class numbers.
        chosen: the C that was chosen, one for each outer fold.
        grid: what it was chosen from.
        unfinished: fits that stopped at `MAX_ITERATIONS`.
    """

    predicted: Labels
    chosen: tuple[float, ...]
    grid: tuple[float, ...]
    unfinished: int = 0


@dataclass(frozen=True)
class Examples:
    """Features [N, F] and class numbers [N].

    Raises:
        UndefinedError: for features that are infinite, or too large to fit a classifier.
    """

    features: Floats
    labels: Labels

    def __post_init__(self) -> None:
        if not at_most(float(np.abs(self.features).max(initial=0)), LARGEST):
            raise UndefinedError(TOO_LARGE)


class Classifiers:
    """Fits classifiers and counts the fits.

    Args:
        folds: of every cross-validation.
        seed: of the folds.
        fitted: called after every fit, for a progress bar.
    """

    def __init__(self, folds: int = 10, seed: int = SEED, fitted: Callable[[], None] = lambda: None) -> None:
        self._folds = folds
        self._seed = seed
        self._fitted = fitted
        self._unfinished = 0

    def nested(self, examples: Examples, grid: Sequence[float] = NESTED_GRID) -> Prediction:
        """Every example is predicted by a classifier of the other folds, whose C was chosen by folds within them.

        Raises:
            UndefinedError: a class with fewer examples than folds.
        """
        self._unfinished = 0
        predicted = np.empty_like(examples.labels)
        chosen = []
        for train, test in self._split(examples):
            best = self._best_by_folds(train, grid)
            predicted[test] = self._fit(train, best).predict(examples.features[test])
            chosen.append(best)
        return Prediction(predicted, tuple(chosen), tuple(grid), self._unfinished)

    def on_test(self, train: Examples, test: Floats, grid: Sequence[float] = SPLIT_GRID) -> Prediction:
        """C chosen by folds of the training split.

        Raises:
            UndefinedError: a class with fewer examples than folds.
        """
        self._unfinished = 0
        best = self._best_by_folds(train, grid)
        return Prediction(self._fit(train, best).predict(test), (best,), tuple(grid), self._unfinished)

    def on_test_by_dev(
        self, train: Examples, dev: Examples, test: Floats, grid: Sequence[float] = NESTED_GRID
    ) -> Prediction:
        """C chosen by the dev split; only the training split is fitted."""
        self._unfinished = 0
        best = _best(grid, [self._path(train, dev, grid)])
        return Prediction(self._fit(train, best).predict(test), (best,), tuple(grid), self._unfinished)

    def _split(self, examples: Examples) -> list[tuple[Examples, npt.NDArray[np.int64]]]:
        """Stratified folds: what is trained on, and the places that are held out."""
        from sklearn.model_selection import StratifiedKFold

        rarest = int(np.bincount(examples.labels).min())
        if rarest < self._folds:
            raise UndefinedError(f"a class has {rarest} examples, {self._folds} folds need as many")
        folds = StratifiedKFold(self._folds, shuffle=True, random_state=self._seed)
        return [
            (Examples(examples.features[train], examples.labels[train]), test)
            for train, test in folds.split(examples.features, examples.labels)
        ]

    def _best_by_folds(self, train: Examples, grid: Sequence[float]) -> float:
        splits = self._split(train)
        return _best(grid, [self._path(part, Examples(train.features[h], train.labels[h]), grid) for part, h in splits])

    def _path(self, train: Examples, held: Examples, grid: Sequence[float]) -> list[float]:
        """Accuracy on what was held out, for each C."""
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


def fits_of(splits: int, folds: int) -> int:
    """How many fits a task takes, by its number of splits: one (nested folds), two or three."""
    if splits == 1:
        return folds * (folds * len(NESTED_GRID) + 1)
    return folds * len(SPLIT_GRID) + 1 if splits == 2 else len(NESTED_GRID) + 1


def pair_features(first: Floats, second: Floats) -> Floats:
    """|u - v| and u * v beside each other: two [N, D] -> [N, 2 D] (SentEval, for MRPC)."""
    with np.errstate(over="ignore", invalid="ignore"):  # `Examples` refuses what is infinite
        return np.concatenate([np.abs(first - second), first * second], axis=1)


def _classifier(*, warm_start: bool) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(solver=SOLVER, max_iter=MAX_ITERATIONS, warm_start=warm_start)


def _best(grid: Sequence[float], scores: Sequence[Sequence[float]]) -> float:
    """The C with the best mean accuracy, percent to two decimals as SentEval compares them; of equals the smallest."""
    means = np.round(100 * np.mean(scores, axis=0), 2)
    return sorted(grid)[int(np.argmax(means))]
