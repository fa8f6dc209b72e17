"""Fidelity section: shared neighbours, similarities, geometry of the vectors, and disagreements."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sentcompress.evaluation.fidelity_verdict import retrieval_of_the_same
from sentcompress.evaluation.metrics import CORRELATION, NEIGHBOURS, SIMILARITIES
from sentcompress.evaluation.results import Evaluation
from sentcompress.evaluation.score import COMPARE, MODEL, select
from sentcompress.numeric import between, measured, number, share
from sentcompress.reporting.charts import Outline, heat_maps, histograms
from sentcompress.reporting.evidence import Evidence, sources
from sentcompress.reporting.parts import Chart, Quotes, Section, Table
from sentcompress.reporting.score_section import score_section

ROLES = (COMPARE, MODEL)
# Number of disagreements shown.
SHOWN = 5


def section(evidence: Evidence) -> Section:
    """All fidelity evaluations."""
    found = evidence.of_kind("fidelity")
    return score_section(
        evidence,
        "fidelity",
        charts=[*_histograms(evidence, found), *(_heat_maps(evidence, evaluation) for evaluation in found)],
        tables=[_kept(evidence, found), _shapes(evidence, found)] if found else [],
        quotes=[quotes for evaluation in found for quotes in _quotes(evidence, evaluation)],
        protocols=[f"{one.statement}; cosine: to {one.facts['cosine_is_to']}" for one in found],
    )


def _name(evidence: Evidence, facts: Mapping[str, Any], role: str) -> str:
    return evidence.names[str(facts[role]["reference"])]


def _kept(evidence: Evidence, found: Sequence[Evaluation]) -> Table:
    columns = (
        "model",
        "compared with",
        "sentences",
        "neighbours shared",
        "95% interval, %",
        "by chance",
        "Spearman of similarities x 100",
        "mean cosine",
        "5th percentile",
    )
    rows = []
    for evaluation in found:
        facts = evaluation.facts
        (shared,) = select(evaluation.scores, NEIGHBOURS, role=MODEL)
        (alike,) = select(evaluation.scores, SIMILARITIES, role=MODEL)
        cosine = facts["cosine_to_compared"] or {}
        rows.append(
            [
                *(_name(evidence, facts, role) for role in (MODEL, COMPARE)),
                number(facts["sentences"]),
                share(shared.value),
                between(shared.interval, 1),
                share(100 * facts["neighbours"]["by_chance"]),
                number(alike.value),
                number(cosine.get("mean"), 3),
                number(cosine.get("percentile_5"), 3),
            ]
        )
    return Table("Agreement", columns, rows, sources(found))


def _shapes(evidence: Evidence, found: Sequence[Evaluation]) -> Table:
    columns = (
        "model",
        "dimensions",
        "effective rank",
        "anisotropy",
        "mean |correlation|",
        "truncated",
        "unknown tokens",
    )
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
                measured(number(model[CORRELATION], 3)),
                share(None if cut is None else 100 * cut),
                share(None if unknown is None else 100 * unknown),
            ]
    return Table("Geometry of the vectors", columns, list(rows.values()), sources(found))


def _histograms(evidence: Evidence, found: Sequence[Evaluation]) -> list[Chart]:
    """A figure for each set of sentences, with the compared models dashed."""
    groups: dict[tuple[Any, ...], list[Evaluation]] = {}
    for evaluation in found:
        groups.setdefault((evaluation.statement, evaluation.data), []).append(evaluation)
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
        caption = "All pairs of a sample of the sentences. A curve further right or narrower separates texts less."
        name = f"similarities-{place + 1}" if place else "similarities"
        charts.append(Chart(name, "Pairwise similarities", caption, draw, sources(group)))
    return charts


def _heat_maps(evidence: Evidence, evaluation: Evaluation) -> Chart:
    facts = evaluation.facts
    panels = [(_name(evidence, facts, role), facts[role]["covariance"]) for role in ROLES]
    model, shown = facts["model"], facts["model"]["dimensions_shown"]
    return Chart(
        f"covariance-{re.sub(r'[^A-Za-z0-9]+', '-', evaluation.artifact.name).strip('-')}",
        f"Covariance of the first {shown} dimensions: {_name(evidence, facts, 'model')}",
        f"Over {model['sentences_of_covariance']:,} sentences, unit vectors. Off-diagonal colour means that dimensions "
        "are redundant.",
        partial(heat_maps, panels),
        sources([evaluation]),
    )


def _quotes(evidence: Evidence, evaluation: Evaluation) -> list[Quotes]:
    facts, source = evaluation.facts, sources([evaluation])
    ours, other = (_name(evidence, facts, role) for role in ("model", "compare"))
    found = []
    if "verdict" in facts:
        verdict = facts["verdict"]
        texts = [[verdict["text"], *_searched(evidence, evaluation)], *([[c] for c in verdict["cautions"]])]
        found.append(Quotes(f"Verdict on {ours}: {verdict['level']}", texts, source))
    pairs = [
        [pair["first"], pair["second"], f"cosine {pair['model']:.2f} with {ours}, {pair['compare']:.2f} with {other}"]
        for pair in facts["disagreements"][:SHOWN]
    ]
    return [*found, Quotes(f"Where {ours} and {other} disagree most", pairs, source)] if pairs else found


def _searched(evidence: Evidence, evaluation: Evaluation) -> list[str]:
    """Retrieval results of the same two models, which are more reliable than the rule of thumb."""
    return retrieval_of_the_same(evaluation.artifact, [one.artifact for one in evidence.of_kind("retrieval")])
