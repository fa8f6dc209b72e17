"""augment in shards: the bytes of one run for any number of shards, with repetitions across them."""

from __future__ import annotations

import csv
import random
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard
from doubling import Doubling
from interrupting import interrupts
from sharding import bytes_of
from tiny_models import make_sentences

from sentcompress.augmentations import table
from sentcompress.corpora import sentence_table
from sentcompress.errors import InputError, UsageError
from sentcompress.stages import augment, merge, status
from sentcompress.store import Artifact, Build, WorkDirectory

TEXTS = make_sentences(230)


@dataclass(frozen=True)
class Numbering:
    """Depends on the row and the copy; every third text becomes one that others become too."""

    source: str
    summary: str = "numbers"
    in_workers: bool = False
    note: str = "as a test"

    def describe(self) -> dict[str, Any]:
        return {}

    def load(self) -> Numbering:
        return self

    def augment(self, texts: list[str], first_row: int, copy: int) -> list[str]:
        return [
            f"shared {row % 4}" if row % 3 == 0 else f"{text} {self.source} {row} {copy}"
            for row, text in enumerate(texts, first_row)
        ]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_table, "FILE_ROWS", 50)
    monkeypatch.setattr(table, "_SMALLEST_PIECE", 9)
    monkeypatch.setattr(table, "_LARGEST_PIECE", 9)


@pytest.fixture
def numbering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(augment, "wordnet_spec", lambda *_: Numbering("wordnet"))
    monkeypatch.setattr(augment, "back_translation_spec", lambda *_: Numbering("back-translation"))


@pytest.fixture
def nli(tmp_path: Path) -> Path:
    path = tmp_path / "nli.csv"
    generator = random.Random(1)
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["sent0", "sent1", "hard_neg"])
        writer.writerows(generator.choices(TEXTS, k=3) for _ in range(150))
    packed = tmp_path / "nli.csv.zst"
    packed.write_bytes(zstandard.compress(path.read_bytes()))
    return packed


def run(work: WorkDirectory, path: Path, shard: str | None = None, **options: Any) -> Artifact:
    given = {"wordnet": 2, "back_translate": 1, **options}
    return augment.run(augment.Params(inputs=(str(path),), shard=shard, **given), work)


def merged(work: WorkDirectory, what: str = "sentences/main") -> Artifact:
    found = merge.run(merge.Params(what=what), work)
    assert isinstance(found, Artifact)
    return found


@pytest.mark.parametrize(
    ("count", "options"),
    [(1, {}), (3, {"limit": 100}), (16, {}), (60, {"max_length": 30}), (2, {"wordnet": 0, "back_translate": 0})],
)
def test_the_bytes_are_those_of_one_run(
    tmp_path: Path, nli: Path, numbering: None, count: int, options: dict[str, Any]
) -> None:
    work = WorkDirectory(tmp_path / "work")
    whole = run(work, nli, name="whole", **options)
    numbers = list(range(1, count + 1))
    random.Random(count).shuffle(numbers)
    for number in [*numbers, numbers[0]]:
        run(work, nli, f"{number}/{count}", **options)
    found = merged(work)
    assert (found.digest, found.fingerprint) == (whole.digest, whole.fingerprint)
    assert bytes_of(found.path) == bytes_of(whole.path)
    timed = ("sentences_per_second", "shards", "plan")
    assert {name: value for name, value in found.facts.items() if name not in timed} == {
        name: value for name, value in whole.facts.items() if name not in timed
    }
    assert run(work, nli, **options) == found


