"""Scores as records: what is written is read again, and what nobody writes is refused."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sentcompress
from sentcompress.evaluation.metrics import (
    INDEX_BYTES,
    METRICS,
    NDCG,
    PARAMETERS,
    SPEARMAN,
    SPEED,
    UNIFORMITY,
    VECTOR_BYTES,
    WEIGHT_BYTES,
)
from sentcompress.evaluation.score import (
    NO_INTERVAL,
    Interval,
    Recorder,
    Score,
    read_scores,
    select,
    share_kept,
    size_scores,
    sizes_of,
    value_of,
)
from sentcompress.json_documents import finite, parse_json

FULL = Score(
    "students/s", "model", "STS13", SPEARMAN, 79.5, "FNWN", 189, Interval(75.0, 83.0), 98.1, -1.5, Interval(-3.0, 0.1)
)
PACKAGE = Path(sentcompress.__file__).parent
# Sizes are facts of a model too, training has a speed and a peak of its own, and alignment is a word.
FACTS = {"parameters", "weight_bytes", "alignment", "uniformity", "sentences_per_second", "peak_memory_bytes"}


def written(score: Score) -> Any:
    """As a document holds it."""
    return json.loads(json.dumps(score.as_dict(), allow_nan=False))


def test_what_is_written_is_read_again() -> None:
    assert Score.from_dict(written(FULL)) == FULL
    bare = Score("model:t", "compare", "", SPEED, 100.0)
    assert written(bare) == {"model": "model:t", "role": "compare", "data": "", "metric": SPEED, "value": 100.0}
    assert Score.from_dict(written(bare)) == bare


def test_not_defined_becomes_null_and_not_measured_is_left_out() -> None:
    undefined = Score("s", "model", "STS13", SPEARMAN, math.nan, interval=NO_INTERVAL, kept=math.nan)
    document = written(undefined)
    assert (document["value"], document["interval"], document["kept"]) == (None, [None, None], None)
    assert "difference" not in document
    again = Score.from_dict(document)
    assert math.isnan(again.value)
    assert again.interval is not None
    assert all(map(math.isnan, again.interval))
    assert again.kept is not None
    assert again.difference is None
    assert finite(undefined.as_dict()) == undefined.as_dict()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"metric": "bleu"}, "there is no metric 'bleu'"),
        ({"metric": ["spearman_cosine"]}, "metric of a score is not text"),
        ({"model": None}, "model of a score is not text"),
        ({"value": "79"}, "value of a score is not a number"),
        ({"value": True}, "value of a score is not a number"),
        ({"value": 10**400}, "value of a score is not a number"),
        ({"count": 1.5}, "count of a score is not a whole number"),
        ({"interval": [1.0]}, "interval of a score is not a pair"),
        ({"interval": "12"}, "interval of a score is not a pair"),
        ({"difference_interval": [1.0, "2"]}, "difference_interval of a score is not a number"),
        ({"colour": "red"}, "fields of a score"),
    ],
)
def test_what_nobody_writes_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Score.from_dict(written(FULL) | change)
    for missing in ("model", "role", "data", "metric", "value"):
        with pytest.raises(ValueError, match="score"):
            Score.from_dict({key: value for key, value in written(FULL).items() if key != missing})


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=8))
def test_any_document_is_read_or_refused(value: Any) -> None:
    for document in ({"scores": value}, {"scores": [written(FULL) | {"interval": value}]}, {"scores": [value]}):
        try:
            found = read_scores(document)
        except ValueError:
            continue
        assert all(isinstance(score, Score) for score in found)


def test_huge_numbers_of_json_are_refused() -> None:
    document = parse_json('{"scores": [{"model": "s", "role": "model", "data": "", "value": 1e999}]}', "it")
    with pytest.raises(ValueError, match="score"):
        read_scores(document)


def test_a_recorder_gives_the_model_what_it_keeps_of_the_other() -> None:
    recorder = Recorder({"model": "students/s", "compare": "model:t"})
    recorder.add("scifact", NDCG, {"model": 57.0, "compare": 60.0}, part="flat", count=9)
    recorder.add("STS-B", UNIFORMITY, {"model": -2.0, "compare": -2.5}, shared=False)
    ours, theirs, spread, _ = recorder.scores
    assert (ours.model, ours.kept, ours.difference) == ("students/s", 95.0, -3.0)
    assert (theirs.model, theirs.kept, theirs.difference) == ("model:t", None, None)
    assert (spread.kept, spread.difference) == (None, 0.5)
    assert value_of(recorder.scores, NDCG, "scifact", "flat", "compare") == 60.0
    assert select(recorder.scores, role="compare", metric=NDCG) == [theirs]
    with pytest.raises(KeyError, match=INDEX_BYTES):
        value_of(recorder.scores, INDEX_BYTES)


def test_a_share_has_no_value_for_a_reference_of_zero_or_less() -> None:
    assert share_kept(80.0, 100.0) == 80.0
    undefined = [(80.0, 0.0), (80.0, -3.0), (50.0, 5e-324), (50.0, math.nan), (math.nan, 50.0)]
    assert all(math.isnan(share_kept(*pair)) for pair in undefined)


def test_sizes_of_models_are_scores_too() -> None:
    recorded = {"dimension": 128, "parameters": 17_000_000, "weight_bytes": None, "label": "s"}
    assert sizes_of(recorded) == {PARAMETERS: 17_000_000, VECTOR_BYTES: 512}
    found = size_scores({"model": "s", "compare": "t"}, {"model": sizes_of(recorded), "compare": {VECTOR_BYTES: 1536}})
    assert [(score.metric, score.role, score.kept) for score in found] == [
        (PARAMETERS, "model", None),
        (VECTOR_BYTES, "model", pytest.approx(100 / 3)),
        (VECTOR_BYTES, "compare", None),
    ]
    assert not size_scores({"model": "s", "compare": "t"}, {"model": {}, "compare": {WEIGHT_BYTES: 3}})


def test_metrics_are_printed_with_label_unit_and_decimals() -> None:
    assert [METRICS[name].title for name in (NDCG, INDEX_BYTES, SPEED, UNIFORMITY)] == [
        "nDCG@10 x 100",
        "index size",
        "encoding (sentences/s)",
        "uniformity",
    ]
    shown = [METRICS[name].show(value) for name, value in ((NDCG, 57.123), (INDEX_BYTES, 69_700_000), (SPEED, 1234.56))]
    assert shown == ["57.12", "69.7 MB", "1,234.6"]
    assert METRICS[SPEARMAN].show(math.nan) == "not defined"


@pytest.mark.parametrize("name", sorted(set(METRICS) - FACTS))
def test_the_name_of_a_metric_stands_in_one_file(name: str) -> None:
    quoted = re.compile(rf"[\"']{name}[\"']")
    users = [path.name for path in PACKAGE.rglob("*.py") if quoted.search(path.read_text(encoding="utf-8"))]
    assert users in ([], ["metrics.py"])
