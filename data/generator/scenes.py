"""Scenes: somebody does something somewhere, with what may be said about it truly, falsely or perhaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from generator.handwritten import (
    HANDWRITTEN,
    Dice,
    Vocabulary,
    fill_all,
    finish,
    is_plural,
    read_lines,
    read_sections,
    read_vocabulary,
    split_line,
)

HELD_OUT_EVERY = 4  # every fourth activity and statement stays out of nli.jsonl and is for the STS files
OTHER_PEOPLE_SHARE = 0.6


@dataclass(frozen=True)
class Variants:
    """A part of a scene: as it is, in wider words that still hold, and something that excludes it."""

    exact: str
    wider: str
    excluded: str


@dataclass(frozen=True)
class Activity:
    """What somebody does, as `-ing` phrases."""

    exact: str
    paraphrase: str
    wider: str
    excluded: str
    detailed: str  # more than what is said: may or may not be true


@dataclass(frozen=True)
class Fact:
    """A statement and sentences about it; see the header of `handwritten/facts/*.txt`."""

    statement: str
    paraphrase: str
    entailed: str
    neutral: str
    contradiction: str
    related: str


@dataclass(frozen=True)
class Domain:
    """One file of `handwritten/scenes`: templates whose slots are still open."""

    name: str
    own_people: Sequence[tuple[str, ...]]
    other_people: Sequence[tuple[str, ...]]  # those of `people.txt`, none where only the own ones fit
    places: Sequence[tuple[str, ...]]
    activities: Sequence[tuple[str, ...]]  # an activity with a leading "!" names its place itself


NOWHERE = Variants("", "", "")


@dataclass(frozen=True)
class Scene:
    """A filled-in event."""

    who: Variants
    activity: Activity
    place: Variants
    time: Variants  # empty for the present

    @property
    def past(self) -> bool:
        """Scenes with a time are told in the past tense."""
        return bool(self.time.exact)


def read_domain(name: str, everyone: Sequence[tuple[str, ...]]) -> Domain:
    """One file of `handwritten/scenes`; unless it says `@cast own`, people of `people.txt` join in."""
    source = f"scenes/{name}.txt"
    people, places, activities, own_cast = [], [], [], False
    for line in read_lines(source):
        keyword, _, rest = line.partition(" ")
        if keyword == "@cast":
            own_cast = True
        elif keyword == "@who":
            people.append(split_line(rest, ">", 3, source))
        elif keyword == "@place":
            places.append(split_line(rest, ">", 3, source))
        else:
            activities.append(split_line(line, "|", 5, source))
    return Domain(name, people, [] if own_cast else everyone, places, activities)


def read_facts() -> list[tuple[str, ...]]:
    """The rows of all files of `handwritten/facts`, slots still open."""
    files = sorted((HANDWRITTEN / "facts").glob("*.txt"))
    return [split_line(line, "|", 6, file.name) for file in files for line in read_lines(f"facts/{file.name}")]


class Library:
    """All hand-written parts, and scenes drawn from them."""

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return read_vocabulary()

    @cached_property
    def domains(self) -> list[Domain]:
        everyone = [split_line(line, ">", 3, "people.txt") for line in read_lines("people.txt")]
        names = sorted(file.stem for file in (HANDWRITTEN / "scenes").glob("*.txt"))
        return [read_domain(name, everyone) for name in names]

    @cached_property
    def facts(self) -> list[tuple[str, ...]]:
        return read_facts()

    @cached_property
    def times(self) -> list[tuple[str, ...]]:
        return [split_line(line, ">", 3, "times.txt") for line in read_lines("times.txt")]

    @cached_property
    def frames(self) -> dict[str, list[str]]:
        return read_sections("frames.txt")

    @cached_property
    def asides(self) -> list[tuple[str, ...]]:
        return [split_line(line, ">", 2, "asides.txt") for line in read_lines("asides.txt")]

    @cached_property
    def clothes(self) -> list[str]:
        return read_lines("clothes.txt")

    @cached_property
    def additions(self) -> list[str]:
        return read_lines("additions.txt")

    def fill(self, texts: Sequence[str], dice: Dice) -> tuple[str, ...]:
        """The texts with their slots filled with the same values."""
        return fill_all(texts, self.vocabulary, dice)

    def person(self, domain: Domain, dice: Dice) -> Variants:
        """Somebody who may well do what is done in the domain."""
        people = domain.own_people
        if domain.other_people and dice.chance(OTHER_PEOPLE_SHARE):
            people = domain.other_people
        return Variants(*self.fill(dice.pick(people), dice))

    def scene(self, domain: Domain, row: int, dice: Dice, past_share: float = 0.4) -> Scene:
        """A scene of the domain around its activity number `row`."""
        texts = domain.activities[row]
        place = NOWHERE
        if texts[0].startswith("!"):
            texts = (texts[0][1:], *texts[1:])
        else:
            place = Variants(*self.fill(dice.pick(domain.places), dice))
        time = NOWHERE
        if dice.chance(past_share):
            time = Variants(*self.fill(dice.pick(self.times), dice))
        who = self.person(domain, dice)
        return Scene(who, Activity(*self.fill(texts, dice)), place, time)

    def other_scene(self, domain: Domain, row: int, scene: Scene, dice: Dice) -> Scene:
        """Another activity and other people of the same domain, in the same tense."""
        rows = [other for other in range(len(domain.activities)) if other != row]
        other = self.scene(domain, dice.pick(rows), dice, past_share=float(scene.past))
        while other.who.wider == scene.who.wider:
            other = replace(other, who=self.person(domain, dice))
        return other

    def tell(
        self,
        scene: Scene,
        who: str,
        act: str,
        place: str = "",
        time: str = "",
        frame: str | None = None,
    ) -> str:
        """One sentence. Without a frame it is the plainest one of the scene's tense."""
        tense = "past" if scene.past else "present"
        be = {"present": ("is", "are"), "past": ("was", "were")}[tense][is_plural(who)]
        frame = frame or self.frames[tense][0]
        return finish(frame.format(who=who, be=be, act=act, place=place, time=time))

    def any_frame(self, scene: Scene, dice: Dice) -> str:
        """A frame that suits the scene's tense; those that begin or end with the place need one."""
        frames = self.frames["past" if scene.past else "present"]
        if not scene.place.exact:
            frames = [frame for frame in frames if "{be} {place}" not in frame and "{place}," not in frame]
        return dice.pick(frames)


def rows_for(count: int, held_out: bool) -> Iterator[int]:
    """The rows of a hand-written list that are held out for STS, or those that are not."""
    return (row for row in range(count) if (row % HELD_OUT_EVERY == HELD_OUT_EVERY - 1) == held_out)
