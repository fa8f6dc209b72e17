"""Write the generated parts of docs/papers.md: what of the papers' tables has a recipe, and what ran in miniature.

python scripts/write_paper_docs.py

The tables are in recipes/published, the miniature's results in benchmarks/results/paper_rows.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from generated_parts import table, update

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "papers.md"
PUBLISHED = ROOT / "recipes" / "published"
RESULTS = ROOT / "benchmarks" / "results" / "paper_rows.json"
NONE = "-"


class Published(NamedTuple):
    """One row of a paper's table, with the recipe and variant that make it."""

    place: str
    row: str
    recipe: str
    variant: str
    why: str

    @property
    def key(self) -> str:
        """The recipe and the variant, as the miniature names them."""
        return self.recipe if self.variant == NONE else f"{self.recipe} {self.variant}"


def read_published() -> list[Published]:
    """All rows, in the order of the files."""
    return [row for path in sorted(PUBLISHED.glob("*.tsv")) if path.stem != "settings" for row in _read(path)]


def _read(path: Path) -> Iterable[Published]:
    lines = path.read_text(encoding="utf-8").splitlines()
    place = next(line.removeprefix("# place: ") for line in lines if line.startswith("# place: "))
    cells_of_lines = [line.split("\t") for line in lines if not line.startswith("#")]
    for cells in cells_of_lines[1:]:
        row = dict(zip(cells_of_lines[0], [*cells, *[""] * (len(cells_of_lines[0]) - len(cells))], strict=True))
        yield Published(place, row["row"], row["recipe"], row["variant"], row["why"])


def generated() -> dict[str, str]:
    """Name of a part -> its Markdown."""
    document = json.loads(RESULTS.read_text(encoding="utf-8"))
    results = document["variants"]
    told = (
        f"The table compares the order of the rows after {document['steps']} steps with the paper's: how many pairs of "
        "rows agree,\nand the two pairs with the largest published difference that do not.\n\n"
    )
    return {"coverage": _coverage(read_published(), results), "rows": told + _rows(results)}


def _coverage(published: Sequence[Published], results: Mapping[str, Mapping[str, Any]]) -> str:
    lines = []
    for place in dict.fromkeys(row.place for row in published):
        rows = [row for row in published if row.place == place]
        recipes = ", ".join(f"`{name}`" for name in dict.fromkeys(row.recipe for row in rows) if name != NONE)
        ran = sum("rows" in results.get(row.key, {}) for row in rows)
        lines.append([place, str(len(rows)), recipes, str(ran), _why_not(rows, results)])
    return _table(["table or figure", "rows", "recipes", "run in miniature", "not run, and why"], lines)


def _why_not(rows: Sequence[Published], results: Mapping[str, Mapping[str, Any]]) -> str:
    reasons = [f"{row.row}: {row.why}" for row in rows if row.recipe == NONE]
    for row in rows:
        if row.recipe != NONE and "rows" not in results.get(row.key, {}):
            reasons.append(f"{row.row}: {results.get(row.key, {}).get('why', 'not run')}")
    return "; ".join(reasons)


def _rows(results: Mapping[str, Mapping[str, Any]]) -> str:
    """For each table: how many pairs of its rows are in the paper's order, and the pairs that are not.

    Pairs of students that both stayed at their start say nothing and are left out.
    """
    tables: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for result in results.values():
        for row in (row for row in result.get("rows", ()) if "table" in row):
            tables.setdefault((row.get("table", ""), row["metric"]), []).append(row)
    lines = []
    for (place, metric), rows in sorted(tables.items()):
        both = [row for row in rows if row.get("score") is not None and row.get("measured") is not None]
        told = [(a, b) for a, b in combinations(both, 2) if not ("unchanged" in a and "unchanged" in b)]
        pairs = [(a, b) for a, b in told if a["score"] != b["score"]]
        wrong = [pair for pair in pairs if (pair[0]["score"] > pair[1]["score"]) != _above(*pair)]
        wrong.sort(key=lambda pair: -abs(pair[0]["score"] - pair[1]["score"]))
        furthest = "; ".join(f"{a['model']} / {b['model']}" for a, b in wrong[:2])
        if pairs:
            lines.append([place, metric, f"{len(pairs) - len(wrong)} of {len(pairs)}", furthest])
    return _table(["table", "metric", "pairs of rows in the paper's order", "furthest out of order"], lines)


def _above(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool(one["measured"] > other["measured"])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return f"\n{table(head, rows)}\n"


if __name__ == "__main__":
    update(TARGET, generated())
