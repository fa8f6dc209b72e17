"""HTML pages as sections of plain text: what a reader sees, without navigation.

Python's html.parser takes quadratic time on tags and comments that do not end, so tags are found here: every pattern
matches wherever it may begin, or fails at once. The tree is that of the tags; a missing end tag ends with its parent.
"""

from __future__ import annotations

import codecs
import html
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from sentcompress.corpora.document import Document, Section

# A comment or declaration, or a tag with its attributes; each may end with the page.
_TAG = re.compile(
    r"<!--(?:>|->|.*?(?:--!?>|\Z))"
    r"|<[!?][^>]*+(?:>|\Z)"
    r"|<(/?)([A-Za-z][^\s/>]*+)((?:=\s*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z))|[^>])*+)(?:>|\Z)",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"([^\s\"'/=]++)\s*+(?:=\s*+(?:\"([^\"]*+)|'([^']*+)|([^\s\"']++)))?")
_META = re.compile(rb"<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
# Where browsers look for the encoding, and the encodings that they know. Other codecs of Python are not for text, or
# are slow.
_HEAD = 4096
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ENCODING = re.compile(r"utf-(8|16)|iso8859-\d+|cp\d+|koi8-|mac-|gb|big5|shift_jis|euc_|iso2022_jp|tis-620|ascii|hz")
# More digits are no character, and Python's int refuses very many.
_LONG_NUMBER = re.compile(r"&#(?:[0-9]{9,}+|[xX][0-9a-fA-F]{9,}+);?")
_SPACE = re.compile(r"[ \t\n\r\f]+")
# Elements whose content has no tags.
_RAW = {"script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes"}
_RAW_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW}
_VOID = set("area base br col embed hr img input link meta source track wbr".split())
_UNSEEN = {
    "template",
    "noscript",
    "svg",
    "object",
    "canvas",
    "audio",
    "video",
    "dialog",
    "button",
    "select",
    "datalist",
}
_NAVIGATION = {"nav", "footer"}
_ROLES = {"navigation", "search", "banner", "contentinfo", "menu", "menubar", "toolbar", "dialog", "alertdialog"}
_HEADINGS = {f"h{level}" for level in range(1, 7)}
_LISTS = {"ul", "ol", "menu", "dir"}
_PARAGRAPHS = (
    _LISTS
    | _HEADINGS
    | set(
        "address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure form "
        "header hgroup hr legend li main p pre search section summary table".split()
    )
)
_LINES = {"br", "tr"}
_CELLS = {"td", "th"}
# A second one in a row ends the first, and each of these ends a heading.
_UNENDED = {"p", "li", "dt", "dd", "tr", "td", "th", "option", "a"}
_END_HEADINGS = _HEADINGS | _LISTS | {"p", "table", "pre", "dl", "section", "article", "main"}
# The marks that documentation tools put behind a heading, as a link to it.
_PERMALINKS = {"#", "¶", "§", "🔗", ""}
# The share of a list's characters that are links, above which the list is navigation.
_LINKS = 0.9


class _Open(NamedTuple):
    """An element that has begun, and what holds for the text in it.

    Attributes:
        list_start: of a list: the number of paragraphs, characters and characters in links before it.
    """

    name: str
    hidden: bool = False
    linked: bool = False
    literal: bool = False
    main: bool = False
    heading: bool = False
    list_start: tuple[int, int, int] | None = None


@dataclass
class _Paragraph:
    text: str
    heading: str = ""  # the name of its element, such as h2; empty for text
    main: bool = False
    before_links: bool = False  # whether a list of links came next, which was dropped


@dataclass
class _Page:
    """What was read so far."""

    title: str = ""
    paragraphs: list[_Paragraph] = field(default_factory=list)
    stack: list[_Open] = field(default_factory=lambda: [_Open("")])
    opened: Counter[str] = field(default_factory=Counter)
    characters: int = 0
    in_links: int = 0
    begun: list[str] = field(default_factory=list)  # pieces of the paragraph that has begun
    begun_in: _Open = field(default_factory=lambda: _Open(""))  # the element of its first piece

    def add(self, text: str) -> None:
        """Text between tags."""
        here = self.stack[-1]
        text = _unescaped(text)
        if here.hidden or (here.linked and text.strip() in _PERMALINKS):
            return
        if not here.literal:
            text = _SPACE.sub(" ", text)
        size = len(text.strip())
        self.characters += size
        self.in_links += size * here.linked
        if size and not any(piece.strip() for piece in self.begun):
            self.begun_in = here
        self.begun.append(text)

    def end_paragraph(self) -> None:
        """End the paragraph that has begun, if it has any text."""
        lines = "".join(self.begun).splitlines()
        self.begun = []
        literal = self.begun_in.literal
        text = "\n".join(line.rstrip() if literal else " ".join(line.split()) for line in lines).strip("\n ")
        if text:
            name = self._heading() if self.begun_in.heading else ""
            self.paragraphs.append(_Paragraph(" ".join(text.split()) if name else text, name, self.begun_in.main))

    def open(self, name: str, attributes: dict[str, str]) -> None:
        """A start tag."""
        if name in _UNENDED and self.stack[-1].name == name:
            self.close(name)
        if name in _END_HEADINGS and self.stack[-1].heading:
            self.close(self._heading())
        self._separate(name)
        if name in _LINES:
            self.begun.append("\n")
        if name in _VOID:
            return
        above, role = self.stack[-1], attributes.get("role", "").lower()
        self.opened[name] += 1
        self.stack.append(
            _Open(
                name,
                above.hidden or name in _UNSEEN | _NAVIGATION or role in _ROLES or _is_hidden(attributes),
                above.linked or (name == "a" and "href" in attributes),
                above.literal or name in ("pre", "xmp"),
                above.main or name == "main" or role == "main",
                above.heading or name in _HEADINGS,
                (len(self.paragraphs), self.characters, self.in_links) if name in _LISTS else None,
            )
        )

    def close(self, name: str) -> None:
        """An end tag: also ends what began in its element and has no end tag; without a start tag, it is ignored."""
        if not self.opened[name]:
            return
        while True:
            self._separate(self.stack[-1].name)
            ended = self.stack.pop()
            self.opened[ended.name] -= 1
            if ended.list_start:
                self._judge_list(*ended.list_start)
            if ended.name == name:
                return

    def _heading(self) -> str:
        """The name of the heading that has begun."""
        return next(one.name for one in reversed(self.stack) if one.name in _HEADINGS)

    def _separate(self, name: str) -> None:
        if name in _PARAGRAPHS and not (self.stack[-1].heading and name not in _HEADINGS):
            self.end_paragraph()
        elif name in _PARAGRAPHS or name in _CELLS:
            self.begun.append(" ")

    def _judge_list(self, paragraphs: int, characters: int, in_links: int) -> None:
        """Drop a list that has hardly anything but links."""
        if self.in_links - in_links > _LINKS * (self.characters - characters):
            del self.paragraphs[paragraphs:]
            self.characters, self.in_links = characters, in_links
            if self.paragraphs:
                self.paragraphs[-1].before_links = True


