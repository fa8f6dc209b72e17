"""Where the text of general_corpus.py comes from: families of sources, each with its licence. No script of its own."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

from corpus_texts import Known, paragraphs, plain, read_captions, read_lines, read_nli, tweets
from corpus_wordings import (
    advice,
    beside,
    definitions,
    headlines,
    installed_wordnet,
    opinions,
    questions,
    read_entries,
    replaced,
)

WIKIPEDIA, NEWS, PROMPTS = "wikipedia_en_sample", "reuters21578", "common_voice_en"
NLI_SOURCES = ("snli_sample18k.train", "mnli20k_tok.train", "mnli_llmsknow.train", "wanli_15k.train", "cad.train")
TERM, SENTENCE = ": ", ". "


class Gathered(Protocol):
    """The families that are gathered so far: their texts, and their held-out documents."""

    @property
    def texts(self) -> Mapping[str, list[str]]: ...

    @property
    def held_out(self) -> Mapping[str, list[dict[str, str]]]: ...


CC_BY, CC_BY_SA, CC_BY_NC_SA, CC0 = "CC BY 4.0", "CC BY-SA", "CC BY-NC-SA 4.0", "CC0"


@dataclass(frozen=True)
class Source:
    """Where texts come from.

    Attributes:
        title: what it is, for readers of a model card.
        read: the data folder and the families that are gathered so far -> the texts.
        free: whether weights trained on it may be published.
    """

    name: str
    title: str
    licence: str
    read: Callable[[Path, Gathered], Iterable[str]]
    free: bool = True


@dataclass(frozen=True)
class Family:
    """Sources of one kind. `title_ends` is what stands behind a title at the beginning of a text."""

    sources: tuple[Source, ...]
    title_ends: str = ""


def _file(name: str, title: str, licence: str, free: bool = True) -> Source:
    folder = "free" if free else "research"
    path = Path("text", folder, f"{name}.txt.gz")
    return Source(f"{folder}/{name}", title, licence, lambda data, _: read_lines(data / path), free)


def _corpus(name: str) -> Path:
    return Path("corpus", f"{name}.txt.gz")


def _encyclopedia(data: Path, gathered: Gathered) -> Iterator[str]:
    return paragraphs(read_lines(data / _corpus(WIKIPEDIA)), random.Random("encyclopedia"))


def _news(data: Path, gathered: Gathered) -> Iterator[str]:
    return paragraphs(read_lines(data / _corpus(NEWS)), random.Random("news"))


def _definitions(data: Path, gathered: Gathered) -> Iterator[str]:
    return (text for text, _ in definitions(installed_wordnet(), random.Random("wordnet")))


@dataclass(frozen=True)
class Lines:
    """What made texts are made of; no line stands in a held-out document.

    Attributes:
        printed: of the encyclopedia.
        spoken: prompts and NLI sentences.
        entries: part of speech -> the words of each entry of WordNet.
    """

    printed: list[str]
    spoken: list[str]
    entries: dict[str, list[list[str]]]
    generator: random.Random

    @property
    def alternating(self) -> list[str]:
        return [line for pair in zip(self.printed, self.spoken, strict=False) for line in pair]


MAKERS: dict[str, Callable[[Lines], Iterator[str]]] = {
    "entries": lambda lines: beside(lines.entries["noun"], lines.generator),
    "questions": lambda lines: questions(lines.printed, lines.entries, lines.generator),
    "replaced": lambda lines: replaced(lines.printed, lines.entries["noun"], lines.generator),
    "advice": lambda lines: advice(lines.alternating, lines.entries, lines.generator),
    "opinions": lambda lines: opinions(lines.spoken, lines.generator),
    "headlines": lambda lines: headlines(lines.printed, lines.generator),
}


def _lines(data: Path, gathered: Gathered, name: str) -> Lines:
    held = Known(one["text"] for family in gathered.held_out.values() for one in family)
    generator, wordnet = random.Random(name), installed_wordnet()
    printed = [line.strip() for line in read_lines(data / _corpus(WIKIPEDIA)) if not held.fault(plain(line))]
    spoken = gathered.texts["prompts"] + gathered.texts["inference"]
    generator.shuffle(printed)
    generator.shuffle(spoken)
    return Lines(printed, spoken, {part: read_entries(wordnet, part) for part in ("noun", "verb", "adj")}, generator)


def _made(name: str, title: str, count: int) -> Source:
    """The first `count` texts of a maker."""
    return Source(
        f"made/{name}", title, CC_BY_SA, lambda data, got: islice(MAKERS[name](_lines(data, got, name)), count)
    )


FAMILIES: dict[str, Family] = {
    "abstracts": Family(
        (
            _file("abstracts_arxiv", "abstracts of arXiv", "metadata, CC0 as far as known"),
            _file("abstracts_ml", "abstracts of machine-learning papers", "none stated", free=False),
        ),
        SENTENCE,
    ),
    "biology": Family(
        (
            _file("bio_ontology_definitions", "definitions of biomedical ontologies", "CC0 and CC BY 4.0"),
            _file("biomed_sentences", "sentences of biomedical papers", "texts of their publishers", free=False),
        ),
        TERM,
    ),
    "books": Family((_file("books_nonfiction", "non-fiction books", "public domain (CC0 edition)"),)),
    "computing": Family((_file("dict_computing_misc", "computing dictionaries", "GFDL and public domain"),), TERM),
    "dictionary": Family((_file("dict_gcide", "GCIDE, a dictionary", "GPL 3 or later"),), TERM),
    "docs": Family(
        (
            _file(
                "docs_software",
                "software documentation",
                "public domain, MIT, Apache 2.0, CC BY(-SA) 4.0, GPL 2 and 3, W3C, IETF",
            ),
            _file(
                "docs_debian",
                "documentation of Debian packages",
                "GPL 2, PSF, PostgreSQL, Artistic, GFDL and other free licences",
            ),
        ),
        SENTENCE,
    ),
    "commands": Family((_file("howto_tldr", "tldr pages", CC_BY),)),
    "law": Family(
        (_file("law", "D.C. Code, regulations, security controls", "government works, public domain"),), SENTENCE
    ),
    "medicine": Family((_file("medquad", "MedQuAD", CC_BY),)),
    "textbooks": Family(
        (
            _file("openstax", "OpenStax textbooks", CC_BY),
            _file("openstax_definitions", "definitions of OpenStax textbooks", CC_BY),
            _file("openstax", "OpenStax textbooks", CC_BY_NC_SA, free=False),
            _file("openstax_definitions", "definitions of OpenStax textbooks", CC_BY_NC_SA, free=False),
        )
    ),
    "packages": Family(
        (
            _file("packages_debian", "Debian package descriptions", "licence of each package"),
            _file("packages_apps", "app descriptions", "Apache 2.0 and CC BY-SA 3.0"),
            _file("packages_pypi_npm", "PyPI and npm summaries", "texts of the package authors"),
        ),
        SENTENCE,
    ),
    "products": Family((_file("products_queries", "product queries", "CC0 and MIT"),)),
    "encyclopedia": Family((Source("wikipedia", "a sample of Wikipedia", CC_BY_SA, _encyclopedia),)),
    "inference": Family(
        (
            Source(
                "nli",
                "NLI sentences",
                "SNLI CC BY-SA 4.0, MNLI OANC, WANLI CC BY 4.0, CAD Apache 2.0",
                lambda data, _: read_nli(data, NLI_SOURCES),
            ),
            Source(
                "captions",
                "captions of Multi30k and Flickr8k",
                "non-commercial research",
                lambda data, _: read_captions(data),
                free=False,
            ),
        )
    ),
    "prompts": Family(
        (Source("common voice", "Common Voice prompts", CC0, lambda data, _: read_lines(data / _corpus(PROMPTS))),)
    ),
    "wordnet": Family(
        (
            Source("definitions", "definitions of WordNet", "WordNet 3.0 licence", _definitions),
            _made("entries", "made texts of its neighbouring entries", 40_000),
        ),
        TERM,
    ),
    "questions": Family(
        (
            _file("questions", "questions of MedQuAD, textbooks and WebQuestions", "Apache 2.0 and CC BY 4.0"),
            _file("questions", "questions of MedQuAD, textbooks and WebQuestions", CC_BY_NC_SA, free=False),
            _made("questions", "made questions", 70_000),
        )
    ),
    "titles": Family(
        (
            _file(
                "titles",
                "titles of all of these sources and of machine-learning and biomedical papers",
                "as the source of each",
            ),
            _file(
                "titles",
                "titles of all of these sources and of machine-learning and biomedical papers",
                CC_BY_NC_SA,
                free=False,
            ),
        )
    ),
    "replaced": Family((_made("replaced", "sentences of Wikipedia with replaced nouns", 90_000),)),
    "forum": Family(
        (
            _made("advice", "made advice", 60_000),
            _made("opinions", "made opinions", 40_000),
            _made("headlines", "made headlines", 30_000),
            Source("tweets", "Twitter URL corpus", "texts of their authors", lambda data, _: tweets(data), False),
        )
    ),
    "news": Family((Source("reuters21578", "Reuters-21578", "free for research only", _news, False),)),
}
