"""The output of `sentcompress search`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.plain_text import shortened
from sentcompress.stages.search import Answer, Result

# Characters of a text that are shown; fewer with two models side by side.
SHOWN, SHOWN_BESIDE = 160, 60
# On a narrower terminal, the results of two models are one below the other.
WIDTH_OF_TWO = 100


def document(found: Result, call: Call) -> dict[str, Any]:
    """The answers for `--json`, with the whole texts."""
    return asdict(found)


def show(found: Result, call: Call) -> None:
    """Show a table for each query, then the collection that was searched."""
    for answer in found.answers:
        if found.compare is None:
            rows = [
                [one["rank"], f"{one['score']:.3f}", _shown(one["id"]), _short(one["text"], SHOWN)]
                for one in answer.results
            ]
            render.print_table(("rank", "cosine", "id", "text"), rows, answer.query)
        else:
            _show_both(found, answer)
    if found.answers:
        texts = "text" if found.documents == 1 else f"{found.documents:,} texts"
        render.print_text(f"Searched the {texts} of {found.collection}.")
    else:
        facts = {"collection": found.collection, "documents": found.documents, "model": found.model}
        render.print_facts(facts, found.index)


def _show_both(found: Result, answer: Answer) -> None:
    """Show both models side by side; a result that the other model ranks differently is marked with its rank there."""
    sides = [(found.model, answer.results), (str(found.compare), answer.compared)]
    beside = render.stdout().width >= WIDTH_OF_TWO
    for place, shown in enumerate([sides] if beside else [[side] for side in sides]):
        rows = [
            [str(rank), *(cell for _, results in shown for cell in _cells(results, rank))]
            for rank in range(1, max(len(results) for _, results in shown) + 1)
        ]
        columns = [column for label, _ in shown for column in (label, "other rank")]
        render.print_table(("rank", *columns), rows, None if place else answer.query)
    same = sum(one["other_rank"] == one["rank"] for one in answer.results)
    both = sum(one["other_rank"] is not None for one in answer.results)
    render.print_text(f"{both} of {len(answer.results)} results are found by both models, {same} at the same rank.")


def _cells(results: Sequence[Mapping[str, Any]], rank: int) -> tuple[str, str]:
    """The text, and the mark: empty at the same rank, otherwise the rank in the other list, or a dash."""
    if rank > len(results):
        return "", ""
    one = results[rank - 1]
    other = one["other_rank"]
    mark = "-" if other is None else "" if other == one["rank"] else f"#{other}"
    return f"{_shown(one['id'])}: {_short(one['text'], SHOWN_BESIDE)}", mark


def _shown(identifier: str) -> str:
    """The id; of an absolute path, only the file name, to leave room for the text."""
    return PurePath(identifier).name if identifier.startswith("/") else identifier


def _short(text: str, most: int) -> str:
    return shortened(" ".join(text.split()), most)
