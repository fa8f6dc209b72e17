"""What `compress` prints at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentcompress.cli import compress
from sentcompress.cli.line import Call
from sentcompress.commands.compress import Params
from sentcompress.compression.verdict import Achieved
from sentcompress.stages.compress import Result


def test_the_end_names_the_model_and_a_search_of_its_own_documents(capsys: pytest.CaptureFixture[str]) -> None:
    verdict = Achieved("w/exports/my docs", 9_490_000, 90_900_000, 1536, 1536, 84.26, None, 3.8, None, 73.4, 98.8)
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
        "Model: w/exports/my docs",
        "Report: w/report/report.html",
        "Plan: w/plans/my docs.toml, run in 5 min",
    ]
