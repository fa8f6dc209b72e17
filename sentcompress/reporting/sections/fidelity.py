"""Fidelity without labels: neighbours and similarities kept, the shape of the vectors, where models disagree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sentcompress.numeric import measured
from sentcompress.reporting.charts import Outline, heat_maps, histograms
from sentcompress.reporting.evidence import Evaluation, Evidence, Source
from sentcompress.reporting.formats import between, number, share
from sentcompress.reporting.hints import missing
from sentcompress.reporting.parts import Chart, Quotes, Section, Table

ROLES = ("compare", "model")
# Of the pairs that an evaluation names, so many are shown.
SHOWN = 5


def section(evidence: Evidence) -> Section:
    """All fidelity evaluations."""
    found = evidence.of_kind("fidelity")
    protocols = [f"{one.facts['protocol']['statement']}; cosine: to {one.facts['cosine_is_to']}" for one in found]
    return Section(
        "fidelity",
        "Fidelity on your own sentences",
        "Without labels: how many nearest neighbours the student shares with its teacher, whether it orders pairs of "
        "sentences alike, and whether its vectors still use their dimensions.",
        charts=[*_histograms(evidence, found), *(_heat_maps(evidence, evaluation) for evaluation in found)],
        tables=[_kept(evidence, found), _shapes(evidence, found)] if found else [],
        quotes=[quotes for evaluation in found for quotes in _quotes(evidence, evaluation)],
        protocols=list(dict.fromkeys(protocols)),
        missing=missing(evidence, "fidelity"),
    )


def _sources(found: Sequence[Evaluation]) -> list[Source]:
    return [Source.of(evaluation.artifact) for evaluation in found]


def _name(evidence: Evidence, facts: Mapping[str, Any], role: str) -> str:
    return evidence.names[str(facts[role]["reference"])]


def _kept(evidence: Evidence, found: Sequence[Evaluation]) -> Table:
    columns = (
        "model",
        "beside",
        "sentences",
        "neighbours shared",
        "95% interval, %",
        "by chance",
        "Spearman of similarities",
        "mean cosine",
        "5% are below",
    )
    rows = []
    for facts in (evaluation.facts for evaluation in found):
        near, cosine = facts["neighbours"], facts["cosine_to_compared"] or {}
        interval = near["interval"]
        rows.append(
            [
                *(_name(evidence, facts, role) for role in ("model", "compare")),
                number(facts["sentences"]),
                share(100 * near["overlap"]),
                between(interval and [100 * end for end in interval], 1),
                share(100 * near["by_chance"]),
                measured(number(facts["spearman_of_similarities"], 3)),
                number(cosine.get("mean"), 3),
                number(cosine.get("percentile_5"), 3),
            ]
        )
    return Table("What is kept", columns, rows, _sources(found))


def _shapes(evidence: Evidence, found: Sequence[Evaluation]) -> Table:
    columns = ("model", "dimensions", "effective rank", "anisotropy", "mean |correlation|", "cut off", "unknown tokens")
    rows: dict[str, list[str]] = {}
    for facts in (evaluation.facts for evaluation in found):
        for role in ROLES:
            model = facts[role]
            tokens = model["tokens"] or {}
            cut, unknown = tokens.get("truncated_share"), tokens.get("unknown_share")
            rows[str(model["reference"])] = [
                _name(evidence, facts, role),
                number(model["dimension"]),
                measured(number(model["effective_rank"], 1)),
                number(model["anisotropy"], 3),
                measured(number(model["mean_absolute_correlation"], 3)),
                share(None if cut is None else 100 * cut),
                share(None if unknown is None else 100 * unknown),
            ]
    return Table("The shape of the vectors", columns, list(rows.values()), _sources(found))


def _histograms(evidence: Evidence, found: Sequence[Evaluation]) -> list[Chart]:
    """A figure for each set of sentences: all students, and dashed what they were held against."""
    groups: dict[tuple[Any, ...], list[Evaluation]] = {}
    for evaluation in found:
        groups.setdefault((evaluation.facts["protocol"]["statement"], evaluation.data), []).append(evaluation)
    charts = []
    for place, group in enumerate(groups.values()):
        outlines: dict[str, Outline] = {}
        for facts in (evaluation.facts for evaluation in group):
            for role in ROLES:
                reference, counts = str(facts[role]["reference"]), facts["histogram"][role]
                shares = [100 * count / sum(counts) for count in counts]
                colour = evidence.colour(reference)
                outlines[reference] = Outline(evidence.names[reference], shares, colour, dashed=role == "compare")
        edges = group[0].facts["histogram"]["edges"]
        draw = partial(histograms, edges, list(outlines.values()), x="cosine of two sentences", y="% of all pairs")
        caption = "All pairs of a sample of the sentences. A curve that moved to the right, or grew narrow, tells less."
        name = f"similarities-{place + 1}" if place else "similarities"
        charts.append(Chart(name, "Similarities of pairs", caption, draw, _sources(group)))
    return charts


def _heat_maps(evidence: Evidence, evaluation: Evaluation) -> Chart:
    facts = evaluation.facts
    panels = [(_name(evidence, facts, role), facts[role]["covariance"]) for role in ROLES]
    model, shown = facts["model"], facts["model"]["dimensions_shown"]
    return Chart(
        f"covariance-{re.sub(r'[^A-Za-z0-9]+', '-', evaluation.artifact.name).strip('-')}",
        f"Covariance of the first {shown} dimensions: {_name(evidence, facts, 'model')}",
        f"Over {model['sentences_of_covariance']:,} sentences, vectors of length one. Colour beside the diagonal is "
        "information that dimensions share.",
        partial(heat_maps, panels),
        [Source.of(evaluation.artifact)],
    )


def _quotes(evidence: Evidence, evaluation: Evaluation) -> list[Quotes]:
    facts, source = evaluation.facts, [Source.of(evaluation.artifact)]
    ours, other = (_name(evidence, facts, role) for role in ("model", "compare"))
    found = []
    if "verdict" in facts:
        verdict = facts["verdict"]
        texts = [[verdict["text"]], *([[caution] for caution in verdict["cautions"]])]
        found.append(Quotes(f"{ours} in a word: {verdict['level']}", texts, source))
    pairs = [
        [pair["first"], pair["second"], f"cosine {pair['model']:.2f} with {ours}, {pair['compare']:.2f} with {other}"]
        for pair in facts["disagreements"][:SHOWN]
    ]
    return [*found, Quotes(f"Where {ours} and {other} disagree most", pairs, source)] if pairs else found
