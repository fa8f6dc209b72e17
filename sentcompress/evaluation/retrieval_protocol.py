"""What retrieval is scored by, for each kind of data set, in words and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentcompress.evaluation.bootstrap import CONFIDENCE, ROUNDS
from sentcompress.evaluation.retrieval import CUTOFF, RECALLS, recall_cutoffs
from sentcompress.evaluation.retrieval_comparison import SINGLE_QUERIES, TIMED_QUERIES, Task

MAIN = {"pairs": "mrr_at_10", "collection": "ndcg_at_10", "entities": "recall_at_1"}
DEPTHS = {"pairs": CUTOFF, "collection": max(RECALLS), "entities": CUTOFF}
STATEMENTS = {
    "pairs": "question pairs: corpus of the distinct question2, queries the distinct question1, relevant every "
    "question2 marked as a duplicate; queries without one are timed and not scored",
    "collection": "collection with judgements: a document is its title, a blank and its text, stripped; relevant what "
    "is judged above zero; the queries of the split that have such a document",
    "entities": "entity resolution: a catalogue of the distinct entities, queries with a pair of label 1, relevant "
    "every entity of such a pair",
}


def protocol(kind: str, split: str | None, task: Task, threads: int) -> dict[str, Any]:
    """The protocol as a statement, and its numbers one by one.

    Args:
        kind: pairs, collection or entities.
        split: the part of the data set, where it has parts.
        task: what was measured.
        threads: FAISS's while it was.
    """
    facts = {
        "main_score": task.main,
        "scale": 100,
        "depth": task.depth,
        "threads": threads,
        "rounds": task.rounds,
        "timed_queries": len(task.timed),
        "single_queries": min(SINGLE_QUERIES, len(task.timed)),
        "seed": task.seed,
        "bootstrap_rounds": ROUNDS,
        "confidence": CONFIDENCE,
    }
    named = f"{STATEMENTS[kind]} (split {split})" if split else STATEMENTS[kind]
    return {"statement": f"{named}; {_how(facts)}", **facts}


def _how(facts: Mapping[str, Any]) -> str:
    depth, threads = facts["depth"], facts["threads"]
    recalls = ", ".join(f"Recall@{cutoff}" for cutoff in recall_cutoffs(depth))
    return (
        f"MRR@10, nDCG@10 (linear gain), {recalls}, x 100, as trec_eval computes them on the first {depth} documents; "
        f"FAISS, inner product on normalised vectors, trained on the corpus, seed {facts['seed']}; exact search of the "
        f"same vectors beside every index; time: {facts['timed_queries']} queries in one batched search for the first "
        f"{depth}, stated for {TIMED_QUERIES}, median of {facts['rounds']}, and {facts['single_queries']} one by one, "
        f"{threads} thread{'s' * (threads != 1)}, models in turn; bytes: the index as FAISS serialises it; intervals: "
        f"95%, bootstrap over the queries ({facts['bootstrap_rounds']} rounds), of the same queries for differences"
    )
