"""Text that came from a file, made safe to show: on a terminal, and in Markdown."""

from __future__ import annotations

import re
import unicodedata

# What Markdown or the HTML inside it would take for markup.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")


def printable(text: str) -> str:
    """The text without control characters: escape sequences, line breaks, and marks that turn the writing direction.

    Each becomes the escape that Python writes for it, such as `\\x1b`, so that nothing is hidden either.
    """
    return "".join(c if _is_shown(c) else ascii(c)[1:-1] for c in text)


def _is_shown(character: str) -> bool:
    # Cc: control, Cf: format (direction marks), Cs: lone surrogate, Zl and Zp: line and paragraph separators.
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def markdown(text: str) -> str:
    """The text as Markdown that shows it as it stands, in a table's cell as well: one line, no markup, no HTML."""
    return _MARKUP.sub(r"\\\1", printable(text))
