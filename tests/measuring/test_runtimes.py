"""Runtimes: the same vectors from torch and from a graph, whatever the batch, in the order of the texts."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from tracing import traced_once

from sentcompress.exporting.onnx import FLOAT32_FILE, write_graph
from sentcompress.measuring.runtimes import GraphJob, Job, TorchJob
from sentcompress.models.catalog import find_model
from sentcompress.store import WorkDirectory


def test_both_runtimes_give_the_vectors_of_the_model(tmp_path: Path, tiny_model: Path, sentences: list[str]) -> None:
    pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    model = find_model(WorkDirectory(tmp_path), str(tiny_model))
    encoder = model.load()
    with traced_once():
        write_graph(encoder, tmp_path / FLOAT32_FILE)
    (tmp_path / "tokenizer.json").write_bytes((tiny_model / "tokenizer.json").read_bytes())
    (tmp_path / "tokenizer_config.json").write_bytes((tiny_model / "tokenizer_config.json").read_bytes())
    texts = sentences[:60]
    jobs: list[Job] = [TorchJob(model, "float32", "cpu", 1), GraphJob(tmp_path, FLOAT32_FILE, encoder.text, 1)]
    found = []
    for job in jobs:
        engine = pickle.loads(pickle.dumps(job)).load()
        engine.batch_tokens = 64
        small = engine.encode(texts)
        engine.batch_tokens = 4096
        np.testing.assert_allclose(engine.encode(texts), small, atol=1e-5)
        found.append(small)
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)
    np.testing.assert_allclose(found[1][7], jobs[1].load().encode([texts[7]])[0], atol=1e-5)
