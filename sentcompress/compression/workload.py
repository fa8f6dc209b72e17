"""How much there is to embed, and how fast the teacher does it on this machine."""

from __future__ import annotations

import json
import time
from itertools import islice

import numpy as np

from sentcompress.compression.budget import EmbeddingLoad
from sentcompress.corpora.documents_artifact import TRAIN
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.models.encoder import Encoder
from sentcompress.progress import Reporter
from sentcompress.store import Artifact

# Texts that are counted, and those of them that are encoded.
COUNTED, ENCODED = 4000, 256


def measured_workload(documents: Artifact, encoder: Encoder, reporter: Reporter) -> EmbeddingLoad:
    """The texts and tokens of an artifact of kind `documents`, and the teacher's speed on a sample of them."""
    texts = _sample(documents)
    lengths = np.array([len(ids) for ids in encoder.tokenize(texts)])
    rows = sum(documents.facts[key] for key in ("passages", "titles", "queries"))
    tokens = int(lengths.mean() * rows)
    timed = texts[:: max(1, len(texts) // ENCODED)]
    engine = EncodeEngine(encoder)
    with reporter.track("measuring the teacher's speed", total=len(timed)) as task:
        engine.encode(timed[:16])
        started = time.perf_counter()
        engine.encode(timed, task)
        seconds = time.perf_counter() - started
    speed = int(lengths[:: max(1, len(texts) // ENCODED)].sum()) / max(seconds, 1e-6)
    return EmbeddingLoad(rows, tokens, speed)


def _sample(documents: Artifact) -> list[str]:
    """Texts spread over the whole file."""
    path = documents.path / TRAIN
    with path.open(encoding="utf-8") as lines:
        count = sum(1 for _ in lines)
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in islice(lines, 0, None, max(1, count // COUNTED))]
