"""mine-negatives in shards: the bytes of one run, and a corpus that the shards encode together."""

from __future__ import annotations

import os
import random
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from interrupting import interrupts
from sharding import bytes_of
from tiny_models import make_sentences

from sentcompress.encoding import embedder_sources
from sentcompress.errors import InputError, UsageError
from sentcompress.mining import miner
from sentcompress.progress import Reporter
from sentcompress.stages import merge, mine_negatives
from sentcompress.store import Artifact, Build, WorkDirectory
from sentcompress.store.locking import locked

TEXTS = make_sentences(150, seed=5)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(miner, "QUERIES", 4)
    monkeypatch.setattr(embedder_sources, "WINDOW_TEXTS", 9)
    monkeypatch.setattr(mine_negatives, "PAUSE_SECONDS", 0.02)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Pairs of a query and its positive; some queries have two."""
    path = tmp_path / "pairs.tsv"
    rows = [(TEXTS[number % 45], TEXTS[50 + number]) for number in range(60)]
    path.write_text("\n".join(["query\tpositive", *map("\t".join, rows)]) + "\n", encoding="utf-8")
    return path


def mine(work: WorkDirectory, model: Path, pairs: Path, shard: str | None = None, **options: Any) -> Artifact:
    given = {"negatives": 3, "device": "cpu", **options}
    return mine_negatives.run(mine_negatives.Params(model=str(model), pairs=pairs, shard=shard, **given), work)


def merged(work: WorkDirectory) -> Artifact:
    found = merge.run(merge.Params(what="sentences/mined"), work)
    assert isinstance(found, Artifact)
    return found


@pytest.mark.parametrize(
    ("count", "options"),
    [(1, {}), (3, {"strategy": "top", "depth": 5, "skip": 1}), (16, {"max_score": None}), (2, {"index": "hnsw"})],
)
def test_the_bytes_are_those_of_one_run(
    work: WorkDirectory, tmp_path: Path, tiny_model: Path, pairs: Path, count: int, options: dict[str, Any]
) -> None:
    whole = mine(WorkDirectory(tmp_path / "other"), tiny_model, pairs, **options)
    numbers = list(range(1, count + 1))
    random.Random(count).shuffle(numbers)
    for number in [*numbers, numbers[0]]:
        mine(work, tiny_model, pairs, f"{number}/{count}", **options)
    found = merged(work)
    assert (found.digest, found.fingerprint) == (whole.digest, whole.fingerprint)
    assert bytes_of(found.path) == bytes_of(whole.path)
    for name, value in whole.facts.items():
        assert found.facts[name] == (pytest.approx(value) if isinstance(value, float) else value), name
    assert mine(work, tiny_model, pairs, **options) == found


def test_interrupted_at_every_step(work: WorkDirectory, tmp_path: Path, tiny_model: Path, pairs: Path) -> None:
    whole = mine(WorkDirectory(tmp_path / "other"), tiny_model, pairs)
    steps = 0
    for act in (*(partial(mine, work, tiny_model, pairs, shard) for shard in ("2/2", "1/2")), partial(merged, work)):
        call = 1
        while interrupts(act, Build, "write", call):
            steps, call = steps + 1, call + 1
    assert steps > 12
    assert work.get("sentences", "mined").digest == whole.digest


def test_a_shard_waits_for_parts_that_others_encode(work: WorkDirectory, tiny_model: Path, pairs: Path) -> None:
    mine(work, tiny_model, pairs, "1/3")
    shared = work.path / "sentences" / ".mined.shards" / ".shared"
    for path in (shared / "vectors-2-of-3", shared / "vectors"):
        (path / "manifest.json").unlink()  # as if another shard had yet to make it
    done: list[Artifact] = []
    waiting = threading.Event()
    told: list[str] = []

    class Waiter(Reporter):
        def note(self, message: str) -> None:
            if "waiting for parts of the corpus" in message:
                told.append(message)
                waiting.set()

    params = mine_negatives.Params(model=str(tiny_model), pairs=pairs, shard="3/3", negatives=3, device="cpu")
    shard = threading.Thread(target=lambda: done.append(mine_negatives.run(params, work, Waiter())))
    with locked(shared / ".vectors-2-of-3.lock", "it"):
        shard.start()
        assert waiting.wait(timeout=600)
        assert not done
    shard.join(timeout=600)
    assert done
    assert (shared / "vectors" / "manifest.json").is_file()
    (message,) = told
    assert f"vectors-2-of-3 is being written by process {os.getpid()} on " in message
    assert message.endswith("; wait for it")


def test_what_is_refused(work: WorkDirectory, tiny_model: Path, pairs: Path) -> None:
    with pytest.raises(InputError, match="too few for 500 negatives"):
        mine(work, tiny_model, pairs, "1/2", negatives=500, depth=600)
    mine(work, tiny_model, pairs, "1/2")
    with pytest.raises(UsageError, match="different options"):
        mine(work, tiny_model, pairs, "2/2", seed=3)
    pairs.write_text(pairs.read_text() + "a dog\ta cat\n")
    with pytest.raises(UsageError, match=r"pairs\.tsv has changed"):
        mine(work, tiny_model, pairs, "2/2")
    with pytest.raises(InputError, match="shard 2/2 is missing"):
        merged(work)
