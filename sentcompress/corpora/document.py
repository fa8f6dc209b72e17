"""A document of a collection: its id, its title, and its sections with their headings."""

from __future__ import annotations

from dataclasses import dataclass

from sentcompress.corpora.text_files import is_encodable


@dataclass(frozen=True)
class Section:
    """A heading, empty if there is none, and the text below it, whose paragraphs are separated by blank lines."""

    heading: str
    text: str


@dataclass(frozen=True)
class Document:
    """One document.

    Attributes:
        id: as the input gives it, otherwise the file, and for lines and rows their number.
        title: empty if there is none; not repeated in the sections.
        sections: in order; a document without headings has one.
    """

    id: str
    title: str
    sections: tuple[Section, ...]

    @property
    def text(self) -> str:
        """Title, headings and text as one text, joined as eval-retrieval joins title and text."""
        parts = (self.title, *(part for section in self.sections for part in (section.heading, section.text)))
        return " ".join(part.strip() for part in parts if part.strip())

    @property
    def encodable(self) -> bool:
        """See `text_files.is_encodable`."""
        return is_encodable(self.id + self.text)


def plain_document(name: str, title: str, text: str) -> Document:
    """A document without headings."""
    return Document(name, " ".join(title.split()), (Section("", text),))
