"""Overview section: verdict, tables of quality, size and speed, and trade-off charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from sentcompress.evaluation.metrics import METRICS, PARAMETERS, VECTOR_BYTES, WEIGHT_BYTES
from sentcompress.evaluation.registry import EVALUATIONS
from sentcompress.evaluation.results import Evaluation
from sentcompress.evaluation.score import COMPARE, MEAN, MODEL
from sentcompress.numeric import amount, gain, number, share, size, times
from sentcompress.reporting.charts import Point, dots, scatter
from sentcompress.reporting.evidence import Evidence, Source, sources
from sentcompress.reporting.parts import Chart, Section, Table
from sentcompress.reporting.summary import (
    Summary,
    common,
    evaluations_of,
    mean_over,
    order,
    share_of_only,
    shown_share,
    summaries,
)

Value = Callable[[Summary], float | None]
Cell = Callable[[Summary], str]
# Fraction of a row's height over which its points are spread.
ROW_SPREAD = 0.7
# A Pareto front is not drawn for fewer points.
FEWEST_POINTS = 3


def section(evidence: Evidence) -> Section:
    """The tables of all models, the scores kept, and quality against size and speed."""
    found = list(summaries(evidence).values())
    return Section(
        "overview",
        "Overview",
        "In brackets: percent of the compared model's score. Speed is relative to the compared model in the same run.",
        charts=[*_kept_chart(evidence, found), *_frontiers(evidence, found)],
        tables=[*_quality_table(evidence, found), *_gain_table(evidence, found)],
        tables_first=True,
    )


def heading(evidence: Evidence, about: str) -> str:
    """The heading of the report: which models are compared."""
    compression = evidence.compression_of(about)
    if compression is not None:
        return f"{compression.name}: {evidence.shown(compression.teacher)} compressed"
    ours = [reference for reference in evidence.names if evidence.compared(reference)]
    others = [reference for reference in evidence.names if not evidence.compared(reference)]
    name = evidence.names[about]
    more = f" and {len(ours) - 1} more" if about in ours and len(ours) > 1 else ""
    beside = f" compared with {evidence.names[others[0]]}" if len(others) == 1 and others[0] != about else ""
    return f"{name}{more}{beside}" if beside or more else f"Results of {name}"


def verdict(evidence: Evidence, about: str) -> list[str]:
    """The verdict in sentences: sizes before and after, scores kept, and speed; empty without a compared model.

    That of a compression is its own, with what to know of its figures.
    """
    compression = evidence.compression_of(about)
    if compression is not None:
        achieved = compression.achieved
        return [line for line in (achieved.sentence, achieved.results, achieved.caution) if line]
    known = summaries(evidence)
    ours = known[about]
    compared = [one for one in evaluations_of(evidence, about) if COMPARE in one.models]
    if not compared:
        return []
    other = known[str(compared[-1].models[COMPARE]["reference"])]
    said = [f"{evidence.names[other.reference]} \u2192 {evidence.names[about]}: {_sizes(ours, other)}"]
    kept = dict.fromkeys(line for evaluation in compared for line in _heads(evaluation))
    if kept:
        said.append(f"Kept: {', '.join(kept)}.")
    quick = gain(ours.times_faster, "faster", "slower")
    return [*said, *([f"Encodes {quick}."] if quick else [])]


def _heads(evaluation: Evaluation) -> list[str]:
    """The main result of an evaluation: the mean if there is one, else the main metric on each data set."""
    scores = evaluation.headlines()
    main = [s for s in scores if s.role == MODEL and s.metric == scores[0].metric and s.kept is not None]
    mean = [score for score in main if score.data == MEAN]
    where = {MEAN: f"mean of the {evaluation.kind.what}s"}
    told = f", {evaluation.told}" if evaluation.told else ""
    return [
        f"{score.of.label} {share(score.kept)} ({where.get(score.data, score.data)}{told})"
        for score in mean or main
        if not score.of.gain
    ]


def _sizes(ours: Summary, other: Summary) -> str:
    shown = {PARAMETERS: "parameters", WEIGHT_BYTES: "weights", VECTOR_BYTES: "per vector"}
    found = []
    for metric, word in shown.items():
        if metric in ours.sizes and metric in other.sizes:
            before, after = (METRICS[metric].show(of.sizes[metric]) for of in (other, ours))
            found.append(f"{before} to {after} {word}" if before != after else f"{after} {word}")
    return f"{', '.join(found)}." if found else "sizes not measured."


def _quality_table(evidence: Evidence, found: Sequence[Summary]) -> list[Table]:
    names = order(evidence)
    columns = [column for name in names for column in _columns(name, found)]
    return _table(evidence, found, "Quality", columns, [name for name in names if list(_columns(name, found))])


def _gain_table(evidence: Evidence, found: Sequence[Summary]) -> list[Table]:
    # The same model can be faster in another runtime, as the verdict of a compression says.
    runtimes = {summary.speed.part for summary in found if summary.speed and summary.compared}
    part = runtimes.pop() if len(runtimes) == 1 else ""
    runtime = {"": "", "float32": " (PyTorch, float32)"}.get(part, f" ({part})")
    columns: list[tuple[str, Cell]] = [
        ("parameters", lambda s: amount(s.sizes.get(PARAMETERS))),
        ("dimensions", lambda s: number(s.sizes[VECTOR_BYTES] // 4) if VECTOR_BYTES in s.sizes else ""),
        ("bytes per vector (float32)", lambda s: size(s.sizes.get(VECTOR_BYTES))),
        ("weights on disk", lambda s: size(s.sizes.get(WEIGHT_BYTES))),
        # Not sentences per second, which are not comparable between runs.
        (f"encoding speedup{runtime}", lambda s: times(s.times_faster)),
    ]
    return _table(evidence, found, "Size and speed", columns, order(evidence))


def _table(
    evidence: Evidence, found: Sequence[Summary], title: str, columns: Sequence[tuple[str, Cell]], names: Sequence[str]
) -> list[Table]:
    """A table of the columns and rows that are not empty, if there are any."""
    filled = [(head, cell) for head, cell in columns if any(cell(summary) for summary in found)]
    rows = [[evidence.names[s.reference], *(cell(s) for _, cell in filled)] for s in found]
    rows = [row for row in rows if any(row[1:])]
    return [Table(title, ["model", *(head for head, _ in filled)], rows, _used(evidence, names))] if filled else []


def _used(evidence: Evidence, names: Sequence[str]) -> list[Source]:
    return sources(evaluation for evaluation in evidence.evaluations if evaluation.name in names)


def _columns(name: str, found: Sequence[Summary]) -> Iterator[tuple[str, Cell]]:
    """The columns of one evaluation: the mean if it is averaged, else one per data set.

    A score that only the compared model has, because all others used stored vectors, has no column.
    """
    ours = [summary for summary in found if summary.compared] or found
    for label, value, kept in _metrics(name, found):
        if any(value(summary) is not None for summary in ours):
            yield label, partial(_cell, value, kept)


def _cell(value: Value, kept: Value, summary: Summary) -> str:
    return number(value(summary)) + (shown_share(kept(summary)) if summary.compared else "")


def _metrics(name: str, found: Sequence[Summary]) -> Iterator[tuple[str, Value, Value]]:
    """Label, value and percentage kept for the main metric of one evaluation; nothing if it is not a score."""
    metric = _main(name, found)
    if metric is None:
        return
    if name in EVALUATIONS and EVALUATIONS[name].averaged:
        names = common([summary.values(name, metric) for summary in found])
        if names:
            kind = EVALUATIONS[name]
            value = partial(_mean, name, metric, names)
            yield f"{kind.short} ({_listed(names, f'{kind.what}s')})", value, partial(_share, found, value)
        return
    for data in dict.fromkeys(data for summary in found for data in summary.values(name, metric)):
        key = (name, data, metric)
        yield f"{data}, {METRICS[metric].label}", partial(_score, key), partial(_kept, key)


def _main(name: str, found: Sequence[Summary]) -> str | None:
    """The main metric of an evaluation; None if it is not a score."""
    metrics = [metric for summary in found for of, _, metric in summary.scores if of == name]
    return metrics[0] if metrics and not METRICS[metrics[0]].gain else None


def _mean(name: str, metric: str, names: Sequence[str], summary: Summary) -> float | None:
    return mean_over(summary.values(name, metric), names)


def _score(key: tuple[str, str, str], summary: Summary) -> float | None:
    return summary.scores[key].value if key in summary.scores else None


def _kept(key: tuple[str, str, str], summary: Summary) -> float | None:
    return summary.scores[key].kept if key in summary.scores else None


def _share(found: Sequence[Summary], value: Value, summary: Summary) -> float | None:
    """Percent of the reference model's score; None if several reference models have one."""
    return share_of_only(value(summary), [value(other) for other in found if not other.compared])


