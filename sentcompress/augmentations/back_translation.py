"""Back-translation: the choice of a translator."""

from __future__ import annotations

from collections.abc import Sequence

from sentcompress.augmentations.apertium import INSTALL_APERTIUM, ApertiumSpec, check_apertium, find_pivots
from sentcompress.augmentations.base import AugmenterSpec
from sentcompress.augmentations.neural_translation import DEFAULT_ROUTE, Route, check_packages, is_cached, neural_spec
from sentcompress.errors import InputError, UsageError
from sentcompress.quantities import counted

AUTO = "auto"
APERTIUM = "apertium"
NLPAUG = "nlpaug"
INSTALL = f"install one: {INSTALL_APERTIUM}; or name models: `translator` FROM_ENGLISH,TO_ENGLISH"


def check_translators(names: Sequence[str]) -> list[str]:
    """What is wrong with the values of `--translator`; empty if they are valid."""
    faults = []
    for name in names:
        if name not in (AUTO, APERTIUM, NLPAUG) and len(_route(name)) != 2:
            faults.append(f"`translator` {name}: give {AUTO}, {APERTIUM}, {NLPAUG}, or two models as FROM,TO")
    if len(names) > 1 and any(name in (AUTO, APERTIUM) for name in names):
        faults.append(f"`translator` {AUTO} and {APERTIUM} cannot be combined with others")
    return faults


def back_translation_spec(names: Sequence[str], copies: int) -> AugmenterSpec:
    """The specification for a number of copies; models of the hub are downloaded.

    Raises:
        InputError, UsageError: see `choose_translator`; also if a model cannot be found.
    """
    chosen = choose_translator(names, copies)
    return chosen if isinstance(chosen, ApertiumSpec) else neural_spec(chosen)


def choose_translator(names: Sequence[str], copies: int) -> ApertiumSpec | list[Route]:
    """Apertium, or the names of the models that translate, a pair for each copy. Nothing is downloaded.

    `auto` takes apertium, else nlpaug's models if they are on this disk; no other choice falls back to another.

    Raises:
        InputError: if there is no translator, a package is missing, or there are fewer routes than copies.
        UsageError: if `names` are invalid.
    """
    faults = check_translators(names)
    if faults:
        raise UsageError(faults[0])
    wanted = list(names) or [AUTO]
    if wanted in ([AUTO], [APERTIUM]):
        pivots = find_pivots()
        if pivots:
            check_apertium(pivots[:copies])
            _check_routes(copies, len(pivots), "apertium language pair", "apt-get install apertium-eng-cat")
            return ApertiumSpec(pivots[:copies])
        if wanted == [APERTIUM]:
            raise InputError(
                "apertium is not installed, or has no language pair with English", f"run: {INSTALL_APERTIUM}"
            )
        if not all(is_cached(name) for name in DEFAULT_ROUTE):
            raise InputError("no translator is installed", INSTALL)
        wanted = [NLPAUG]
    named = [DEFAULT_ROUTE if name == NLPAUG else _route(name) for name in wanted]
    _check_routes(copies, len(named), "model pair", "give `translator` once for each copy")
    routes = [(there, back) for there, back in named[:copies]]
    check_packages(routes)
    return routes


def _check_routes(copies: int, there: int, what: str, hint: str) -> None:
    if there < copies:
        # A translator always gives the same sentence, so a second copy needs a second language.
        raise InputError(f"`back_translate` {copies} needs {copies} languages, found {counted(there, what)}", hint)


def _route(name: str) -> tuple[str, ...]:
    return tuple(part for part in name.split(",") if part)
