"""Index plans: the requested settings, lowered to what the corpus can train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sentcompress.commands.shared import IndexOptions
from sentcompress.errors import UsageError
from sentcompress.progress import Reporter

# FAISS warns below this number of training points per k-means centroid.
POINTS_PER_CELL = 39
# FAISS ignores training points beyond this number per centroid.
MOST_POINTS_PER_CELL = 256
# Bits of a product-quantisation code; codes of fewer than 4 bits are hardly usable.
BITS, FEWEST_BITS = 8, 4
KINDS = ("flat", "ivf", "ivfpq", "pq", "hnsw", "sq8", "fp16", "binary")
CELLS, QUANTISED, RESCORED = ("ivf", "ivfpq"), ("ivfpq", "pq"), ("pq", "binary")
# The kinds that use each setting.
USED_BY: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("nlist", "nprobe"), CELLS),
    "segments": QUANTISED,
    **dict.fromkeys(("links", "ef_construction", "ef_search"), ("hnsw",)),
    **dict.fromkeys(("candidates", "rescore"), RESCORED),
}
# Find candidates by the directions of the vectors alone, which is wrong for inner products of vectors of any length.
WITHOUT_LENGTHS = ("binary",)
# Bytes of a dimension in the number formats that vectors are kept in.
NUMBER_BYTES = {"float32": 4, "float16": 2, "int8": 1}
# Bytes of an id in an inverted file, and of a neighbour in the graph of HNSW, which has two per link.
_ID, _NEIGHBOUR = 8, 4
# The inner product of longer vectors can overflow float32; the values of longer ones can overflow float16.
LONGEST_VECTOR, LONGEST_IN_FLOAT16 = 1e18, 65504.0


@dataclass(frozen=True)
class IndexPlan:
    """The plan of one index.

    Attributes:
        kind: one of `KINDS`.
        details: the parameters it is built and searched with.
        training: number of training documents, 0 for kinds without training.
        rescore: format of the vectors that candidates are rescored with, for kinds in `RESCORED`.
        warnings, notes: which settings were lowered, and why; notes are of defaults.
    """

    kind: str
    details: Mapping[str, int]
    training: int = 0
    seed: int = 0
    rescore: str = "float32"
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, int | str]:
        """The settings for the result document."""
        return {**self.details, **({"rescore": self.rescore} if self.kind in RESCORED else {})}

    def tell(self, reporter: Reporter) -> None:
        """Report which settings were lowered."""
        for warning in self.warnings:
            reporter.warn(warning)
        for note in self.notes:
            reporter.note(note)


def plan_index(kind: str, settings: IndexOptions, documents: int, dimension: int, depth: int = 10) -> IndexPlan:
    """Adapt the settings to a corpus.

    Args:
        kind: one of `KINDS`.
        settings: the requested settings.
        documents, dimension: N and D.
        depth: documents returned by a search.

    Raises:
        UsageError: if the corpus is too small to train an index of this kind, or `segments` does not divide the
            dimension.
    """
    details: dict[str, int] = {}
    warnings: list[str] = []
    notes: list[str] = []
    points = 0
    if kind in CELLS:
        cells = cells_for(documents, settings.nlist)
        if cells < settings.nlist:
            told = notes if settings.nlist == IndexOptions.nlist else warnings
            told.append(_lowered("nlist", settings.nlist, cells, "cell", documents))
        details |= {"nlist": cells, "nprobe": min(settings.nprobe, cells)}
        points = MOST_POINTS_PER_CELL * cells
    if kind in QUANTISED:
        bits = bits_for(kind, documents)
        if bits < BITS:
            warnings.append(f"{kind}: " + _lowered("bits of a code", BITS, bits, "of the 2^bits centroids", documents))
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
    return IndexPlan(
        kind, details, min(points, documents), settings.seed, settings.rescore, tuple(warnings), tuple(notes)
    )


def memory_of(plan: IndexPlan, documents: int, dimension: int) -> int:
    """The bytes of the vectors, codes and links of an index, which FAISS holds in memory."""
    details = plan.details
    codes = (details.get("segments", 0) * details.get("bits", 0) + 7) // 8
    each = {
        "flat": NUMBER_BYTES["float32"] * dimension,
        "ivf": NUMBER_BYTES["float32"] * dimension + _ID,
        "ivfpq": codes + _ID,
        "pq": codes + NUMBER_BYTES[plan.rescore] * dimension,
        "hnsw": NUMBER_BYTES["float32"] * dimension + 2 * _NEIGHBOUR * details.get("links", 0),
        "sq8": NUMBER_BYTES["int8"] * dimension,
        "fp16": NUMBER_BYTES["float16"] * dimension,
        "binary": (dimension + 7) // 8 + NUMBER_BYTES[plan.rescore] * dimension,
    }
    return documents * each[plan.kind]


def longest_vector(kinds: Sequence[str], rescore: str) -> float:
    """The greatest length of a vector that all these kinds of index can hold."""
    float16 = "fp16" in kinds or (rescore == "float16" and any(kind in RESCORED for kind in kinds))
    return LONGEST_IN_FLOAT16 if float16 else LONGEST_VECTOR


def cells_for(documents: int, wanted: int) -> int:
    """Number of cells that the documents can train, at 39 documents per cell; at least 1, at most `wanted`."""
    return max(1, min(wanted, documents // POINTS_PER_CELL))


def bits_for(kind: str, documents: int) -> int:
    """Bits per PQ code that the documents can train, 4 to 8.

    Raises:
        UsageError: if there are too few documents for 4 bits.
    """
    for bits in range(BITS, FEWEST_BITS - 1, -1):
        if documents >= POINTS_PER_CELL * 2**bits:
            return bits
    least = POINTS_PER_CELL * 2**FEWEST_BITS
    raise UsageError(
        f"the corpus of {documents} documents is too small to train {kind}, which needs at least {least}",
        "choose another `index`: sq8, fp16, binary, flat and hnsw work with any number of documents",
    )


def segments_for(dimension: int, wanted: int | None) -> int:
    """The requested segments; by default the largest divisor of the dimension up to one segment per 4 dimensions.

    Raises:
        UsageError: if the requested segments do not divide the dimension.
    """
    if wanted is not None and (wanted > dimension or dimension % wanted):
        raise UsageError(f"{wanted} segments do not divide vectors of {dimension} dimensions", "change `segments`")
    most = wanted or max(1, dimension // 4)
    return next(count for count in range(most, 0, -1) if dimension % count == 0)


def _points_of_refinement(rescore: str) -> int:
    """Training points for rescoring: int8 codes need the range of each dimension."""
    return MOST_POINTS_PER_CELL * 1024 if rescore == "int8" else 0


def _lowered(what: str, asked: int, now: int, each: str, documents: int) -> str:
    return (
        f"{what} lowered from {asked} to {now}: FAISS needs {POINTS_PER_CELL} documents per {each}, "
        f"the corpus has {documents}"
    )
