from __future__ import annotations

import random
from pathlib import Path

import pytest

from sentcompress.augmentations.function_words import is_function_word
from sentcompress.augmentations.wordnet import WordNetSpec, wordnet_spec
from sentcompress.augmentations.wordnet_data import find_tagger
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


def test_spaces_and_punctuation_stay_as_they_were(spec: WordNetSpec) -> None:
    assert (
        spec.load().augment(["Say: (cat) -- well-known; 'cat'!"], 0, 1)[0] == "Say: (feline) -- well-known; 'feline'!"
    )


def test_the_article_follows_the_new_word(spec: WordNetSpec) -> None:
    assert spec.load().augment(["I like a picture"], 0, 1)[0] in ("I like an image", "I like an x ray")
    assert spec.load().augment(["An apple"], 0, 1)[0] == "An eating apple"


def test_a_row_gives_the_same_sentence_whatever_came_before(spec: WordNetSpec) -> None:
    whole = spec.load().augment(TEXTS, 10, 1)
    random.seed(99)
    alone = [spec.load().augment([text], 10 + place, 1)[0] for place, text in enumerate(TEXTS)]
    assert whole == alone


def test_copies_and_seeds_differ(small_wordnet: Path) -> None:
    texts = ["the dog and the quick cat run quickly"] * 20
    specs = [WordNetSpec(small_wordnet, None, seed=seed) for seed in (0, 1)]
    outputs = [spec.load().augment(texts, 0, copy) for spec in specs for copy in (1, 2)]
    assert len({tuple(output) for output in outputs}) == 4


def test_global_random_state_is_left_alone(spec: WordNetSpec) -> None:
    random.seed(5)
    expected = random.random()
    random.seed(5)
    spec.load().augment(TEXTS, 0, 1)
    assert random.random() == expected


def test_a_sentence_without_content_words_stays(spec: WordNetSpec) -> None:
    assert spec.load().augment(["", "He was there.", "1 2 3", "?!"], 0, 1) == ["", "He was there.", "1 2 3", "?!"]


def test_nothing_is_downloaded(spec: WordNetSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    import nltk

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a download was tried")

    monkeypatch.setattr(nltk, "download", refuse)
    spec.load().augment(TEXTS, 0, 1)


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
