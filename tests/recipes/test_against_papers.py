"""The recipes against what the papers say: every published row has its recipe, with the figure and the numbers.

The tables in `recipes/published` were taken from the papers, not from the recipes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel

from sentcompress.commands import find_command
from sentcompress.commands.options import keys_of
from sentcompress.commands.parsing import build
from sentcompress.commands.training import TrainingOptions
from sentcompress.methods import method_class, objective_class
from sentcompress.methods.base import Method
from sentcompress.methods.hyperparameters import Hyperparameters
from sentcompress.models.factorised import _empty
from sentcompress.models.shape import Size
from sentcompress.recipes.document import Recipe, Stage, read_recipe
from sentcompress.recipes.rows import Row

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "recipes"
PUBLISHED = FOLDER / "published"
SETTINGS = PUBLISHED / "settings.tsv"
NONE = "-"
# The sections, appendices and tables of the published papers. HPD's submission has an appendix C too.
PLACES = {
    "HPD": {"sections": "3 4 4.1 4.2 4.3 5 5.1 5.2", "appendices": "A B", "tables": "1 2 3 4"},
    "IBKD": {
        "sections": "3 3.1 3.2 3.3 3.4 4 4.1 4.2 4.3 4.4 4.5 4.6 4.7",
        "appendices": "A A.1 A.2 A.3",
        "tables": "1 2 3 4 5 6 7",
    },
    "DistilCSE": {"sections": "3 3.1 3.2 4 4.1 4.2 4.3 5 5.1 5.2 5.3", "appendices": "A B", "tables": "1 2 3 4 5"},
    "SimTDE": {"sections": "3 4 4.1 4.2 4.3", "appendices": "", "tables": "1 2 3 4"},
}
KINDS = {"section": "sections", "appendix": "appendices", "table": "tables"}
NUMBER = r"(?:[A-Z]\b|\d+)(?:\.\d+)?"
PLACE = re.compile(rf"(?P<kind>[Ss]ection|[Aa]ppendix|[Tt]able)s? (?P<numbers>{NUMBER}(?:(?:,| and| to) {NUMBER})*)")
# Whose places a recipe cites that no name stands before: the paper of its head.
FILES_OF = {"HPD": "hpd", "IBKD": "ibkd*", "DistilCSE": "distilcse", "SimTDE": "simtde*"}
# `column = metric`, and how the printed figure becomes the recipe's.
METRIC = re.compile(r"(?P<column>.+?) = (?P<metric>.+?)(?: x (?P<factor>\d+))?(?: \+ (?P<offset>\d+))?")
# Millions of parameters of the students, from DistilCSE's table 1 and HPD's table 1.
PARAMETERS = {"bert-base": 110, "tinybert6": 52, "tinybert-huawei": 14, "tinybert": 14, "minilm": 23}


@dataclass(frozen=True)
class Line:
    """One row of a published table."""

    place: str
    row: str
    recipe: str
    variant: str
    figures: dict[str, float]
    why: str

    @property
    def variant_or_none(self) -> str | None:
        return None if self.variant == NONE else self.variant


def published() -> Iterator[Line]:
    for path in sorted(PUBLISHED.glob("*.tsv")):
        if path != SETTINGS:
            yield from lines_of(path)


def lines_of(path: Path) -> Iterator[Line]:
    texts = path.read_text(encoding="utf-8").splitlines()
    heads = {key: value for key, _, value in (line[2:].partition(": ") for line in texts if line.startswith("# "))}
    matches = [METRIC.fullmatch(one) for one in heads["metrics"].split("; ") if one]
    table = [line.split("\t") for line in texts if not line.startswith("#")]
    for cells in table[1:]:
        row = dict(zip(table[0], [*cells, *[""] * (len(table[0]) - len(cells))], strict=True))
        figures = {}
        for match in matches:
            assert match is not None, path
            text = row[match["column"]].rstrip("%")
            if text != NONE:
                figures[match["metric"]] = float(text) * int(match["factor"] or 1) + int(match["offset"] or 0)
        yield Line(heads["place"], row["row"], row["recipe"], row["variant"], figures, row["why"])


LINES = list(published())


@cache
def recipe(name: str) -> Recipe:
    found, faults = read_recipe(FOLDER / f"{name}.toml")
    assert not faults
    return found


def rows_of(name: str, variant: str | None) -> list[Row]:
    return list(recipe(name).of_variant(variant).rows)


def test_the_tables_of_the_papers_are_there() -> None:
    """The numbers of rows, counted in the papers."""
    counts = {place: sum(line.place == place for line in LINES) for place in {line.place for line in LINES}}
    expected = {"HPD, Table 1": 14, "HPD, Table 2": 12, "HPD, Table 3": 8, "HPD, Table 4": 16}
    expected |= {"IBKD, Table 2": 18, "IBKD, Table 3": 17, "IBKD, Table 6": 5, "IBKD, Table 7": 5}
    expected |= {"DistilCSE, Table 2": 33, "DistilCSE, Table 3": 6, "DistilCSE, Table 4": 10, "DistilCSE, Table 5": 8}
    expected |= {"SimTDE, Table 1": 7, "SimTDE, Table 2": 9, "SimTDE, Table 3": 3, "SimTDE, Table 4": 5}
    expected |= {"IBKD, Table 4, STS": 4, "IBKD, Table 4, DR": 4, "SimTDE, ablation study": 4}
    # Plots: the models and values of theirs that the texts name.
    expected |= {"IBKD, Figure 3": 8, "IBKD, Figure 4": 2, "IBKD, Figure 5": 5}
    expected |= {"DistilCSE, Figure 2": 12, "DistilCSE, Figure 3": 5}
    assert counts == expected


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.place}: {line.row}")
def test_a_published_row_has_its_recipe_with_its_figure(line: Line) -> None:
    if line.recipe == NONE:
        assert line.why, "a row without a recipe says why"
        return
    rows = [
        row for row in rows_of(line.recipe, line.variant_or_none) if (row.table, row.model) == (line.place, line.row)
    ]
    assert rows, f"{line.recipe} {line.variant} has no row {line.place}: {line.row}"
    stated = {row.metric: row.score for row in rows if row.score is not None}
    assert stated == pytest.approx(line.figures)


def test_a_recipe_states_no_figure_that_no_paper_has() -> None:
    known = {(line.recipe, line.variant_or_none, line.place, line.row) for line in LINES}
    stated = {
        (path.stem, variant, row.table, row.model)
        for path in FOLDER.glob("*.toml")
        for variant in recipe(path.stem).variants or [None]
        for row in rows_of(path.stem, variant)
        if row.score is not None or row.table
    }
    assert stated
    assert stated <= known


def settings() -> list[dict[str, str]]:
    texts = [line for line in SETTINGS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    names = texts[0].split("\t")
    return [dict(zip(names, line.split("\t"), strict=True)) for line in texts[1:]]


def places_in(text: str, paper: str) -> Iterator[tuple[str, str, str]]:
    """(paper, kind, number) of every place that a text cites; the name of another paper before it counts."""
    names = re.compile("|".join([*PLACES, "SimCSE"]))
    for match in PLACE.finditer(text):
        before = names.findall(text[max(0, match.start() - 12) : match.start()])
        for number in re.findall(NUMBER, match["numbers"]):
            yield (before[-1] if before else paper, KINDS[match["kind"].lower()], number)


def cited() -> Iterator[tuple[str, str, str, str]]:
    """(file, paper, kind, number) of every place that the settings and the recipes of a single paper cite."""
    for fact in settings():
        paper = fact["place"].partition(",")[0]
        yield from ((SETTINGS.name, *place) for place in places_in(fact["place"], paper))
    for paper, pattern in FILES_OF.items():
        for path in sorted(FOLDER.glob(f"{pattern}.toml")):
            comments = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
            text = " ".join(line.lstrip("# ") for line in comments).replace("appendix C of the submission", "")
            yield from ((path.name, *place) for place in places_in(text, paper))
    released = (FOLDER / "released.toml").read_text(encoding="utf-8")
    yield from (("released.toml", *place) for place in places_in(released, "HPD"))


def test_every_place_that_is_cited_is_in_the_published_paper() -> None:
    found = [place for place in cited() if place[1] in PLACES]
    assert len(found) > 100
    assert [place for place in found if place[3] not in PLACES[place[1]][place[2]].split()] == []


def matches(text: str, patterns: str) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns.split("|"))


def used(stage: Stage, option: str) -> Any:
    """The value that a stage trains with: the recipe's, or the default of the command or of the method."""
    params_type = find_command(stage.command).params
    # What an input or an earlier stage gives is no number of a paper.
    values = {key: value for key, value in stage.values.items() if "${" not in str(value)}
    for key in keys_of(params_type).values():
        if key.default is MISSING:
            values.setdefault(key.name, ["-"] if key.item else "-")
    params, faults = build(params_type, values)
    assert params is not None, faults
    head, _, name = option.partition(".")
    if head == "set":
        return params.method_options()[name]
    field = keys_of(params_type)[option].field
    if isinstance(params, TrainingOptions) and getattr(params, field) is None:
        return getattr(hyperparameters(params, stage), field).value
    return getattr(params, field)


