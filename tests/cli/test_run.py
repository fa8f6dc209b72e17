"""The table of published and measured figures."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from sentcompress.cli import render, run
from sentcompress.recipes.measured import Measured
from sentcompress.recipes.rows import Row


def test_published_figures_fit_into_eighty_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = "HPD-TinyBERT-128, teacher SimCSE-RoBERTa-large"
    row = Row(table="HPD, Table 1", model=model, of="small", metric="STS mean", score=81.02)
    plot = Row(table="IBKD, Figure 4", model="covariance", of="small", metric="correlation of dimensions")
    rows = [
        Measured(row, 80.5),
        Measured(row, 79.0, "split dev"),
        Measured(row, None, "not all 7 sets were scored"),
        Measured(row, 78.0, "split dev"),
        Measured(plot, 0.1),
    ]
    shown = io.StringIO()
    monkeypatch.setattr(render, "stdout", lambda: Console(file=shown, width=80))
    run._print_rows(rows)
    lines = shown.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split() for line in lines if "published" in line] == [
        ["row", "metric", "published", "measured", "difference"]
    ]
    ends = [line.split()[-3:] for line in lines if "81.02" in line]
    assert ends == [
        ["81.02", "80.50", "-0.52"],
        ["81.02", "79.00", "(1)"],
        ["81.02", "-", "(2)"],
        ["81.02", "78.00", "(1)"],
    ]
    assert capsys.readouterr().out == "(1) not compared: split dev\n(2) not all 7 sets were scored\n"
