"""Compression section: the result, all models tried, and all vector formats tried."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Any

from sentcompress.evaluation.metrics import LATENCY_P50, METRICS, NDCG, SEARCH_FIDELITY, SPEED
from sentcompress.evaluation.results import Evaluation, read_evaluation
from sentcompress.evaluation.score import COMPARE, MODEL, Score, first_score, select
from sentcompress.evaluation.search_verdict import LOG
from sentcompress.models.weight_formats import with_weights
from sentcompress.numeric import between, gain, number, share, size
from sentcompress.reporting.candidates import Tried, tried_models
from sentcompress.reporting.charts import HorizontalLine, Line, Point, scatter
from sentcompress.reporting.compressions import Compression
from sentcompress.reporting.drawing import MARKERS, SERIES
from sentcompress.reporting.evidence import Evidence, Source, sources
from sentcompress.reporting.parts import Chart, Section, Table

FIDELITY = METRICS[SEARCH_FIDELITY].label
# Markers of the models by how they were made, and what the legend calls that.
MADE = {"": ("x", "not trained"), "distill": ("o", "trained"), "average": ("s", "averaged")}
CHOSEN, OTHER = "series2", "series1"
FLOAT32 = 4


def section(evidence: Evidence, compression: Compression) -> Section:
    """One compression."""
    tried = list(tried_models(compression))
    exported = tried[-1].evaluation
    passages = number(exported.facts["passages"])
    other = evidence.shown(exported.models[COMPARE])
    keep = " Queries are encoded with the model, passages with the teacher." if exported.facts["keep_index"] else ""
    return Section(
        f"compression-{_anchor(compression)}",
        f"Compression: {compression.name}",
        f"Measured on {_queries(exported)}, among {passages} passages. A search fidelity of 100 means the same ten "
        f"results as {other}, in the same order; other results can be equally good.{keep}",
        charts=[_models_chart(compression, tried, other), *_vectors_chart(compression)],
        tables=[result_table(evidence, compression), *_tried_tables(compression, tried)],
        protocols=list(_protocols(compression, exported)),
        tables_first=True,
    )


def _queries(exported: Evaluation) -> str:
    """How many queries were made from held-out documents, and how many are from the user's log."""
    every = exported.facts["queries"]
    logged = sum(one.count or 0 for one in select(exported.scores, SEARCH_FIDELITY, part=LOG, role=MODEL))
    made = f"{number(every - logged)} queries made from held-out documents"
    return f"{made} and {number(logged)} held-out queries of the log" if logged else made


def _anchor(compression: Compression) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", compression.name)


def result_table(evidence: Evidence, compression: Compression) -> Table:
    """Size, speed, bytes of a vector and search fidelity, beside the teacher's."""
    achieved, exported = compression.achieved, list(tried_models(compression))[-1]
    other = evidence.shown(exported.evaluation.models[COMPARE])
    measured = [result for command in ("bench", "eval-retrieval") if (result := compression.last(command))]
    graph = f"int8 graph{with_weights(achieved.weight_format)}" if achieved.graph else "weights"
    rows = [
        [
            "size of the model",
            f"{size(achieved.teacher_bytes)} (weights)",
            f"{size(achieved.bytes)} ({graph})",
            gain(achieved.teacher_bytes / achieved.bytes, "smaller", "larger"),
        ],
        *_speeds(compression),
        [
            "size of a stored vector",
            f"{achieved.teacher_vector_bytes:,} B (float32)",
            f"{achieved.vector_bytes:,} B{_format(compression)}",
            gain(achieved.teacher_vector_bytes / achieved.vector_bytes, "smaller", "larger"),
        ],
        [f"{FIDELITY} as deployed, out of 100", "100", _with(exported.score.value, exported.score.interval), ""],
        *_graph(compression),
        *_judged(compression),
    ]
    made = [compression.last(command) for command in ("export", "fit-quantizer", "eval-search")]
    sources = [Source.of(artifact) for artifact in [*made, *measured] if artifact]
    return Table("Result", ["metric", other, compression.name, "gain"], rows, sources)


