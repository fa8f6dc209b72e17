from __future__ import annotations

import time
from pathlib import Path

import pytest

from sentcompress.corpora.byte_streams import as_source
from sentcompress.corpora.document_files import find_document_files, read_documents, read_folder
from sentcompress.corpora.html_pages import html_page
from sentcompress.corpora.identified_texts import identified_texts
from sentcompress.corpora.readers import ReadOptions
from sentcompress.corpora.text_files import LONGEST_LINE, BadRecords
from sentcompress.errors import InputError

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<title>Passports | Example &amp; Sons</title>
<style>p > b { color: red }</style><script>if (a < b) document.write("<p>no</p>")</script></head>
<body>
<nav><ul><li><a href="/">Home</a></li></ul></nav>
<div role="search">Find</div>
<h1 id="top">Passports <a class="headerlink" href="#top">¶</a></h1>
<!-- no <p>comment</p> -->
<p>Renew <b>y</b>our
   passport &mdash; <a href="form">by post</a>.<br>Bring a photo.</p>
<h2>Contents</h2>
<ul class="toc"><li><a href="#fees">Fees</a></li><li><a href="#old">Old ones</a></li></ul>
<h2>Fees</h2>
<ul><li>adults pay <a href="x">82 pounds</a><li>children pay less</ul>
<table><tr><th>kind<th>days</tr><tr><td>fast</td><td>1</td></tr></table>
<pre><code>if x:
    pay()