def html_page(name: str, content: bytes) -> Document:
    """The document of an HTML page.

    Its title is the first h1, or else the title element. Other headings begin sections. Text in `main` is the whole
    text if there is any. Scripts, hidden elements, navigation, footers and lists of links are left out.

    Args:
        name: its id.
        content: its bytes; see `decoded`.
    """
    page = _read(decoded(content))
    inside = [one for one in page.paragraphs if one.main]
    paragraphs = inside if any(not one.heading for one in inside) else page.paragraphs
    first = next((one for one in paragraphs if one.heading == "h1"), None)
    sections: list[tuple[str, list[str]]] = [("", [])]
    for number, paragraph in enumerate(paragraphs):
        # Such as "Table of contents".
        lost = paragraph.before_links and (number + 1 == len(paragraphs) or paragraphs[number + 1].heading)
        if paragraph is first or (paragraph.heading and lost):
            continue
        if paragraph.heading:
            sections.append((paragraph.text, []))
        else:
            sections[-1][1].append(paragraph.text)
    parts = tuple(Section(heading, "\n\n".join(texts)) for heading, texts in sections if heading or texts)
    return Document(name, first.text if first else page.title, parts)


def decoded(content: bytes) -> str:
    """The text of a page, in the encoding of its byte order mark or its declaration, otherwise UTF-8.

    A page that declares none and is not UTF-8 is read as windows-1252, as browsers do. Bytes that the encoding does not
    have become U+FFFD.
    """
    if content.startswith((codecs.BOM_UTF8, *UTF16)):
        return content.decode("utf-8-sig" if content.startswith(codecs.BOM_UTF8) else "utf-16", "replace")
    found = _META.search(content[:_HEAD])
    if found and (declared := _codec(found[1].decode("ascii", "replace"))):
        return content.decode(declared, "replace")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _codec(label: str) -> str | None:
    """Python's name of a declared encoding; None if it is unknown."""
    try:
        name = codecs.lookup(label).name
    except LookupError:
        return None
    # By the standard: a page whose declaration can be read as ASCII is not UTF-16; Latin-1 and ASCII are windows-1252.
    instead = {"utf-16": "utf-8", "utf-16-le": "utf-8", "utf-16-be": "utf-8", "iso8859-1": "cp1252", "ascii": "cp1252"}
    instead |= {"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949"}
    return instead.get(name, name) if _ENCODING.match(name) else None


def _read(text: str) -> _Page:
    page, start = _Page(), 0
    while found := _TAG.search(text, start):
        page.add(text[start : found.start()])
        start = found.end()
        name = (found[2] or "").lower()
        if not name:
            continue
        if found[1]:
            page.close(name)
            continue
        raw = name in _RAW
        page.open(name, _attributes(found[3]))
        if raw:
            end = _RAW_ENDS[name].search(text, start)
            content, start = text[start : end.start() if end else len(text)], end.start() if end else len(text)
            if name == "title" and not page.title and not page.stack[-1].hidden:
                page.title = " ".join(_unescaped(content).split())
            elif name == "xmp":
                page.add(content)
    page.add(text[start:])
    while page.stack[-1].name:
        page.close(page.stack[-1].name)
    page.end_paragraph()
    return page


def _attributes(text: str) -> dict[str, str]:
    found = _ATTRIBUTE.findall(text)
    return {name.lower(): html.unescape(_LONG_NUMBER.sub("", "".join(values))) for name, *values in found}


def _is_hidden(attributes: dict[str, str]) -> bool:
    style = attributes.get("style", "").replace(" ", "").lower()
    hidden = attributes.get("hidden", "no").lower() not in ("no", "until-found")
    return hidden or attributes.get("aria-hidden") == "true" or "display:none" in style or "visibility:hidden" in style


def _unescaped(text: str) -> str:
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text)) if "&" in text else text
