"""A sentence splitter for running text.

nltk's Punkt needs data that is downloaded, and the package itself is optional, so it cannot be relied on offline. Rules
with a list of abbreviations are enough here: a wrong split only moves the border of a passage.
"""

from __future__ import annotations

import re

# Words before a full stop that does not end a sentence, in lower case and without it.
ABBREVIATIONS = frozenset(
    """
    a.d adj adm al approx apr assn assoc aug ave b.c bldg blvd bros c.f ca capt cf ch cmdr co col comm comp corp cpl ct
    dec dept dist div dr e.g ed eds eq eqs esp est et etc ex fem feb fig figs fr gen gov hon i.e inc incl int intl jan
    jr jul jun lt ltd maj mar max messrs mfg min misc mr mrs ms msgr mt no nos nov oct op p pg ph.d pp pres prof pt pvt
    ref refs rep rev sec sen sep sept sgt sr st subj suppl tab tel u.k u.s univ vol vols vs
    """.split()
)
# The end of a sentence and the blank after it; Chinese and Japanese have no blank.
_END = re.compile(
    r"(?P<stop>(?<![.!?…])[.!?…]+[\"'”’»)\]]*)\s+(?=[\"'“‘«(\[]*[^\W_])|(?<=[。！？])[」』”’）]*\s*(?=\S)"
)
_LAST_WORD = re.compile(r"[^\s(\[\"'“‘]+$")
_BLANK_LINE = re.compile(r"\n\s*\n")


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, in order; white space inside them becomes single blanks.

    Blank lines end a sentence. Joined with blanks, the sentences are the words of the text.

    >>> split_sentences("Dr. Smith paid $3.50. He left, i.e. went home.")
    ['Dr. Smith paid $3.50.', 'He left, i.e. went home.']
    """
    found = []
    for paragraph in _BLANK_LINE.split(text):
        plain, start = " ".join(paragraph.split()), 0
        for end in _END.finditer(plain):
            if end["stop"] and not _ends_sentence(plain, start, end):
                continue
            found.append(plain[start : end.end()].strip())
            start = end.end()
        if start < len(plain):
            found.append(plain[start:].strip())
    return [sentence for sentence in found if sentence]


def _ends_sentence(text: str, start: int, end: re.Match[str]) -> bool:
    """Whether the stop is the end of a sentence: not after an abbreviation or an initial, not before a small letter."""
    following = text[end.end() : end.end() + 8].lstrip("\"'“‘«([")[:1]
    if following.islower():
        return False
    if end["stop"] != ".":
        return True
    # A word has at most some dozens of characters; a longer one is no abbreviation.
    word = _LAST_WORD.search(text, max(start, end.start() - 20), end.start())
    last = word[0].lower() if word else ""
    return last not in ABBREVIATIONS and not (len(last) == 1 and last.isalpha())