def _listed(names: Sequence[str], what: str = "sets") -> str:
    return ", ".join(names) if len(names) < 3 else f"mean of {len(names)} {what}"


def _kept_chart(evidence: Evidence, found: Sequence[Summary]) -> list[Chart]:
    """All scores in percent of the compared model's, one row per data set."""
    rows = {label: shares for label, shares in _shares_kept(evidence, found).items() if shares}
    if len(rows) < 2:
        return []
    models = list(dict.fromkeys(summary.reference for shares in rows.values() for summary, _ in shares))
    named: set[str] = set()
    points = []
    for row, shares in enumerate(rows.values()):
        for summary, kept in shares:
            reference = summary.reference
            legend = None if reference in named else evidence.names[reference]
            # Spread around the row's centre, so that equal values do not overlap.
            y = row + ROW_SPREAD * ((models.index(reference) + 0.5) / len(models) - 0.5)
            points.append(Point(kept, y, evidence.colour(reference), evidence.marker(reference), legend))
            named.add(reference)
    used = _used(evidence, [name for name in order(evidence) if _main(name, found)])
    caption = "Scores in percent of the compared model's (dashed line); retrieval with exact search."
    draw = partial(dots, list(rows), points, x="kept, %", level=100.0)
    return [Chart("kept", "Scores kept, by data set", caption, draw, used)]


