"""A work directory with everything that `distill` needs, made without the stages that come before it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from sentcompress.corpora.sentence_table import SCHEMA, SENTENCES_PATTERN, TRIPLET_SCHEMA, TRIPLETS
from sentcompress.corpora.sts import read_dev
from sentcompress.errors import SentcompressError
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import load_encoder
from sentcompress.models.sources import resolve
from sentcompress.progress import SILENT
from sentcompress.store import Artifact, Build, Request, WorkDirectory
from sentcompress.training.batches import Rows
from sentcompress.training.dev import score_of, sts_dev
from sentcompress.training.residence import Residence
from sentcompress.training.teacher_views import Supply, supply

# A training of four steps.
SHORT: dict[str, Any] = {
    "lr": 1e-3,
    "epochs": 1,
    "batch_size": 8,
    "max_steps": 4,
    "dtype": "float32",
    "device": "cpu",
    "eval_every": 2,
}
# What a training log measures with a clock.
TIMINGS = {"seconds", "sentences_per_second"}
# What work directories hold that several tests begin with: the bytes of each file by its path.
_MADE: dict[Hashable, dict[Path, bytes]] = {}


def made_once(folder: Path, key: Hashable, make: Callable[[WorkDirectory], object]) -> WorkDirectory:
    """A work directory of a test's own that `make` has filled: this time, or the first time that `key` was given."""
    work = WorkDirectory(folder)
    if key not in _MADE:
        make(work)
        files = [path for path in folder.rglob("*") if path.is_file() and path.name[0] != "."]
        _MADE[key] = {path.relative_to(folder): path.read_bytes() for path in files}
        return work
    for path, content in _MADE[key].items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return work


def make_work(folder: Path, teacher: Path, texts: Sequence[str], *, file_rows: int = 200) -> WorkDirectory:
    """Sentences and the teacher's vectors of them, both called main, in files of `file_rows`."""

    def make(work: WorkDirectory) -> None:
        files = [texts[start : start + file_rows] for start in range(0, len(texts), file_rows)]
        add_vectors(work, add_sentences(work, files), teacher, files)

    source = resolve(str(teacher))
    return made_once(folder, (str(teacher), source.digest, tuple(texts), file_rows), make)


def add_sentences(work: WorkDirectory, files: Sequence[Sequence[str]], name: str = "main") -> Artifact:
    """A sentence table of originals."""
    asked = {"texts": [list(texts) for texts in files]}
    with work.build(Request("sentences", name, "augment", asked), force=True) as build:
        rows = _write_originals(build, files)
        return build.finish({"rows": rows, "originals": rows})


def _write_originals(build: Build, files: Sequence[Sequence[str]]) -> int:
    """Write the files of a table, and return the number of its rows."""
    rows = 0
    for number, texts in enumerate(files):
        written = [
            {"row": row, "text": text, "source": "original", "parent": -1, "origin": "test", "domain": ""}
            for row, text in enumerate(texts, rows)
        ]
        with build.write(SENTENCES_PATTERN.format(number)) as path:
            pq.write_table(pa.Table.from_pylist(written, schema=SCHEMA), path)
        rows += len(texts)
    return rows


def add_triplets(work: WorkDirectory, texts: Sequence[str], name: str = "triplets") -> Artifact:
    """A table of the texts with the triplets of rows 0, 1, 2, of rows 3, 4, 5, and so on."""
    triplets = [{"anchor": row, "positive": row + 1, "negative": row + 2} for row in range(0, len(texts) - 2, 3)]
    with work.build(Request("sentences", name, "augment", {})) as build:
        rows = _write_originals(build, [texts])
        with build.write(TRIPLETS) as path:
            pq.write_table(pa.Table.from_pylist(triplets, schema=TRIPLET_SCHEMA), path)
        return build.finish({"rows": rows})


def add_vectors(
    work: WorkDirectory, sentences: Artifact, teacher: Path, files: Sequence[Sequence[str]], name: str = "main"
) -> Artifact:
    """The teacher's vectors of a table made by `add_sentences`."""
    import torch

    source = resolve(str(teacher))
    encoder = load_encoder(source)
    asked = {"teacher": str(teacher), "revision": None, "pooling": "auto"}
    inputs = {sentences.reference: sentences.digest, f"model:{source.label}": source.digest}
    with work.build(Request("teacher-vectors", name, "teacher-embed", asked, inputs)) as build:
        for number, texts in enumerate(files):
            tokens = encoder.tokenize(texts)
            longest = max(map(len, tokens))
            ids = torch.tensor([line + [0] * (longest - len(line)) for line in tokens])
            mask = torch.tensor([[1] * len(line) + [0] * (longest - len(line)) for line in tokens])
            with torch.inference_mode(), build.write(f"vectors-{number:05d}.npy") as path, path.open("wb") as stream:
                np.save(stream, encoder(ids, mask).numpy())
        rows = sum(map(len, files))
        return build.finish({"rows": rows, "dimension": encoder.dimension, "teacher": source.label})


def write_dev(path: Path, texts: Sequence[str]) -> Path:
    """Graded pairs: the share of words that two sentences have in common, times five."""
    lines = []
    for first, second in pairwise(texts):
        one, two = set(first.split()), set(second.split())
        lines.append(f"{5 * len(one & two) / len(one | two):.3f}\t{first}\t{second}\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def dev_of_saved(student: Artifact, dev: Path) -> float:
    """The dev score, on the graded pairs of a file, of a student as it was saved."""
    encoder, pairs = load_encoder(resolve(str(student.path / "model"))), read_dev(dev)
    scores = sts_dev(pairs.first, pairs.second, pairs.scores, encoder.tokenize, encoder.padding)
    return score_of(scores, encoder.embed, torch.device("cpu"))


def supply_to(student: Encoder, vectors: Artifact, *needs: str, domains: Rows | None = None) -> Supply:
    """What a method with these needs is supplied with on a CPU."""
    return supply(
        frozenset(needs),
        student,
        vectors,
        domains=domains,
        tensors={},
        input_layer=0,
        residence=Residence(torch.device("cpu"), SILENT),
        trust_remote_code=False,
    )


def run_hinted(error: SentcompressError) -> None:
    """Run the command that the hint of an error gives."""
    # Not above: the processes that tests kill import this module, each of them anew.
    from sentcompress.cli.main import _run

    command = str(error.hint).rpartition("run: ")[2]
    assert _run([*shlex.split(command)[1:], "-q"]) == 0, command
