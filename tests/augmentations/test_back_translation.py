from __future__ import annotations

import pytest

from sentcompress.augmentations import back_translation
from sentcompress.augmentations.apertium import ApertiumSpec
from sentcompress.augmentations.back_translation import back_translation_spec, check_translators
from sentcompress.augmentations.neural_translation import DEFAULT_ROUTE
from sentcompress.errors import InputError


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """A machine that has what the test says: pivots of apertium, and models in the cache."""
    there: dict[str, object] = {"pivots": (), "cached": False}
    monkeypatch.setattr(back_translation, "find_pivots", lambda: there["pivots"])
    monkeypatch.setattr(back_translation, "check_apertium", lambda pivots: None)
    monkeypatch.setattr(back_translation, "is_cached", lambda name: there["cached"])
    monkeypatch.setattr(back_translation, "neural_spec", lambda routes: routes)
    return there


def test_auto_takes_apertium_then_cached_models(machine: dict[str, object]) -> None:
    machine.update(pivots=("eng-cat", "eng-spa"), cached=True)
    assert back_translation_spec([], 1) == ApertiumSpec(("eng-cat",))
    assert back_translation_spec(["auto"], 2) == ApertiumSpec(("eng-cat", "eng-spa"))
    machine.update(pivots=())
    assert back_translation_spec([], 1) == [DEFAULT_ROUTE]


def test_nlpaug_is_never_replaced_by_another_translator(machine: dict[str, object]) -> None:
    machine.update(pivots=("eng-spa",))
    assert back_translation_spec(["nlpaug"], 1) == [DEFAULT_ROUTE]


def test_without_any_translator_the_error_names_one(machine: dict[str, object]) -> None:
    with pytest.raises(InputError, match="no translator") as caught:
        back_translation_spec([], 1)
    assert "apertium-eng-spa" in str(caught.value.hint)
    with pytest.raises(InputError, match="apertium is not installed"):
        back_translation_spec(["apertium"], 1)


def test_more_copies_than_languages_is_an_error(machine: dict[str, object]) -> None:
    machine.update(pivots=("eng-spa",))
    with pytest.raises(InputError, match="2 languages, found 1 apertium language pair"):
        back_translation_spec([], 2)
    with pytest.raises(InputError, match="2 languages"):
        back_translation_spec(["a/b,b/a"], 2)


def test_models_are_given_in_pairs(machine: dict[str, object]) -> None:
    assert back_translation_spec(["a/b,b/a", "nlpaug"], 2) == [("a/b", "b/a"), DEFAULT_ROUTE]
    assert check_translators(["a/b"])
    assert check_translators(["apertium", "nlpaug"])
    assert not check_translators(["nlpaug"])
