"""Which rows of a sentence table are trained on, and which are held out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
HELD_OUT = 2000
HELD_OUT_SHARE = 0.02
LEAST = 10


def hold_out(parents: Rows, seed: int) -> tuple[Rows, Rows]:
    """Split the rows of a sentence table into those trained on and those held out.

    Held out are 2% of the originals, drawn at random, at most 2,000 and at least 10, or half of fewer than 20. What
    augmentation made of a held-out sentence is in neither part.

    Args:
        parents: [N] the row that each row was made from, -1 for originals.
    """
    originals = np.flatnonzero(parents < 0)
    count = min(HELD_OUT, max(round(HELD_OUT_SHARE * len(originals)), min(LEAST, len(originals) // 2), 1))
    held = np.sort(np.random.default_rng((seed, len(originals))).choice(originals, size=count, replace=False))
    left_out = np.zeros(len(parents), dtype=bool)
    left_out[held] = True
    left_out |= (parents >= 0) & left_out[parents]
    return np.flatnonzero(~left_out), held
