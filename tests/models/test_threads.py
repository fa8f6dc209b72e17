"""torch's threads divided among items: the results of a plain `map`, and the number of threads as it was."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import torch

from sentcompress.models.threads import MOST_WORKERS, map_in_threads, one_thread


@pytest.fixture(params=[1, 2, 5, 2 * MOST_WORKERS + 1], autouse=True)
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    assert torch.get_num_threads() == request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 40])
def test_results_are_in_the_order_of_the_items(count: int) -> None:
    def slow_first(item: int) -> int:
        time.sleep(0.002 if item % 3 == 0 else 0)
        return 10 * item

    assert list(map_in_threads(slow_first, iter(range(count)))) == [10 * item for item in range(count)]


def test_all_threads_compute_the_first_item_and_are_then_divided(threads: int) -> None:
    used = list(map_in_threads(lambda _: torch.get_num_threads(), range(60)))
    workers = min(threads, MOST_WORKERS)
    assert used == [threads, *[threads // workers] * 59]
    few = list(map_in_threads(lambda _: torch.get_num_threads(), range(3)))
    assert few == ([1, 1, 1] if threads == 1 else [threads, threads // 2, threads // 2])


def test_items_are_computed_at_the_same_time(threads: int) -> None:
    workers = min(threads, MOST_WORKERS)
    together = threading.Barrier(workers)
    # Ends only if that many items are computed at once.
    assert (
        list(map_in_threads(lambda item: item if item == 0 else together.wait(30) * 0, range(workers + 1)))[1:]
        == [0] * workers
    )


def test_an_error_is_raised_at_its_place_and_the_rest_is_not_begun(threads: int) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for item in range(1000):
            taken.append(item)
            yield item

    def fail(item: int) -> int:
        if item == 4:
            raise ValueError("four")
        return item

    results = map_in_threads(fail, items())
    assert [next(results) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="four"):
        next(results)
    assert len(taken) <= 6 + min(threads, MOST_WORKERS)


def test_a_caller_that_stops_early_gets_the_threads_back(threads: int) -> None:
    results = map_in_threads(lambda item: item, iter(range(1000)))
    assert [next(results), next(results), next(results)] == [0, 1, 2]
    del results
    assert torch.get_num_threads() == threads


def test_one_thread_is_for_the_block(threads: int) -> None:
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == threads
