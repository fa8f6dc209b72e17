"""What ranks agree upon after a step: the same on all, whoever is late, and the totals of all steps."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence

import pytest

from sentcompress import signals
from sentcompress.ranks.alone import ALONE, Ranks
from sentcompress.training.agreement import Agreement
from sentcompress.training.run_state import Progress


class Desk(Ranks):
    """Ranks in one process, whose numbers can be read once all have given theirs."""

    def __init__(self, number: int, given: list[list[list[float]]]) -> None:
        self.number, self.count = number, len(given)
        self._given = given

    def numbers_later(self, values: Sequence[float]) -> Callable[[], list[list[float]]]:
        step = len(self._given[self.number])
        self._given[self.number].append(list(values))
        return lambda: [of_rank[step] for of_rank in self._given]


def pair() -> list[tuple[Progress, Agreement]]:
    given: list[list[list[float]]] = [[], []]
    found = [Progress(), Progress()]
    return [(progress, Agreement(Desk(number, given), progress)) for number, progress in enumerate(found)]


def test_a_rank_does_not_wait_for_the_others_before_its_next_step() -> None:
    """The first one is a step ahead: what it reads are the numbers of the step before, which all have given."""
    (first, ahead), (second, behind) = pair()
    ahead.count(10, 1.0)
    assert first.tokens == 0
    behind.count(7, 5.0)
    ahead.count(20, 2.0)
    behind.count(8, 5.0)
    assert (first.tokens, first.seconds) == (second.tokens, second.seconds) == (17, 1.0)
    assert ahead.totals() == (45, 3.0)
    assert first.tokens == 17


def test_all_ranks_stop_after_the_same_step(monkeypatch: pytest.MonkeyPatch) -> None:
    (_, one), (_, other) = pair()
    got = {"one": None, "other": int(signal.SIGUSR1)}

    def count(agreement: Agreement, name: str) -> None:
        monkeypatch.setattr(signals, "asked", lambda: got[name])
        agreement.count(1, 1.0)

    count(one, "one")
    count(other, "other")
    for agreement in (one, other):
        agreement.check_within_step()
        agreement.check()
    got["one"] = int(signal.SIGTERM)  # one step too late for the next place where all can stop
    count(one, "one")
    count(other, "other")
    for agreement in (one, other):
        with pytest.raises(signals.StoppedError) as stop:
            agreement.check()
        assert (stop.value.number, stop.value.whole) == (signal.SIGUSR1, True)


def test_an_order_is_stronger_than_a_request() -> None:
    assert signals.strongest([signal.SIGUSR1, signal.SIGTERM, signal.SIGINT]) == signal.SIGTERM
    assert signals.strongest([signal.SIGUSR1, signal.SIGINT]) == signal.SIGINT


def test_a_single_process_has_its_numbers_at_once() -> None:
    progress = Progress(tokens=5, seconds=1.0)
    agreement = Agreement(ALONE, progress)
    agreement.count(10, 2.0)
    assert (progress.tokens, progress.seconds) == (15, 3.0)
    assert agreement.totals() == (15, 3.0)
