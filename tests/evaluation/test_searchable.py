"""Vectors prepared for a search by cosine or by inner product."""

from __future__ import annotations

import numpy as np
import pytest

from sentcompress.errors import InputError
from sentcompress.evaluation.index_plan import LONGEST_IN_FLOAT16, LONGEST_VECTOR, longest_vector
from sentcompress.evaluation.searchable import searchable

VECTORS = np.array([[3, 4], [0, 0], [0, 2]], dtype=np.float32)


def test_cosine_scales_and_dot_keeps_the_lengths() -> None:
    scaled, zeros = searchable(VECTORS, "cosine", "m", LONGEST_VECTOR)
    assert (scaled.tolist(), zeros) == ([pytest.approx([0.6, 0.8]), [0, 0], [0, 1]], 1)
    kept, zeros = searchable(VECTORS.astype(np.float16), "dot", "m", LONGEST_VECTOR)
    assert (kept.tolist(), zeros, kept.dtype) == (VECTORS.tolist(), 1, np.float32)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_numbers_are_refused(similarity: str, value: float) -> None:
    with pytest.raises(InputError, match=r"m cannot be searched: .*NaN or infinity"):
        searchable(np.array([[1, value]], dtype=np.float32), similarity, "m", LONGEST_VECTOR)


def test_a_vector_too_long_for_the_index_is_refused() -> None:
    long = np.array([[60_000, 60_000]], dtype=np.float32)
    searchable(long, "dot", "m", longest_vector(("flat", "sq8"), "int8"))
    for kinds, rescore in ((("flat", "fp16"), "int8"), (("pq",), "float16")):
        longest = longest_vector(kinds, rescore)
        assert longest == LONGEST_IN_FLOAT16
        with pytest.raises(InputError, match="longer than 65504"):
            searchable(long, "dot", "m", longest)
    assert longest_vector(("ivf",), "float16") == LONGEST_VECTOR
