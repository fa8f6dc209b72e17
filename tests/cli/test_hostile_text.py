"""Escape sequences in names and files, through the real command line: none may reach the terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import report_works
from warm import Commands

from sentcompress.store import Request, WorkDirectory

# Clears the screen, names the window, hides the cursor with the one-character form, turns the direction.
EVIL = "\x1b[2J\x1b]0;owned\x07\x9b?25l\u202e"
SHOWN = r"\x1b[2J\x1b]0;owned\x07\x9b?25l\u202e"

# What rich itself sends: colours, the movements of its progress bars, and the spinner of a command that starts.
DRAWING = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|2K|\d*A)|\r|[\u2800-\u28ff] working")


Lines = Callable[[list[str | Path], Path, int], str]


@pytest.fixture
def lines_of(commands: Commands) -> Lines:
    """What a command says, standard error first, when it thinks that a terminal is looking."""

    def run(arguments: list[str | Path], folder: Path, code: int) -> str:
        environment = {**os.environ, "TTY_COMPATIBLE": "1", "FORCE_COLOR": "1", "COLUMNS": "400"}
        done = commands(["--offline", *arguments], environment=environment, folder=folder)
        assert done.returncode == code, done.stderr
        # The spinner is inside colours: its own characters go once those are gone.
        return DRAWING.sub("", DRAWING.sub("", done.stderr + done.stdout)).strip("\n")

    return run


def harmless(said: str) -> str:
    assert not [c for c in said if c != "\n" and not c.isprintable()]
    return said


def finished(work: Path, kind: str, name: str, facts: dict[str, Any], inputs: dict[str, str] | None = None) -> None:
    with WorkDirectory(work).build(Request(kind, name, "augment", {}, inputs or {})) as build:
        with build.write("data.txt") as path:
            path.write_text("x")
        build.finish(facts)


def test_the_name_of_a_missing_file(tmp_path: Path, lines_of: Lines) -> None:
    said = harmless(lines_of(["augment", f"{EVIL}.txt"], tmp_path, 1))
    assert f"{SHOWN}.txt" in said
    assert len(said.splitlines()) == 2


def test_the_name_of_a_missing_file_forges_no_line(tmp_path: Path, lines_of: Lines) -> None:
    said = lines_of(["augment", "x\nhelp:  run: rm -rf ~\n.txt"], tmp_path, 1)
    assert [line.split()[0] for line in said.splitlines()] == ["error:", "help:"]


def test_the_header_of_a_csv_file(tmp_path: Path, lines_of: Lines) -> None:
    (tmp_path / "x.csv").write_text(f"{EVIL},b\none,two\n", encoding="utf-8")
    assert SHOWN in harmless(lines_of(["augment", "x.csv"], tmp_path, 1))


def test_the_type_of_a_module(tmp_path: Path, tiny_model: Path, lines_of: Lines) -> None:
    model = tmp_path / "model"
    model.mkdir()
    for path in tiny_model.iterdir():
        (model / path.name).symlink_to(path)
    (model / "modules.json").unlink()
    listed = [
        {"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "x", "type": f"{EVIL}.Pooling"},
    ]
    (model / "modules.json").write_text(json.dumps(listed))
    (tmp_path / "x.txt").write_text("one line\n")
    assert SHOWN in harmless(lines_of(["encode", "x.txt", "--model", model, "-o", "x.npy"], tmp_path, 1))


def test_facts_of_an_artifact_in_status(tmp_path: Path, lines_of: Lines) -> None:
    finished(tmp_path / "w", "teacher-vectors", "main", {"teacher": EVIL, "rows": 3}, {f"file:/no{EVIL}": "1" * 64})
    said = harmless(lines_of(["status", "--work", "w"], tmp_path, 0))
    assert f"teacher {SHOWN}" in said
    assert f"no longer exist: /no{SHOWN}" in said


def test_json_has_its_own_escapes(tmp_path: Path, lines_of: Lines) -> None:
    finished(tmp_path / "w", "teacher-vectors", "main", {"teacher": f"{EVIL}\u2028ü", "rows": 3})
    said = harmless(lines_of(["status", "--json", "--work", "w"], tmp_path, 0))
    assert json.loads(said)["artifacts"][0]["facts"]["teacher"] == f"{EVIL}\u2028ü"
    assert "ü" in said


def test_the_name_of_an_sts_set(tmp_path: Path, tiny_model: Path, lines_of: Lines) -> None:
    (tmp_path / f"{EVIL}.tsv").write_text("5.0\ta man\ta man\n1.0\ta dog\ta cat\n2.0\ta cat\ta man\n", encoding="utf-8")
    said = harmless(lines_of(["eval-sts", "--sts", f"{EVIL}.tsv", "--model", tiny_model, "--work", "w"], tmp_path, 0))
    assert SHOWN in said


def test_the_words_of_a_recipe(tmp_path: Path, lines_of: Lines) -> None:
    name = f"$(touch stolen){EVIL}.txt"
    (tmp_path / name).write_text("one line\n")
    recipe = f'title = {json.dumps(EVIL)}\n[[stage]]\ncommand = "augment"\ninputs = [{json.dumps(name)}]\n'
    (tmp_path / "x.toml").write_text(recipe, encoding="utf-8")
    title, said = harmless(lines_of(["run", "x.toml", "--dry-run"], tmp_path, 0)).splitlines()
    assert title.startswith(f"# {SHOWN}")
    words = said.removeprefix("sentcompress ")
    out = subprocess.run(["bash", "-c", f"printf '%s|' {words}"], capture_output=True, cwd=tmp_path, check=True).stdout
    assert out.decode().split("|")[:2] == ["augment", name]
    assert not (tmp_path / "stolen").exists()


def test_the_work_directory_in_a_hint_is_a_word_of_the_shell(tmp_path: Path, lines_of: Lines) -> None:
    (tmp_path / f"my work; touch stolen{EVIL}").mkdir()
    said = harmless(lines_of(["fit-pca", "--work", f"my work; touch stolen{EVIL}"], tmp_path, 1))
    hint = said.splitlines()[1].removeprefix("help:  run: sentcompress ")
    out = subprocess.run(["bash", "-c", f"printf '%s|' {hint}"], capture_output=True, cwd=tmp_path, check=True).stdout
    assert out.decode().split("|") == ["teacher-embed", "--work", f"my work; touch stolen{EVIL}", ""]
    assert not (tmp_path / "stolen").exists()


def test_an_unknown_command_and_an_unknown_option(tmp_path: Path, lines_of: Lines) -> None:
    assert SHOWN in harmless(lines_of([f"x{EVIL}"], tmp_path, 2))
    assert SHOWN in harmless(lines_of(["status", f"--x{EVIL}"], tmp_path, 2))


def test_labels_in_a_report(tmp_path: Path, lines_of: Lines) -> None:
    work = WorkDirectory(tmp_path / "w")
    student = report_works.student(work, "small")
    facts = {**report_works.sts(work, student).facts, "compare": {**report_works.TEACHER, "label": f"owner/{EVIL}"}}
    inputs = {"file:/data/sts/test.tsv": "2" * 64, student.reference: student.digest}
    report_works.make(work, "evaluations", "sts-evil", "eval-sts", facts, inputs, model=student.reference)
    for more in ([], ["--markdown"]):
        harmless(lines_of(["report", "--work", "w", *more], tmp_path, 0))
    assert "\x1b" not in (tmp_path / "w" / "report" / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("finished_at", ["yesterday", "2026-01-01", "2026-01-01T00:00:00", ""])
def test_an_artifact_with_an_invalid_date_is_rebuilt(finished_at: str, tmp_path: Path, lines_of: Lines) -> None:
    (tmp_path / "x.txt").write_text("".join(f"sentence number {i}\n" for i in range(20)))
    augment: list[str | Path] = "augment x.txt --wordnet 0 --back-translate 0 --work w".split()
    lines_of(augment, tmp_path, 0)
    manifest = tmp_path / "w" / "sentences" / "main" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "finished": finished_at}))
    assert "Wrote w/sentences/main" in lines_of(augment, tmp_path, 0)
