from __future__ import annotations

import os
from pathlib import Path

import pytest

from sentcompress.augmentations import apertium
from sentcompress.augmentations.apertium import ApertiumSpec, check_apertium, find_pivots
from sentcompress.errors import InputError

HARD = [
    "He spent $5 on a/b c@d.com, ^x^ [y] {z} <b> ~t *s and C:\\new.",
    "[3]",
    "Hello [7]",
    "no\0pe",
    "50% #tag #5 + & \u00bf? \U0001f600 \u4f60\u597d",
    'He said: "hi".',
    "No full stop",
    "a" * 500,
]
needs_apertium = pytest.mark.skipif(
    not find_pivots(), reason="no apertium with a pair of English (apt-get install apertium apertium-eng-spa)"
)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program `apertium` that upper-cases, and loses every batch that holds the word "bad"."""
    (tmp_path / "modes").mkdir()
    for mode in ("eng-spa", "spa-eng", "eng-cat", "spa-eng_US"):
        (tmp_path / "modes" / f"{mode}.mode").write_text("lt-proc '/nowhere'")
    program = tmp_path / "apertium"
    program.write_text(
        "#!/usr/bin/env python3\nimport sys\ntext = sys.stdin.read()\n"
        "pieces = text.split('\\0')\n"
        "print(end='\\0'.join(p.upper() for p in pieces if 'bad' not in p))\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("APERTIUM_DATADIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return program


def test_only_pairs_with_a_way_back_are_pivots(fake: Path) -> None:
    assert find_pivots() == ("eng-spa",)


def test_a_sentence_that_breaks_the_translator_stays_and_spoils_no_other(fake: Path) -> None:
    new = ApertiumSpec(("eng-spa",)).load().augment(["one", "two", "a bad one", "three."], 0, 1)
    assert new == ["ONE", "TWO", "a bad one", "THREE."]


def test_a_broken_installation_is_a_clear_error(fake: Path) -> None:
    fake.write_text("#!/bin/sh\necho 'no such locale' >&2\nexit 1\n")
    with pytest.raises(InputError, match="no such locale"):
        check_apertium(["eng-spa"])


def test_the_description_follows_the_data(fake: Path) -> None:
    before = ApertiumSpec(("eng-spa",)).describe()
    (fake.parent / "modes" / "spa-eng.mode").write_text("other")
    assert ApertiumSpec(("eng-spa",)).describe() != before


def test_without_the_program_there_are_no_pivots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_pivots() == ()


def test_escaping_is_undone() -> None:
    for text in HARD:
        assert apertium._ESCAPED.sub(r"\1", apertium._escape(text)) == text.replace("\0", " ")


@needs_apertium
def test_real_translation_keeps_sentences_apart() -> None:
    augmenter = ApertiumSpec(find_pivots()[:1]).load()
    texts = ["A man is playing a guitar", "Two dogs run on the grass.", *HARD]
    together = augmenter.augment(texts, 0, 1)
    assert together == augmenter.augment(texts[:1], 0, 1) + augmenter.augment(texts[1:], 0, 1)
    assert together[1].startswith("Two dogs")
    assert not together[0].endswith(".")
    assert all("*" not in new for new in together[:2])
