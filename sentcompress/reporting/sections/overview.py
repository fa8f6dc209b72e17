"""The first page: what every student kept and gained, and where it stands among the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sentcompress.reporting.charts import Point, dots, scatter
from sentcompress.reporting.evidence import Evidence, Source
from sentcompress.reporting.formats import amount, number, share, size, times
from sentcompress.reporting.parts import Chart, Section, Table
from sentcompress.reporting.sections.retrieval import METRICS
from sentcompress.reporting.summary import Summary, common, mean_over, summaries

Quality = Callable[[Summary], float | None]
Cell = Callable[[Summary], str]
# Every kind of evaluation tells how large a model is.
KINDS = ("sts", "retrieval", "transfer", "fidelity", "bench")

# How much of the height of a row its points take.
ROW_SPREAD = 0.7


def section(evidence: Evidence) -> Section:
    """The table of all models, what they kept of everything, and the frontier of size, speed and quality."""
    found = list(summaries(evidence).values())
    return Section(
        "overview",
        "What was kept, what was gained",
        "In brackets: the share kept of the score that the model beside it reached. Speed is relative to the model "
        "that took turns with it in the same run.",
        charts=[*_kept_chart(evidence, found), *_charts(evidence, found)],
        tables=[*_quality_table(evidence, found), *_gain_table(evidence, found)],
    )


def _quality_table(evidence: Evidence, found: Sequence[Summary]) -> list[Table]:
    data = list(dict.fromkeys(name for summary in found for name in summary.retrieval))
    columns: list[tuple[str, Cell]] = [
        _mean_column("STS", "sets", found, lambda s: s.sts),
        *((_head(found, name), partial(_retrieval, name)) for name in data),
        _mean_column("transfer", "tasks", found, lambda s: s.transfer),
        ("neighbours shared", lambda s: share(s.neighbours)),
    ]
    return _table(evidence, found, "Quality", columns, ("sts", "retrieval", "transfer", "fidelity"))


def _gain_table(evidence: Evidence, found: Sequence[Summary]) -> list[Table]:
    columns: list[tuple[str, Cell]] = [
        ("parameters", lambda s: amount(s.parameters)),
        ("dimensions", lambda s: number(s.dimension)),
        ("bytes of a vector", lambda s: size(4 * s.dimension) if s.dimension else ""),
        ("weights on disk", lambda s: size(s.weight_bytes)),
        # Not sentences a second: those of two runs do not compare.
        ("encoding, times as fast", lambda s: times(s.times_faster)),
    ]
    return _table(evidence, found, "Size and speed", columns, KINDS)


def _table(
    evidence: Evidence, found: Sequence[Summary], title: str, columns: Sequence[tuple[str, Cell]], kinds: Sequence[str]
) -> list[Table]:
    """The columns that say something, if there are any."""
    filled = [(head, cell) for head, cell in columns if any(cell(summary) for summary in found)]
    rows = [[evidence.names[s.reference], *(cell(s) for _, cell in filled)] for s in found]
    used = [Source.of(evaluation.artifact) for evaluation in evidence.evaluations if evaluation.kind in kinds]
    return [Table(title, ["model", *(head for head, _ in filled)], rows, used)] if filled else []


def _mean_column(
    what: str, of: str, found: Sequence[Summary], scores: Callable[[Summary], Mapping[str, float]]
) -> tuple[str, Cell]:
    """Mean scores over what all have in common, with the share of the one that others are held against."""
    names = common([scores(summary) for summary in found])

    def score(summary: Summary) -> float | None:
        return mean_over(scores(summary), names)

    def cell(summary: Summary) -> str:
        kept = _share_of_other(found, score, summary) if summary.compared else None
        return _beside(score(summary), kept)

    return f"{what} ({_listed(names, of)})", cell


def _beside(score: float | None, kept: float | None) -> str:
    return f"{number(score)} ({share(kept)})" if kept is not None else number(score)


def _head(found: Sequence[Summary], name: str) -> str:
    metric = next(summary.retrieval[name][0] for summary in found if name in summary.retrieval)
    return f"{name}, {METRICS.get(metric, metric)}"


def _retrieval(name: str, summary: Summary) -> str:
    if name not in summary.retrieval:
        return ""
    _, score, kept = summary.retrieval[name]
    return _beside(score, kept)


def _listed(names: Sequence[str], what: str = "sets") -> str:
    return ", ".join(names) if len(names) < 3 else f"mean of {len(names)} {what}"


def _kept_chart(evidence: Evidence, found: Sequence[Summary]) -> list[Chart]:
    """Every score as a share of the other model's: what one measure hides, another shows."""
    rows = {
        label: [(summary, kept) for summary, kept in shares if kept is not None]
        for label, shares in _shares_kept(found).items()
    }
    rows = {label: shares for label, shares in rows.items() if shares}
    if len(rows) < 2:
        return []
    models = list(dict.fromkeys(summary.reference for shares in rows.values() for summary, _ in shares))
    named: set[str] = set()
    points = []
    for row, shares in enumerate(rows.values()):
        for summary, kept in shares:
            reference = summary.reference
            legend = None if reference in named else evidence.names[reference]
            # A little above and below the row's middle, so that equal shares do not hide one another.
            y = row + ROW_SPREAD * ((models.index(reference) + 0.5) / len(models) - 0.5)
            points.append(Point(kept, y, evidence.colour(reference), evidence.marker(reference), legend))
            named.add(reference)
    kinds = ("sts", "retrieval", "transfer")
    used = [Source.of(evaluation.artifact) for evaluation in evidence.evaluations if evaluation.kind in kinds]
    caption = "Each score as a share of what the model beside it reached, the dashed line; exact search."
    draw = partial(dots, list(rows), points, x="kept, %", level=100.0)
    return [Chart("kept", "What was kept, measure by measure", caption, draw, used)]


