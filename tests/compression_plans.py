"""Plans of `compress` before they are written: candidates of each kind, and a plan of half an hour."""

from __future__ import annotations

from sentcompress.compression.budget import Budget
from sentcompress.compression.recipe import CompressionPlan, Documents
from sentcompress.compression.shapes import Candidate

PUBLISHED = Candidate("general-9m", 9_489_094, published=True)
CUT = Candidate("teacher:2", 9_000_000, {"token-dim": 128, "vocabulary": 8000, "start": "sentences"})
WHOLE = Candidate("teacher:6", 16_000_000, {"vocabulary": 12_500}, whole=True)
ROUNDED = Candidate("teacher:6", 9_950_000, {"vocabulary": 15_000}, whole=True, weight_format="int4")
OWN = Candidate("embedded", 22_800_000, untrained=True)


def plan(candidates: list[Candidate], rounds: tuple[float, ...] = (), **changes: object) -> CompressionPlan:
    """A plan whose training has these rounds, in seconds, before the last; `changes` are of its fields."""
    budget = Budget(
        seconds=1800,
        texts=None,
        words=300_000,
        embedding=60.0,
        rounds=rounds,
        last=750.0,
        passages=5000,
        dev_passages=900,
        sample=10_000,
        benched=500,
        benching=90.0,
        racing=22.5,
        measuring=200.0,
        afterwards=150.0,
    )
    of: dict[str, object] = {
        "name": "docs",
        "teacher": "embedded",
        "documents": Documents(["docs/"], ["log.txt"], "scifact", ["body"]),
        "max_bytes": 10_000_000,
        "vector_bytes": 128,
        "budget": budget,
        "candidates": candidates,
    }
    return CompressionPlan(**{**of, **changes})  # type: ignore[arg-type]
