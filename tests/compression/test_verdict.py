"""The sentence of a verdict tells one search fidelity: that of what is deployed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import report_works as works

from sentcompress.compression.verdict import Achieved, faster, verdict_of
from sentcompress.evaluation.metrics import SPEED
from sentcompress.evaluation.score import Interval, Recorder

ACHIEVED = Achieved(
    "exports/docs",
    *(9_490_000, 90_900_000, 128, 1536),
    *(84.26, Interval(83.5, 85.0), "130 documents"),
    *(3.8, None, 73.4, 98.8, "g.onnx"),
)


def test_the_sentence() -> None:
    assert ACHIEVED.sentence == (
        "The model is 9.49 MB instead of 90.9 MB and 3.8 times as fast; a vector is 128 bytes instead of 1,536. As "
        "deployed, its search fidelity to the teacher is 84.3 out of 100 (95% interval over 130 documents: 83.5 "
        "to 85.0)."
    )


def test_the_results_in_words() -> None:
    assert ACHIEVED.results == (
        "Of the teacher's ten results for a query, 7.3 are among the model's ten on average; the teacher's first "
        "result is among them for 99% of the queries."
    )
    assert "for 99% of the queries" in dataclasses.replace(ACHIEVED, first_found=99.9).results
    assert "for 100% of the queries" in dataclasses.replace(ACHIEVED, first_found=100.0).results


def test_what_a_search_fidelity_means_is_told_unless_judged_queries_tell_it(tmp_path: Path) -> None:
    """84 out of 100 sounds like a loss of a sixth."""
    work = works.compressed(tmp_path / "work")
    made = {"export": work.get("exports", "docs"), "eval-search": work.get("evaluations", "docs-search")}
    found = verdict_of(made)
    assert found is not None
    assert ". As a rule of thumb: good for most uses; models of this level kept " in found.results
    assert "rule of thumb" not in dataclasses.replace(found, judged=97.06).results
    few = works.search(work, made["export"], "few", 92.0, passages=1999)
    among_few = verdict_of({**made, "eval-search": few})
    assert among_few is not None
    assert "rule of thumb" not in among_few.results, "search fidelity is higher among fewer passages"


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
    assert ACHIEVED.larger_than(9_400_000).startswith("the model is 9.49 MB, more than the 9.4 MB allowed: ")
    told = "the model is 9,490,000 bytes, more than the 9,487,000 allowed: "
    assert ACHIEVED.larger_than(9_487_000).startswith(told), "both would be rounded to 9.49 MB"


def test_the_figures_are_those_of_the_last_stages(tmp_path: Path) -> None:
    work = works.compressed(tmp_path / "work")
    made = {"export": work.get("exports", "docs"), "eval-search": work.get("evaluations", "docs-search")}
    found = verdict_of({**made, "bench": work.get("evaluations", "bench-docs")})
    assert found is not None
    assert (found.bytes, found.teacher_bytes) == (1_000_000, 9_000_000)
    assert (found.vector_bytes, found.teacher_vector_bytes) == (2, 4 * 6)
    assert (found.fidelity, found.interval, found.shared) == (92.0, Interval(91.0, 93.0), 83.0)
    assert found.resampled == "130 documents"
    assert (found.faster, found.judged, found.keep_index) == (3.0, None, False)
    assert found.graph == str(made["export"].path / "onnx" / "sentence_embedding_int8.onnx")
    assert verdict_of({"export": made["export"]}) is None
    assert verdict_of({**made, "eval-search": work.get("evaluations", "docs-last-trial")}) is None, "of another model"


def test_what_limits_the_figures_is_told(tmp_path: Path) -> None:
    work = works.compressed(tmp_path / "work")
    export = work.get("exports", "docs")
    kept = works.trained(work, "kept", "general-9m", best_step=0)
    search = works.search(work, export, "few", 92.0, cautions=["only 40 queries: see the interval"])
    made = {"export": export, "eval-search": search, "distill": work.get("students", "docs-last")}
    few, found = verdict_of(made), verdict_of({**made, "distill": kept})
    assert few is not None
    assert found is not None
    assert few.caution == "Only 40 queries: see the interval."
    assert found.caution == (
        "Only 40 queries: see the interval; the last training did not improve the model, so it is the one that "
        "this training started from."
    )
    assert ACHIEVED.caution == ""


def test_the_fastest_runtime_is_compared_with_the_teacher_in_float32(tmp_path: Path) -> None:
    work = works.compressed(tmp_path / "work")
    of = work.get("exports", "docs")
    models = {"model": works.described(of), "compare": works.TEACHER}
    recorder = Recorder({role: model["reference"] for role, model in models.items()})
    for runtime, mine, theirs in (("float32", 30.0, 10.0), ("onnx", 50.0, 25.0)):
        recorder.add("", SPEED, {"model": mine, "compare": theirs}, part=runtime)
    facts = works.document("bench", models, recorder, runtimes=[])
    assert faster(works.make(work, "evaluations", "two", "bench", facts)) == pytest.approx(5)
