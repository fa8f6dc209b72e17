"""Text that came from a file or a user, made safe to show: on a terminal, in Markdown, and in a command to copy.

Names of files, data sets and models, and sentences, may hold anything: escape sequences that rewrite a screen, line
breaks that forge a message, HTML that runs in a page. Every text passes one of these functions on its way out.
"""

from __future__ import annotations

import os
import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence

# Zero-width joiners. Emoji and the words of many scripts are spelled with them, Latin words are not.
_JOINERS = "\u200c\u200d"
_JOINED = ("So", "Sk", "Lo", "Mn", "Mc")
# What Markdown, or the HTML and the formulas inside it, would take for markup anywhere, and at the start of a line.
_MARKUP = re.compile(r"[\\`*_\[\]<|~&$]")
_LINE_START = re.compile(r"^(?:[=#>]|[-+](?![\d.])|\d+(?=[.)](?:\s|$)))")


def printable(text: str) -> str:
    """The text on one line: no control characters, escape sequences, line breaks or marks that turn the direction.

    Each becomes the escape that Python writes for it, such as `\\x1b`, so nothing is hidden either. Zero-width joiners
    stay where a script needs them.
    """
    if text.isprintable():
        return text
    return "".join(
        character if _is_shown(character, before) else ascii(character)[1:-1]
        for before, character in zip(" " + text, text, strict=False)
    )


def _is_shown(character: str, before: str) -> bool:
    if character in _JOINERS:
        return unicodedata.category(before) in _JOINED
    # Cc: control, Cf: format (direction marks), Cs: lone surrogate, Zl and Zp: line and paragraph separators.
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def printable_lines(text: str) -> str:
    """A text of ours with several lines, such as a page of help: like `printable`, but its line breaks stay."""
    return "\n".join(map(printable, text.split("\n")))


def printable_message(text: str) -> str:
    """An error's message: a line break stays only before an item of a list, as `errors.raise_faults` writes it."""
    return "\n".join(map(printable, re.split(r"\n(?=  - )", text)))


def shell_word(value: object) -> str:
    """A name or a path as one word of a command line that can be copied into a shell.

    Control characters and bytes that are no UTF-8 are written as `$'\\x1b'`, which bash, zsh and ksh read.
    """
    word = str(value)
    if word.isprintable():
        return shlex.quote(word)
    shown = (chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\x{byte:02x}" for byte in _bytes(word))
    return f"$'{''.join(shown)}'"


def shell_line(words: Iterable[object]) -> str:
    """A command line of these words."""
    return " ".join(map(shell_word, words))


def _bytes(word: str) -> bytes:
    try:
        return os.fsencode(word)
    except UnicodeEncodeError:  # a lone surrogate that stands for no byte
        return word.encode("utf-8", "backslashreplace")


class Code(str):
    """Text that Markdown shall show as code: a reference, a file, a command line."""

    __slots__ = ()


def markdown(text: str) -> str:
    """Markdown that shows the text as it stands, on one line, in a table's cell as well; `Code` as a code span."""
    if isinstance(text, Code):
        return _code_span(printable(text))
    escaped = _MARKUP.sub(r"\\\g<0>", printable(text).strip())
    return _LINE_START.sub(_escaped_start, escaped)


def _escaped_start(found: re.Match[str]) -> str:
    start = found[0]
    return f"{start}\\" if start[0].isdecimal() else f"\\{start}"


def _code_span(text: str) -> str:
    if "|" in text:  # it would end a table's cell, and inside backticks it cannot be escaped outside of tables
        return f"<code>{markdown(str(text))}</code>"
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if not text.strip() or text[0] in " `" or text[-1] in " `" else ""
    return f"{fence}{space}{text}{space}{fence}"


def markdown_command(command: str) -> str:
    """A command line as a block of code of its own."""
    return f"    {printable(command)}"


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[object]], heads: int | None = None) -> str:
    """A table: each cell is escaped, or a code span if it is `Code`.

    Args:
        columns: the heads.
        rows: as many cells each.
        heads: so many columns from the left are aligned to the left, the others to the right; by default all are left.
    """
    left = len(columns) if heads is None else heads
    rule = ["---" if number < left else "---:" for number in range(len(columns))]
    shown = [[cell if isinstance(cell, str) else str(cell) for cell in row] for row in (columns, *rows)]
    head, *body = [f"| {' | '.join(map(markdown, row))} |" for row in shown]
    return "\n".join([head, f"| {' | '.join(rule)} |", *body])
