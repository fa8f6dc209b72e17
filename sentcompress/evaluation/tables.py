"""The tables of scores, used for every evaluation in the terminal, the model card and the report.

Each function returns the column heads and rows of as many texts; empty columns are omitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sentcompress.evaluation.metrics import METRICS
from sentcompress.evaluation.score import COMPARE, MEAN, MODEL, Score
from sentcompress.numeric import between, gain, number, share, signed

Table = tuple[list[str], list[list[str]]]
Place = tuple[str, str, str]
Cell = Callable[["Score | None"], str]
WORSE = {"smaller": "larger", "faster": "slower"}


def table(scores: Sequence[Score], labels: Mapping[str, str], what: str = "data") -> Table:
    """The table of one evaluation: a row for each data set, part and metric, with a column for each model.

    Args:
        labels: role -> display name.
        what: head of the first column.
    """
    rows = by_place(scores)
    names = row_names(list(rows), what)

    def cell(role: str, shown: Cell) -> Callable[[Place], str]:
        return lambda place: shown(rows[place].get(role))

    columns = [(what, names.__getitem__), ("count", lambda place: number(next(iter(rows[place].values())).count))]
    for role in labels:
        columns += [(short(labels[role]), cell(role, _value)), ("95%", cell(role, _interval))]
    columns += [("difference", cell(MODEL, _difference)), ("95%", cell(MODEL, _difference_interval))]
    columns += [(_kept_head(scores), cell(MODEL, kept_or_gained))]
    return _filled(columns, list(rows))


def table_of_models(scores: Sequence[Score], names: Mapping[str, str], what: str = "data") -> Table:
    """The table of several evaluations: a row for each data set and model, compared models first.

    Args:
        scores: scores of a single metric.
        names: model reference -> display name.
        what: head of the first column.
    """
    rows: dict[tuple[Place, str, str], Score] = {}
    for score in scores:
        rows.setdefault((score.place, score.role, score.model), score)
    places = row_names(list(dict.fromkeys(place for place, _, _ in rows)), what)
    ordered = [
        score
        for place in places
        for role in (COMPARE, MODEL)
        for (of, in_role, _), score in rows.items()
        if of == place and in_role == role
    ]
    columns: list[tuple[str, Callable[[Score], str]]] = [
        (what, lambda score: places[score.place]),
        ("model", lambda score: names[score.model]),
        ("count", lambda score: number(score.count)),
        (METRICS[scores[0].metric].title if scores else "score", _value),
        ("95% interval", _interval),
        ("difference", _difference),
        ("95% interval of the difference", _difference_interval),
        (_kept_head(scores), kept_or_gained),
    ]
    return _filled(columns, ordered)


def grid(scores: Sequence[Score], names: Mapping[str, str], what: str = "index") -> Table:
    """A table with a row for each part and model, and a column for each metric.

    Args:
        names: role -> display name.
        what: head of the first column.
    """
    cells: dict[tuple[str, str], dict[str, Score]] = {}
    for score in scores:
        cells.setdefault((score.part, score.role), {})[score.metric] = score
    metrics = list(dict.fromkeys(score.metric for score in scores))
    columns = [what, "model", *(METRICS[metric].title for metric in metrics)]
    rows = [[part, names[role], *(_value(of.get(metric)) for metric in metrics)] for (part, role), of in cells.items()]
    return columns, rows


def languages_table(languages: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> Table:
    """A row for each language of a retrieval evaluation, with the change relative to the compared model in percent.

    Args:
        labels: role -> display name.
    """
    columns: list[tuple[str, Callable[[Mapping[str, Any]], str]]] = [
        ("language", lambda row: "mean of the languages" if row["language"] == MEAN else row["language"]),
        ("queries", lambda row: number(row["queries"])),
        *((short(label), lambda row, role=role: number(row[role], 2)) for role, label in labels.items()),
        ("relative", lambda row: "" if row.get("relative_percent") is None else f"{signed(row['relative_percent'])}%"),
    ]
    return _filled(columns, languages)


def by_place(scores: Sequence[Score]) -> dict[Place, dict[str, Score]]:
    """(data set, part, metric) -> role -> score, in the order of the scores."""
    rows: dict[Place, dict[str, Score]] = {}
    for score in scores:
        rows.setdefault(score.place, {})[score.role] = score
    return rows


def row_names(places: Sequence[Place], what: str) -> dict[Place, str]:
    """Row names of data set, part and metric, as far as these differ."""
    several_data = len({data for data, _, _ in places}) > 1
    several_metrics = len({metric for _, _, metric in places}) > 1
    several_parts = len({part for _, part, _ in places}) > 1
    names = {}
    for place in places:
        data, part, metric = place
        title = f"mean of the {what}s" if data == MEAN else data
        shown = [title] if several_data or not (several_parts or several_metrics) else []
        shown += [part] if part and several_parts else []
        shown += [METRICS[metric].title] if several_metrics else []
        names[place] = ", ".join(shown) or title
    return names


def kept_or_gained(score: Score | None) -> str:
    """`98.8%` for a score, `2.50x smaller` for a size; empty without a compared model or for a ratio near 1."""
    if score is None or score.kept is None:
        return ""
    metric = score.of
    return gain(ratio(score), metric.gain, WORSE[metric.gain]) if metric.gain else share(score.kept)


# Between the labels of the models of queries and documents, see `encoding.sides`.
BESIDE = ", documents by "


def ratio(score: Score) -> float | None:
    """By what factor the value is better than the compared model's; None without a compared model."""
    if score.kept is None:
        return None
    if score.of.higher_is_better:
        return score.kept / 100
    return 100 / score.kept if score.kept else float("inf")


def short(label: str) -> str:
    """A label without its owner or parent folders, also where the queries and the documents have a label each."""
    return BESIDE.join(one.rstrip("/").rpartition("/")[2] for one in label.split(BESIDE))


def _filled(columns: Sequence[tuple[str, Callable[..., str]]], of: Sequence[object]) -> Table:
    cells = [(head, [cell(one) for one in of]) for head, cell in columns]
    kept = [(head, column) for number_, (head, column) in enumerate(cells) if number_ == 0 or any(column)]
    return [head for head, _ in kept], [list(row) for row in zip(*(column for _, column in kept), strict=True)]


def _kept_head(scores: Sequence[Score]) -> str:
    gains = {bool(score.of.gain) for score in scores}
    return "kept or gained" if len(gains) > 1 else "gained" if gains == {True} else "kept"


def _value(score: Score | None) -> str:
    return "" if score is None else score.of.show(score.value)


def _interval(score: Score | None) -> str:
    return "" if score is None else between(score.interval, score.of.decimals)


def _difference(score: Score | None) -> str:
    """Empty for a size, time or speed, where the ratio replaces it."""
    return "" if score is None or score.of.gain else signed(score.difference, score.of.decimals)


def _difference_interval(score: Score | None) -> str:
    return "" if score is None else between(score.difference_interval, score.of.decimals, signed=True)
