"""The one table of every evaluation."""

from __future__ import annotations

import math

from sentcompress.evaluation.metrics import ACCURACY, F1, INDEX_BYTES, NDCG, SPEARMAN, SPEED
from sentcompress.evaluation.score import MEAN, Difference, Interval, Recorder
from sentcompress.evaluation.tables import grid, kept_or_gained, short, table, table_of_models

LABELS = {"model": "work/small", "compare": "owner/big"}


def recorder() -> Recorder:
    return Recorder({"model": "students/small", "compare": "model:owner/big"})


def test_a_comparison_has_a_row_for_each_data_set() -> None:
    found = recorder()
    intervals = {"model": Interval(78.0, 82.0), "compare": Interval(80.0, 84.0)}
    for data, ours in (("STS-B", 81.0), (MEAN, 80.0)):
        difference = Difference(ours - 82, Interval(-2.0, 0.5))
        values = {"model": ours, "compare": 82.0}
        found.add(data, SPEARMAN, values, count=1379, intervals=intervals, difference=difference)
    columns, rows = table(found.scores, LABELS, "set")
    assert columns == ["set", "count", "small", "95%", "big", "95%", "difference", "95%", "kept"]
    assert rows == [
        ["STS-B", "1,379", "81.00", "78.00 to 82.00", "82.00", "80.00 to 84.00", "-1.00", "-2.00 to +0.50", "98.8%"],
        ["mean of the sets", "1,379", "80.00", *rows[0][3:6], "-2.00", "-2.00 to +0.50", "97.6%"],
    ]


def test_columns_that_would_be_empty_are_left_out() -> None:
    found = Recorder({"model": "students/small"})
    found.add("MR", ACCURACY, {"model": 75.0})
    assert table(found.scores, {"model": "small"}, "task") == (["task", "small"], [["MR", "75.00"]])


def test_rows_are_told_apart_by_what_differs() -> None:
    found = recorder()
    found.add("MRPC", ACCURACY, {"model": 75.0})
    found.add("MRPC", F1, {"model": 82.0})
    found.add("TREC", ACCURACY, {"model": 90.0})
    _, rows = table(found.scores, LABELS)
    assert [row[0] for row in rows] == ["MRPC, accuracy x 100", "MRPC, F1 x 100", "TREC, accuracy x 100"]
    parts = recorder()
    for part in ("exact search", "flat"):
        parts.add("scifact", NDCG, {"model": 57.0}, part=part)
    assert [row[0] for row in table(parts.scores, LABELS)[1]] == ["exact search", "flat"]


def test_what_is_not_defined_is_said() -> None:
    found = recorder()
    undefined = Difference(math.nan, Interval(math.nan, math.nan))
    values = {"model": math.nan, "compare": 80.0}
    found.add("STS13", SPEARMAN, values, difference=undefined)
    _, (row,) = table(found.scores, LABELS)
    assert row == ["STS13", "not defined", "80.00", "not defined", "not defined", "not defined"]


def test_sizes_and_times_are_ratios_and_those_near_one_are_not_shown() -> None:
    found = recorder()
    found.add("", INDEX_BYTES, {"model": 100, "compare": 300}, part="flat")
    found.add("", INDEX_BYTES, {"model": 100, "compare": 103}, part="ivf")
    found.add("", INDEX_BYTES, {"model": 150, "compare": 100}, part="hnsw")
    found.add("", SPEED, {"model": 300.0, "compare": 100.0}, part="float32")
    found.add("", SPEED, {"model": 0.0, "compare": 100.0}, part="onnx")
    ours = [score for score in found.scores if score.role == "model"]
    expected = ["3.00x smaller", "", "1.50x larger", "3.00x faster", "not defined"]
    assert [kept_or_gained(score) for score in ours] == expected
    columns, _ = table(found.scores[:2], LABELS)
    assert columns == ["data", "small", "big", "gained"]


def test_several_models_stand_in_one_table_below_the_one_they_are_compared_with() -> None:
    first, second = recorder(), Recorder({"model": "students/tiny", "compare": "model:owner/big"})
    for found, ours in ((first, 81.0), (second, 75.0)):
        for data in ("STS-B", "STS13"):
            found.add(data, SPEARMAN, {"model": ours, "compare": 82.0}, count=9)
    names = {"students/small": "small", "students/tiny": "tiny", "model:owner/big": "big"}
    columns, rows = table_of_models([*first.scores, *second.scores], names, "set")
    assert columns == ["set", "model", "count", "Spearman x 100", "difference", "kept"]
    assert [row[:2] for row in rows] == [[d, m] for d in ("STS-B", "STS13") for m in ("big", "small", "tiny")]
    assert [row[3:] for row in rows[:3]] == [
        ["82.00", "", ""],
        ["81.00", "-1.00", "98.8%"],
        ["75.00", "-7.00", "91.5%"],
    ]


def test_a_grid_has_a_column_for_each_metric() -> None:
    found = recorder()
    for part in ("flat", "ivf"):
        found.add("scifact", NDCG, {"model": 57.0, "compare": 60.0}, part=part)
    found.add("scifact", INDEX_BYTES, {"model": 1500}, part="ivf")
    columns, rows = grid(found.scores, {"model": "small", "compare": "big"})
    assert columns == ["index", "model", "nDCG@10 x 100", "index size"]
    assert rows == [
        ["flat", "small", "57.00", ""],
        ["flat", "big", "60.00", ""],
        ["ivf", "small", "57.00", "1.5 kB"],
        ["ivf", "big", "60.00", ""],
    ]


def test_a_label_is_short_without_its_owner() -> None:
    assert [short(label) for label in ("owner/big", "/models/big/", "big")] == ["big"] * 3
