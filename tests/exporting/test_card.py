"""The model card with hostile names in everything that it tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import report_works
from markdown_it import MarkdownIt

from sentcompress.exporting.card import Card
from sentcompress.exporting.lineage import Table
from sentcompress.models.layout import load_encoder
from sentcompress.models.sources import resolve
from sentcompress.store import WorkDirectory

EVIL = "<img src=x onerror=alert(1)>|`a`\n\n# [head](javascript:x)\n---\n\x1b[2J*b*"


@pytest.fixture
def card(tmp_path: Path, tiny_model: Path) -> str:
    work = WorkDirectory(tmp_path / "work")
    recipe = {EVIL: {"value": EVIL, "source": EVIL}}
    facts = {"method": EVIL, "student": EVIL, "teacher": EVIL, "recipe": recipe}
    inputs = {f"file:/data/{EVIL}": "1" * 64, f"model:{EVIL}": "2" * 64}
    name = EVIL.split("\n")[0]
    student = report_works.make(work, "students", name, "distill", facts, inputs, method=EVIL, student=EVIL)
    cosines = {"texts": 3, "min_cosine": 1.0, "mean_cosine": 1.0}
    facts_of_export: dict[str, Any] = {
        "dimension": 32,
        "parameters": 10,
        "bytes": {EVIL: 3},
        "checked": {"folder": cosines, "onnx": cosines},
        "formats": {"folder": {"title": "the folder", "files": []}, "onnx": {"title": EVIL, "files": [EVIL]}},
        "sts": [{"set": EVIL, "pairs": 3, "onnx": 1.0}],
    }
    measured = [Table(EVIL, ["set", EVIL], [[EVIL, "1.00"]], f"sentcompress {EVIL}", [(EVIL, "spearman_cosine", 1.0)])]
    encoder = load_encoder(resolve(str(tiny_model)))
    return Card(name, encoder, facts_of_export, [student], EVIL, measured).render()


def body(card: str) -> str:
    return MarkdownIt("commonmark").enable("table").render(card.split("\n---\n", 1)[1])


def test_no_name_is_html_or_markup(card: str) -> None:
    html = body(card)
    assert "<img" not in html
    assert "<a " not in html
    assert "<em>" not in html
    assert "onerror" in html  # it is shown
    assert "\x1b" not in card
    heads = [line for line in html.splitlines() if line.startswith("<h")]
    assert [head[:3] for head in heads] == ["<h1"] + ["<h2"] * (len(heads) - 1)


def test_tables_keep_their_cells(card: str) -> None:
    for table in body(card).split("<table>")[1:]:
        rows = table.split("</table>")[0].split("<tr>")[1:]
        assert len({row.count("<td") + row.count("<th") - row.count("<thead") for row in rows}) == 1


def test_the_front_matter_is_yaml_that_gives_the_names_back(card: str) -> None:
    yaml = pytest.importorskip("yaml")
    front = yaml.safe_load(card[4:].split("\n---\n")[0])
    (result,) = front["model-index"][0]["results"]
    assert result["dataset"]["name"] == EVIL
    assert front["model-index"][0]["name"] == EVIL.split("\n")[0]
