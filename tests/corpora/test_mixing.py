from __future__ import annotations

from pathlib import Path

import pytest

from sentcompress.corpora.inputs import open_inputs
from sentcompress.corpora.mixing import as_facts, mixed, parts, weights_of
from sentcompress.corpora.readers import ReadOptions
from sentcompress.corpora.text_files import BadRecords
from sentcompress.progress import SILENT
from sentcompress.store import WorkDirectory


def test_small_inputs_are_taken_whole_and_the_others_share_the_rest() -> None:
    assert parts([10, 1000, 1000], [1, 1, 3], 410) == [10, 100, 300]
    assert parts([10, 20], [1, 1], 100) == [10, 20]
    assert parts([50, 50, 50], [0, 1, 1], 60) == [0, 30, 30]
    assert parts([], [], 5) == []
    # The second is too small only once the first is taken whole.
    assert parts([10, 45, 1000], [1, 1, 1], 120) == [10, 45, 65]


def test_a_share_names_an_input_or_its_file() -> None:
    inputs = ["texts/a.txt.gz", "b.txt", "owner/set"]
    assert weights_of(["a.txt.gz=2", "b.txt=0", "owner/set=0.5"], inputs) == [2, 0, 0.5]
    assert weights_of([], inputs) == [1, 1, 1]
    for wrong, message in (
        (["c.txt=1"], r"no input is called c.txt \(a folder is one input\); did you mean b.txt"),
        (["b.txt"], "INPUT=WEIGHT"),
        (["b.txt=-1"], "INPUT=WEIGHT"),
        (["b.txt=nan"], "INPUT=WEIGHT"),
        ([f"{name}=0" for name in inputs], "all inputs are 0"),
    ):
        with pytest.raises(ValueError, match=message):
            weights_of(wrong, inputs)


def test_a_sample_is_drawn_from_the_whole_input_and_depends_on_the_seed(tmp_path: Path) -> None:
    large, small = tmp_path / "large.txt", tmp_path / "small.txt"
    large.write_text("".join(f"line {n} of many\n" for n in range(5000)))
    small.write_text("one line of few words\n" * 10)
    with open_inputs(
        [str(large), str(small)], ReadOptions(), None, None, WorkDirectory(tmp_path / "work"), SILENT
    ) as inputs:

        def drawn(seed: int) -> list[list[str]]:
            samples = mixed(inputs, 4050, [1, 1], seed, SILENT)
            assert as_facts(samples) == {
                "large.txt": {"words": 20_000, "share": 0.2},
                "small.txt": {"words": 50, "share": 1.0},
            }
            return [[record.texts[0] for record in sample.records(BadRecords())] for sample in samples]

        first, other = drawn(0), drawn(1)
        assert drawn(0) == first != other
    assert len(first[1]) == 10
    assert 850 < len(first[0]) < 1150
    places = [int(text.split()[1]) for text in first[0]]
    assert places == sorted(places)
    assert 2300 < sum(places) / len(places) < 2700
