"""Write the generated part of recipes/README.md: the recipes with their variants and published rows.

python scripts/write_recipe_docs.py

All other text of the page is written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from generated_parts import table, update

from sentcompress.recipes.document import Recipe, read_recipe
from sentcompress.recipes.rows import Row

FOLDER = Path(__file__).resolve().parents[1] / "recipes"
TARGET = FOLDER / "README.md"


def generated() -> dict[str, str]:
    """Name of a part -> its Markdown."""
    recipes = [_read(path) for path in sorted(FOLDER.glob("*.toml"))]
    published = [recipe for recipe in recipes if recipe.variants or any(row.table for row in recipe.rows)]
    ours = [recipe for recipe in recipes if recipe not in published]
    return {"papers": "\n".join(map(_section, published)), "ours": table(["recipe", "student"], _of_ours(ours))}


def _read(path: Path) -> Recipe:
    recipe, faults = read_recipe(path)
    if faults:
        raise SystemExit(f"{path}: {faults[0]}")
    return recipe


def _section(recipe: Recipe) -> str:
    rows = [
        [name or "-", "<br>".join(_places(found.rows)), "<br>".join(_figures(found.rows))]
        for name in recipe.variants or [None]
        for found in [recipe.of_variant(name)]
    ]
    return f"### {recipe.path.stem}\n\n[{recipe.path.name}]({recipe.path.name})\n\n" + table(
        ["variant", "rows", "published"], rows
    )


def _places(rows: Sequence[Row]) -> Iterator[str]:
    """The place of each row of a paper, once."""
    yield from dict.fromkeys(f"{row.table}: {row.model}" if row.table else row.model for row in rows)


def _figures(rows: Sequence[Row]) -> Iterator[str]:
    """The published figures, each metric's once."""
    figures = dict.fromkeys(f"{row.metric} {row.score:.2f}" for row in rows if row.score is not None)
    yield from figures or ["-"]


def _of_ours(recipes: Sequence[Recipe]) -> list[list[str]]:
    return [[f"[{recipe.path.stem}]({recipe.path.name})", recipe.rows[0].model] for recipe in recipes]


if __name__ == "__main__":
    update(TARGET, generated())
