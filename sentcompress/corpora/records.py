"""One record of a corpus: its sentences, how they are related, and which columns of a table hold them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from sentcompress.corpora.delimited import find_columns, listed
from sentcompress.corpora.text_files import FIX_LINE, BadRecords
from sentcompress.errors import InputError


class Relation(IntEnum):
    """How the sentences of a record are related; 0 to 2 are the label numbers of NLI sets on the hub."""

    ENTAILMENT = 0  # (premise, hypothesis)
    NEUTRAL = 1
    CONTRADICTION = 2
    UNRELATED = 3  # any number of sentences, nothing known about them
    TRIPLET = 4  # (anchor, positive, negative)
    NO_GOLD = 5  # a pair whose annotators did not agree; dropped, as is usual with SNLI
    PARAPHRASE = 6  # a pair in any order; each is a positive of the other
    NOT_PARAPHRASE = 7  # a pair in any order; each is a hard negative of the other


@dataclass(frozen=True)
class Record:
    """The sentences of one line or row, in the order that their relation defines.

    `domain` is the genre or source that the row names; empty if it names none.
    """

    texts: tuple[str, ...]
    relation: Relation
    domain: str = ""


@dataclass(frozen=True)
class Unreadable:
    """Stands in for a text that cannot be read."""

    reason: str


class BadRecordError(Exception):
    """A record that cannot be interpreted; the reader adds file and line. `hint` says what to do."""

    def __init__(self, message: str, hint: str = FIX_LINE) -> None:
        super().__init__(message)
        self.hint = hint


# The labels of each kind of data set, in lower case.
NLI_WORDS = {
    "entailment": Relation.ENTAILMENT,
    "neutral": Relation.NEUTRAL,
    "contradiction": Relation.CONTRADICTION,
}
NLI = {**NLI_WORDS, **{str(int(relation)): relation for relation in NLI_WORDS.values()}}
NO_GOLD_LABELS = ("-", "-1", "nan", "")
_MARKS = {
    **dict.fromkeys(("1", "true", "duplicate", "equivalent"), Relation.PARAPHRASE),
    **dict.fromkeys(("0", "false", "not_duplicate", "not_equivalent"), Relation.NOT_PARAPHRASE),
}
# Of `sentence1` and `sentence2`: MRPC by name, RTE, NLI. The numbers mean other things in each.
_BY_NAME = {
    **NLI_WORDS,
    "not_entailment": Relation.NEUTRAL,
    "equivalent": Relation.PARAPHRASE,
    "not_equivalent": Relation.NOT_PARAPHRASE,
    **dict.fromkeys(("0", "1", "2"), Relation.UNRELATED),
}
# Entity pairs: whether an entity of a catalogue matches a query.
_MATCHES = {
    **dict.fromkeys(("1", "true"), Relation.ENTAILMENT),
    **dict.fromkeys(("0", "false"), Relation.CONTRADICTION),
}
# QNLI: a sentence that does not answer its question comes from the same paragraph as the one that does.
_ANSWERS = {
    **dict.fromkeys(("entailment", "0"), Relation.ENTAILMENT),
    **dict.fromkeys(("not_entailment", "1"), Relation.CONTRADICTION),
}


@dataclass(frozen=True)
class Layout:
    """Which columns hold the sentences, the label, and the split of the data set (train, dev, test).

    Attributes:
        labels: what each label means.
        document: whether the columns are the parts of one document, which make one text.
        titles: the columns that can hold its title, which comes before them; a row may lack it.
    """

    columns: tuple[str, ...]
    relation: Relation = Relation.UNRELATED
    label: str | None = None
    labels: Mapping[str, Relation] = field(default_factory=lambda: NLI)
    split: str | None = None
    document: bool = False
    titles: tuple[str, ...] = ()

    @property
    def needed(self) -> tuple[str, ...]:
        """Every column that is read."""
        return self.columns + tuple(name for name in (self.label, self.split) if name)

    def record(self, row: Mapping[str, object], split: str) -> Record | None:
        """The record of a row, or None if the row belongs to another split.

        Raises:
            BadRecordError: a missing column, a value that is not text, an unknown label.
        """
        if self.split and as_text(row.get(self.split, split), repr(self.split)) != split:
            return None
        if self.document:
            return Record((self.text(row),), self.relation)
        texts = tuple(text_of(row, name) for name in self.columns)
        if self.label is None:
            return Record(texts, self.relation)
        if self.label not in row:
            raise BadRecordError(f"no {self.label!r}")
        return Record(texts, parse_label(row[self.label], self.labels))

    def title(self, row: Mapping[str, object]) -> str:
        """The title of a document; empty if the row has none. Raises BadRecordError."""
        return title_of(row, self.titles)

    def body(self, row: Mapping[str, object]) -> str:
        """The text of a document without its title. Raises BadRecordError."""
        return _joined(text_of(row, name) for name in self.columns)

    def text(self, row: Mapping[str, object]) -> str:
        """The title and the text of a document in one. Raises BadRecordError."""
        return _joined((self.title(row), self.body(row)))


# The column with the domain of a row, unless another is named, and that with its split; most files have neither.
DOMAIN, SPLIT = "domain", "split"

# The columns that hold the title of a document and its text, in order of preference.
TITLES = ("title", "headline", "subject")
BODIES = ("text", "body", "content", "contents", "abstract", "document", "passage", "article")

# The first layout whose columns are all there is taken. Sources, in order: SNLI and MNLI files; SNLI and MNLI on the
# hub; AllNLI.tsv of sentence-transformers, MRPC on the hub; QQP and Quora's release; QQP on the hub; QNLI; MRPC's own
# files; entity pairs; SimCSE's csv; AllNLI triplets on the hub; premise triplets; plain pairs; documents.
LAYOUTS = (
    Layout(("sentence1", "sentence2"), label="gold_label"),
    Layout(("premise", "hypothesis"), label="label"),
    Layout(("sentence1", "sentence2"), label="label", labels=_BY_NAME),
    Layout(("question1", "question2"), label="is_duplicate", labels=_MARKS),
    Layout(("question1", "question2"), label="label", labels=_MARKS),
    Layout(("question", "sentence"), label="label", labels=_ANSWERS),
    Layout(("#1 String", "#2 String"), label="Quality", labels=_MARKS),
    Layout(("query", "entity"), label="label", labels=_MATCHES),
    Layout(("sent0", "sent1", "hard_neg"), Relation.TRIPLET),
    Layout(("anchor", "positive", "negative"), Relation.TRIPLET),
    Layout(("premise", "entailment", "contradiction"), Relation.TRIPLET),
    Layout(("sent0", "sent1")),
    Layout(("anchor", "positive")),
    Layout(("premise", "hypothesis")),
    Layout(("sentence1", "sentence2")),
    Layout(("question1", "question2")),
    Layout(("sentence",)),
    *(Layout((body,), document=True, titles=TITLES) for body in BODIES),
)

# The columns that hold the id of a document, in order of preference.
IDS = ("_id", "id", "doc_id", "docid", "document_id")
# Whole numbers up to this one are exact as floating-point numbers.
_EXACT = 2**53

# The rows of a table in which columns of text are looked for, and what makes a value a text: two words in a row.
LOOKED_AT = 20
_TEXT = re.compile(r"[^\W\d_]{2,}\s+[^\W\d_]{2,}")

# The columns that hold labels.
LABELS = frozenset(layout.label for layout in LAYOUTS if layout.label)

# Every name of a column that has a meaning.
KNOWN = tuple(dict.fromkeys((*(name for layout in LAYOUTS for name in layout.needed), *TITLES, *IDS, DOMAIN, SPLIT)))


def keep_unread(name: str, row: Mapping[str, object], read: Collection[str | None], bad: BadRecords) -> None:
    """Keep in `bad.unread` the columns of a row that hold a text and are not `read`; `name` is that of the table."""
    for column, value in row.items():
        if column and column not in read and isinstance(value, str) and _TEXT.search(value):
            found = bad.unread.setdefault(name, [])
            if column not in found:
                found.append(column)


def parse_label(value: object, labels: Mapping[str, Relation] = NLI) -> Relation:
    """The relation that a label means; `-`, -1, NaN and an empty field stand for a pair without a gold label.

    A label of 1.0 is that of 1.

    Raises:
        BadRecordError: for a label that is not in `labels`.
    """
    word = as_text(value, "the label").strip().lower()
    known = word.removesuffix(".0")
    if known in NO_GOLD_LABELS:
        return Relation.NO_GOLD
    if known not in labels:
        raise BadRecordError(f"unknown label {word[:40]!r} (known: {', '.join(labels)}, - and -1)")
    return labels[known]


def find_layout(
    name: str, there: Sequence[str], columns: Sequence[str], domain: str | None = None, joined: bool = False
) -> Layout:
    """The layout of a table with the columns `there`: the requested `columns`, or else a known layout.

    Args:
        joined: whether the requested columns are the parts of one document instead of a sentence each.

    Raises:
        InputError: if a requested column or `domain` is missing, or no known layout fits.
    """
    find_columns(name, (*columns, *([domain] if domain else [])), there)
    if columns and joined:
        titled = len(columns) > 1 and columns[0].casefold() in TITLES
        return Layout(tuple(columns[titled:]), document=True, titles=tuple(columns[:titled]))
    if columns:
        return Layout(tuple(columns))
    for layout in LAYOUTS:
        if set(layout.needed) <= set(there):
            split = SPLIT if SPLIT in there else None
            return replace(layout, split=split)
    raise InputError(
        f"{name}: cannot tell which columns hold the text (columns: {listed(there)})",
        ("name them with `column`", "rename one to text"),
    )


def record_maker(
    name: str, columns: Sequence[str], split: str, domain: str | None = None, joined: bool = False
) -> Callable[[Mapping[str, object]], Record | None]:
    """A function from rows to records; it chooses the layout by the first row that it sees.

    `domain` is the column with the domain of each row, by default `DOMAIN` if there is one.
    """
    layout: Layout | None = None

    def make(row: Mapping[str, object]) -> Record | None:
        nonlocal layout
        if layout is None:
            layout = find_layout(name, list(row), columns, domain, joined)
        record, named = layout.record(row, split), row.get(domain or DOMAIN)
        if record is None or named is None:
            return record
        return Record(record.texts, record.relation, " ".join(as_text(named, repr(domain or DOMAIN)).split()))

    return make


def as_text(value: object, what: str) -> str:
    """A string as it is, a number as a string, an empty string for null.

    Raises:
        BadRecordError: for anything else; `what` names the value in the message.
    """
    if value is None:
        return ""
    if isinstance(value, str | int | float):
        return str(value)
    raise BadRecordError(f"{what} {_fault_of(value)}")


def id_text(value: object, what: str) -> str:
    """An id as text; empty for null and NaN.

    A floating-point number is read as the integer that it stands for: pandas stores integers so if some are missing.

    Raises:
        BadRecordError: if it stands for none, or `as_text` raises it.
    """
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        if not value.is_integer() or abs(value) > _EXACT:
            raise BadRecordError(f"{what} is {value}; an id is text or a whole number up to 2**53")
        value = int(value)
    return as_text(value, what).strip()


def kind_of(value: object) -> str:
    """What a JSON value is, for error messages: "a number", "a list"."""
    kinds: dict[type, str] = {
        **{bool: "true or false", int: "a number", float: "a number", str: "a string"},
        **{list: "a list", dict: "an object", type(None): "null"},
    }
    return kinds.get(type(value), f"of type {type(value).__name__}")


def title_of(row: Mapping[str, object], titles: Sequence[str] = TITLES) -> str:
    """The first title that a row has in these columns; empty if it has none. Raises BadRecordError."""
    return next((text for name in titles if name in row and (text := text_of(row, name).strip())), "")


def text_of(row: Mapping[str, object], column: str) -> str:
    """The text of a column that every row must have; null is an empty text. Raises BadRecordError."""
    if column not in row:
        raise BadRecordError(f"no {column!r} (there: {listed(row)})")
    value = row[column]
    if value is None:
        return ""
    if isinstance(value, Mapping) and value:
        fields = listed(f"{column}.{name}" for name in value)
        raise BadRecordError(f"{column!r} is an object, not text", f"name a field of it with `column`: {fields}")
    if not isinstance(value, str):
        raise BadRecordError(f"{column!r} {_fault_of(value)}")
    return value


def _joined(texts: Iterable[str]) -> str:
    """The texts that are not empty, with a blank between them."""
    return " ".join(stripped for text in texts if (stripped := text.strip()))


def _fault_of(value: object) -> str:
    """What is wrong with a value that is not text."""
    return value.reason if isinstance(value, Unreadable) else f"is {kind_of(value)}, not text"
