"""Lines on standard output and standard error, without rich, which is slow to load."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from typing import Any

import typer

from sentcompress.json_documents import finite
from sentcompress.plain_text import printable, printable_lines, printable_message


def say(line: str) -> None:
    """One line on standard output."""
    typer.echo(printable(line))


def say_wrapped(text: str) -> None:
    """A paragraph on standard output; in a terminal, its lines are broken between words."""
    if not sys.stdout.isatty():
        say(text)
        return
    width = shutil.get_terminal_size().columns
    say_page(textwrap.fill(printable(text), width, break_long_words=False, break_on_hyphens=False))


def say_page(text: str, *, error: bool = False) -> None:
    """A text of several lines; its line breaks are kept."""
    typer.echo(printable_lines(text.removesuffix("\n")), err=error)


def tell(message: str, hint: str | None) -> None:
    """An error and its hint on standard error; the message may list several faults."""
    typer.echo(f"error: {printable_message(message)}", err=True)
    if hint:
        typer.echo(f"help:  {printable(hint)}", err=True)


def warn(message: str) -> None:
    """A warning on standard error."""
    typer.echo(f"warning: {printable_message(message)}", err=True)


def print_json(document: Any) -> None:
    """One JSON document on standard output; NaN and infinity become null, control characters are escaped."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(finite(document), indent=2, ensure_ascii=not utf8, allow_nan=False)
    # JSON escapes only the first 32 characters, but U+009B also starts escape sequences.
    hidden = {ord(c): json.dumps(c)[1:-1] for c in set(text) if c != "\n" and not c.isprintable()}
    sys.stdout.write(text.translate(hidden) + "\n")
