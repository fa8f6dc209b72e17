"""The verdict of a fidelity evaluation: how well a student replaces its teacher.

The thresholds are rules of thumb, calibrated on three measured students, three layers of all-MiniLM-L6-v2 by HPD, CKD
and SimTDE (figures in docs/eval-fidelity.md). They keep 50 to 56% of the ten nearest neighbours, 99% of STS-B, and
96 to 97% of nDCG@10 on Quora's questions, but 86 to 94% on SciFact, where queries are short and documents long:
neighbours among texts of one kind predict little about such searches. Shared neighbours are also a strict measure:
most of the ten are hardly related to the sentence, and their order is unimportant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sentcompress.errors import DamagedError
from sentcompress.evaluation.metrics import NEAREST, NEIGHBOURS
from sentcompress.evaluation.results import read_evaluation
from sentcompress.evaluation.score import COMPARE, MODEL, Score, select
from sentcompress.evaluation.verdict import Level, Verdict, verdict
from sentcompress.numeric import share, whole_share
from sentcompress.store import Artifact

# Smallest fraction of shared neighbours, level, and what to expect.
LEVELS = (
    Level(0.99, "same", "practically the same model"),
    Level(0.7, "close", "a close replacement: expect nearly the same search results"),
    Level(
        0.45,
        "good",
        "good for most uses: similarity scores hardly change; expect to lose a few percent of search quality, and "
        "three times as much with short queries and long documents",
    ),
    Level(0.25, "rough", "a rough approximation: suitable for clustering, or for retrieval followed by re-ranking"),
    Level(0.0, "poor", "not a replacement: train longer, on sentences like these, or with more dimensions or layers"),
)
# Thresholds of the cautions.
LENGTH_DROP = 0.1
SHORT_TEXT = 64  # tokens
TRUNCATED_SHARE = 0.05
UNKNOWN_SHARE = 0.01
FEW_SENTENCES = 1000


def judge(result: Mapping[str, Any], scores: Sequence[Score]) -> Verdict:
    """The verdict for the document and scores of an `eval-fidelity`."""
    ours, other, k = result["model"], result["compare"], result["neighbours"]["k"]
    shared, found = (select(scores, metric, role=MODEL)[0].value for metric in (NEIGHBOURS, NEAREST))
    text = (
        f"{ours['label']} keeps {whole_share(shared)} of the {k} nearest neighbours of {other['label']} "
        f"among {result['sentences']:,} sentences, and finds its nearest one "
        f"{whole_share(found)} of the time. As a rule of thumb, for text like this:"
    )
    return verdict(LEVELS, shared / 100, text, _cautions(result))


def retrieval_of_the_same(fidelity: Artifact, others: Iterable[Artifact]) -> list[str]:
    """A sentence for each `eval-retrieval` of the same two models (by digest), each by itself.

    Damaged artifacts are skipped.
    """
    found = {}
    for artifact in others:
        try:
            one = read_evaluation(artifact)
        except DamagedError:
            continue
        if one.name == "retrieval" and not one.use and _digests(one.artifact) == _digests(fidelity):
            found[one.scores[0].data] = measured_retrieval(one.headlines())
    return list(found.values())


def _digests(artifact: Artifact) -> list[Any]:
    """The digests of both models."""
    return [artifact.facts.get(role, {}).get("digest") for role in (MODEL, COMPARE)]


def measured_retrieval(scores: Sequence[Score]) -> str:
    """A sentence on the search quality measured by an `eval-retrieval` with a compared model."""
    score = scores[0]
    return (
        f"Measured on {score.data}: {share(score.kept)} of the {score.of.label} is kept with {score.part}. A measured "
        "value is more reliable than the rule of thumb."
    )


def _cautions(result: Mapping[str, Any]) -> list[str]:
    ours, other = result["model"], result["compare"]
    cautions = []
    by_length = {bucket["name"]: bucket["overlap"] for bucket in result["neighbours"]["by_length"]}
    if {"short", "long"} <= by_length.keys() and by_length["short"] - by_length["long"] > LENGTH_DROP:
        cautions.append(
            f"long sentences lose more: they share {100 * by_length['long']:.0f}% of the neighbours, short ones "
            f"{100 * by_length['short']:.0f}%"
        )
    usual = next((bucket["shortest"] for bucket in result["neighbours"]["by_length"] if bucket["name"] == "long"), None)
    if usual is not None and result["unit_of_length"] == "tokens" and usual < SHORT_TEXT:
        cautions.append(
            f"two thirds of these texts have fewer than {usual} tokens; longer ones may lose more, so test some "
            "of them, too"
        )
    for role in (ours, other):
        tokens = role["tokens"] or {"truncated_share": 0.0, "unknown_share": 0.0}
        if tokens["truncated_share"] > TRUNCATED_SHARE:
            cut = f"{100 * tokens['truncated_share']:.0f}% of the sentences at {tokens['limit']} tokens"
            cautions.append(f"{role['label']} truncates {cut}: split them, or raise the limit")
        if tokens["unknown_share"] > UNKNOWN_SHARE:
            cautions.append(f"{100 * tokens['unknown_share']:.1f}% of the tokens are unknown to {role['label']}")
    if result["sentences"] < FEW_SENTENCES:
        cautions.append(
            f"only {result['sentences']:,} sentences: with more, neighbours are closer together, and fewer are shared"
        )
    if result["seen_in_training"]:
        cautions.append("the student was trained on these sentences; agreement on new ones is lower")
    return cautions
