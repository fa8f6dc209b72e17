"""How the time is shared out: never more than there is, and an error where nothing could be learnt."""

from __future__ import annotations

from dataclasses import replace
from operator import mul

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentcompress.compression.budget import LEAST_TRAINING, TooShortError, share_out
from sentcompress.compression.embedding_load import EmbeddingLoad
from sentcompress.compression.measuring_time import MARGIN, READ_FIRST, READ_LAST, SCORING, STAGE, TIGHT_PASSAGES


@given(
    seconds=st.floats(30, 1e5),
    texts=st.integers(100, 10**8),
    tokens_per_text=st.integers(3, 250),
    speed=st.floats(1000, 1e6),
    candidates=st.integers(1, 6),
)
def test_the_parts_add_up_to_at_most_the_whole(
    seconds: float, texts: int, tokens_per_text: int, speed: float, candidates: int
) -> None:
    load = EmbeddingLoad(texts, 8 * texts, texts * tokens_per_text, speed, speed / 2, texts // 10, 3.0)
    try:
        budget = share_out(seconds, load, candidates)
    except TooShortError as error:
        needed = error.needed
    else:
        needed = 0.0
    if needed:
        assert needed > seconds
        assert share_out(needed, load, candidates).last > 0
        return
    spent, running = load.spent + budget.measuring + budget.embedding + budget.last, candidates
    for each in budget.rounds:
        spent += each * running
        running //= 2
    assert spent <= seconds * (1 + 1e-9)
    assert budget.last > 0
    assert budget.texts is None or 0 < budget.texts < texts
    assert (budget.texts is None) == (budget.embedding == load.seconds)


def test_a_short_time_is_shared_among_fewer_texts_and_passages_before_it_is_refused() -> None:
    busy = EmbeddingLoad(4361, 26_370, 38_592, 632.0, 549.0, searched=1547, spent=44.0)
    enough, short, least = (share_out(seconds, busy, 2) for seconds in (370, 210, 198))
    assert (enough.tight, short.tight, least.tight) == (False, True, True)
    assert (enough.texts, enough.passages) == (None, 1093)
    assert 300 <= least.passages < short.passages < 1000
    assert least.sample == short.sample == 1000
    for budget in (short, least):
        assert budget.last == pytest.approx(LEAST_TRAINING, abs=1)
    with pytest.raises(TooShortError) as refused:
        share_out(180, busy, 2)
    assert 180 < refused.value.needed <= 198
    least = refused.value.least
    assert least.texts == 500, "of these, not of all texts, it is told how long the teacher takes"
    parts = busy.spent + least.embedding + LEAST_TRAINING + least.measuring
    assert parts == pytest.approx(refused.value.needed, abs=2), "the parts that are told make up what is to be allowed"


@pytest.mark.parametrize(("candidates", "first"), [(2, 480), (4, 900)])
def test_candidates_are_compared_only_if_there_is_time_to_train_each(candidates: int, first: float) -> None:
    """From eight minutes of training on, of which three tenths are shared by trials of at least 45 seconds."""
    load = EmbeddingLoad(1000, 8000, 10_000, 1e5, 1e5, searched=250)
    shared = [share_out(seconds, load, candidates) for seconds in range(120, 1800, 10)]
    trials = {2: [2], 4: [4, 2]}[candidates]
    compared = [
        (budget.rounds[0], budget.last + sum(map(mul, budget.rounds, trials))) for budget in shared if budget.rounds
    ]
    assert len(compared) < len(shared)
    assert compared[0][1] == pytest.approx(first, abs=10)
    for each, training in compared:
        assert training >= first
        assert each * sum(trials) == pytest.approx(0.3 * training)
        assert each >= 45


def test_reading_millions_of_texts_takes_time_before_and_after_the_training() -> None:
    load = EmbeddingLoad(6_000_000, 450_000_000, 600_000_000, 20_000, 10_000, 20_000, student_cost=0.5)
    quick, slow = (share_out(3600, one, 1) for one in (load, replace(load, reading=20.0)))
    before = READ_FIRST * 20.0
    afterwards = (1 + MARGIN) * READ_LAST * 20.0
    assert slow.afterwards - quick.afterwards == pytest.approx(afterwards)
    assert slow.measuring - quick.measuring == pytest.approx(before + afterwards)
    assert quick.last - slow.last == pytest.approx(before + afterwards)


def test_checkpoints_are_scored_among_as_many_passages_as_are_searched_afterwards() -> None:
    load = EmbeddingLoad(30_000, 300_000, 400_000, 2000.0, 1000.0, searched=5000)
    short, long = (share_out(seconds, load, 1) for seconds in (600, 7200))
    assert short.dev_passages == short.passages < 3000 == long.dev_passages < long.passages


def test_a_plan_for_which_there_is_time_has_the_usual_numbers() -> None:
    fast = EmbeddingLoad(4361, 26_370, 38_592, 5000.0, 4000.0, searched=250, spent=10.0)
    budget = share_out(240, fast, 2)
    assert (budget.tight, budget.texts, budget.passages, budget.benched) == (False, None, 5165, 774)
    assert (round(budget.measuring, 1), round(budget.last, 1)) == (82.0, 140.2)


def test_searches_are_planned_by_the_length_of_passages_and_checkpoints_by_their_sample() -> None:
    mixed = EmbeddingLoad(30_000, 1_500_000, 2_000_000, 20_000, 10_000, searched=5000)
    longer = replace(mixed, passage_tokens=200.0)
    assert longer.exact_seconds_per_passage == 0.02
    assert longer.exact_seconds_per_text == mixed.exact_seconds_per_text == mixed.exact_seconds_per_passage
    # 120,000 words of 150 each.
    assert longer.dev_passages == pytest.approx(800)
    assert replace(longer, searched=500).dev_passages == 500
    short, long = (share_out(1800, load, 1) for load in (mixed, longer))
    assert long.measuring > short.measuring + 60
    assert long.last < short.last


def test_the_benchmark_has_a_limit_that_is_at_least_what_is_planned_for_it() -> None:
    load = EmbeddingLoad(20_000, 1_500_000, 2_000_000, 20_000, 10_000, 5000)
    budget = share_out(1800, load, 4)
    assert (budget.benching, budget.racing) == (90.0, 18.0)
    slow = EmbeddingLoad(4361, 26_370, 38_592, 400.0, 340.0, searched=250, spent=10.0)
    assert share_out(330, slow, 1).benching > 0.05 * 330


def test_scores_of_checkpoints_take_a_small_share_of_a_short_time() -> None:
    long = EmbeddingLoad(6203, 500_000, 620_300, 2500.0, 2000.0, searched=2172, passage_tokens=113.0, student_cost=1.1)
    shared = {minutes: share_out(60 * minutes, long, 1) for minutes in (8, 10, 20, 120)}
    for minutes in (8, 10, 20):
        score = long.student_cost * shared[minutes].dev_passages * long.exact_seconds_per_passage
        assert score <= max(SCORING * 60 * minutes, TIGHT_PASSAGES * long.student_cost * long.exact_seconds_per_passage)
    assert TIGHT_PASSAGES <= shared[8].dev_passages < shared[20].dev_passages < shared[120].dev_passages
    assert shared[120].dev_passages == int(long.dev_passages)


def test_what_a_plan_does_not_do_takes_no_time() -> None:
    """Without an average, neither it nor the trials of the last student are planned."""
    load = EmbeddingLoad(4361, 26_370, 38_592, 2800.0, 2050.0, searched=1547, spent=9.0, student_cost=1.1, held_out=62)
    averaged, alone = (share_out(300, load, 1, lambda _, value=value: value) for value in (True, False))
    assert averaged.dev_passages == alone.dev_passages
    trial = load.student_cost * alone.dev_passages * load.exact_seconds_per_passage
    assert averaged.afterwards - alone.afterwards == pytest.approx((1 + MARGIN) * (3 * STAGE + trial))
    assert alone.last - averaged.last == pytest.approx(averaged.afterwards - alone.afterwards)


@pytest.mark.parametrize(
    ("load", "took"),
    [
        (EmbeddingLoad(30_990, 1_053_829, 1_348_750, 4000, 3239, 10_881, 0, 113.2, 0.6, held_out=545), 341),
        (EmbeddingLoad(30_990, 1_053_829, 1_348_750, 9000, 6071, 10_881, 0, 113.2, 0.6, held_out=545), 295),
        (EmbeddingLoad(79_450, 550_457, 811_503, 4000, 2559, 20_000, 0, 15.5, 0.6, held_out=500), 297),
        (EmbeddingLoad(30_718, 1_214_908, 2_043_387, 5000, 3274, 9059, 0, 193.4, 0.6, held_out=453), 378),
    ],
    ids=["law, one core", "law, two cores", "quora, whose teacher was half again as fast later", "scifact"],
)
def test_what_follows_the_last_training_takes_about_as_long_as_it_took(load: EmbeddingLoad, took: float) -> None:
    """Runs of half an hour that trained general-9m: the seconds after its training and outside of its time."""
    known, unknown = (share_out(1800, one, 1) for one in (load, replace(load, held_out=None)))
    assert 1.1 < known.afterwards / took < 1.32
    assert known.afterwards < unknown.afterwards, "then more is reserved"


def test_the_teacher_encodes_passages_for_checkpoints_before_the_last_training_if_there_are_others() -> None:
    load = EmbeddingLoad(30_000, 300_000, 400_000, 2000, 1000, searched=5000, student_cost=0.5)
    one, several = (share_out(3600, load, candidates) for candidates in (1, 2))
    assert (one.rounds, len(several.rounds), one.dev_passages) == ((), 1, several.dev_passages)
    encoding = one.dev_passages * load.exact_seconds_per_passage
    assert one.afterwards - several.afterwards == pytest.approx((1 + MARGIN) * encoding)
    assert one.measuring - one.afterwards < encoding < several.measuring - several.afterwards


def test_texts_that_a_student_has_encoded_before_take_no_more_time() -> None:
    """With all training passages in the collection, the texts to fit on are among those that are searched."""
    small = EmbeddingLoad(60_000, 600_000, 800_000, 4000, 2000, searched=19_999, student_cost=0.5, held_out=1000)
    large = replace(small, searched=20_000, texts=120_000, words=1_200_000, tokens=1_600_000)
    of_small, of_large = (share_out(1800, load, 1) for load in (small, large))
    assert (of_small.passages, of_small.sample) == (of_large.passages, of_large.sample)
    assert of_small.passages < 19_999
    each = small.student_cost * small.exact_seconds_per_passage
    # Of the others, so many at least are in a collection of 20,000 as well.
    expected = (of_small.passages - 500) * (1 - 2 * 19_000 / 120_000) * each
    assert of_large.afterwards - of_small.afterwards == pytest.approx((1 + MARGIN) * expected)
    only_held_out = share_out(1800, replace(large, held_out=20_000), 1)
    assert only_held_out.afterwards == share_out(1800, replace(large, held_out=None), 1).afterwards


def test_all_texts_are_embedded_where_the_time_allows() -> None:
    budget = share_out(1800, EmbeddingLoad(20_000, 1_500_000, 2_000_000, 20_000, 10_000, 5000), 2)
    assert (budget.texts, budget.words) == (None, 1_500_000)
    assert budget.embedding == 100
    assert len(budget.rounds) == 1
    assert budget.last > 0.45 * 1800


def test_a_sample_is_embedded_where_it_does_not() -> None:
    budget = share_out(600, EmbeddingLoad(1_000_000, 75_000_000, 100_000_000, 20_000, 10_000, 5000), 1)
    assert budget.embedding == pytest.approx(150)
    assert (budget.texts, budget.words) == (30_000, 2_250_000)


def test_other_texts_take_the_time_of_their_share() -> None:
    load = EmbeddingLoad(300, 3000, 6000, 1000.0, 500.0, 50)
    more = load.with_more(0.25)
    assert (more.texts, more.words, more.tokens, more.searched) == (400, 4000, 8000, 50)
    assert (load.seconds, more.seconds) == (6.0, 8.0)


def test_the_time_that_an_error_asks_for_is_the_least_that_would_do() -> None:
    load = EmbeddingLoad(1_000_000, 75_000_000, 100_000_000, 20_000, 10_000, 5000)
    with pytest.raises(TooShortError) as found:
        share_out(60, load, 3)
    assert share_out(found.value.needed, load, 3).last >= LEAST_TRAINING
    with pytest.raises(TooShortError):
        share_out(found.value.needed - 1.5, load, 3)


def test_where_only_one_candidate_can_be_trained_no_time_is_kept_for_others() -> None:
    load = EmbeddingLoad(20_000, 1_500_000, 2_000_000, 20_000, 10_000, 5000)
    several = share_out(400, load, 4)
    assert several.rounds == ()
    assert several == share_out(400, load, 1)


def test_a_slow_teacher_is_timed_with_a_hundred_sentences_at_least() -> None:
    load = EmbeddingLoad(1_000_000, 75_000_000, 100_000_000, 2000, 1000, 5000)
    slow, longer = (share_out(seconds, load, 1).benched for seconds in (1200, 7200))
    assert slow == 100 < longer


def test_nothing_is_trained_without_candidates() -> None:
    budget = share_out(60, EmbeddingLoad(1000, 75_000, 100_000, 20_000, 10_000, 5000), 0)
    assert (budget.rounds, budget.last) == ((), 0.0)
    assert (budget.texts, budget.words) == (None, 75_000)
    many = share_out(60, EmbeddingLoad(6_000_000, 450_000_000, 600_000_000, 20_000, 10_000, 5000), 0)
    assert (many.texts, many.words) == (20_000, 1_500_000), "the benchmark needs no table of all texts"


def test_searches_are_among_fewer_passages_where_time_is_short() -> None:
    load = EmbeddingLoad(50_000, 4_000_000, 5_000_000, 20_000, 10_000, searched=15_000)
    short, long = (share_out(seconds, load, 2) for seconds in (600, 7200))
    assert 1000 <= short.passages < 5000 < 15_000 < long.passages
    assert short.measuring < 0.5 * 600
    assert short.benched < long.benched
