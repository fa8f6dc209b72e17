"""What an index is built with: the settings asked for, lowered to what the corpus can train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sentcompress.errors import InputError

# FAISS warns below this many training points for each centroid of a k-means; fewer make poor centroids.
POINTS_PER_CELL = 39
# More points for each centroid FAISS leaves unused.
MOST_POINTS_PER_CELL = 256
# Bits of a code of product quantisation; fewer than 4 say next to nothing.
BITS, FEWEST_BITS = 8, 4
KINDS = ("flat", "ivf", "ivfpq", "pq", "hnsw", "sq8", "fp16", "binary")
CELLS, QUANTISED, RESCORED = ("ivf", "ivfpq"), ("ivfpq", "pq"), ("pq", "binary")


@dataclass(frozen=True)
class IndexSettings:
    """Settings of all kinds; each kind takes its own.

    Attributes:
        nlist, nprobe: cells of an inverted file, and how many of them a search looks into (HPD: 1,024 and 5).
        segments: parts that product quantisation cuts a vector into, a code each; by default one for 4 dimensions.
        links, ef_construction, ef_search: HNSW's neighbours of a node, and the candidates it keeps while building
            and while searching.
        candidates: documents that binary and product codes find, to be rescored; at least as many as are asked for.
        rescore: what they are rescored with: stored int8 codes, float16 or the vectors themselves (float32).
        seed: of k-means and of the training sample.
    """

    nlist: int = 1024
    nprobe: int = 5
    segments: int | None = None
    links: int = 32
    ef_construction: int = 100
    ef_search: int = 64
    candidates: int = 100
    rescore: str = "int8"
    seed: int = 0


@dataclass(frozen=True)
class Plan:
    """What one index will be.

    Attributes:
        kind: one of `KINDS`.
        details: the numbers that it is built and searched with.
        training: documents that it is trained on, 0 for kinds without training.
        rescore: what candidates are rescored with, where there are candidates.
        warnings: what was lowered, and why.
    """

    kind: str
    details: Mapping[str, int]
    training: int = 0
    seed: int = 0
    rescore: str = "float32"
    warnings: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, int | str]:
        """For the record."""
        return {**self.details, **({"rescore": self.rescore} if self.kind in RESCORED else {})}


def plan_index(kind: str, settings: IndexSettings, documents: int, dimension: int, depth: int = 10) -> Plan:
    """Fit the settings to a corpus.

    Args:
        kind: one of `KINDS`.
        settings: what is asked for.
        documents, dimension: N and D.
        depth: documents that a search will return.

    Raises:
        InputError: if the corpus is too small to train an index of this kind at all, or segments that were asked for
            do not divide the dimension.
    """
    details: dict[str, int] = {}
    warnings: list[str] = []
    points = 0
    if kind in CELLS:
        cells = cells_for(documents, settings.nlist)
        if cells < settings.nlist:
            warnings.append(_lowered("nlist", settings.nlist, cells, "cell", documents))
        details |= {"nlist": cells, "nprobe": min(settings.nprobe, cells)}
        points = MOST_POINTS_PER_CELL * cells
    if kind in QUANTISED:
        bits = bits_for(kind, documents)
        if bits < BITS:
            warnings.append(f"{kind}: " + _lowered("bits of a code", BITS, bits, "of its 2^bits centroids", documents))
        details |= {"segments": segments_for(dimension, settings.segments), "bits": bits}
        points = max(points, MOST_POINTS_PER_CELL * 2**bits)
    if kind in RESCORED:
        candidates = min(max(settings.candidates, depth), documents)
        details |= {"candidates": candidates}
        if candidates == documents:
            warnings.append(f"{kind}: all {documents} documents are candidates, so the codes select nothing")
        points = max(points, _points_of_refinement(settings.rescore))
    if kind == "hnsw":
        names = ("links", "ef_construction", "ef_search")
        details |= {name: getattr(settings, name) for name in names}
    if kind == "sq8":
        points = _points_of_refinement("int8")
    return Plan(kind, details, min(points, documents), settings.seed, settings.rescore, tuple(warnings))


def cells_for(documents: int, wanted: int) -> int:
    """How many cells so many documents can train: at most `wanted`, at least 1, 39 documents for each."""
    return max(1, min(wanted, documents // POINTS_PER_CELL))


def bits_for(kind: str, documents: int) -> int:
    """Bits of a code that so many documents can train: 8, or as few as 4.

    Raises:
        InputError: if even those are too many.
    """
    for bits in range(BITS, FEWEST_BITS - 1, -1):
        if documents >= POINTS_PER_CELL * 2**bits:
            return bits
    least = POINTS_PER_CELL * 2**FEWEST_BITS
    raise InputError(
        f"the corpus of {documents} documents is too small to train {kind}: it needs at least {least}",
        "leave it out of `index`; sq8, fp16, binary, flat and hnsw work with any number",
    )


def segments_for(dimension: int, wanted: int | None) -> int:
    """The segments asked for; by default the largest number that divides the dimension, up to one for 4.

    Raises:
        InputError: if those asked for do not divide it.
    """
    if wanted is not None and (wanted > dimension or dimension % wanted):
        raise InputError(f"{wanted} segments do not divide vectors of {dimension} dimensions", "see `segments`")
    most = wanted or max(1, dimension // 4)
    return next(count for count in range(most, 0, -1) if dimension % count == 0)


def _points_of_refinement(rescore: str) -> int:
    """An int8 code is cut from the range that each dimension has in the training sample."""
    return MOST_POINTS_PER_CELL * 1024 if rescore == "int8" else 0


def _lowered(what: str, asked: int, now: int, each: str, documents: int) -> str:
    return (
        f"{what} lowered from {asked} to {now}: FAISS wants {POINTS_PER_CELL} documents for each {each}, "
        f"the corpus has {documents}"
    )
