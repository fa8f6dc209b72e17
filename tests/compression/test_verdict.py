"""The sentence of a verdict tells one search fidelity: that of what is deployed."""

from __future__ import annotations

import dataclasses

from sentcompress.compression.verdict import Achieved
from sentcompress.evaluation.score import Interval

ACHIEVED = Achieved(
    "exports/docs", 9_490_000, 90_900_000, 128, 1536, 84.26, Interval(83.5, 85.0), 3.8, None, 73.4, 98.8, "g.onnx"
)


def test_the_sentence() -> None:
    assert ACHIEVED.sentence == (
        "The model is 9.49 MB instead of 90.9 MB and 3.8 times as fast; a vector is 128 bytes instead of 1,536. As "
        "deployed, its search fidelity to the teacher is 84.3 out of 100 (95% interval 83.5 to 85.0)."
    )


def test_the_results_in_words() -> None:
    assert ACHIEVED.results == (
        "Of the teacher's ten results for a query, 7.3 are among the model's ten on average; the teacher's first "
        "result is among them for 99% of the queries."
    )


def test_the_judged_share_tells_that_its_vectors_are_not_stored() -> None:
    judged = dataclasses.replace(ACHIEVED, judged=97.06)
    assert judged.sentence.endswith("to 85.0); on your judged queries, it keeps 97.1% of nDCG@10 (float32 vectors).")
    float32 = dataclasses.replace(judged, vector_bytes=1536)
    assert "a vector is 1,536 bytes instead of 1,536" in float32.sentence
    kept = dataclasses.replace(float32, keep_index=True)
    assert kept.sentence.endswith("to 85.0); on your judged queries, it keeps 97.1% of nDCG@10.")
    assert "; it searches vectors of the teacher. As deployed" in kept.sentence


def test_a_model_that_is_larger_than_allowed_is_told() -> None:
    assert ACHIEVED.larger_than(9_490_000) == ""
    assert ACHIEVED.larger_than(9_400_000).startswith("the model is 9.49 MB, and 9.4 MB were allowed: ")
