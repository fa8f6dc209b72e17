"""The document of an evaluation is JSON for every reader."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from sentcompress.evaluation.results import FILE, write_result
from sentcompress.store import Request, WorkDirectory


def test_figures_that_are_not_defined_become_null(tmp_path: Path) -> None:
    with WorkDirectory(tmp_path).build(Request("evaluations", "e", "eval-sts", {})) as build:
        artifact = write_result(build, {"score": 1.5, "interval": [np.float64("nan"), float("inf")]})
    wanted = {"score": 1.5, "interval": [None, None]}
    assert json.loads((artifact.path / FILE).read_text()) == wanted
    assert artifact.facts == wanted
    assert "NaN" not in (artifact.path / "manifest.json").read_text()
