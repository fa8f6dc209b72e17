"""English words that carry grammar rather than meaning. WordNet substitution never touches them.

Without such a list "a" becomes "deoxyadenosine monophosphate", "in" becomes "Indiana" and "he" becomes "helium".
"""

from __future__ import annotations

from functools import lru_cache

_DETERMINERS = """
a an the this that these those each every either neither some any no all both half such what which whose another other
others many much more most few fewer fewest little less least several enough own same certain
"""
_PRONOUNS = """
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
it its itself they them their theirs themselves who whom whoever one ones someone somebody something anyone anybody
anything everyone everybody everything none nobody nothing there here oneself
"""
_PREPOSITIONS = """
about above across after against along alongside amid among amongst around as at atop before behind below beneath
beside besides between beyond by despite down during except for from in inside into like minus near of off on onto out
outside over past per plus regarding round since than through throughout till to toward towards under underneath until
unlike up upon versus via with within without
"""
_AUXILIARIES = """
am is are was were be been being have has had having do does did doing done will would shall should can could may might
must ought need dare used cannot ain isn aren wasn weren hasn haven hadn doesn don didn won wouldn shan shouldn couldn
mightn mustn needn ve ll re
"""
_CONJUNCTIONS = """
and or but nor so yet if unless because although though while whereas whether when whenever where wherever how however
why once lest also therefore thus hence
"""
_PARTICLES = """
not n't never ever even just only too very quite rather almost still already again then now away back forth together
apart aside ago please yes ok okay oh ah hey hello well let lets etc eg ie vs mr mrs ms dr st us
"""
_NUMBERS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion trillion dozen
first second third fourth fifth sixth seventh eighth ninth tenth once twice
"""

FUNCTION_WORDS = frozenset(
    " ".join((_DETERMINERS, _PRONOUNS, _PREPOSITIONS, _AUXILIARIES, _CONJUNCTIONS, _PARTICLES, _NUMBERS)).split()
)


@lru_cache(maxsize=2**16)
def is_function_word(word: str) -> bool:
    """Whether a word is one of them, a contraction of one ("he's", "don't"), a number, or a single letter."""
    lower = word.lower().replace("\u2019", "'")
    stem = lower.split("'", 1)[0]
    return len(lower) < 2 or lower in FUNCTION_WORDS or stem in FUNCTION_WORDS or not lower[0].isalpha()
