"""A graph of an exported folder, run as its model card tells: tokenizers and onnxruntime, no torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
INPUTS = ("input_ids", "attention_mask")
BATCH = 32


class GraphReader:
    """Texts -> vectors of length one.

    Args:
        folder: the exported folder.
        file: the graph's path within it.
        prepare: what is done to a text before the tokenizer (`TextSettings.prepare`).
        max_length: tokens that are read of each text.
        threads: that onnxruntime computes with; by default as many as it likes.
    """

    def __init__(
        self,
        folder: Path,
        file: str,
        *,
        prepare: Callable[[str], str],
        max_length: int,
        threads: int | None = None,
    ) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(max_length)
        settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        pad = settings["pad_token"]
        pad = pad["content"] if isinstance(pad, dict) else pad
        self.padding = int(self.tokenizer.token_to_id(pad) or 0)
        self.tokenizer.no_padding()
        self.prepare = prepare
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        if threads is not None:
            options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(folder / file, options, providers=["CPUExecutionProvider"])

    def vectors(self, texts: Sequence[str], batch: int = BATCH) -> Vectors:
        """[N, D], in batches of neighbours as they come; `batch=1` is what a single query gets."""
        parts = (texts[start : start + batch] for start in range(0, len(texts), batch))
        return np.concatenate([self.run(self.tokenize(part)) for part in parts])

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, at least one of them, without padding."""
        return [
            one.ids or [self.padding] for one in self.tokenizer.encode_batch([self.prepare(text) for text in texts])
        ]

    def run(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        """[B, D] vectors of B token sequences, padded to the longest of them."""
        ids: Ids = np.full((len(tokens), max(map(len, tokens))), self.padding, dtype=np.int64)
        mask: Ids = np.zeros_like(ids)
        for row, found in enumerate(tokens):
            ids[row, : len(found)] = found
            mask[row, : len(found)] = 1
        found_vectors: Vectors = self.session.run(None, dict(zip(INPUTS, (ids, mask), strict=True)))[0]
        return found_vectors
