"""Which number format the trial picks, with simulated timings that do not depend on the machine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from sentcompress.models import dtype_trial
from sentcompress.models.dtype_trial import FEWEST, MOST, Speedup, measure, ranks_outside


class Machine:
    """A processor clock that calls move on: `seconds` gives what the n-th call of a format takes."""

    def __init__(self, seconds: Callable[[str, int], float], wall: float = 0.0) -> None:
        self.seconds, self.wall = seconds, wall
        self.cpu = self.clock = 0.0
        self.calls: list[str] = []

    def run(self, dtype: str) -> None:
        taken = self.seconds(dtype, self.calls.count(dtype))
        self.calls.append(dtype)
        self.cpu += taken
        self.clock += taken + self.wall

    def trial(self) -> Speedup:
        return measure(
            lambda: self.run("float32"),
            lambda: self.run("bfloat16"),
            cpu_clock=lambda: self.cpu,
            wall_clock=lambda: self.clock,
        )


@pytest.mark.parametrize(("bfloat16", "picked"), [(0.6, "bfloat16"), (0.95, "float32"), (1.25, "float32")])
def test_a_clear_answer_takes_the_fewest_rounds(bfloat16: float, picked: str) -> None:
    found = Machine(lambda dtype, _: (1.0 if dtype == "float32" else bfloat16) / 100).trial()
    assert (found.dtype, found.certain) == (picked, True)
    assert len(found.ratios) == FEWEST
    assert f"{1 / bfloat16:.2f} times as fast as float32" in found.reason("encodes")
    assert found.reason("encodes").endswith("in 6 rounds)")


@pytest.mark.parametrize(("bfloat16", "picked"), [(0.5, "bfloat16"), (3.4, "float32"), (30.0, "float32")])
def test_an_answer_beyond_doubt_takes_two_rounds(bfloat16: float, picked: str) -> None:
    """On a machine where bfloat16 is 0.3 times as fast, a round can take a second."""
    machine = Machine(lambda dtype, _: (1.0 if dtype == "float32" else bfloat16) / 100)
    found = machine.trial()
    assert (found.dtype, found.certain, len(found.ratios), len(machine.calls)) == (picked, True, 2, 6)
    ratio = f"{1 / bfloat16:.2f}"
    assert found.reason("trains").endswith(f"{ratio} times as fast as float32 ({ratio} to {ratio} in 2 rounds)")


def test_slow_first_calls_decide_nothing() -> None:
    """And neither do they if the first round is disturbed as well."""
    for slow in (1, 2):
        found = Machine(lambda dtype, turn, n=slow: 0.02 if dtype == "float32" else 0.1 if turn < n else 0.01).trial()
        assert (found.dtype, found.certain) == ("bfloat16", True)


def test_rounds_that_were_disturbed_are_outvoted() -> None:
    """One round in four is five times as slow for bfloat16: the best of three would be lucky, the median is sure."""
    machine = Machine(lambda dtype, turn: 0.02 if dtype == "float32" else 0.01 * (5 if turn % 4 == 1 else 1))
    found = machine.trial()
    assert (found.dtype, found.certain, found.ratio) == ("bfloat16", True, pytest.approx(2.0))
    assert FEWEST < len(found.ratios) < MOST


def test_the_wall_clock_of_a_busy_machine_decides_nothing() -> None:
    found = Machine(lambda dtype, _: 0.02 if dtype == "float32" else 0.01, wall=0.5).trial()
    assert (found.dtype, found.ratio) == ("bfloat16", pytest.approx(2.0))


def test_an_uncertain_trial_ends_and_says_so() -> None:
    found = Machine(lambda dtype, turn: 0.01 if dtype == "float32" else (0.005, 0.02)[turn // 2 % 2]).trial()
    assert len(found.ratios) == MOST
    assert not found.certain
    assert "(0.50 to 2.00 in 24 rounds; not certain)" in found.reason("trains")


def test_a_format_that_is_a_hundred_times_slower_is_not_tried_for_long() -> None:
    machine = Machine(lambda dtype, _: 0.1 if dtype == "float32" else 10.0)
    found = machine.trial()
    assert (found.dtype, len(found.ratios), len(machine.calls)) == ("float32", 1, 2)
    assert found.reason("trains").endswith("0.01 times as fast as float32 (0.01 to 0.01 in 1 round; not certain)")


def test_they_take_turns_and_the_first_calls_only_warm_up() -> None:
    machine = Machine(lambda dtype, turn: 1.0 * (turn == 0) + (0.2 if dtype == "float32" else 0.1))
    assert machine.trial().ratio == pytest.approx(2.0)
    assert machine.calls[:6] == ["float32", "bfloat16", "float32", "bfloat16", "bfloat16", "float32"]


def test_the_interval_is_that_of_a_sign_test() -> None:
    """Ranks of the textbook's table (Conover, "Practical Nonparametric Statistics", table A3) for 95%."""
    assert {rounds: ranks_outside(rounds) for rounds in (1, 6, 8, 9, 12, 15, 20, 24)} == {
        1: 0,
        6: 0,
        8: 0,
        9: 1,
        12: 2,
        15: 3,
        20: 5,
        24: 6,
    }


def test_one_thread_computes_and_all_are_back_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[int] = []
    before = torch.get_num_threads()
    monkeypatch.setattr(dtype_trial, "LONGEST", 0.0)
    torch.set_num_threads(2)
    try:
        measure(lambda: said.append(torch.get_num_threads()), lambda: None)
        assert set(said) == {1}
        assert torch.get_num_threads() == 2
        with pytest.raises(ZeroDivisionError):
            measure(lambda: 1 / 0, lambda: None)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
