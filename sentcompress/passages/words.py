"""The words of a text, and hashes of texts that have the same words."""

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


def words_of(text: str) -> list[str]:
    """The words of a text in lower case and NFC, without punctuation.

    >>> words_of("The cat's 3 well-known toys.")
    ['the', "cat's", '3', 'well-known', 'toys']
    """
    if text.isascii():
        return _ASCII.findall(text.lower())
    return _any_word(max(text) > _BASIC).findall(unicodedata.normalize("NFC", text.lower()))


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
    """A 64-bit hash of the words of a text.

    Texts that differ only in case, blanks and punctuation between words have the same. Hyphens and apostrophes inside a
    word belong to it: `well-known` and `well known` differ, and so do `don't` with a straight and with a curly one.

    With another seed, the hashes are others; the smallest of them are a random sample.
    """
    normal = " ".join(words_of(text)) or text
    digest = hashlib.blake2b(normal.encode("utf-8"), digest_size=8, key=seed.to_bytes(8, "little"))
    return int.from_bytes(digest.digest(), "little")