def hyperparameters(params: TrainingOptions, stage: Stage) -> Hyperparameters:
    """What the stage trains with, which depends on the size of the model that it starts from."""
    start = str(stage.values.get("student", stage.values.get("model")))
    known = [name for name in PARAMETERS if name in start]
    millions = PARAMETERS[max(known, key=len)] if known else 0
    found: Hyperparameters = params.hyperparameters(Size(parameters=millions * 10**6))
    return found


def is_meant(stage: Stage, patterns: str) -> bool:
    """Whether a stage matches one of the patterns, which are of `command` or of `command/name`."""
    named = f"{stage.command}/{stage.values.get('name', '')}"
    return any(fnmatchcase(named if "/" in one else stage.command, one) for one in patterns.split("|"))


@pytest.mark.parametrize("fact", settings(), ids=lambda fact: f"{fact['place']}: {fact['what']}")
def test_a_recipe_uses_the_number_of_the_paper(fact: dict[str, str]) -> None:
    found = 0
    for path in (path for path in sorted(FOLDER.glob("*.toml")) if matches(path.stem, fact["recipe"])):
        variants = recipe(path.stem).variants or {None: None}
        for variant in (name for name in variants if matches(name or "", fact["variant"])):
            stages = recipe(path.stem).of_variant(variant).stages
            values = [used(one, fact["option"]) for one in stages if is_meant(one, fact["stage"])]
            assert values, (path.stem, variant, "no such stage")
            assert all(same(value, fact["value"]) for value in values), (path.stem, variant, values)
            found += 1
    assert found, "no recipe and variant of these names"


