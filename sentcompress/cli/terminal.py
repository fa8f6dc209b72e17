"""Lines on standard output and standard error, without rich, which is slow to load."""

from __future__ import annotations

import typer

from sentcompress.plain_text import printable, printable_lines, printable_message


def say(line: str) -> None:
    """One line on standard output."""
    typer.echo(printable(line))


def say_page(text: str, *, error: bool = False) -> None:
    """A text of several lines; its line breaks are kept."""
    typer.echo(printable_lines(text.removesuffix("\n")), err=error)


def tell(message: str, hint: str | None) -> None:
    """An error and its hint on standard error; the message may list several faults."""
    typer.echo(f"error: {printable_message(message)}", err=True)
    if hint:
        typer.echo(f"help:  {printable(hint)}", err=True)
