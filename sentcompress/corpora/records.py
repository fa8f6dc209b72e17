"""What one record of a corpus says: its sentences, and how they are related."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from sentcompress.corpora.columns import listed
from sentcompress.errors import InputError


class Relation(IntEnum):
    """How the sentences of a record are related. The first three values are the hub's label numbers of NLI sets."""

    ENTAILMENT = 0  # (premise, hypothesis)
    NEUTRAL = 1
    CONTRADICTION = 2
    UNRELATED = 3  # any number of sentences, nothing known about them
    TRIPLET = 4  # (anchor, positive, negative)
    NO_GOLD = 5  # a pair whose annotators did not agree; left out, as is the custom with SNLI


@dataclass(frozen=True)
class Record:
    """The sentences of one line or row; the order of the texts is that of the relation.

    `domain` is what the row says of itself (a genre, a source); nothing where it says nothing.
    """

    texts: tuple[str, ...]
    relation: Relation
    domain: str = ""


@dataclass(frozen=True)
class Unreadable:
    """Stands in for a text that cannot be read."""

    reason: str


class BadRecordError(Exception):
    """A record that cannot be understood; the reader adds file and line."""


@dataclass(frozen=True)
class Layout:
    """Which columns hold the sentences, and which one the label or the part (train, dev, test) of the data set."""

    columns: tuple[str, ...]
    relation: Relation = Relation.UNRELATED
    label: str | None = None
    numbers: bool = True
    part: str | None = None

    @property
    def needed(self) -> tuple[str, ...]:
        """Every column that is read."""
        return self.columns + tuple(name for name in (self.label, self.part) if name)

    def record(self, row: Mapping[str, object], split: str) -> Record | None:
        """The record of a row, or None if the row belongs to another part of the data set than `split`.

        Raises:
            BadRecordError: a column that is missing or no text, a label that is unknown.
        """
        if self.part and plain_text(row.get(self.part, split), repr(self.part)) != split:
            return None
        texts = tuple(_text(row, name) for name in self.columns)
        if self.label is None:
            return Record(texts, self.relation)
        if self.label not in row:
            raise BadRecordError(f"no {self.label!r}")
        return Record(texts, parse_label(row[self.label], self.numbers))


# The column that tells the domain of a row, unless another is named; rows of most files have none.
DOMAIN = "domain"

# The first layout whose columns are all there is taken. Sources, in order: SNLI and MNLI files; the hub's SNLI and
# MNLI; AllNLI.tsv of sentence-transformers; SimCSE's csv; the hub's AllNLI triplets; premise triplets; plain pairs.
LAYOUTS = (
    Layout(("sentence1", "sentence2"), label="gold_label"),
    Layout(("premise", "hypothesis"), label="label"),
    # Binary paraphrase and RTE sets use the same names with numbers that mean other things.
    Layout(("sentence1", "sentence2"), label="label", numbers=False),
    Layout(("sent0", "sent1", "hard_neg"), Relation.TRIPLET),
    Layout(("anchor", "positive", "negative"), Relation.TRIPLET),
    Layout(("premise", "entailment", "contradiction"), Relation.TRIPLET),
    Layout(("sent0", "sent1")),
    Layout(("anchor", "positive")),
    Layout(("premise", "hypothesis")),
    Layout(("sentence1", "sentence2")),
    Layout(("question1", "question2")),
    Layout(("sentence",)),
    Layout(("text",)),
)


def parse_label(value: object, numbers: bool = True) -> Relation:
    """An NLI label as files have it: a word, the hub's number, or `-`, -1 or nothing where there is none.

    Raises:
        BadRecordError: for anything else.
    """
    word = plain_text(value, "the label").strip().lower()
    if word in ("-", "-1", ""):
        return Relation.NO_GOLD
    if word in ("0", "1", "2"):
        return Relation(int(word)) if numbers else Relation.UNRELATED
    named = {"entailment": Relation.ENTAILMENT, "neutral": Relation.NEUTRAL, "contradiction": Relation.CONTRADICTION}
    if word not in named:
        raise BadRecordError(f"unknown label {word[:40]!r} (known: {', '.join(named)}, 0, 1, 2, - and -1)")
    return named[word]


def find_layout(name: str, there: Sequence[str], columns: Sequence[str], domain: str | None = None) -> Layout:
    """The layout of a table that has the columns `there`: the columns asked for, or else a known layout.

    Raises:
        InputError: if a column is missing, `domain` included, or none are asked for and no known layout fits.
    """
    columns_there = f"columns there: {listed(there)}"
    missing = [column for column in (*columns, *([domain] if domain else [])) if column not in there]
    if missing:
        raise InputError(f"{name} has no column {', '.join(map(repr, missing))}", columns_there)
    if columns:
        return Layout(tuple(columns))
    for layout in LAYOUTS:
        if set(layout.needed) <= set(there):
            part = "split" if "split" in there else None
            return Layout(layout.columns, layout.relation, layout.label, layout.numbers, part)
    raise InputError(f"{name}: cannot tell which columns hold sentences", f"{columns_there}; name them with --column")


def record_maker(
    name: str, columns: Sequence[str], split: str, domain: str | None = None
) -> Callable[[Mapping[str, object]], Record | None]:
    """Turns rows into records; the layout is taken from the first row that it sees.

    `domain` is the column that holds each row's domain: `DOMAIN`, where there is one, unless another is named.
    """
    layout: Layout | None = None

    def make(row: Mapping[str, object]) -> Record | None:
        nonlocal layout
        if layout is None:
            layout = find_layout(name, list(row), columns, domain)
        record, said = layout.record(row, split), row.get(domain or DOMAIN)
        if record is None or said is None:
            return record
        return Record(record.texts, record.relation, " ".join(plain_text(said, repr(domain or DOMAIN)).split()))

    return make


def plain_text(value: object, what: str) -> str:
    """A string as it is, a number as a string, an empty string for null.

    Raises:
        BadRecordError: for anything else; `what` names the value in the message.
    """
    if value is None:
        return ""
    if isinstance(value, str | int | float):
        return str(value)
    raise BadRecordError(f"{what} {_fault(value)}")


def _text(row: Mapping[str, object], column: str) -> str:
    if column not in row:
        raise BadRecordError(f"no {column!r} (there: {listed(row)})")
    value = row[column]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadRecordError(f"{column!r} {_fault(value)}")
    return value


def _fault(value: object) -> str:
    return value.reason if isinstance(value, Unreadable) else f"is a {type(value).__name__}, not text"