def test_a_shard_reads_only_its_part_of_the_table(
    tmp_path: Path, nli: Path, numbering: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = WorkDirectory(tmp_path / "work")
    run(work, nli, "1/6")
    read: set[int] = set()
    texts = sentence_table.SentenceTable.texts

    def noted(self: sentence_table.SentenceTable, shard: int) -> list[str]:
        read.add(shard)
        return texts(self, shard)

    monkeypatch.setattr(sentence_table.SentenceTable, "texts", noted)
    part = run(work, nli, "2/6")
    files = len(list((part.path.parent / "plan").glob("sentences-*")))
    first, after = part.facts["numbers"]
    inside = -(-50 // 9)  # pieces of a whole file
    assert files > 3
    assert read == set(range(first // inside, (after - 1) // inside + 1))


def test_a_mix_with_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long.txt"
    path.write_text("".join(f"{' '.join(TEXTS[at : at + 8])}\n" for at in range(100)), encoding="utf-8")
    work = WorkDirectory(tmp_path / "work")
    options = {"wordnet": 0, "back_translate": 0, "queries_per_text": 1.5, "words": 3000, "workers": 1}
    whole = run(work, path, name="whole", **options)
    assert whole.facts["by_source"]["query"] > 20
    counted = []
    count = augment.count_frequencies
    monkeypatch.setattr(augment, "count_frequencies", lambda *given: (counted.append(given), count(*given)))
    for number in (3, 1, 2):
        run(work, path, f"{number}/3", **options)
    assert len(counted) == 1  # by the shard that made the plan, for all of them
    found = merged(work)
    assert bytes_of(found.path) == bytes_of(whole.path)
    assert found.facts["mix"] == whole.facts["mix"]


def test_what_runs_in_workers(tmp_path: Path, nli: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(augment, "wordnet_spec", lambda *_: Doubling(in_workers=True))
    work = WorkDirectory(tmp_path / "work")
    options = {"back_translate": 0, "workers": 1}
    whole = run(work, nli, name="whole", **options)
    for number in (2, 1):
        run(work, nli, f"{number}/2", **options)
    assert merged(work).digest == whole.digest


def test_interrupted_at_every_step(tmp_path: Path, nli: Path, numbering: None) -> None:
    work = WorkDirectory(tmp_path / "work")
    whole = run(work, nli, name="whole")
    steps = 0
    for shard in ("2/2", "1/2"):
        call = 1
        while interrupts(partial(run, work, nli, shard), Build, "write", call):
            steps, call = steps + 1, call + 3
    call = 1
    while interrupts(partial(merged, work), Build, "write", call):
        steps, call = steps + 1, call + 1
    assert steps > 20
    assert work.get("sentences", "main").digest == whole.digest


def test_a_changed_file_and_other_options_are_refused(tmp_path: Path, nli: Path, numbering: None) -> None:
    work = WorkDirectory(tmp_path / "work")
    with pytest.raises(InputError, match="no such file"):
        run(work, tmp_path / "nothing.txt", "1/2")
    run(work, nli, "1/2")
    with pytest.raises(UsageError, match=r"different options \(limit: not given, now 5\)"):
        run(work, nli, "2/2", limit=5)
    with pytest.raises(UsageError, match="in 2 shards, so 1/3 is not one of them"):
        run(work, nli, "1/3")
    nli.write_bytes(zstandard.compress(b"sent0,sent1,hard_neg\na dog,a cat,a bird\n"))
    with pytest.raises(UsageError, match=r"nli\.csv\.zst has changed"):
        run(work, nli, "2/2")
    rows = {row["name"]: row["why"] for row in status.run(status.Params(), work)}
    assert rows == {"main": "1 of 2 shards are finished"}
    with pytest.raises(InputError, match="shard 2/2 is missing"):
        merged(work)


def test_an_input_that_cannot_be_read_leaves_no_plan(tmp_path: Path, numbering: None) -> None:
    work = WorkDirectory(tmp_path / "work")
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n")
    with pytest.raises(InputError, match="no sentences in the input"):
        run(work, empty, "1/2")
    assert status.run(status.Params(), work) == []
    (tmp_path / "full.txt").write_text("\n".join(TEXTS) + "\n")
    for number in (1, 2):
        run(work, tmp_path / "full.txt", f"{number}/2")
    assert merged(work).facts["originals"] == len(TEXTS)
