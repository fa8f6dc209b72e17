"""Plans of `compress` as their files have them, written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sentcompress.compression.plan_file import PlanFile

TITLE = 'title = "docs"\n'
SPLIT = """
[[stage]]
command = "split-documents"
name = "docs"
"""
TRAININGS = """
[[stage]]
command = "distill"
max-minutes = 2.0
name = "docs-1-1"

[[stage]]
command = "distill"
sentences = "docs"
max-minutes = 5.0
name = "docs-last"
"""
BENCH = """
[[stage]]
command = "bench"
max-minutes = 1.5
name = "docs-speed"
"""


def write_plan(folder: Path, recipe: str, request: dict[str, Any], since: str = "", **others: Any) -> Path:
    """The file of a plan for ten minutes, with one line in words; `others` are further fields of its head."""
    path = folder / "docs.toml"
    head = PlanFile(request, 600.0, since, (), (), **others).head
    path.write_text(f"{head}\n# Read 3 documents\n{recipe}", encoding="utf-8")
    return path
