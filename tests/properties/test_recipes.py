"""Recipes, through the same path as `sentcompress run --dry-run`."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from properties.contract import kept
from properties.mutations import EXTREMES, mutated
from properties.test_text_readers import write

from sentcompress.cli.line import execute
from sentcompress.commands import find_command

HEAD = (
    'title = "A chain of ${dim}"\npaper = "Nobody 2020"\n\n[values]\ndim = 8\nscored = true\n\n'
    '[[row]]\ntable = "results"\nof = "main"\nmetric = "STS mean"\nscore = 81.5\n'
)
INPUTS = '\n[inputs]\ntext = "sentences"\nsts = { about = "graded pairs", optional = true }\n'
STAGES: tuple[dict[str, Any], ...] = (
    {"command": "augment", "inputs": ["${text}"], "wordnet": 0, "back-translate": 0, "name": "lines"},
    {"command": "teacher-embed", "teacher": "embedded", "sentences": "lines", "name": "vectors", "dtype": "float32"},
    {"command": "fit-pca", "teacher-vectors": "vectors", "dim": "${dim}", "name": "pca"},
    {"command": "distill", "method": "hpd", "student": "teacher:1", "projection": "pca", "lr": 5e-4, "name": "main"},
    {"command": "finetune", "objective": "simcse", "model": "main", "set": {"temperature": 0.05}, "name": "tuned"},
    {"command": "eval-sts", "if": "scored", "sts": ["${sts}"], "model": "main", "bootstrap": 0},
    {"command": "eval-retrieval", "pairs": "q.tsv", "index": "flat,ivf", "model": "main"},
    {"command": "average", "inputs": ["main", "tuned"], "weights": [1, 2], "name": "c"},
    {"command": "mine-negatives", "pairs": "q.tsv", "negatives": 3, "name": "mined"},
    {"command": "export", "model": "main", "format": "folder", "name": "out"},
    {"command": "bench", "model": "main", "runtimes": ["float32"], "name": "speed"},
)
ODD = (
    "nan",
    "inf",
    "-inf",
    "1e999",
    "2020-01-01",
    "12:30:00",
    "[]",
    "{}",
    "[[1], ['a']]",
    "true",
    "-1",
    "0",
    "1.5",
    "none",
)
odd_values = st.one_of(
    st.sampled_from(ODD),
    st.integers(-(10**30), 10**30).map(str),
    st.sampled_from(EXTREMES).map(json.dumps),
    st.text(max_size=8).map(json.dumps),
)


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)


def document(stages: list[dict[str, str]]) -> str:
    tables = ("\n[[stage]]\n" + "".join(f"{key} = {value}\n" for key, value in one.items()) for one in stages)
    return HEAD + INPUTS + "".join(tables)


VALID = document([{key: toml(value) for key, value in one.items()} for one in STAGES])


@st.composite
def with_odd_values(draw: st.DrawFn) -> bytes:
    """Valid TOML, a few of whose values are not what their options want."""
    stages = [{key: toml(value) for key, value in one.items()} for one in STAGES[: draw(st.integers(1, len(STAGES)))]]
    for _ in range(draw(st.integers(0, 4))):
        one = draw(st.sampled_from(stages))
        one[draw(st.sampled_from(sorted(one)))] = draw(odd_values)
    return document(stages).encode("utf-8", "surrogatepass")


def dry_run(path: Path) -> str:
    """What `sentcompress run --dry-run` prints, first with `--json`."""
    work = path.parent / "work"
    values = {"recipe": str(path), "inputs": [f"text={path}"], "dry_run": True}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        execute(find_command("run"), values, work=str(work), as_json=True, quiet=True)
        assert "NaN" not in printed.getvalue()
        execute(find_command("run"), values, work=str(work), as_json=False, quiet=True)
    assert not work.exists()
    return printed.getvalue()


@given(with_odd_values() | mutated(VALID.encode(), b" "))
@example(b"a = " + b"[" * 3000)
@example(b"a = " + b"9" * 5000)
@example(VALID.replace("back-translate = 0", 'back-translate = "' + "9" * 5000 + '"').encode())
@example(VALID.replace('"embedded"', '"' + "9" * 400 + '"').encode())
@example(b"[" + b"a." * 50_000 + b"a]\n")
@example((HEAD.replace("81.5", "nan") + document([])[len(HEAD) :]).encode())
@example((HEAD + "note = 2020-01-01\n" + VALID[len(HEAD) :]).encode())
def test_recipes(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, content, "a.toml")
    kept(lambda: dry_run(path), path)


def test_the_recipe_that_is_damaged_has_no_faults_before(tmp_path: Path) -> None:
    printed = dry_run(write(tmp_path, VALID.encode(), "a.toml"))
    assert printed.count("sentcompress distill") == 1
    assert json.loads(printed[: printed.rindex("}") + 1])["rows"][0]["score"] == 81.5
