"""HTML pages as sections of plain text: what a reader sees, without navigation."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sentcompress.corpora.document import Document, Section
from sentcompress.errors import InputError
from sentcompress.extras import check_installed

_META = re.compile(rb"<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
# Where browsers look for the encoding, and the encodings that they know. Other codecs of Python are not for text, or
# are slow.
_HEAD = 4096
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ENCODING = re.compile(r"utf-(8|16)|iso8859-\d+|cp\d+|koi8-|mac-|gb|big5|shift_jis|euc_|iso2022_jp|tis-620|ascii|hz")
_SPACE = re.compile(r"[ \t\n\r\f]+")
_UNSEEN = set(
    "title script style template noscript textarea iframe noembed noframes svg object canvas audio video dialog button "
    "select datalist nav footer".split()
)
_ROLES = set("navigation search banner contentinfo menu menubar toolbar dialog alertdialog".split())
_HEADINGS = {f"h{level}" for level in range(1, 7)}
_LISTS = {"ul", "ol", "menu", "dir"}
# The end tag of a heading may be missing: these are not part of one.
_AFTER_HEADINGS = _HEADINGS | _LISTS | {"p", "table", "pre", "dl", "section", "article", "main"}
_PARAGRAPHS = _AFTER_HEADINGS | set(
    "address aside blockquote body caption center dd details div dt fieldset figcaption figure footer form header "
    "hgroup hr legend li nav search summary".split()
)
_LINES = {"br", "tr"}
_CELLS = {"td", "th"}
# The marks that documentation tools put behind a heading, as a link to it.
_PERMALINKS = {"#", "¶", "§", "🔗"}
# The share of a list's characters that are links, above which the list is navigation.
_LINKS = 0.9
# Each tag is compared with all elements around it, and libxml2 only stops at an error before the next chunk.
_DEEPEST = 2000
_CHUNK = 2**16


class _Place(NamedTuple):
    """The state that applies to the text in an element.

    Attributes:
        heading: the name of the heading that it is in, such as h2; empty for other text.
        list_start: for a list, the number of paragraphs, characters and characters in links before it.
    """

    hidden: bool = False
    linked: bool = False
    literal: bool = False
    main: bool = False
    heading: str = ""
    list_start: tuple[int, int, int] | None = None


@dataclass
class _Paragraph:
    text: str
    heading: str
    main: bool
    before_links: bool = False  # whether a list of links came next, which was dropped


@dataclass
class _Page:
    """The content read so far; lxml's parser calls the methods without an underscore."""

    name: str
    title: str = ""
    paragraphs: list[_Paragraph] = field(default_factory=list)
    places: list[_Place] = field(default_factory=lambda: [_Place()])  # of the elements that have begun
    characters: int = 0
    in_links: int = 0
    between: list[str] = field(default_factory=list)  # pieces of the text since the last tag
    begun: list[str] = field(default_factory=list)  # texts of the paragraph that has begun
    begun_in: _Place | None = None  # the place of its first words

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if len(self.places) > _DEEPEST:
            what = f"{self.name}: HTML elements are nested more than {_DEEPEST} deep"
            raise InputError(what, "fix the page, or leave it out")
        self._add()
        self._separate(name)
        above, role = self.places[-1], attributes.get("role", "").lower()
        place = _Place(
            above.hidden or name in _UNSEEN or role in _ROLES or _is_hidden(name, attributes),
            above.linked or (name == "a" and "href" in attributes),
            above.literal or name in ("pre", "xmp"),
            above.main or name == "main" or role == "main",
            name if name in _HEADINGS else "" if name in _AFTER_HEADINGS else above.heading,
            (len(self.paragraphs), self.characters, self.in_links) if name in _LISTS else None,
        )
        self.places.append(place)

    def end(self, name: str) -> None:
        if name == "title" and not self.title and not self.places[-2].hidden:
            self.title = " ".join("".join(self.between).split())
        self._add()
        if name not in _LINES:
            self._separate(name)
        self._judge_list(self.places.pop())

    def data(self, text: str) -> None:
        self.between.append(text)

    def close(self) -> None:
        self._add()
        self._end_paragraph()

    def _add(self) -> None:
        here, text = self.places[-1], "".join(self.between)
        self.between = []
        if not text or here.hidden or (here.linked and text.strip() in _PERMALINKS):
            return
        size = len(text.strip())
        self.characters += size
        self.in_links += size * here.linked
        if size and not self.begun_in:
            self.begun_in = here
        self.begun.append(text if here.literal else _SPACE.sub(" ", text))

    def _separate(self, name: str) -> None:
        """End the paragraph, line or word where an element starts or ends."""
        here = self.places[-1]
        if here.hidden:
            return
        if name in _AFTER_HEADINGS or (name in _PARAGRAPHS and not here.heading):
            self._end_paragraph()
        elif name in _PARAGRAPHS or name in _CELLS:
            self.begun.append(" ")
        elif name in _LINES:
            self.begun.append("\n")

    def _end_paragraph(self) -> None:
        if place := self.begun_in:
            lines = "".join(self.begun).splitlines()
            text = "\n".join(line.rstrip() if place.literal else " ".join(line.split()) for line in lines).strip("\n ")
            text = " ".join(text.split()) if place.heading else text
            self.paragraphs.append(_Paragraph(text, place.heading, place.main))
        self.begun, self.begun_in = [], None

    def _judge_list(self, place: _Place) -> None:
        """Drop a list that has hardly anything but links."""
        if not place.list_start:
            return
        paragraphs, characters, in_links = place.list_start
        if self.in_links - in_links > _LINKS * (self.characters - characters):
            del self.paragraphs[paragraphs:]
            self.characters, self.in_links = characters, in_links
            if self.paragraphs:
                self.paragraphs[-1].before_links = True


def check_parser() -> None:
    """Raise InputError if lxml, which reads HTML, is not installed."""
    check_installed("lxml", otherwise="leave out the HTML pages")


def html_page(name: str, content: bytes) -> Document:
    """The document of an HTML page.

    Its title is the first h1, or else the title element. Other headings begin sections. Text in `main` is the whole
    text if there is any. Scripts, hidden elements, navigation, footers and lists of links are left out.

    Args:
        name: its id.
        content: its bytes; see `decoded`.

    Raises:
        InputError: if lxml is not installed, or elements are nested more than _DEEPEST deep.
    """
    page = _read(name, content)
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


def _read(name: str, content: bytes) -> _Page:
    check_parser()
    from lxml import etree

    # libxml2 itself would take UTF-8 for Latin-1 without a declaration, and end at bytes that the encoding lacks.
    page, text = _Page(name), decoded(content) or " "  # lxml refuses an empty one
    parser = etree.HTMLParser(target=page, encoding="utf-8", huge_tree=True)
    for start in range(0, len(text), _CHUNK):
        parser.feed(text[start : start + _CHUNK].encode())
    parser.close()
    return page


def _is_hidden(name: str, attributes: Mapping[str, str]) -> bool:
    if name in ("html", "body"):
        return False  # scripts show these when they are ready
    style = attributes.get("style", "").replace(" ", "").lower()
    hidden = attributes.get("hidden", "no").lower() not in ("no", "until-found")
    return hidden or attributes.get("aria-hidden") == "true" or "display:none" in style or "visibility:hidden" in style
