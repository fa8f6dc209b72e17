"""The commands with their options, as typer reads command lines; made once, which takes longer than to read a line."""

from __future__ import annotations

from functools import cache
from typing import Any

import typer

from sentcompress.cli.main import app


@cache
def command_group() -> Any:
    return typer.main.get_command(app)
