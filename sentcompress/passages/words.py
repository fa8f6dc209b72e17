"""The words of a text, and hashes of texts that have the same words."""

from __future__ import annotations

import hashlib
import re

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation.

    >>> words_of("The cat's 3 well-known toys.")
    ['the', "cat's", '3', 'well-known', 'toys']
    """
    return _WORD.findall(text.lower())


def mark(text: str, seed: int) -> int:
    """A 64-bit hash of the words of a text. Texts that differ only in case, blanks and punctuation have the same.

    With another seed, the hashes are others; the smallest of them are a random sample.
    """
    normal = " ".join(words_of(text)) or text
    digest = hashlib.blake2b(normal.encode("utf-8"), digest_size=8, key=seed.to_bytes(8, "little"))
    return int.from_bytes(digest.digest(), "little")
