"""WordNet substitution, and the reader of the database."""

from __future__ import annotations

import random
import shutil
import zipfile
from pathlib import Path

import pytest

from sentcompress.augmentations.function_words import is_function_word
from sentcompress.augmentations.wordnet import (
    DataFolder,
    WordNet,
    WordNetSpec,
    find_tagger,
    find_wordnet,
    wordnet_digest,
    wordnet_spec,
)
from sentcompress.augmentations.workers import Piece, augment_pieces
from sentcompress.errors import InputError

TEXTS = ["He saw a red dog, and the quick cat.", "An apple-red picture!", "Two dogs run quickly (today)."]


@pytest.fixture
def spec(small_wordnet: Path) -> WordNetSpec:
    return WordNetSpec(small_wordnet, None, share=1.0, seed=3)


def test_content_words_are_replaced_and_nothing_else(spec: WordNetSpec) -> None:
    new = spec.load().augment(["He saw a dog, and the cat."], 0, 1)[0]
    words = new.replace(",", "").replace(".", "").split()
    assert words[0] == "He"
    assert words[1] == "watch"
    assert words[2] == "a"
    assert "dog," not in new.split()
    assert new.endswith("feline.")
    assert " and the " in new


@pytest.mark.parametrize(("tokens", "replaced"), [(1, 1), (2, 1), (7, 3), (10, 3), (40, 10), (100, 10)])
def test_nlpaug_s_share_of_the_tokens_is_replaced(small_wordnet: Path, tokens: int, replaced: int) -> None:
    """Three tenths, rounded up, at least one and at most ten: nlpaug's defaults, which docs/augment.md states."""
    (new,) = WordNetSpec(small_wordnet, None).load().augment([" ".join(["cat"] * tokens)], 0, 1)
    assert sorted(new.split()) == ["cat"] * (tokens - replaced) + ["feline"] * replaced


def test_a_worker_gives_the_same_sentences(spec: WordNetSpec) -> None:
    [(_, new)] = augment_pieces({spec.source: spec}, [Piece(0, spec.source, 1, 10, TEXTS)], 1)
    assert new == spec.load().augment(TEXTS, 10, 1)


def test_spaces_and_punctuation_are_preserved(spec: WordNetSpec) -> None:
    assert (
        spec.load().augment(["Say: (cat) -- well-known; 'cat'!"], 0, 1)[0] == "Say: (feline) -- well-known; 'feline'!"
    )


def test_the_article_follows_the_new_word(spec: WordNetSpec) -> None:
    assert spec.load().augment(["I like a picture"], 0, 1)[0] in ("I like an image", "I like an x ray")
    assert spec.load().augment(["An apple"], 0, 1)[0] == "An eating apple"


def test_the_result_of_a_row_does_not_depend_on_other_rows(spec: WordNetSpec) -> None:
    whole = spec.load().augment(TEXTS, 10, 1)
    random.seed(99)
    alone = [spec.load().augment([text], 10 + place, 1)[0] for place, text in enumerate(TEXTS)]
    assert whole == alone


def test_copies_and_seeds_differ(small_wordnet: Path) -> None:
    texts = ["the dog and the quick cat run quickly"] * 20
    specs = [WordNetSpec(small_wordnet, None, seed=seed) for seed in (0, 1)]
    outputs = [spec.load().augment(texts, 0, copy) for spec in specs for copy in (1, 2)]
    assert len({tuple(output) for output in outputs}) == 4


def test_the_global_random_state_is_unchanged(spec: WordNetSpec) -> None:
    random.seed(5)
    expected = random.random()
    random.seed(5)
    spec.load().augment(TEXTS, 0, 1)
    assert random.random() == expected


def test_a_sentence_without_content_words_is_unchanged(spec: WordNetSpec) -> None:
    assert spec.load().augment(["", "He was there.", "1 2 3", "?!"], 0, 1) == ["", "He was there.", "1 2 3", "?!"]


def test_nothing_is_downloaded(spec: WordNetSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    import nltk

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a download was tried")

    monkeypatch.setattr(nltk, "download", refuse)
    assert len(spec.load().augment(TEXTS, 0, 1)) == len(TEXTS)


def test_function_words_are_recognised() -> None:
    for word in ("a", "The", "he's", "don't", "WITHOUT", "seventeen", "42", "3rd", "x", "would"):
        assert is_function_word(word), word
    for word in ("dog", "Red", "quickly", "running", "x-ray"):
        assert not is_function_word(word), word


def test_without_wordnet_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sentcompress.augmentations.wordnet.find_wordnet", lambda: None)
    with pytest.raises(InputError, match="not installed") as caught:
        wordnet_spec(0.3, 0)
    assert "wordnet-base" in str(caught.value.hint)


def test_the_description_names_everything_that_changes_the_result(spec: WordNetSpec) -> None:
    assert set(spec.describe()) == {"aug_p", "seed", "wordnet", "tagger", "nlpaug"}


def test_nltk_tagger_decides_when_its_data_is_there(
    small_wordnet: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NLTK_DATA", str(shared_data / "nltk_data"))
    tagger = find_tagger()
    if tagger is None:
        pytest.skip("no perceptron tagger in the shared data")
    spec = WordNetSpec(small_wordnet, tagger.path, share=1.0)
    # "run" is mostly a verb, which WordNet's counts say; here it is a noun, which the tagger sees.
    assert spec.load().augment(["The run was long"], 0, 1) == ["The streak was long"]
    assert spec.describe()["tagger"].startswith("nltk")


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


def test_a_zip_archive_in_place_of_a_folder(small_wordnet: Path) -> None:
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
