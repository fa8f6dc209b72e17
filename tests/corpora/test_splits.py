"""Which part of a data set is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentcompress.corpora.splits import pick_split, stem
from sentcompress.errors import InputError


def test_the_one_asked_for_or_test_or_dev_or_the_only_one() -> None:
    assert pick_split("x", ["dev", "test", "train"], "train") == "train"
    assert pick_split("x", ["train", "dev", "test"], None) == "test"
    assert pick_split("x", ["train", "dev"], None) == "dev"
    assert pick_split("x", ["anything"], None) == "anything"
    assert pick_split("x", ["train", "validation"], "dev") == "validation"
    assert pick_split("x", ["train", "dev", "validation"], "validation") == "validation"
    with pytest.raises(InputError, match="several splits"):
        pick_split("x", ["one", "two"], None)
    with pytest.raises(InputError) as caught:
        pick_split("x", ["dev", "train"], "trian")
    assert "did you mean train?" in (caught.value.hint or "")


def test_names_without_endings() -> None:
    assert [stem(Path(name)) for name in ("a/test.tsv", "test.tsv.gz", "dev.small.tsv.zst")] == [
        "test",
        "test",
        "dev.small",
    ]
