"""Strategies for valid documents that are then damaged like real files."""

from __future__ import annotations

import gzip

import zstandard
from hypothesis import strategies as st

# In the place of a field.
EXTREMES = (
    *("", " ", "nan", "NaN", "inf", "-inf", "1e999", "-1e308", "5e-324", "-0", "-1", "2", "1_000", "0x10", "1e5"),
    *("\u0663", "\u00bd", "true", "null", "None", "-", "[]", "{}", '"', '""', 'a "quoted" word', "it's", "\\"),
    *("\x00", "\x1b[31m", "\u202e", "\ufeff", "\u0085", "\u2028", "\U0001f600", "e\u0301", "=1+1", "../../x", "%s{}$"),
    *("9" * 5000, "[" * 3000, '{"a":' * 3000, "(" * 300, "x" * 70_000, "word " * 3000),
)
_BYTES = (
    *(b"\x00", b"\r", b"\n", b"\r\n", b"\t", b",", b'"', b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xc3", b"\x1a"),
    *(b"\xff\xfe", b"PAR1", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"{", b"[" * 2000, b"\n" * 500, b"\r" * 500, b"\\ud800"),
)
fields = st.one_of(st.sampled_from(EXTREMES), st.text(max_size=12), st.integers().map(str), st.floats().map(str))


@st.composite
def mutated(draw: st.DrawFn, valid: bytes, delimiter: bytes = b"\t") -> bytes:
    """A document with up to four faults; one in ten is noise."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=300))
    content = valid
    for _ in range(draw(st.integers(0, 4))):
        content = draw(st.sampled_from((_lines, _fields, _lines, _fields, _bytes, _whole)))(draw, content, delimiter)
    return content


@st.composite
def packed(draw: st.DrawFn, content: bytes) -> tuple[bytes, str]:
    """The content, plain or compressed and perhaps damaged then, and the suffix of its file."""
    suffix = draw(st.sampled_from(("", "", "", ".gz", ".zst")))
    if not suffix:
        return content, ""
    found = gzip.compress(content, mtime=0) if suffix == ".gz" else zstandard.compress(content)
    if draw(st.booleans()):
        found = _bytes(draw, found, b"")
    return found, draw(st.sampled_from((suffix, suffix, "")))


def _lines(draw: st.DrawFn, content: bytes, delimiter: bytes) -> bytes:
    lines = content.split(b"\n")
    place = draw(st.integers(0, len(lines) - 1))
    what = draw(st.sampled_from(("delete", "double", "swap", "replace", "insert")))
    if what == "delete":
        del lines[place]
    elif what == "double":
        lines.insert(place, lines[place])
    elif what == "swap":
        other = draw(st.integers(0, len(lines) - 1))
        lines[place], lines[other] = lines[other], lines[place]
    else:
        lines[place : place + (what == "replace")] = [_encoded(draw(fields))]
    return b"\n".join(lines)


def _fields(draw: st.DrawFn, content: bytes, delimiter: bytes) -> bytes:
    lines = content.split(b"\n")
    place = draw(st.integers(0, len(lines) - 1))
    parts = lines[place].split(delimiter)
    column = draw(st.integers(0, len(parts) - 1))
    what = draw(st.sampled_from(("replace", "replace", "delete", "double")))
    if what == "delete":
        del parts[column]
    else:
        parts[column : column + (what == "replace")] = [_encoded(draw(fields))]
    lines[place] = delimiter.join(parts)
    return b"\n".join(lines)


def _bytes(draw: st.DrawFn, content: bytes, delimiter: bytes) -> bytes:
    place = draw(st.integers(0, len(content)))
    what = draw(st.sampled_from(("cut", "flip", "flip", "insert", "remove")))
    if what == "cut":
        return content[:place]
    if what == "remove":
        return content[:place] + content[place + draw(st.integers(1, 20)) :]
    if what == "insert":
        return content[:place] + draw(st.sampled_from(_BYTES)) + content[place:]
    flipped = bytes([content[place] ^ draw(st.integers(1, 255))]) if place < len(content) else b""
    return content[:place] + flipped + content[place + 1 :]


def _whole(draw: st.DrawFn, content: bytes, delimiter: bytes) -> bytes:
    what = draw(st.sampled_from(("utf-16", "cr", "crlf", "mark", "twice", "empty", "no header", "no end")))
    text = content.decode("utf-8", errors="replace")
    changed = {
        "utf-16": lambda: text.encode("utf-16"),
        "cr": lambda: content.replace(b"\n", b"\r"),
        "crlf": lambda: content.replace(b"\n", b"\r\n"),
        "mark": lambda: b"\xef\xbb\xbf" + content,
        "twice": lambda: content + content,
        "empty": lambda: b"",
        "no header": lambda: content.partition(b"\n")[2],
        "no end": lambda: content.rstrip(b"\n"),
    }
    return changed[what]()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
