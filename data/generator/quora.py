"""Pairs of questions that ask the same, and pairs that only look alike."""

from __future__ import annotations

from dataclasses import dataclass

from generator.handwritten import HANDWRITTEN, Dice, choose_values, fill, finish
from generator.scenes import Library

Row = tuple[int, int, int, str, str, int]  # id, qid1, qid2, question1, question2, is_duplicate

COPIES_PER_CLUSTER = 6
NEAR_MISSES = 2  # pairs with a question that shares words and asks something else


@dataclass(frozen=True)
class Cluster:
    """Questions that ask the same, and questions that share words with them."""

    same: tuple[str, ...]
    near: tuple[str, ...]


@dataclass(frozen=True)
class Filled:
    """A cluster about something definite."""

    same: list[str]
    near: list[str]


def read_clusters() -> list[Cluster]:
    """The paragraphs of `questions.txt`; lines with "=" ask the same, lines with "-" something else."""
    text = (HANDWRITTEN / "questions.txt").read_text(encoding="utf-8")
    clusters = []
    for paragraph in text.split("\n\n"):
        lines = [line for line in paragraph.splitlines() if line and not line.startswith("#")]
        if lines:
            same = tuple(line[2:] for line in lines if line.startswith("= "))
            near = tuple(line[2:] for line in lines if line.startswith("- "))
            if len(same) + len(near) != len(lines) or len(same) < 2 or not near:
                raise ValueError(f"questions.txt: a cluster needs two '=' lines and a '-' line: {lines[0]}")
            clusters.append(Cluster(same, near))
    return clusters


def fill_cluster(library: Library, cluster: Cluster, dice: Dice) -> list[Filled]:
    """Copies of a cluster, each about other things: with the same values two of them would ask the same."""
    copies: dict[frozenset[str], Filled] = {}
    for _ in range(COPIES_PER_CLUSTER * 10):
        values = choose_values(cluster.same, library.vocabulary, dice)
        topic = frozenset(values.values())
        if topic in copies:
            continue
        values |= {
            slot: value
            for slot, value in choose_values(cluster.near, library.vocabulary, dice).items()
            if slot not in values and value not in topic
        }
        near = [finish(fill(text, values)) for text in cluster.near if _fits(text, values)]
        copies[topic] = Filled([finish(fill(text, values)) for text in cluster.same], near)
        if len(copies) == COPIES_PER_CLUSTER:
            break
    return list(copies.values())


def _fits(text: str, values: dict[str, str]) -> bool:
    """Whether every slot of the text has a value (a second value equal to the first was dropped)."""
    return all(part.split("}")[0] in values for part in text.split("{")[1:])


def cluster_pairs(copies: list[Filled], dice: Dice) -> list[tuple[str, str, int]]:
    """The pairs of a cluster. Its anchors are first questions only: a question that is asked and is also in
    the collection to search would find itself.
    """
    pairs: list[tuple[str, str, int]] = []
    about_something_else: str | None = None
    for copy in copies:
        anchor, *duplicates = dice.shuffled(copy.same)
        pairs += [(anchor, duplicate, 1) for duplicate in duplicates]
        pairs += [(anchor, near, 0) for near in dice.shuffled(copy.near)[:NEAR_MISSES]]
        if about_something_else is not None:
            pairs.append((anchor, about_something_else, 0))
        about_something_else = duplicates[0]
    return pairs


def build_quora(library: Library, seed: int) -> list[Row]:
    """All pairs in mixed order; a question keeps its qid wherever it occurs."""
    dice = Dice(f"{seed}:quora")
    pairs: list[tuple[str, str, int]] = []
    for cluster in read_clusters():
        pairs += cluster_pairs(fill_cluster(library, cluster, dice), dice)
    pairs = dice.shuffled(pairs)
    qids: dict[str, int] = {}
    return [
        (
            index,
            qids.setdefault(first, len(qids) + 1),
            qids.setdefault(second, len(qids) + 1),
            first,
            second,
            duplicate,
        )
        for index, (first, second, duplicate) in enumerate(pairs)
    ]