def _shares_kept(found: Sequence[Summary]) -> dict[str, list[tuple[Summary, float | None]]]:
    """A row for each STS set, each retrieval data set, and the mean of the transfer tasks, of our models."""
    ours = [summary for summary in found if summary.compared]
    rows: dict[str, list[tuple[Summary, float | None]]] = {}
    for name in dict.fromkeys(name for summary in ours for name in summary.sts):
        rows[name] = [(summary, _share_of_other(found, partial(_sts, name), summary)) for summary in ours]
    for name in dict.fromkeys(name for summary in ours for name in summary.retrieval):
        rows[_head(found, name)] = [(s, s.retrieval[name][2] if name in s.retrieval else None) for s in ours]
    tasks = common([summary.transfer for summary in found])
    if tasks:
        label = f"transfer ({_listed(tasks, 'tasks')})"
        rows[label] = [(s, _share_of_other(found, lambda s: mean_over(s.transfer, tasks), s)) for s in ours]
    return rows


def _sts(name: str, summary: Summary) -> float | None:
    return summary.sts.get(name)


def _share_of_other(found: Sequence[Summary], score: Quality, summary: Summary) -> float | None:
    """In percent of the score of the one model that others are held against and that has one."""
    others = [score(other) for other in found if not other.compared]
    known = [value for value in others if value is not None]
    own = score(summary)
    return 100 * own / known[0] if own is not None and len(known) == 1 and known[0] > 0 else None


def _charts(evidence: Evidence, found: Sequence[Summary]) -> list[Chart]:
    label, quality, kind = _quality(found)
    axes: list[tuple[str, str, str, Callable[[Summary], float | None], Callable[[float], str] | None, str]] = [
        ("size", "Size and quality", "parameters", lambda s: s.parameters, amount, ""),
        ("vector", "Vector and quality", "bytes of a vector (float32)", _vector_bytes, size, ""),
        ("speed", "Speed and quality", "time to encode, % of the teacher's", _relative_time, None, "bench"),
    ]
    charts = []
    for name, title, x, value, log_x, needs in axes:
        points = [_point(evidence, s, value(s), quality(s)) for s in found]
        drawn = [point for point in points if point is not None]
        if len(drawn) < 2:
            continue
        kinds = {kind, needs}
        used = [Source.of(evaluation.artifact) for evaluation in evidence.evaluations if evaluation.kind in kinds]
        caption = "Up and to the left is better. The dotted line joins the models that no other beats both ways."
        draw = partial(scatter, drawn, x=x, y=label, log_x=log_x, frontier=True)
        charts.append(Chart(f"frontier-{name}", title, caption, draw, used))
    return charts


def _quality(found: Sequence[Summary]) -> tuple[str, Quality, str]:
    """What stands for quality: the STS sets that all have, else a retrieval data set, else neighbours shared."""
    sets = common([summary.sts for summary in found])
    if sets:
        return f"Spearman x 100 ({_listed(sets)})", lambda s: mean_over(s.sts, sets), "sts"
    data = next((name for summary in found for name in summary.retrieval), "")
    if not data:
        return "nearest neighbours shared, %", _neighbours, "fidelity"
    return f"{_head(found, data)} x 100", lambda s: s.retrieval[data][1] if data in s.retrieval else None, "retrieval"


def _neighbours(summary: Summary) -> float | None:
    # What the others are held against shares all of its own.
    return summary.neighbours if summary.compared else 100.0


def _vector_bytes(summary: Summary) -> float | None:
    return 4 * summary.dimension if summary.dimension else None


def _relative_time(summary: Summary) -> float | None:
    if summary.times_faster:
        return 100 / summary.times_faster
    return None if summary.compared or summary.sentences_per_second is None else 100.0


def _point(evidence: Evidence, summary: Summary, x: float | None, y: float | None) -> Point | None:
    if x is None or y is None:
        return None
    reference = summary.reference
    return Point(x, y, evidence.colour(reference), evidence.marker(reference), evidence.names[reference])
