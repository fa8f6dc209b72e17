"""NLI lines with SNLI's keys: several hypotheses for each premise."""

from __future__ import annotations

from collections.abc import Iterator

from generator.handwritten import Dice, finish, is_plural
from generator.scenes import Domain, Fact, Library, Scene, rows_for

Line = tuple[str, str, str]  # premise, hypothesis, label

PREMISES_PER_ACTIVITY = 6
PREMISES_PER_FACT = 7
UNDECIDED_SHARE = 0.06  # of the premises: they get one more hypothesis, on which readers would not agree


def premise(library: Library, scene: Scene, dice: Dice) -> tuple[str, list[str]]:
    """The premise of a scene and sentences that its additions entail (clothes, an aside)."""
    frame = library.any_frame(scene, dice)
    who, entailed = scene.who.exact, []
    be = "was" if scene.past else "is"
    if not is_plural(who) and " in " not in who and frame.startswith("{who}") and dice.chance(0.3):
        (clothes,) = library.fill([dice.pick(library.clothes)], dice)
        entailed.append(finish(f"{scene.who.wider} {be} wearing {clothes}."))
        who = f"{who}, wearing {clothes},"
    elif not scene.past and frame.endswith("{act} {place}.") and dice.chance(0.3):
        aside, sentence = library.fill(dice.pick(library.asides), dice)
        entailed.append(finish(sentence))
        frame = frame[:-1] + f", {aside}."
    act, place, time = scene.activity.exact, scene.place.exact, scene.time.exact
    return library.tell(scene, who, act, place, time, frame), entailed


def entailments(library: Library, scene: Scene, dice: Dice) -> list[str]:
    """Hypotheses that say the same in other or wider words, or less."""
    who, act, place, time = scene.who, scene.activity, scene.place, scene.time
    return [
        library.tell(scene, who.wider, act.paraphrase, dice.pick(["", place.wider])),
        library.tell(scene, who.exact, act.wider, place.wider),
        library.tell(scene, who.wider, act.exact, "", time.wider),
        library.tell(scene, who.exact, act.paraphrase, place.exact, time.wider),
        library.tell(scene, who.wider, act.wider, place.exact),
    ]


def neutrals(library: Library, scene: Scene, dice: Dice) -> list[str]:
    """Hypotheses that say more than the premise does."""
    who, act = scene.who, scene.activity
    (addition,) = library.fill([dice.pick(library.additions)], dice)
    return [
        library.tell(scene, who.wider, act.detailed),
        library.tell(scene, who.exact, act.detailed),
        library.tell(scene, who.wider, f"{act.wider} {addition}"),
        library.tell(scene, who.exact, f"{act.exact} {addition}"),
    ]


def contradictions(library: Library, scene: Scene, dice: Dice) -> list[str]:
    """Hypotheses that cannot hold, taking both sentences to be about the same event, as SNLI does."""
    who, act, place, time = scene.who, scene.activity, scene.place, scene.time
    told = [
        library.tell(scene, who.wider, act.excluded, dice.pick(["", place.wider])),
        library.tell(scene, who.exact, act.excluded, place.exact),
        library.tell(scene, "nobody", act.wider, place.exact, time.exact),
    ]
    if place.exact:
        told.append(library.tell(scene, who.wider, act.exact, place.excluded))
    if scene.past:
        told.append(library.tell(scene, who.exact, act.exact, "", time.excluded))
    return told


def scene_lines(library: Library, domain: Domain, row: int, dice: Dice) -> Iterator[Line]:
    """One premise around an activity, with four to seven hypotheses."""
    scene = library.scene(domain, row, dice)
    text, entailed = premise(library, scene, dice)
    entailed += dice.shuffled(entailments(library, scene, dice))
    hypotheses = {
        "entailment": entailed[:2],
        "neutral": dice.shuffled(neutrals(library, scene, dice))[: 1 + dice.below(2)],
        "contradiction": dice.shuffled(contradictions(library, scene, dice))[: 1 + dice.below(2)],
    }
    if dice.chance(UNDECIDED_SHARE):
        frame = dice.pick(library.frames["undecided"])
        hypotheses["-"] = [library.tell(scene, scene.who.exact, scene.activity.exact, frame=frame)]
    for label, sentences in hypotheses.items():
        yield from ((text, sentence, label) for sentence in sentences)


def fact_lines(library: Library, row: int, dice: Dice) -> Iterator[Line]:
    """A statement as premise, and sometimes its paraphrase as another one."""
    fact = Fact(*(finish(text) for text in library.fill(library.facts[row], dice)))
    yield fact.statement, fact.entailed, "entailment"
    yield fact.statement, fact.paraphrase, "entailment"
    yield fact.statement, fact.contradiction, "contradiction"
    yield fact.statement, dice.pick([fact.neutral, fact.related]), "neutral"
    if dice.chance(0.5):
        yield fact.paraphrase, fact.entailed, "entailment"
        yield fact.paraphrase, fact.contradiction, "contradiction"
        yield fact.paraphrase, fact.neutral, "neutral"


def build_nli(library: Library, seed: int) -> list[Line]:
    """All lines, premise by premise in mixed order; no pair of sentences occurs twice."""
    dice = Dice(f"{seed}:nli")
    groups = [
        list(scene_lines(library, domain, row, dice))
        for domain in library.domains
        for row in rows_for(len(domain.activities), held_out=False)
        for _ in range(PREMISES_PER_ACTIVITY)
    ]
    for row in rows_for(len(library.facts), held_out=False):
        copies = PREMISES_PER_FACT if "{" in library.facts[row][0] else 1
        groups += [list(fact_lines(library, row, dice)) for _ in range(copies)]
    lines: dict[tuple[str, str], str] = {}
    for group in dice.shuffled(groups):
        for text, hypothesis, label in group:
            lines.setdefault((text, hypothesis), label)
    return [(text, hypothesis, label) for (text, hypothesis), label in lines.items()]
