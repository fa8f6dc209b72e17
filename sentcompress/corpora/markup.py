"""Markdown and reStructuredText as sections of plain text: headings are recognised, most marks removed.

This is no parser: what it does not know stays in the text as it is. Words of code and tables are kept. The time is
linear in the length of any text, so no pattern may scan the rest of a line, or of the text, from each of many places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from sentcompress.corpora.document import Document, Section

MARKDOWN = ("md", "markdown")
RESTRUCTURED = ("rst",)
MARKUP = (*MARKDOWN, *RESTRUCTURED)
HTML = ("html", "htm", "xhtml")
# Of a file of these, the whole is one document.
PAGES = (*MARKUP, *HTML)

_FENCE = re.compile(r"^\s*(```|~~~)")
_ATX = re.compile(r"^ {0,3}#{1,6}\s(.*)$")
_UNDERLINE = re.compile(r"^(=+|-{2,})\s*$")
_RST_UNDERLINE = re.compile(r"^([=\-~^\"'`#*+.:_])\1{2,}\s*$")
_RULE = re.compile(r"^[\s|:*_-]*$")
_ITEM = re.compile(r"^\s*([-*+]|\d{1,3}[.)])\s+")
_DIRECTIVE = re.compile(r"^\s*\.\.\s+(\[[^\]]*\]\s*|[\w-]+::\s?|_[^:]*:\s?)?")
_FRONT_MATTER = re.compile(r"\A---[^\S\n]*\n(.*?)\n---[^\S\n]*\n", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:(.*)$", re.MULTILINE)
_Marks = Sequence[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]]
# Each mark of Markdown, and what takes its place. A tag has at most 200 characters.
_MARKS: _Marks = (
    (re.compile(r"!?\[([^\[\]\n]*)\]\([^)\s\[]*(?:\s+\"[^\"]*\")?\)"), r"\1"),
    (re.compile(r"</?[A-Za-z][^<>\n]{0,200}>"), " "),
    (re.compile(r"\*\*|__|`+"), ""),
    (re.compile(r"(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)"), ""),
)
_RST_MARKS: _Marks = (
    (re.compile(r"(?<![\w:+-]):[\w:+-]+:`([^`<\n]*)(?:<[^`>\n]*>)?`"), lambda found: found[1].rstrip()),
    (re.compile(r"`([^`<\n]*)<[^`>\n]*>`_+"), lambda found: found[1].rstrip()),
    (re.compile(r"\*\*|`+"), ""),
)


def marked_up(name: str, text: str, extension: str) -> Document:
    """The document of a Markdown or reStructuredText file.

    A heading that comes before any other text is the title; so is the title in the front matter of Markdown.

    Args:
        name: its id.
        extension: one of MARKUP.
    """
    restructured = extension in RESTRUCTURED
    title, body = ("", text) if restructured else _without_front_matter(text)
    lines = (body if restructured else _without_comments(body)).splitlines()
    sections = [section for section in _sections(lines, restructured) if section.heading or section.text]
    if not title and sections and sections[0].heading:
        title, sections[0] = sections[0].heading, Section("", sections[0].text)
    return Document(name, " ".join(title.split()), tuple(one for one in sections if one.heading or one.text))


def _without_front_matter(text: str) -> tuple[str, str]:
    """The title in the front matter, if there is one, and the text after it."""
    front = _FRONT_MATTER.match(text)
    if front is None:
        return "", text
    title = _FRONT_TITLE.search(front[1])
    return title[1].strip().strip("\"'") if title else "", text[front.end() :]


def _without_comments(text: str) -> str:
    """The text with a space in place of each comment; one that does not end is kept."""
    kept, start = list[str](), 0
    while (opened := text.find("<!--", start)) >= 0 and (closed := text.find("-->", opened + 4)) >= 0:
        kept.append(text[start:opened])
        start = closed + 3
    return " ".join([*kept, text[start:]])


def _sections(lines: Sequence[str], restructured: bool) -> Iterator[Section]:
    heading, kept, fenced = "", list[str](), False
    for number, line in enumerate(lines):
        if not restructured and _FENCE.match(line):
            fenced = not fenced
            kept.append("")
            continue
        if fenced:
            kept.append(line)
            continue
        found = None if restructured else _ATX.match(line)
        if found:
            yield Section(heading, _text(kept))
            heading, kept = _plain(found[1].strip().rstrip("#"), restructured), []
        elif _underlines(lines, number, restructured):
            title = kept.pop() if kept else ""
            yield Section(heading, _text(kept))
            heading, kept = title, []
        else:
            kept += _plain_lines(line, restructured)
    yield Section(heading, _text(kept))


def _underlines(lines: Sequence[str], number: int, restructured: bool) -> bool:
    """Whether a line makes the one above it a heading; that one has nothing above it but a line of the same marks."""
    line, above = lines[number].rstrip(), lines[number - 1].strip() if number else ""
    pattern = _RST_UNDERLINE if restructured else _UNDERLINE
    if not pattern.match(line) or not above or pattern.match(above) or _RULE.match(above) or above.startswith("|"):
        return False
    before = lines[number - 2].strip() if number > 1 else ""
    long_enough = not restructured or len(line) >= len(above)
    return long_enough and (not before or (restructured and before == line.strip()))


def _plain_lines(line: str, restructured: bool) -> list[str]:
    """A line without marks; an item of a list is a paragraph of its own."""
    if _RULE.match(line) or (restructured and _RST_UNDERLINE.match(line)):
        return [""]
    if restructured:
        line = _DIRECTIVE.sub("", line)
    item = _ITEM.match(line)
    plain = _plain(line[item.end() :] if item else line, restructured)
    return ["", plain] if item else [plain]


def _plain(line: str, restructured: bool) -> str:
    if not restructured:
        line = line.strip().lstrip(">").strip().replace("|", " ")
    for mark, instead in _RST_MARKS if restructured else _MARKS:
        line = mark.sub(instead, line)
    return line.strip()


def _text(lines: Sequence[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