def _shares_kept(evidence: Evidence, found: Sequence[Summary]) -> dict[str, list[tuple[Summary, float]]]:
    """Row label -> (model, percentage kept) pairs, with a row for each data set of each evaluation."""
    rows: dict[str, list[tuple[Summary, float]]] = {}
    for name in order(evidence):
        metric = _main(name, found)
        for data in dict.fromkeys(d for summary in found if metric for d in summary.values(name, metric)):
            assert metric is not None
            key = (name, data, metric)
            value = partial(_score, key)
            label = f"{data}, {METRICS[metric].label}"
            kept = [
                (s, found_share)
                for s in found
                if s.compared
                and (found_share := _kept(key, s) if _kept(key, s) is not None else _share(found, value, s)) is not None
            ]
            rows[label] = kept
    return rows


def _frontiers(evidence: Evidence, found: Sequence[Summary]) -> list[Chart]:
    quality = _quality(evidence, found)
    if quality is None:
        return []
    label, value, name = quality
    axes: list[tuple[str, str, str, Value, Callable[[float], str] | None, str]] = [
        ("size", "Quality against size", "parameters", lambda s: s.sizes.get(PARAMETERS), amount, ""),
        (
            "vector",
            "Quality against vector size",
            "bytes per vector (float32)",
            lambda s: s.sizes.get(VECTOR_BYTES),
            size,
            "",
        ),
        ("speed", "Quality against speed", "encoding time, % of the teacher's", _relative_time, None, "bench"),
    ]
    charts = []
    for chart, title, x, across, log_x, needs in axes:
        points = [_point(evidence, s, across(s), value(s)) for s in found]
        drawn = [point for point in points if point is not None]
        if len(drawn) < FEWEST_POINTS or len({point.x for point in drawn}) < 2:
            continue
        caption = "Better is up and to the left. The dotted line is the Pareto front."
        draw = partial(scatter, drawn, x=x, y=label, log_x=log_x, frontier=True)
        charts.append(Chart(f"frontier-{chart}", title, caption, draw, _used(evidence, (name, needs))))
    return charts


def _quality(evidence: Evidence, found: Sequence[Summary]) -> tuple[str, Value, str] | None:
    """The quality axis: the first metric of the first evaluation that has one."""
    for name in order(evidence):
        metric = _main(name, found)
        for label, value, _ in _metrics(name, found):
            assert metric is not None
            return f"{label} x {METRICS[metric].scale}", value, name
    return None


def _relative_time(summary: Summary) -> float | None:
    if summary.times_faster:
        return 100 / summary.times_faster
    return None if summary.compared or summary.speed is None else 100.0


def _point(evidence: Evidence, summary: Summary, x: float | None, y: float | None) -> Point | None:
    if x is None or y is None:
        return None
    reference = summary.reference
    return Point(x, y, evidence.colour(reference), evidence.marker(reference), evidence.names[reference])
