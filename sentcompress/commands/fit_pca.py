"""The options of `sentcompress fit-pca`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt
from sentcompress.commands.shared import Named, Seed, TeacherVectors


@dataclass(frozen=True, kw_only=True)
class Params(Named):
    """The vectors and the size of the projection. HPD samples 100,000 rows."""

    command: ClassVar[str] = "fit-pca"

    dim: Annotated[int, Opt("Dimensions to keep.", minimum=1)] = 128
    sample: Annotated[int, Opt("Vectors to fit on, sampled at random.", minimum=2)] = 100_000
    whiten: Annotated[bool, Opt("Also scale every dimension to unit variance.")] = False
    seed: Seed = 0
    teacher_vectors: TeacherVectors = None


COMMAND = Command(
    Params,
    "Fit a PCA to the teacher's vectors. The method hpd trains students to return the projected vectors.",
    makes="projections",
    needs=("teacher-vectors",),
)
