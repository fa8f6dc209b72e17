"""The students that come with the package, one model folder each: what they are, and how to train them further.

Nothing else lives here, and torch is not imported. docs/published-students.md has their scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Published:
    """A student of all-MiniLM-L6-v2.

    Attributes:
        parameters: number of parameters.
        graph_bytes: size of its int8 graph.
        method: the training objective of its last stage.
        options: the options of that method, as `name=value`.
        starter: whether `compress` may start from it.
    """

    parameters: int
    graph_bytes: int
    method: str
    options: tuple[str, ...]
    starter: bool = False


_SIMTDE = ("normalise=true", "reduction=sum", "alpha=0", "relation=20")
PUBLISHED: Mapping[str, Published] = {
    "general-9m": Published(9_314_944, 9_456_887, "simtde", _SIMTDE, starter=True),
    "general-5m": Published(5_555_328, 5_635_467, "simtde", _SIMTDE, starter=True),
    "general-2m": Published(2_412_928, 2_467_400, "simtde", _SIMTDE, starter=True),
    "general-static": Published(11_720_448, 0, "simtde", _SIMTDE),
}