def _facts(compression: Compression, command: str) -> Mapping[str, Any]:
    found = compression.last(command)
    return found.facts if found else {}


def _with(value: float, interval: Sequence[float] | None) -> str:
    return number(value, 1) + (f" ({between(interval, 1)})" if interval else "")


def _format(compression: Compression) -> str:
    facts = _facts(compression, "fit-quantizer")
    return f" ({facts['format']}, {facts['dimension']} dimensions)" if facts else ""


def _graph(compression: Compression) -> Iterator[list[str]]:
    """The cosine between the vectors of the int8 graph and those of the float32 weights."""
    graph = _facts(compression, "export").get("checked", {}).get("int8")
    if graph:
        weights = with_weights(compression.achieved.weight_format)
        cosine = number(graph["mean_cosine"], 4)
        yield [f"mean cosine of vectors in float32 and in int8{weights}", "", cosine, ""]


def _is_chosen(row: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    return all(row[key] == facts[key] for key in ("format", "dimension", "bytes"))


def _speeds(compression: Compression) -> Iterator[list[str]]:
    """Speed and latency: the model in its fastest runtime, the teacher in its first, which is torch in float32."""
    bench = compression.last("bench")
    scores = read_evaluation(bench).scores if bench else []
    shown: Mapping[str, tuple[str, Callable[..., Score]]] = {
        SPEED: ("encoding, sentences per second", max),
        LATENCY_P50: ("latency of one sentence, median in ms", min),
    }
    for metric, (label, best) in shown.items():
        theirs, ours = ([s for s in scores if s.metric == metric and s.role == role] for role in (COMPARE, MODEL))
        if theirs and ours:
            mine = best(ours, key=lambda score: score.value)
            ratio = mine.value / theirs[0].value
            cells = [f"{number(score.value, 1)} ({score.part})" for score in (theirs[0], mine)]
            yield [label, *cells, gain(ratio if best is max else 1 / ratio, "faster", "slower")]


def _judged(compression: Compression) -> Iterator[list[str]]:
    found = compression.last("eval-retrieval")
    if found is None:
        return
    evaluation = read_evaluation(found)
    ours, theirs = (first_score(evaluation.scores, NDCG, role) for role in (MODEL, COMPARE))
    if ours and theirs:
        kept = f"{share(ours.kept)} kept" if ours.kept is not None else ""
        cells = [_with(score.value, score.interval) for score in (theirs, ours)]
        yield [f"{METRICS[NDCG].title}, judged queries of {ours.data}", *cells, kept]


def _models_chart(compression: Compression, tried: Sequence[Tried], other: str) -> Chart:
    *candidates, exported = tried
    # Below the others: the chosen candidate has the same score.
    points = [_point(exported, CHOSEN, "D", f"{exported.name} (exported)")]
    shapes = dict.fromkeys(one.shape for one in candidates)
    colours = dict(zip(shapes, cycle(name for name in SERIES if name != CHOSEN), strict=False))
    for shape, colour in colours.items():
        for place, one in enumerate(one for one in candidates if one.shape == shape):
            points.append(_point(one, colour, MADE[one.made][0], None if place else shape))
    points.append(Point(compression.achieved.teacher_bytes, 100.0, "teacher", "P", f"{other} (float32)"))
    keys = [MADE[made] for made in dict.fromkeys(one.made for one in candidates)]
    draw = partial(
        scatter, points, x="size of the model", y=f"{FIDELITY} (out of 100)", log_x=size, keys=keys, frontier=True
    )
    caption = (
        "All models tried. Better is up and to the left; the dotted line is the Pareto front, vertical lines are 95% "
        f"intervals. Sizes are of the int8 graph{with_weights(exported.weight_format)}, computed for models that were "
        "not exported. The export is measured as deployed (int8 graph, stored vectors) on test queries; the other "
        "models are measured with float32 weights and vectors on dev queries."
    )
    return Chart(
        f"tried-{_anchor(compression)}",
        "Search fidelity against model size",
        caption,
        draw,
        sources(one.evaluation for one in tried),
    )


def _point(one: Tried, colour: str, marker: str, legend: str | None) -> Point:
    return Point(one.bytes, one.score.value, colour, marker, legend, one.score.interval)


def _vectors_chart(compression: Compression) -> list[Chart]:
    quantizer = compression.last("fit-quantizer")
    if quantizer is None:
        return []
    facts = quantizer.facts
    points = []
    for place, row in enumerate(facts["tried"]):
        chosen = _is_chosen(row, facts)
        label = f"{row['format']}, {row['dimension']} dims" + (" (chosen)" if chosen else "")
        marker = MARKERS[place % len(MARKERS)]
        colour = CHOSEN if chosen else OTHER
        points.append(Point(row["bytes"], row["fidelity"], colour, marker, label, row["interval"]))
    widths = [FLOAT32 * row["dimension"] for row in facts["prefixes"]]
    prefixes = Line("float32, first dimensions", widths, [row["float32"] for row in facts["prefixes"]], "soft")
    level = HorizontalLine("float32, all dimensions", facts["fidelity_of_float32"], "teacher")
    draw = partial(
        scatter,
        points,
        x="bytes of a stored vector",
        y=f"{FIDELITY} (out of 100)",
        log_x=number_of_bytes,
        levels=[level],
        lines=[prefixes],
    )
    caption = (
        "All formats tried. Better is up and to the left. Queries are float32. The stored vectors are rotated so that "
        "the first dimensions explain the most variance."
    )
    source = [Source.of(quantizer)]
    return [Chart(f"vectors-{_anchor(compression)}", "Search fidelity against vector size", caption, draw, source)]


def number_of_bytes(value: float) -> str:
    """A tick of a chart."""
    return number(int(value))


def _tried_tables(compression: Compression, tried: Sequence[Tried]) -> Iterator[Table]:
    columns = [
        "model",
        "made from",
        "int8 graph",
        "speed, teacher = 1",
        "dev before training",
        FIDELITY,
        "95% interval",
    ]
    rows = [
        [
            one.name + (" (exported)" if one.made == "export" else ""),
            one.how,
            ("" if one.made == "export" else "about ") + size(one.bytes) + with_weights(one.weight_format),
            number(one.faster, 1),
            number(one.before, 1),
            number(one.score.value, 1),
            between(one.score.interval, 1),
        ]
        for one in tried
    ]
    yield Table("Models tried", columns, rows, sources(one.evaluation for one in tried), heads=2, folded=True)
    quantizer = compression.last("fit-quantizer")
    if quantizer is None:
        return
    facts, source = quantizer.facts, [Source.of(quantizer)]
    formats = [
        [
            row["format"] + (" (chosen)" if _is_chosen(row, facts) else ""),
            *(number(row[key]) for key in ("dimension", "bytes")),
            number(row["fidelity"], 1),
            between(row["interval"], 1),
        ]
        for row in facts["tried"]
    ]
    columns = ["format", "dimensions", "bytes per vector", FIDELITY, "95% interval"]
    yield Table("Vector formats tried", columns, formats, source, folded=True)
    widths = [
        [number(row["dimension"]), number(row["float32"], 1), number(row["stored"], 1)] for row in facts["prefixes"]
    ]
    columns = ["first dimensions", f"{FIDELITY}, float32", f"{FIDELITY}, {facts['format']}"]
    yield Table("First dimensions of the vectors", columns, widths, source, folded=True)


def _protocols(compression: Compression, exported: Evaluation) -> Iterator[str]:
    yield f"Search fidelity: {exported.statement}."
    if compression.made_by("bench"):
        yield (
            "Speed: sentences per second, relative to the teacher in torch with float32. Candidates are measured the "
            "same way, the export in its fastest runtime."
        )
    quantizer = compression.last("fit-quantizer")
    if quantizer:
        yield f"Stored vectors: {quantizer.facts['protocol']}."
    trained = next((found for _, found in compression.made_by("distill")), None)
    if trained:
        yield f"Dev before training: {trained.facts['dev_protocol']}."