def same(value: Any, text: str) -> bool:
    if isinstance(value, list | tuple):
        return [str(one) for one in value] == [text]
    try:
        return float(value) == float(text)
    except (TypeError, ValueError):
        return str(value) == text


def test_a_method_tells_of_the_pooling_that_its_recipes_choose() -> None:
    """Where a recipe does not leave the pooling to the command, who reads of the method alone has to know of it."""
    chosen: set[type[Method]] = set()
    for name in sorted({line.recipe for line in LINES} - {NONE}):
        for variant in recipe(name).variants or [None]:
            for stage in recipe(name).of_variant(variant).stages:
                if str(stage.values.get("pooling", "auto")) == "auto":
                    continue
                if stage.command == "distill":
                    chosen.add(method_class(str(stage.values["method"])))
                if stage.command in ("finetune", "train-teacher"):
                    chosen.add(objective_class(str(stage.values.get("objective", "simcse"))))
    assert {method.__name__ for method in chosen} == {"CKD", "MSE", "PKD", "MetaKD", "SimCSE"}
    for method in chosen:
        assert "`--pooling cls-mlp`" in " ".join(str(inspect.getdoc(method)).split()), method


def test_recipes_that_augment_nli_ask_for_all_of_its_sentences() -> None:
    """IBKD, A.1: the corpus of HPD has 1,196,755 sentences, those of neutral pairs among them. Triplets lack these."""
    augmented = set()
    for name in sorted({line.recipe for line in LINES} - {NONE}):
        for variant in recipe(name).variants or [None]:
            found = recipe(name).of_variant(variant)
            if any(stage.command == "augment" and stage.values.get("wordnet") == 1 for stage in found.stages):
                augmented.add(name)
                assert "neutral" in found.inputs["nli"].about
    assert augmented == {"hpd", "hpd-ft", "ibkd", "ibkd-baselines"}


