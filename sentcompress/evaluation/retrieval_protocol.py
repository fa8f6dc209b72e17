"""The protocol of a retrieval evaluation, in words and as settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentcompress.evaluation.metrics import FIRST_RELEVANT
from sentcompress.evaluation.ranking import recall_cutoffs
from sentcompress.evaluation.retrieval import SINGLE_QUERIES, TIMED_QUERIES, RetrievalTask
from sentcompress.quantities import counted

STATEMENTS = {
    "pairs": "question pairs: the corpus is the distinct question2 of {corpus}; the queries are the distinct "
    "question1, relevant is every question2 marked as a duplicate; queries without one are timed but not scored",
    "collection": "collection with judgements: a document is its title, a space and its text, stripped; relevant are "
    "documents judged above zero; the queries are those of the split with a relevant document",
    "entities": "entity resolution: the corpus is the distinct entities, the queries are those with a pair of label 1, "
    "relevant is every entity of such a pair",
}

SEARCHED = {
    "cosine": "inner product on normalised vectors",
    "dot": "inner product on the vectors as the model gives them",
}


def protocol(
    kind: str,
    split: str | None,
    task: RetrievalTask,
    threads: int,
    similarity: str = "cosine",
    corpus: str = "all pairs",
    languages: int = 0,
) -> dict[str, Any]:
    """The protocol as a statement in words and as individual settings.

    Args:
        kind: pairs, collection or entities.
        split: the split, for data sets that have splits.
        task: the task measured.
        threads: threads used by FAISS.
        similarity: cosine or dot.
        corpus: for question pairs, the pairs whose second questions are the corpus.
        languages: the number of languages, if the data set names them.
    """
    facts = {
        "main_score": task.main,
        "scale": 100,
        "similarity": similarity,
        "depth": task.depth,
        "threads": threads,
        "rounds": task.rounds,
        "timed_queries": len(task.timed),
        "single_queries": min(SINGLE_QUERIES, len(task.timed)),
        "seed": task.seed,
        "bootstrap": task.bootstrap,
    }
    statement = STATEMENTS[kind].format(corpus=corpus)
    named = f"{statement} (split {split})" if split else statement
    if languages:
        named += f"; {languages} languages with one catalogue, and the mean over the languages"
    return {"statement": f"{named}; {_how(facts)}", **facts}


def with_documents(protocol: Mapping[str, Any], model: Mapping[str, Any]) -> dict[str, Any]:
    """A protocol that also names the model of the documents' vectors, if it is another one, and their stored format.

    Args:
        model: the description of the model. It has `documents_by` if the documents' vectors are from another model, or
            were stored.
    """
    by = model.get("documents_by")
    if not by:
        return dict(protocol)
    other, store = by["digest"] != model["digest"], by.get("store")
    told = [f"; documents by {by['label']}{', projected' if by.get('projection') else ''}"] * other
    told += [f"; documents' vectors stored as {store}"] * bool(store)
    return {**protocol, "statement": protocol["statement"] + "".join(told)}


def _how(facts: Mapping[str, Any]) -> str:
    depth, threads = facts["depth"], facts["threads"]
    recalls = ", ".join(f"Recall@{cutoff}" for cutoff in recall_cutoffs(depth))
    intervals = (
        f"intervals: 95%, bootstrap over the queries ({facts['bootstrap']} samples), paired for differences"
        if facts["bootstrap"]
        else "no intervals"
    )
    first = "Accuracy@1 (the first document is relevant), " if facts["main_score"] == FIRST_RELEVANT else ""
    return (
        f"{first}MRR@10, nDCG@10 (linear gain), {recalls}, x 100, computed as in trec_eval on the top {depth} "
        f"documents; FAISS, {SEARCHED[facts['similarity']]}, trained on the corpus, seed {facts['seed']}; every index "
        f"is compared with exact search on the same vectors; time: one batched search of {facts['timed_queries']} "
        f"queries for the top {depth}, stated per {TIMED_QUERIES}, median of {facts['rounds']}, and "
        f"{facts['single_queries']} single queries, {counted(threads, 'thread')}, models measured alternately; bytes: "
        f"size of the serialised FAISS index; {intervals}"
    )
