"""Write docs/cli.md: the `--help` text of every command.

python scripts/write_cli_docs.py
"""

from __future__ import annotations

import os
import re
from pathlib import Path

os.environ["COLUMNS"] = "100"
os.environ["TERMINAL_WIDTH"] = "100"

from typer.testing import CliRunner

from sentcompress.cli.main import COMMANDS, app

TARGET = Path(__file__).resolve().parents[1] / "docs" / "cli.md"


def help_of(*words: str) -> str:
    """The `--help` text of a command, without terminal colours."""
    result = CliRunner().invoke(app, [*words, "--help"], prog_name="sentcompress", env={"COLUMNS": "100"})
    text = re.sub(r"\x1b\[[0-9;]*m", "", result.output)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def page() -> str:
    about = "The printed help of every command. Written by `python scripts/write_cli_docs.py`; a test keeps it current."
    parts = ["# The commands", "", about, ""]
    for words in [(), *((name,) for name in COMMANDS)]:
        title = " ".join(("sentcompress", *words))
        parts += [f"## {title}", "", "```text", help_of(*words), "```", ""]
    return "\n".join(parts)


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
