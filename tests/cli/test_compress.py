"""What `compress` prints at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentcompress.cli import compress
from sentcompress.cli.call import Call
from sentcompress.commands.compress import Params
from sentcompress.compression.verdict import Achieved
from sentcompress.stages.compress import Result


def test_the_end_names_the_model_and_a_search_of_its_own_documents(capsys: pytest.CaptureFixture[str]) -> None:
    figures = (9_490_000, 90_900_000, 1536, 1536, 84.26, None, "", 3.8, None, 73.4, 98.8)
    verdict = Achieved("w/exports/my docs", *figures, "w/exports/my docs/onnx/int8.onnx", cautions=["few"])
    result = Result("my docs", Path("w/plans/my docs.toml"), [], 300.0, verdict, Path("w/report/report.html"))
    call = Call(Params(inputs=("docs/",), keep_index=True), Path("w"))
    # The newest documents may be another collection's, of a dry run for example.
    assert compress.show(result, call) == (
        "sentcompress search 'your query' --collection 'documents/my docs' --model 'exports/my docs' "
        "--compare embedded --keep-index --work w"
    )
    assert capsys.readouterr().out.splitlines() == [
        verdict.sentence,
        verdict.results,
        "Few.",
        "Model: w/exports/my docs",
        "Int8 graph: w/exports/my docs/onnx/int8.onnx (to run it, see README.md in the model's folder)",
        "Report: w/report/report.html",
        "Plan: w/plans/my docs.toml, run in 5 min",
    ]


def test_without_a_verdict_only_the_plan_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    plan = ["Read 2 documents (choose with `column`)", "60 s: encode all texts with the teacher"]
    result = Result("docs", Path("w/plans/docs.toml"), plan, 300.0)
    dry, edited = (Call(Params(inputs=("docs/",), dry_run=dry), Path("w")) for dry in (True, False))
    assert compress.show(result, dry) == "the same command without --dry-run"
    assert capsys.readouterr().out.splitlines() == [
        "Read 2 documents (choose with --column)",
        plan[1],
        "Plan: w/plans/docs.toml",
    ]
    assert compress.show(result, edited) == "sentcompress report --work w"
    assert capsys.readouterr().out == "Plan: w/plans/docs.toml, run in 5 min\n"
