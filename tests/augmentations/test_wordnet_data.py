from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from sentcompress.augmentations.wordnet_data import DataFolder, WordNet, find_wordnet, wordnet_digest
from sentcompress.errors import InputError

REAL = Path("/usr/share/wordnet")


def test_synonyms_are_the_words_of_all_synsets(small_wordnet: Path) -> None:
    wordnet = WordNet(DataFolder(small_wordnet))
    assert wordnet.synonyms("Dog", "n") == ("dog", "domestic_dog", "hound")
    assert wordnet.synonyms("dogs", "n") == ("dog", "domestic_dog", "hound")
    assert wordnet.synonyms("ran", "v") == ("run", "sprint", "hurry")
    assert wordnet.synonyms("red", "a") == ("red", "crimson")  # the marker "(a)" is no part of the word
    assert wordnet.synonyms("xyzzy", "n") == ()


def test_base_forms_follow_the_rules_and_the_exceptions(small_wordnet: Path) -> None:
    wordnet = WordNet(DataFolder(small_wordnet))
    assert wordnet.base_forms("eats", "v") == ["eat"]
    assert wordnet.base_forms("sprinted", "v") == ["sprint"]
    assert wordnet.base_forms("saw", "v") == ["see"]
    assert wordnet.base_forms("mice", "n") == []


def test_the_likely_part_of_speech_is_the_most_frequent(small_wordnet: Path) -> None:
    wordnet = WordNet(DataFolder(small_wordnet))
    assert wordnet.likely_part("runs") == "v"
    assert wordnet.likely_part("dog") == "n"
    assert wordnet.likely_part("xyzzy") is None


def test_a_zip_archive_serves_as_well_as_a_folder(small_wordnet: Path) -> None:
    before = wordnet_digest(DataFolder(small_wordnet))
    archive = small_wordnet.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w") as target:
        for path in small_wordnet.iterdir():
            target.write(path, f"wordnet/{path.name}")
    shutil.rmtree(small_wordnet)
    found = find_wordnet()
    assert found == DataFolder(archive)
    assert wordnet_digest(found) == before
    assert WordNet(found).synonyms("cat", "n") == ("cat", "feline")


def test_an_incomplete_database_is_a_clear_error(small_wordnet: Path) -> None:
    (small_wordnet / "verb.exc").unlink()
    with pytest.raises(InputError, match=r"verb\.exc"):
        WordNet(DataFolder(small_wordnet))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The multilingual functions")
@pytest.mark.skipif(not REAL.is_dir(), reason="no WordNet in /usr/share/wordnet (apt-get install wordnet-base)")
def test_real_synonyms_equal_those_of_nltk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (REAL / "index.sense").exists():
        pytest.skip("nltk's reader needs index.sense (apt-get install wordnet-sense-index)")
    from nltk import data
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    copy = tmp_path / "corpora" / "wordnet"
    copy.mkdir(parents=True)
    for path in REAL.iterdir():
        if path.is_file():
            shutil.copy(path, copy)
    # Debian leaves this file out. nltk wants one line for each of the 45 lexicographer files; names do not matter.
    (copy / "lexnames").write_text("".join(f"{number:02d}\tfile.{number}\t1\n" for number in range(45)))
    monkeypatch.setattr(data, "path", [str(tmp_path)])
    theirs = WordNetCorpusReader(str(copy), None)
    ours = WordNet(DataFolder(REAL))
    words = "dog dogs men running ran better bigger leaves axes lay quickly ice_cream u.s. alive galore x-ray".split()
    for word in words:
        for part in "nvar":
            expected = [lemma.name() for synset in theirs.synsets(word, part) for lemma in synset.lemmas()]
            assert list(ours.synonyms(word, part)) == expected, (word, part)
