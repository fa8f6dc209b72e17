from __future__ import annotations

from sentcompress.corpora.document import Section
from sentcompress.corpora.markup import marked_up

MARKDOWN = """---
title: "The guide"
tags: [a]
---
<!-- a comment
of two lines -->
# Install

Use **pip** with `--user`, see [the page](https://x.org/y "title") and ![a logo](logo.png).

- one item
- another *item*

```sh
# no heading
pip install it
```

Options
-------

| name | what |
|---|---|
| `a_b` | snake_case stays |

### Empty ###
"""
RESTRUCTURED = """=========
The guide
=========

Some ``code`` and a :ref:`link <target>` with `text <https://x.org>`_.

.. note:: Read this.

Details
-------

* an item
"""


def test_markdown_is_sections_of_plain_text() -> None:
    document = marked_up("guide.md", MARKDOWN, "md")
    assert document.title == "The guide"
    assert [section.heading for section in document.sections] == ["Install", "Options", "Empty"]
    install, options, _ = (section.text for section in document.sections)
    assert install.split("\n\n") == [
        "Use pip with --user, see the page and a logo.",
        "one item",
        "another item",
        "# no heading\npip install it",
    ]
    assert " ".join(options.split()) == "name what a_b snake_case stays"


def test_the_first_heading_is_the_title_if_nothing_comes_before_it() -> None:
    document = marked_up("a.md", "# The title #\n\nText.\n\n## Part\nMore.", "markdown")
    assert (document.title, document.sections) == ("The title", (Section("", "Text."), Section("Part", "More.")))
    assert document.text == "The title Text. Part More."
    late = marked_up("a.md", "Text first.\n\n# Part\n", "md")
    assert (late.title, late.sections) == ("", (Section("", "Text first."), Section("Part", "")))


def test_a_line_below_a_table_or_a_paragraph_makes_no_heading() -> None:
    document = marked_up("a.md", "A text of\ntwo lines\n---\nMore.\n\n---\n\nEnd.", "md")
    assert [section.heading for section in document.sections] == [""]


def test_restructured_text_is_sections_of_plain_text() -> None:
    document = marked_up("guide.rst", RESTRUCTURED, "rst")
    assert document.title == "The guide"
    assert [section.heading for section in document.sections] == ["", "Details"]
    assert document.sections[0].text.split("\n\n") == ["Some code and a link with text.", "Read this."]
    assert document.sections[1].text == "an item"
