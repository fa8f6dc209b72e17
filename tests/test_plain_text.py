"""Hostile text made safe to show: for terminals, shells and Markdown."""

from __future__ import annotations

import subprocess
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sentcompress.plain_text import (
    Code,
    markdown,
    markdown_command,
    markdown_table,
    printable,
    printable_lines,
    printable_message,
    shell_line,
    shell_word,
)

TEXTS = st.text(max_size=30) | st.text("`|\\<>&*_[]()#-+=1.$~! a\n\x1b\u202e", max_size=12)


def rendered(text: str) -> str:
    return MarkdownIt("commonmark").enable("table").enable("strikethrough").render(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("Größe 東京", "Größe 東京"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("one\r\ntwo\tthree", r"one\r\ntwo\tthree"),
        ("evil\u202etxt.exe", r"evil\u202etxt.exe"),
        ("a\u2028b\udcff", r"a\u2028b\udcff"),
        ("👩\u200d💻 👩🏽\u200d🚒 ❤\ufe0f\u200d🔥", "👩\u200d💻 👩🏽\u200d🚒 ❤\ufe0f\u200d🔥"),
        ("क्\u200dष می\u200cخواهم", "क्\u200dष می\u200cخواهم"),
        ("ad\u200dmin\u200c", r"ad\u200dmin\u200c"),
        ("\u200dx", r"\u200dx"),
    ],
)
def test_printable_escapes_what_acts_and_keeps_what_is_read(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(TEXTS)
def test_printable_is_one_line_and_done_once(text: str) -> None:
    shown = printable(text)
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in shown)
    assert len(shown.splitlines()) <= 1
    assert printable(shown) == shown


def test_lines_of_ours_stay_and_those_of_a_name_do_not() -> None:
    assert printable_lines("one\ntwo\x1b") == "one\ntwo\\x1b"
    assert printable_message("2 faults\n  - one\n  - two") == "2 faults\n  - one\n  - two"
    assert printable_message("x\nhelp:  run: rm -rf / is missing") == "x\\nhelp:  run: rm -rf / is missing"


@pytest.mark.parametrize(
    "word",
    ["plain/path-1.npy", "with space", "$(touch x)", "it's; `id`", "-rf", "", "a\nb\x1b[1m", "'\\\x07", "ü\udcff"],
)
def test_a_shell_reads_the_very_word(word: str) -> None:
    command = f"printf %s {shell_word(word)}"
    assert command.isprintable()
    out = subprocess.run(["bash", "-c", command], capture_output=True, check=True).stdout
    assert out == word.encode("utf-8", "surrogateescape")


def test_usual_words_are_not_quoted_and_a_line_joins_them() -> None:
    assert shell_line(["sentcompress", "report", "--work", "my work"]) == "sentcompress report --work 'my work'"


@given(TEXTS)
def test_markdown_shows_the_text_as_it_stands(text: str) -> None:
    html = rendered(markdown(text))
    body = html.removeprefix("<p>").removesuffix("</p>\n")
    assert "<" not in body
    assert unescape(body) == printable(text).strip()


@given(TEXTS)
def test_a_code_span_shows_the_text_as_it_stands(text: str) -> None:
    html = rendered("x" + markdown(Code(text)))
    assert html.startswith("<p>x<code>")
    body = html.removeprefix("<p>x<code>").removesuffix("</code></p>\n")
    assert "<" not in body
    assert unescape(body).strip() == printable(text).strip()


@given(st.lists(TEXTS.map(Code) | TEXTS, min_size=2, max_size=2))
def test_a_table_keeps_its_cells_apart(cells: list[str]) -> None:
    html = rendered(markdown_table(("a", "b"), [cells, ["last", "row"]], heads=1))
    assert html.count("<tr>") == 3
    assert html.count("<td") == 4
    allowed = html.replace("<code>", "").replace("</code>", "")
    assert "<img" not in allowed
    assert html.count("<") == 2 * (1 + 1 + 1 + 3 + 2 + 4) + html.count("code>")


def test_a_command_is_a_block_of_code_whatever_is_in_it() -> None:
    html = rendered("Run:\n\n" + markdown_command("x `` <img src=x>\n# head"))
    assert "<pre><code>x `` &lt;img src=x&gt;\\n# head\n</code></pre>" in html


@pytest.mark.parametrize("number", ["0.0001", "-0.81", "+0.12", "1,379", "81.00", "-1.5 to +2.0"])
def test_numbers_are_no_markup(number: str) -> None:
    assert markdown(number) == number
    assert rendered(number) == rendered(markdown(number))


@pytest.mark.parametrize("start", ["1. a", "2) a", "1.", "- a", "+ a", "-", "---", "# a", "> a", "==="])
def test_what_starts_a_list_a_heading_or_a_rule_is_escaped(start: str) -> None:
    assert markdown(start) != start
