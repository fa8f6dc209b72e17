"""The suggestion of the next command."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentcompress.cli.main import _run


def next_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert _run(list(words)) == 0
    (told,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("Next: "))
    return told.removeprefix("Next: ")


def test_the_next_command_names_a_result_that_is_not_the_newest(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, tiny_model: Path
) -> None:
    (tmp_path / "a.txt").write_text("A boat is on the river.\nThe old clock stopped.\n")
    work = ["--work", str(tmp_path / "work")]
    first = ["augment", str(tmp_path / "a.txt"), "--wordnet", "0", "--back-translate", "0", *work]
    embed = ["teacher-embed", "--teacher", str(tiny_model), "--sentences", "main", "--dtype", "float32", *work]
    assert next_of(capsys, *first) == f"sentcompress teacher-embed --work {tmp_path / 'work'}"
    next_of(capsys, *first, "--name", "other")
    assert next_of(capsys, *first) == f"sentcompress teacher-embed --sentences main --work {tmp_path / 'work'}"

    assert next_of(capsys, *embed) == f"sentcompress distill --work {tmp_path / 'work'}"
    next_of(capsys, *embed, "--name", "other")
    assert next_of(capsys, *embed) == f"sentcompress distill --teacher-vectors main --work {tmp_path / 'work'}"