def cells_of(name: str) -> dict[str, dict[str, str]]:
    """The printed cells of a published table: row -> column -> cell."""
    texts = (PUBLISHED / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    head, *rows = [line.split("\t") for line in texts if not line.startswith("#")]
    return {row[0]: dict(zip(head, row, strict=False)) for row in rows}


def told(name: str) -> str:
    """What the page of the papers says, on one line."""
    return " ".join((ROOT / "docs" / name).read_text(encoding="utf-8").split())


def millions(width: int, layers: int, token_dim: int | None = None) -> tuple[str, str]:
    """The parameters of a student of BERT, without and with its pooler; `token_dim` is that of a narrow table."""
    sizes = {"hidden_size": width, "num_hidden_layers": layers, "intermediate_size": 4 * width, "vocab_size": 30_522}
    config = BertConfig(**sizes, num_attention_heads=2)
    with torch.device("meta"):
        narrow = token_dim is not None
        model: Any = _empty(config, token_dim, 512, 2) if narrow else BertModel(config, add_pooling_layer=False)
    count = sum(parameter.numel() for parameter in model.parameters())
    return f"{count / 1e6:.1f}M", f"{(count + width * width + width) / 1e6:.1f}M"


def test_the_students_have_the_parameters_that_the_papers_print() -> None:
    """SimTDE's count the pooler; a narrow table has narrow positions and token types, as ELECTRA's."""
    base, small = millions(768, 3, 384), millions(384, 3, 128)
    table, entities = cells_of("simtde-table-2"), cells_of("simtde-table-3")
    assert table["SimTDE-384-L3(768)"]["Params"] == base[1]
    assert table["SimTDE-128-L3(384)"]["Params"] == small[1]
    assert table["SimTDE base without encoding layer reduction"]["Params"] == millions(768, 12, 384)[1]
    assert table["LMX-KD-384-L12(384)"]["Params"] == millions(384, 12)[1]
    for token_dim in (64, 32):
        assert entities[f"SimTDE-{token_dim}-L2(128)"]["Params"] == millions(128, 2, token_dim)[1]
    page, lrn_kd = told("papers.md"), millions(768, 2)
    assert f"SimTDE base has {base[0]} instead of {base[1]}, and SimTDE small {small[0]} instead of {small[1]}" in page
    printed = table["LRN-KD-768-L2(768)"]["Params"]
    assert printed not in lrn_kd
    assert f"LRN-KD has {lrn_kd[0]} without and {lrn_kd[1]} with it; Table 2 says {printed}" in page
    assert millions(768, 6)[1] == "67.0M"
    assert "DistilCSE counts 52M for TinyBERT with six layers; the checkpoint has 67M" in page


def test_the_means_that_contradict_their_columns_are_told() -> None:
    wrong = set()
    for path in sorted(PUBLISHED.glob("*-table-*.tsv")):
        for row, cells in cells_of(path.stem).items():
            sets = [float(cell) for column, cell in cells.items() if column.upper().startswith(("STS", "SICK"))]
            printed = cells.get("Avg.", cells.get("Average", "-"))
            if len(sets) == 7 and abs(sum(sets) / 7 - float(printed)) > 0.1:
                wrong.add((row.partition("-768")[0], printed, f"{sum(sets) / 7:.2f}"))
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \w+, Table \d: (\S+) \| ([\d.]+) \| ([\d.]+) \|$", page, flags=re.MULTILINE)
    assert len(rows) == 6
    assert set(rows) == wrong


def test_the_ratios_that_contradict_hpds_tables_are_told() -> None:
    table = cells_of("hpd-table-3")
    student, mpnet = table["HPD-TinyBERT-128"], table["SimCSE-MPNet-768"]
    large = table["SimCSE-RoBERTa-large-1024"]
    ratios = [[float(of[column]) / float(student[column]) for column in ("Time", "Mem")] for of in (large, mpnet)]
    (fast, small), (fast_mpnet, small_mpnet) = [[f"{ratio:.1f}" for ratio in pair] for pair in ratios]
    page = told("papers.md")
    assert f"{fast} times faster search, {small} times less memory" in page
    assert f"those to SimCSE-MPNet are {fast_mpnet} and {small_mpnet}" in page
    means = {row: float(cells["Avg."]) for row, cells in cells_of("hpd-table-1").items()}
    gains = [
        score - other
        for name, score in means.items()
        for row, other in means.items()
        for student_name in ("TinyBERT", "MiniLM")
        if name.startswith(f"HPD-{student_name}") and row.startswith(f"SimCSE-{student_name} +")
    ]
    assert len(gains) == 8
    assert f"is {min(gains):.2f} to {max(gains):.2f} in Table 1" in page


def test_what_is_told_of_the_order_of_the_papers_rows_holds() -> None:
    """The comparison in docs/methods.md says which methods the papers' tables rank above which."""
    page = told("methods.md")
    assert "In IBKD's tables, from worst to best, the order is MSE, CRD, HPD, IBKD" in page
    for name, column in (("ibkd-table-2", "Avg."), ("ibkd-table-3", "MRR@10")):
        cells = cells_of(name)
        for student in ("TinyBERT", "MiniLM"):
            scores = [float(cells[f"{student}-{method}"][column]) for method in ("MSE", "CRD", "HPD", "IBKD")]
            assert scores == sorted(scores)
    assert "by Recall@1000, HPD is best" in page
    recalls = {row: float(cells["Recall@1000"]) for row, cells in cells_of("ibkd-table-3").items()}
    for student in ("TinyBERT", "MiniLM"):
        methods = ("MSE", "CRD", "HPD", "IBKD")
        assert max(methods, key=lambda method: recalls[f"{student}-{method}"]) == "HPD"
    assert "CKD is better than KD, PKD and MetaKD at every size, in both stages" in page
    cells = cells_of("distilcse-table-2")
    teacher = cells["SimCSE-RoBERTa-large"]
    above = set()
    for size in ("BERT-base", "Tiny-L6", "Tiny-L4"):
        for stage in (1, 2):
            scores = {m: float(cells[f"{m}-{size}, stage {stage}"]["Avg."]) for m in ("CKD", "KD", "PKD", "MetaKD")}
            assert max(scores, key=scores.__getitem__) == "CKD"
        if all(float(cells[f"{m}-{size}, stage 2"]["STS13"]) > float(teacher["STS13"]) for m in scores):
            above.add(size)
    assert "as it is for DistilCSE's two larger students" in page
    assert above == {"BERT-base", "Tiny-L6"}
