"""WordNet substitution with nlpaug's SynonymAug, which chooses the words to replace and their synonyms.

This module changes some of its behaviour:
- Synonyms and parts of speech come from our own reader of WordNet: nothing is downloaded, and lookups are cached.
- Only content words with at least one synonym are replaced; no function words, numbers or names.
- Spaces, hyphens and punctuation are preserved ("blue-eyed", not "blue - eyed"), and "a" and "an" are adapted to the
  new word.
- Each sentence has its own random generator, seeded by (seed, row, copy), instead of the global one.

Importing it loads nlpaug, so `WordNetSpec.load` imports it, in a worker.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Sequence
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from nlpaug.augmenter.word.synonym import SynonymAug

from sentcompress.augmentations.function_words import is_function_word
from sentcompress.augmentations.wordnet import DataFolder, WordNet, WordNetSpec, read_tagger

# Words with inner hyphens and apostrophes are one token; every other mark is a token of its own.
_TOKEN = re.compile(r"\w+(?:[-'\u2019]\w+)*|[^\w\s]")
_TAGS = {"n": "NN", "v": "VB", "a": "JJ", "r": "RB"}
_NAMES = ("NNP", "NNPS")
_OTHER = "X"
_VOWEL_SOUND = re.compile(r"[aeiou]|hour|honou?r|honest|heir", re.I)
_CONSONANT_SOUND = re.compile(r"(?:eu|ewe|one\b|once|uni|us[aeiou]|uti|ur[aeiou])", re.I)


class SynonymAugmenter:
    """Replaces words by synonyms; see the module."""

    note = ""

    def __init__(self, spec: WordNetSpec) -> None:
        self._seed = spec.seed
        self._augmenter = _Substitution(Thesaurus(spec), spec.share)

    def augment(self, texts: Sequence[str], first_row: int, copy: int) -> list[str]:
        out = []
        for row, text in enumerate(texts, first_row):
            self._augmenter.random.seed(f"{self._seed} {row} {copy}")
            out.append(str(self._augmenter.substitute(text)))
        return out


class Thesaurus:
    """What SynonymAug asks of its dictionary: `predict` (synonyms) and `pos_tag`."""

    def __init__(self, spec: WordNetSpec) -> None:
        self._wordnet = WordNet(DataFolder(spec.wordnet))
        self._tagger = _nltk_tagger(DataFolder(spec.tagger)) if spec.tagger else None
        self._candidates: dict[tuple[str, str | None], list[str]] = {}

    def predict(self, word: str, pos: str | None = None) -> list[str]:
        """The synonyms of a word, without the word itself and its base form."""
        known = self._candidates.get((word, pos))
        if known is None:
            known = self._candidates[word, pos] = self._synonyms(word, pos)
        return known

    def pos_tag(self, tokens: list[str]) -> list[tuple[str, str]]:
        """Penn Treebank tags of the words that can be replaced; _OTHER for all others."""
        if self._tagger is not None:
            return [(word, self._checked(word, tag)) for word, tag in self._tagger.tag(tokens)]
        return [(word, self._guessed(word, place)) for place, word in enumerate(tokens)]

    def _synonyms(self, word: str, pos: str | None) -> list[str]:
        # nlpaug asks for adjectives (a) and for satellite adjectives (s); the entries of "a" include both.
        if pos not in _TAGS:
            return []
        own = {word.lower(), *self._wordnet.base_forms(word, pos)}
        return [name for name in self._wordnet.synonyms(word, pos) if name.lower() not in own]

    def _checked(self, word: str, tag: str) -> str:
        part = {"N": "n", "V": "v", "J": "a", "R": "r"}.get(tag[:1])
        if tag in _NAMES or tag in ("RP",) or part is None or is_function_word(word):
            return _OTHER
        return tag if self.predict(word, part) else _OTHER

    def _guessed(self, word: str, place: int) -> str:
        if is_function_word(word) or (place > 0 and not word.islower()):
            return _OTHER
        part = self._wordnet.likely_part(word)
        return _TAGS[part] if part and self.predict(word, part) else _OTHER


class _Substitution(SynonymAug):  # type: ignore[misc]
    """SynonymAug with a `Thesaurus`; aug_min 1 and aug_max 10 are nlpaug's defaults. HPD's paper names no values."""

    def __init__(self, thesaurus: Thesaurus, share: float) -> None:
        self._thesaurus = thesaurus
        self.random = random.Random()
        self._tokens: list[str] = []
        self._gaps: list[str] = []
        super().__init__(aug_p=share, tokenizer=self._split, reverse_tokenizer=self._join)

    def get_model(self, *_: Any) -> Thesaurus:
        return self._thesaurus

    def sample(self, x: list[Any], num: int) -> list[Any]:
        return self.random.sample(x, num)

    def skip_aug(self, token_idxes: list[int], tokens: list[tuple[str, str]]) -> list[int]:
        return [place for place in token_idxes if tokens[place][1] != _OTHER]

    def _split(self, text: str) -> list[str]:
        self._tokens, self._gaps, end = [], [], 0
        for match in _TOKEN.finditer(text):
            self._gaps.append(text[end : match.start()])
            self._tokens.append(match.group())
            end = match.end()
        self._gaps.append(text[end:])
        return self._tokens

    def _join(self, tokens: list[str]) -> str:
        for place, (old, new) in enumerate(zip(self._tokens, tokens, strict=True)):
            if old != new and place > 0 and tokens[place - 1].lower() in ("a", "an"):
                tokens[place - 1] = _article(tokens[place - 1], new)
        return "".join(gap + token for gap, token in zip(self._gaps, [*tokens, ""], strict=True))


def _article(article: str, word: str) -> str:
    vowel = _VOWEL_SOUND.match(word) and not _CONSONANT_SOUND.match(word)
    return article[0] + ("n" if vowel else "")


def _nltk_tagger(folder: DataFolder) -> Any:
    from nltk.tag.perceptron import PerceptronTagger

    tagger = PerceptronTagger(load=False)
    weights, words, tags = read_tagger(folder)
    tagger.model.weights, tagger.tagdict = weights, words
    tagger.classes = tagger.model.classes = set(tags)
    return tagger
