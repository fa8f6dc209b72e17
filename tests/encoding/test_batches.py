"""Windows, batches and the thread that works ahead."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tiny_models import load_model

from sentcompress.encoding import batches
from sentcompress.encoding.batches import WindowProgress, plan_batches, prefetch, tokenized, windows
from sentcompress.store.running import Counter


def test_windows_keep_the_order_and_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "WINDOW_SENTENCES", 7)
    monkeypatch.setattr(batches, "WINDOW_CHARACTERS", 50)
    texts = [str(number) * (number % 9 + 1) for number in range(100)]
    found = list(windows([texts[:1], [], texts[1:60], texts[60:]]))
    assert [text for window in found for text in window] == texts
    assert max(map(len, found)) <= 7
    assert all(sum(map(len, window[:-1])) < 50 for window in found)


def test_the_bounds_of_a_window_can_be_given() -> None:
    assert list(windows([["a", "b", "c"], ["dd"]], sentences=2)) == [["a", "b"], ["c", "dd"]]
    assert list(windows([["aaa", "b", "c"]], characters=2)) == [["aaa"], ["b", "c"]]


def test_no_texts_make_no_window() -> None:
    assert list(windows([[], []])) == []
    assert plan_batches(np.zeros(0, dtype=np.int64), 100) == []


def test_batches_hold_every_text_once_within_the_budget() -> None:
    lengths = np.random.default_rng(0).integers(2, 120, size=2000)
    planned = plan_batches(lengths, 2048)
    assert sorted(np.concatenate(planned)) == list(range(2000))
    widths = [lengths[batch].max() * len(batch) for batch in planned]
    assert max(widths) <= 2048
    assert sum(widths) < 1.02 * lengths.sum()
    assert all(lengths[batch[0]] == lengths[batch].max() for batch in planned)


def test_a_text_beyond_the_budget_is_a_batch_of_its_own() -> None:
    assert [list(batch) for batch in plan_batches(np.array([3, 500, 3]), 100)] == [[1], [0, 2]]


def test_a_few_texts_of_unlike_length_are_not_padded_to_the_longest() -> None:
    planned = plan_batches(np.array([500, 10, 9, 480]), 2048)
    assert [sorted(batch) for batch in planned] == [[0, 3], [1, 2]]


def test_duplicates_are_tokenised_once(tiny_model: Path) -> None:
    encoder = load_model(tiny_model)
    window = tokenized(["a dog", "a cat", "a dog", ""], encoder.tokenize, encoder.padding)
    assert len(window.tokens) == 3
    assert list(window.places) == [0, 1, 0, 2]
    assert all(len(ids) for ids in window.tokens)


def test_the_progress_within_a_window_follows_the_tokens() -> None:
    window = tokenized(
        ["long", "short", "short"], lambda texts: [[1] * (9 if text == "long" else 3) for text in texts], 0
    )
    counter = Counter("encoding", 3, "sentences")
    progress = WindowProgress(window, counter)
    progress.advance(np.array([0]))
    assert counter.done == 2, "three quarters of the tokens, of three texts"
    progress.advance(np.array([1]))
    assert counter.done == 3


def test_prefetch_gives_all_items_and_runs_elsewhere() -> None:
    threads = []

    def items() -> Iterator[int]:
        for number in range(5):
            threads.append(threading.current_thread())
            yield number

    assert list(prefetch(items(), depth=2)) == [0, 1, 2, 3, 4]
    assert threading.main_thread() not in threads


def test_prefetch_runs_no_further_than_its_depth_and_can_be_left() -> None:
    made, before = [], threading.active_count()

    def items() -> Iterator[int]:
        for number in range(1000):
            made.append(number)
            yield number

    stream = prefetch(items(), depth=1)
    assert next(stream) == 0
    stream.close()
    assert len(made) <= 4
    assert threading.active_count() == before


def test_errors_of_the_other_thread_come_through() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise RuntimeError("broken")

    stream = prefetch(items())
    assert next(stream) == 1
    with pytest.raises(RuntimeError, match="broken"):
        next(stream)
