"""Measures the amount of text to encode, and the speed of the teacher on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sentcompress.compression.embedding_load import STUDENT_COST, EmbeddingLoad
from sentcompress.corpora.collection_folders import corpus_file, rows_of
from sentcompress.corpora.documents_artifact import PASSAGE, ROLES, TRAIN
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.models.encoder import Encoder
from sentcompress.models.prompts import Prompts
from sentcompress.progress import Reporter, Task
from sentcompress.store import Artifact

# Number of texts whose tokens or characters are counted, the most that are encoded, and the number encoded first.
COUNTED, ENCODED, FIRST = 4000, 256, 32
# Seconds after which no more texts are encoded.
LONGEST = 5.0
# Characters per token; and the size of a file relative to its compressed form.
CHARACTERS, PACKED = 4.5, 3


def measured_workload(documents: Artifact, encoder: Encoder, reporter: Reporter, started: float) -> EmbeddingLoad:
    """The texts and tokens of an artifact of kind `documents`, and the teacher's speed on a sample of them.

    Args:
        started: when the compression began, by `time.monotonic`.
    """
    with reporter.phase("counting words"):
        words, sample, reading = _words_and_sample(documents)
    prompts = Prompts(encoder.text.prompt, encoder.text.prompts)
    # With a default prompt too, this counts some tokens twice.
    before = {kind: prompts.of_role(role) if prompts.differ_by_role else "" for kind, role in ROLES.items()}
    texts = [before[row["kind"]] + str(row["text"]) for row in sample]
    lengths = np.array([len(ids) for ids in encoder.tokenize(texts)])
    passages = lengths[[row["kind"] == PASSAGE for row in sample]]
    rows = sum(documents.facts[key] for key in ("passages", "titles", "queries"))
    tokens = int(lengths.mean() * rows)
    # In random order, so that the first ones are like all of them.
    order = np.random.default_rng(0).permutation(len(texts))[:ENCODED]
    timed = [texts[place] for place in order]
    with reporter.track("measuring the teacher's speed", total=2 * len(timed)) as task:
        fast, exact = (
            _tokens_per_second(EncodeEngine(encoder, dtype=dtype), timed, lengths[order], task)
            for dtype in ("auto", "float32")
        )
    return EmbeddingLoad(
        texts=rows,
        words=words,
        tokens=tokens,
        tokens_per_second=fast,
        exact_tokens_per_second=exact,
        searched=documents.facts["corpus"],
        spent=time.monotonic() - started,
        passage_tokens=float(passages.mean()) if len(passages) else None,
        held_out=_held_out(documents.facts),
        reading=reading,
    )


def _held_out(facts: Mapping[str, Any]) -> float:
    """The estimated number of held-out passages: a held-out document or section has as many as one to train on."""
    held = facts["held_out_documents"]
    return float(facts["passages"] * held / max(1, (facts["sections"] or facts["documents"]) - held))


def _tokens_per_second(engine: EncodeEngine, texts: Sequence[str], lengths: npt.NDArray[np.int64], task: Task) -> float:
    """The speed of a warm engine, on as many of the texts as it encodes in about LONGEST seconds."""
    engine.encode(texts[:16])
    began = time.perf_counter()
    done, seconds = 0, 0.0
    while done < len(texts) and seconds < LONGEST:
        # The number of texts is doubled each time, because a fast device needs many texts at a time.
        part = texts[done : done + max(FIRST, done)]
        engine.encode(part, task)
        done += len(part)
        seconds = time.perf_counter() - began
    task.advance(len(texts) - done)
    return float(lengths[:done].sum()) / max(seconds, 1e-6)


def judged_seconds(folder: Path, load: EmbeddingLoad, longest: int) -> float:
    """The time to encode a collection with the teacher and a student, from the size of its file.

    Args:
        longest: the number of tokens of a document that the teacher reads. The share of the text in them is that of the
            first documents.
    """
    path = corpus_file(folder)
    size = path.stat().st_size * (PACKED if path.suffix in (".gz", ".zst") else 1)
    lengths = [len(text) for _, text in islice(rows_of(path), COUNTED)]
    read = sum(min(length, CHARACTERS * longest) for length in lengths) / max(1, sum(lengths))
    return (1 + STUDENT_COST) * size * read / CHARACTERS / load.exact_tokens_per_second


def _words_and_sample(documents: Artifact) -> tuple[int, list[dict[str, Any]], float]:
    """The words of all training texts, rows sampled at random, and the seconds to read the file once."""
    path, words, count = documents.path / TRAIN, 0, 0
    began = time.perf_counter()
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            words, count = words + len(json.loads(line)["text"].split()), count + 1
    reading = time.perf_counter() - began
    # Not every n-th row: titles, passages and queries are in a regular order.
    chosen = set(np.random.default_rng(0).choice(count, min(COUNTED, count), replace=False).tolist())
    with path.open(encoding="utf-8") as lines:
        return words, [json.loads(line) for number, line in enumerate(lines) if number in chosen], reading
