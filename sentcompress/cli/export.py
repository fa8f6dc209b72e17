"""The output of `sentcompress export`."""

from __future__ import annotations

from typing import Any

from sentcompress.cli import render
from sentcompress.cli.line import Call
from sentcompress.plain_text import shell_word
from sentcompress.store import Artifact


def show(artifact: Artifact, call: Call) -> str:
    """The files, and how exactly they give the model's vectors."""
    _show(artifact.facts)
    return f"sentcompress encode lines.txt --model {shell_word(artifact.path)} -o vectors.npy"


def _show(facts: dict[str, Any]) -> None:
    checked, sizes = facts["checked"], facts["bytes"]
    weights = sum(size for name, size in sizes.items() if name.endswith(".safetensors"))
    rows = [["sentence-transformers folder", weights, *_cosines(checked["folder"])]]
    if "onnx" in facts:
        int8 = checked["int8"]
        size = sizes[facts["onnx"]["int8"]]
        rows += [
            ["ONNX float32", sizes[facts["onnx"]["float32"]], *_cosines(checked["float32"])],
            ["ONNX int8, in batches", size, *_cosines(int8)],
            ["ONNX int8, one at a time", size, f"{int8['single_min_cosine']:.6f}", f"{int8['single_mean_cosine']:.6f}"],
        ]
    title = f"checked on {checked['folder']['texts']} sentences: cosine to the model's own vectors"
    render.print_table(["file", "bytes", "smallest", "mean"], rows, title)
    if facts.get("sts"):
        columns = ["set", "pairs", "float32", "int8, in batches", "int8, one at a time"]
        keys = ("set", "pairs", "float32", "int8", "int8_single")
        render.print_table(columns, [[score[key] for key in keys] for score in facts["sts"]], "STS, Spearman x 100")


def _cosines(found: dict[str, Any]) -> tuple[str, str]:
    return f"{found['min_cosine']:.6f}", f"{found['mean_cosine']:.6f}"
