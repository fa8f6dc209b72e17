"""Sentence pairs graded from 0 (nothing in common) to 5 (the same meaning)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from generator.handwritten import Dice, finish
from generator.scenes import Domain, Fact, Library, Scene, rows_for

Pair = tuple[float, str, str]

HELD_OUT_SHARE = 0.5  # of the pairs come from activities and statements that nli.jsonl never uses
FACT_SHARE = 0.3


@dataclass(frozen=True)
class Situation:
    """A scene to compare with: another of the same domain, and one of another domain."""

    scene: Scene
    neighbour: Scene
    stranger: Scene


Told = tuple[str, str, str]  # who, activity, place

# Each edit says what the second sentence tells; the grade falls with what it changes. The scale is that of
# the STS tasks: 5 means the same, 4 differs in unimportant details, 3 in important ones, 2 shares some
# details, 1 shares the topic, 0 shares nothing.
SCENE_EDITS: list[tuple[float, Callable[[Situation], Told]]] = [
    (5.0, lambda s: (s.scene.who.exact, s.scene.activity.exact, s.scene.place.exact)),  # told otherwise
    (4.8, lambda s: (s.scene.who.exact, s.scene.activity.paraphrase, s.scene.place.exact)),
    (4.6, lambda s: (s.scene.who.exact, s.scene.activity.paraphrase, s.scene.place.wider)),
    (4.2, lambda s: (s.scene.who.exact, s.scene.activity.paraphrase, "")),
    (4.0, lambda s: (s.scene.who.wider, s.scene.activity.paraphrase, s.scene.place.exact)),
    (3.8, lambda s: (s.scene.who.wider, s.scene.activity.paraphrase, "")),
    (3.6, lambda s: (s.scene.who.exact, s.scene.activity.detailed, "")),
    (3.2, lambda s: (s.scene.who.wider, s.scene.activity.detailed, "")),
    (3.0, lambda s: (s.scene.who.exact, s.scene.activity.paraphrase, s.scene.place.excluded)),
    (2.8, lambda s: (s.scene.who.excluded, s.scene.activity.paraphrase, s.scene.place.exact)),
    (2.6, lambda s: (s.scene.who.wider, s.scene.activity.wider, "")),
    (2.2, lambda s: (s.scene.who.exact, s.scene.activity.excluded, s.scene.place.exact)),
    (1.8, lambda s: (s.scene.who.excluded, s.scene.activity.excluded, s.scene.place.exact)),
    (1.6, lambda s: (s.scene.who.exact, s.neighbour.activity.exact, s.scene.place.exact)),
    (1.2, lambda s: (s.neighbour.who.exact, s.neighbour.activity.exact, s.scene.place.exact)),
    (1.0, lambda s: (s.scene.who.wider, s.neighbour.activity.exact, s.neighbour.place.exact)),
    (0.6, lambda s: (s.neighbour.who.exact, s.neighbour.activity.exact, s.neighbour.place.exact)),
    (0.4, lambda s: (s.scene.who.exact, s.stranger.activity.exact, s.stranger.place.exact)),
    (0.0, lambda s: (s.stranger.who.exact, s.stranger.activity.exact, s.stranger.place.exact)),
]

# The second sentence of a fact pair, by the field it is; `other` is a statement of another row.
FACT_EDITS: list[tuple[float, Callable[[Fact, Fact], str]]] = [
    (4.8, lambda fact, other: fact.paraphrase),
    (3.2, lambda fact, other: fact.entailed),
    (2.6, lambda fact, other: fact.neutral),
    (2.2, lambda fact, other: fact.contradiction),
    (1.2, lambda fact, other: fact.related),
    (0.0, lambda fact, other: other.statement),
    (0.0, lambda fact, other: other.related),
]


def pick_row(count: int, dice: Dice) -> int:
    """A row of a hand-written list, held out from nli.jsonl or not."""
    return dice.pick(list(rows_for(count, held_out=dice.chance(HELD_OUT_SHARE))))


def draw_situation(library: Library, dice: Dice) -> Situation:
    """A scene with its neighbour and its stranger, all in the same tense."""
    domain = dice.pick(library.domains)
    row = pick_row(len(domain.activities), dice)
    scene = library.scene(domain, row, dice, past_share=0.25)
    neighbour = library.other_scene(domain, row, scene, dice)
    elsewhere: list[Domain] = [other for other in library.domains if other is not domain]
    far = dice.pick(elsewhere)
    stranger = library.scene(far, pick_row(len(far.activities), dice), dice, past_share=float(scene.past))
    return Situation(scene, neighbour, stranger)


def scene_pair(library: Library, level: int, dice: Dice) -> Pair:
    """A pair whose grade rounds to `level`."""
    situation = draw_situation(library, dice)
    grade, edit = dice.pick([entry for entry in SCENE_EDITS if int(entry[0] + 0.5) == level])
    scene = situation.scene
    who, act, place = edit(situation)
    time = scene.time.exact if grade > 1 else situation.stranger.time.exact
    first = (scene.who.exact, scene.activity.exact, scene.place.exact, scene.time.exact)
    frames = library.any_frame(scene, dice), library.any_frame(situation.stranger, dice)
    if not place or not scene.place.exact or not situation.stranger.place.exact:
        frames = (frames[0], library.frames["past" if scene.past else "present"][0])
    return (
        grade,
        library.tell(scene, *first, frame=frames[0]),
        library.tell(scene, who, act, place, time, frame=frames[1]),
    )


def fact_pair(library: Library, level: int, dice: Dice) -> Pair:
    """A pair about a statement; where facts offer no such grade, a pair about a scene."""
    row = pick_row(len(library.facts), dice)
    other_row = dice.pick([index for index in range(len(library.facts)) if index != row])
    fact = Fact(*(finish(text) for text in library.fill(library.facts[row], dice)))
    other = Fact(*(finish(text) for text in library.fill(library.facts[other_row], dice)))
    choices = [entry for entry in FACT_EDITS if int(entry[0] + 0.5) == level]
    if not choices:
        return scene_pair(library, level, dice)
    grade, edit = dice.pick(choices)
    first = dice.pick([fact.statement, fact.paraphrase]) if grade < 4 else fact.statement
    return grade, first, edit(fact, other)


def build_sts(library: Library, seed: int, split: str, count: int, taken: Collection[str]) -> list[Pair]:
    """`count` pairs, the levels 0 to 5 equally often; none of the sentences is in `taken`."""
    dice = Dice(f"{seed}:sts:{split}")
    pairs: dict[tuple[str, str], Pair] = {}
    while len(pairs) < count:
        build = fact_pair if dice.chance(FACT_SHARE) else scene_pair
        pair = build(library, len(pairs) % 6, dice)
        _, first, second = pair
        if first != second and first not in taken and second not in taken:
            pairs.setdefault((first, second), pair)
    return dice.shuffled(list(pairs.values()))