</code></pre>
<p hidden>no</p><p style="display: none">no</p><span aria-hidden="true">no</span><noscript>no</noscript>
<h3>C#</h3>
<h3>Office</h3><ul><li><a href="x">Map</a></ul><p>Open.</p>
<footer>no</footer>
</body></html>
"""


def test_a_page_is_its_visible_text_without_navigation() -> None:
    document = html_page("a.html", PAGE.encode())
    assert document.title == "Passports"
    assert [(section.heading, section.text.split("\n\n")) for section in document.sections] == [
        ("", ["Renew your passport — by post.\nBring a photo."]),
        ("Fees", ["adults pay 82 pounds", "children pay less", "kind days\nfast 1", "if x:\n    pay()"]),
        ("C#", [""]),
        ("Office", ["Open."]),
    ]


def test_without_a_main_heading_the_title_element_is_the_title() -> None:
    document = html_page("a.html", b"<title>Fees\n &lt;2026&gt;</title><p>Text.<h2>More</h2>text")
    assert (document.title, document.text) == ("Fees <2026>", "Fees <2026> Text. More text")


def test_text_in_main_is_the_whole_text() -> None:
    page = b"<body><div>Sidebar</div><main><h1>A</h1><p>Text.</p></main><div>Cookies</div>"
    assert html_page("a.html", page).text == "A Text."
    shell = b"<body><p>Text.</p><main><h1>A</h1></main>"  # a page whose main part a script fills
    assert html_page("a.html", shell).text == "A Text."


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("", ""),
        ("<html><body></body></html>", ""),
        ("no tags, 1 < 2 & 3 > 2", "no tags, 1 < 2 & 3 > 2"),
        ("<h2>Title<p>Text <b>bold</p></i></b></div> more", "Title Text bold more"),
        ("<p>a<p>b<!-- unended", "a b"),
        ("<p>a<script>unended", "a"),
        ("<p>a<img alt='unended", "a"),
        ("<p title='1 > 0'>a</p don't>b", "a b"),
        ("<div><nav>unended</div><p>a", "a"),
        ("<li hidden>a<li>b", "b"),
        (" ", ""),
        ("<!-- a -->", ""),
        ("<p>a<![CDATA[b]]>c<?php d ?>e<!-- f -->g", "aceg"),
        ("a\0b", "a\ufffdb"),
        ("<body style='visibility: hidden'>a", "a"),
        ("<a href='x'>See <b>the</b> <i>form</i> of C<!-- -->&#35;</a> now", "See the form of C# now"),
        ("<p>a <button>no<p>no</button> b", "a b"),
        ("<script>a</script><textarea><p>b</textarea><xmp><i> &amp;</xmp>", "<i> &amp;"),
        ("<h2>A<h3>B</h3>c<p>d", "A B c d"),
        ("<svg><title>no</title></svg><title>A</title>b", "A b"),
        ('<!DOCTYPE a [<!ENTITY b SYSTEM "/etc/hostname">]>&b;', "]>&b;"),
        ("&eacute;&#233;&#xe9;&nosuch;&#0;&#" + "9" * 5000 + ";", "ééé&nosuch;\ufffd\ufffd"),
    ],
)
def test_broken_pages_are_read(page: str, text: str) -> None:
    assert " ".join(html_page("a.html", page.encode()).text.split()) == text


@pytest.mark.parametrize(
    "piece", ["<!--", "<a ", '<a b="', "<a b = ", "<p>", "<b><p>x", "&#9", "<title>", "<span> </span>", "<x>x</x>"]
)
def test_the_time_to_read_a_page_is_linear(piece: str) -> None:
    start = time.process_time()
    html_page("a.html", piece.encode() * 60_000)
    assert time.process_time() - start < 10  # a second


def test_the_time_to_read_a_tag_is_linear_in_its_attributes() -> None:
    start = time.process_time()
    attributes = " ".join(f"a{number}=1" for number in range(60_000))
    assert html_page("a.html", f"<p {attributes}>text".encode()).text == "text"
    assert time.process_time() - start < 10  # 0.1 seconds; as a tree of lxml, minutes


@pytest.mark.parametrize("piece", ["<ul>", "</i><b>", "<h2><div>x", "<div>x</p>"])
def test_a_page_whose_elements_are_nested_too_deep_is_an_error(piece: str) -> None:
    assert html_page("a.html", b"<i>" * 1998 + b"x").text == "x"  # html and body are the other two
    start = time.process_time()
    with pytest.raises(InputError, match="HTML elements are nested more than 2000 deep"):
        html_page("a.html", piece.encode() * 200_000)
    assert time.process_time() - start < 10  # 0.2 seconds; parsed to its end, minutes


def test_a_long_page_is_read_whole() -> None:
    words = [f"wörd{number}<b>&eacute;</b>" for number in range(20_000)]
    assert html_page("a.html", f"<p>{' '.join(words)}".encode()).text.split() == [
        f"wörd{number}é" for number in range(20_000)
    ]


@pytest.mark.parametrize(
    "content",
    [
        "<p>naïve €</p>".encode(),
        "<p>naïve €</p>".encode("cp1252"),
        "<p>naïve €</p>".encode("utf-8-sig"),
        "<p>naïve €</p>".encode("utf-16"),
        b"<meta charset=iso-8859-1>" + "<p>naïve €</p>".encode("cp1252"),
        b'<?xml version="1.0" encoding="iso-8859-15"?>' + "<p>naïve €</p>".encode("iso-8859-15"),
        b'<META http-equiv=Content-Type content="text/html; charset=windows-1252">' + "naïve €".encode("cp1252"),
        b'<meta charset="utf-16">' + "<p>naïve €</p>".encode(),
        b'<meta charset="no-such">' + "<p>naïve €</p>".encode(),
        b'<meta charset="rot13">' + "<p>naïve €</p>".encode(),
    ],
)
def test_the_encoding_is_the_declared_one(content: bytes) -> None:
    assert html_page("a.html", content).text == "naïve €"


def test_a_byte_that_the_declared_encoding_lacks_is_replaced() -> None:
    assert html_page("a.html", b'<meta charset="utf-8"><p>a\xffb').text == "a\ufffdb"


def test_pages_of_a_folder_are_documents(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.htm").write_text("<title>A</title><p>First.")
    (tmp_path / "b" / "c.xhtml").write_text("<h1>C</h1><p>Second.</p>")
    (tmp_path / "d.pdf").write_bytes(b"%PDF-1.4")
    (tmp_path / "e.docx").write_bytes(b"PK\x03\x04")
    found = find_document_files(tmp_path)
    documents = list(read_folder(found, tmp_path, ReadOptions(), BadRecords()))
    assert [(one.id, one.title, one.text) for one in documents] == [
        ("a.htm", "A", "A First."),
        ("b/c.xhtml", "C", "C Second."),
    ]
    advice = "convert .pdf with pdftotext and .docx with pandoc first"
    assert found.unread(Path("x")) == f"x: files that are not read: 1 .pdf, 1 .docx; {advice}"


def test_a_page_is_one_document_whatever_a_document_of_a_text_file_is(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text("<p>One.</p>\n\n<p>Two.</p>")
    for unit in ("line", "paragraph", "file"):
        (document,) = read_documents(path, ReadOptions(text_as=unit), BadRecords())
        assert document.text == "One.\n\nTwo."


def test_a_page_named_by_itself_is_one_text(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text("<title>A</title>\n<p>Text.")
    texts = identified_texts(as_source(path))
    assert list(texts.read()) == [(str(path), "A Text.")]
    with pytest.raises(InputError, match="no table in"):
        identified_texts(as_source(path), ReadOptions(columns=("text",)))


def test_a_page_that_is_none_or_too_long_can_be_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(b"%PDF-1.4")
    (tmp_path / "b.html").write_bytes(b"<p>" + b"a " * (LONGEST_LINE // 2))
    (tmp_path / "c.html").write_text("<p>Text.")
    bad = BadRecords(skip=True)
    documents = list(read_folder(find_document_files(tmp_path), tmp_path, ReadOptions(), bad))
    assert [one.id for one in documents] == ["c.html"]
    assert bad.count == 2
    with pytest.raises(InputError, match="a PDF document"):
        list(read_documents(tmp_path / "a.html", ReadOptions(), BadRecords()))


def test_where_lines_are_read_a_page_is_an_error(tmp_path: Path) -> None:
    from sentcompress.corpora.readers import read_records

    path = tmp_path / "a.html"
    path.write_text("<p>Text.")
    with pytest.raises(InputError, match="is an HTML page"):
        list(read_records(path))
    assert [record.texts for record in read_records(path, ReadOptions(format="text"))] == [("<p>Text.",)]


def test_pages_of_a_folder_that_are_read_as_text_need_no_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise InputError("lxml is not installed", None)

    monkeypatch.setattr("sentcompress.corpora.document_files.check_parser", missing)
    (tmp_path / "a.html").write_text("<p>Text.")
    with pytest.raises(InputError, match="not installed"):
        find_document_files(tmp_path)
    found = find_document_files(tmp_path, format_name="text")
    documents = read_folder(found, tmp_path, ReadOptions(format="text"), BadRecords())
    assert [document.text for document in documents] == ["<p>Text."]
