"""Text from files or users, made safe to show: on a terminal, in Markdown, and in a command to copy.

Sentences and the names of files, data sets and models can contain anything: escape sequences that rewrite the screen,
line breaks that forge a message, HTML that runs in a page. Every text goes through one of these functions before it is
shown.
"""

from __future__ import annotations

import os
import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence

# Zero-width joiners: needed in emoji and in many scripts, but not in Latin words.
_JOINERS = "\u200c\u200d"
_JOINED = ("So", "Sk", "Lo", "Mn", "Mc")
# Characters that are markup in Markdown (with HTML and formulas): anywhere, and at the start of a line.
_MARKUP = re.compile(r"[\\`*_\[\]<|~&$]")
_LINE_START = re.compile(r"^(?:[=#>]|[-+](?=[\s-]|$)|\d+(?=[.)](?:\s|$)))")


def printable(text: str) -> str:
    """The text on one line, without control characters, escape sequences, line breaks or direction marks.

    They are replaced by Python escapes such as `\\x1b`, so they stay visible. Zero-width joiners are kept where a
    script needs them.
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
    """Like `printable`, but line breaks are kept: for our own texts, such as a help page."""
    return "\n".join(map(printable, text.split("\n")))


def printable_message(text: str) -> str:
    """Like `printable`, but line breaks before a list item, as in `errors.raise_faults`, are kept."""
    return "\n".join(map(printable, re.split(r"\n(?=  - )", text)))


def shortened(text: str, most: int) -> str:
    """The text, cut to `most` characters if it is longer; three dots say so."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def shell_word(value: object) -> str:
    """A name or path, quoted as one word of a command line that can be copied into a shell.

    Control characters and bytes that are not UTF-8 are written as `$'\\x1b'`, which bash, zsh and ksh read.
    """
    word = str(value)
    if word.isprintable():
        return shlex.quote(word)
    shown = (chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\x{byte:02x}" for byte in _bytes(word))
    return f"$'{''.join(shown)}'"


def shell_line(words: Iterable[object]) -> str:
    """A command line made of these words, quoted."""
    return " ".join(map(shell_word, words))


def _bytes(word: str) -> bytes:
    try:
        return os.fsencode(word)
    except UnicodeEncodeError:  # a lone surrogate that does not represent a byte
        return word.encode("utf-8", "backslashreplace")


class Code(str):
    """Text that Markdown shows as code: a reference, a file, a command line."""

    __slots__ = ()


def markdown(text: str) -> str:
    """Markdown that shows the text literally, on one line, also in a table cell; `Code` becomes a code span."""
    if isinstance(text, Code):
        return _code_span(printable(text))
    escaped = _MARKUP.sub(r"\\\g<0>", printable(text).strip())
    return _LINE_START.sub(_escaped_start, escaped)


def _escaped_start(found: re.Match[str]) -> str:
    start = found[0]
    return f"{start}\\" if start[0].isdecimal() else f"\\{start}"


def _code_span(text: str) -> str:
    if "|" in text:  # it would end a table cell; inside backticks, it can be escaped only in tables
        return f"<code>{markdown(str(text))}</code>"
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if not text.strip() or text[0] in " `" or text[-1] in " `" else ""
    return f"{fence}{space}{text}{space}{fence}"


def markdown_command(command: str) -> str:
    """A command line as a code block."""
    return f"    {printable(command)}"


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[object]], heads: int | None = None) -> str:
    """A table: each cell is escaped, or a code span if it is `Code`.

    Args:
        columns: the column titles.
        rows: the cells of each row, one per column.
        heads: number of left-aligned columns, from the left; the others are right-aligned. All by default.
    """
    left = len(columns) if heads is None else heads
    rule = ["---" if number < left else "---:" for number in range(len(columns))]
    shown = [[cell if isinstance(cell, str) else str(cell) for cell in row] for row in (columns, *rows)]
    head, *body = [f"| {' | '.join(map(markdown, row))} |" for row in shown]
    return "\n".join([head, f"| {' | '.join(rule)} |", *body])
