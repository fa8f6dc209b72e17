"""A WordNet of a dozen words in the real format, so that these tests need nothing installed."""

from __future__ import annotations

from pathlib import Path

import pytest

SYNSETS = {
    "noun": [
        ("dog", "domestic_dog", "hound"),
        ("cat", "feline"),
        ("picture", "image", "x-ray"),
        ("run", "streak"),
        ("apple", "eating_apple"),
        ("he", "helium"),
    ],
    "verb": [("run", "sprint", "hurry"), ("eat", "consume"), ("see", "watch")],
    "adj": [("red(a)", "crimson"), ("quick", "fast", "speedy")],
    "adv": [("quickly", "rapidly", "speedily")],
}
COUNTS = [
    "run%2:00:00:: 1 30", "run%1:00:00:: 1 3", "dog%1:00:00:: 1 9", "quick%3:00:00:: 1 4", "red%3:00:00:: 1 2",
]  # fmt: skip
EXCEPTIONS = {"noun": "mice mouse\n", "verb": "ran run\nsaw see\n", "adj": "", "adv": ""}
LICENCE = "  1 A header line, as the database has them\n"


def write_wordnet(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for part, synsets in SYNSETS.items():
        data, offsets = LICENCE, {}
        for words in synsets:
            listed = " ".join(f"{word} 0" for word in words)
            for word in words:
                offsets.setdefault(word.split("(")[0].lower(), []).append(len(data))
            data += f"{len(data):08d} 05 {part[0]} {len(words):02x} {listed} 000 | a gloss\n"
        (folder / f"data.{part}").write_text(data, encoding="ascii")
        lines = [
            f"{word} {part[0]} {len(found)} 1 @ {len(found)} 0 " + " ".join(f"{offset:08d}" for offset in found)
            for word, found in sorted(offsets.items())
        ]
        (folder / f"index.{part}").write_text(LICENCE + "".join(f"{line}  \n" for line in lines), encoding="ascii")
        (folder / f"{part}.exc").write_text(EXCEPTIONS[part], encoding="ascii")
    (folder / "cntlist.rev").write_text("\n".join(COUNTS) + "\n", encoding="ascii")
    return folder


@pytest.fixture
def small_wordnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the small database, which `find_wordnet` finds too."""
    folder = write_wordnet(tmp_path / "nltk_data" / "corpora" / "wordnet")
    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "nltk_data"))
    return folder
