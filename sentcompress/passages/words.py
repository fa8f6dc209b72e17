"""The words of a text, and hashes of the words."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import cache

_ASCII = re.compile(r"[a-z0-9]+(?:['-][a-z0-9]+)*")
# The last code point of the basic plane, the codes that may be combining marks, and the variation selectors of emoji,
# which are no part of words.
_BASIC, _CODES = "\uffff", range(0x20000)
_EMOJI = range(0xFE00, 0xFE10)
# What words_of keeps inside words and `likeness` does not. Other dashes and quotation marks always separate words.
_INNER = str.maketrans(dict.fromkeys("'’ʼ-", " "))
# What typesetting adds inside words: invisible places for a line break, and ligatures such as that of `fi`.
_TYPESET = re.compile("[\u00ad\u200b\u2060\ufeff]|([\ufb00-\ufb06])")


def words_of(text: str) -> list[str]:
    """The words of a text in lower case and NFC, without punctuation and without what typesetting adds inside words.

    >>> words_of("The cat's 3 well-known toys.")
    ['the', "cat's", '3', 'well-known', 'toys']
    """
    if text.isascii():
        return _ASCII.findall(text.lower())
    text = unicodedata.normalize("NFC", plain(text).lower())
    return _any_word(max(text, default="") > _BASIC).findall(text)


def plain(text: str) -> str:
    """The text without what typesetting adds inside words."""
    if text.isascii():
        return text
    return _TYPESET.sub(lambda found: unicodedata.normalize("NFKC", found[1] or ""), text)


@cache
def _any_word(beyond: bool) -> re.Pattern[str]:
    """Words of any script: letters and digits, and combining marks after them, such as vowels of Devanagari.

    Args:
        beyond: whether there are marks beyond the basic plane; a pattern with these takes ten times as long.
    """
    found = (chr(code) for code in _CODES if code not in _EMOJI)
    marks = "".join(sign for sign in found if (beyond or sign <= _BASIC) and unicodedata.category(sign) in ("Mn", "Mc"))
    part = rf"[^\W_]+(?:[{re.escape(marks)}]+[^\W_]*)*"
    return re.compile(rf"{part}(?:['’-]{part})*")


def mark(text: str, seed: int) -> int:
    """A 64-bit random number from the words of a text, the same for texts with the same `words_of`.

    With another seed, the numbers are others; the smallest of them are a random sample. Whether two texts are to count
    as one is decided by `likeness`.
    """
    return _hash(_normal(text), seed)


def likeness(text: str, seed: int) -> int:
    """A 64-bit hash, the same for texts that are to count as one: those with the same letters and digits.

    Case, white space, punctuation, and the kind of dashes, apostrophes and quotation marks are ignored, also inside a
    word, where one source has `don't` or `1990-95` and another has typographic signs.
    """
    return _hash(_normal(text).translate(_INNER), seed)


def mark_and_likeness(text: str, seed: int) -> tuple[int, int]:
    """Both hashes of a text; faster than one after the other."""
    normal = _normal(text)
    number, alike = _hash(normal, seed), normal.translate(_INNER)
    return number, number if alike == normal else _hash(alike, seed)


def _normal(text: str) -> str:
    return " ".join(words_of(text)) or text


def _hash(normal: str, seed: int) -> int:
    digest = hashlib.blake2b(normal.encode("utf-8"), digest_size=8, key=seed.to_bytes(8, "little"))
    return int.from_bytes(digest.digest(), "little")
