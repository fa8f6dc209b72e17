"""The section of a model card on stored vectors: encode, decode and compare them with NumPy and safetensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sentcompress.models.prompts import DOCUMENT
from sentcompress.numeric import figure
from sentcompress.plain_text import markdown, markdown_table
from sentcompress.quantities import counted

START = """\
import numpy as np
from safetensors.numpy import load_file

part = load_file("vectors/quantizer.safetensors")


def rotated(vectors):
    cut = vectors @ part["axes"].T
    return cut / np.maximum(np.linalg.norm(cut, axis=1, keepdims=True), 1e-30)
"""
CELLS = """\
    step = np.maximum(part["step"], 1e-30)
    cells = np.clip(np.floor((rotated(vectors) - part["low"]) / step), 0, {top}).astype(np.uint8)"""
# The facts of a quantizer that `stored_vectors` shows.
SHOWN = (
    *("format", "dimension", "model_dimension", "bytes", "fidelity", "fidelity_of_float32"),
    *("protocol", "prefixes", "prompts"),
)
CHOSEN = (
    "If the format (`fit-quantizer` with `--store auto`) or the model (`compress`) was chosen with these queries, the "
    "figures of this section tend to be too high."
)
# How the values of a format become codes [N, bytes] of type uint8, as `encode` writes them, and codes values; both are
# the bodies of functions.
BODIES: Mapping[str, tuple[str, str]] = {
    "float32": ('    return rotated(vectors).astype("<f4").view(np.uint8)', '    values = codes.view("<f4")'),
    "float16": (
        '    return rotated(vectors).astype("<f2").view(np.uint8)',
        '    values = codes.view("<f2").astype(np.float32)',
    ),
    "int8": (f"{CELLS.format(top=255)}\n    return cells", '    values = part["low"] + (codes + 0.5) * part["step"]'),
    "int4": (
        f"{CELLS.format(top=15)}\n"
        "    cells = np.pad(cells, ((0, 0), (0, cells.shape[1] % 2)))\n"
        "    return cells[:, ::2] | cells[:, 1::2] << 4",
        '    cells = np.stack([codes & 15, codes >> 4], axis=2).reshape(len(codes), -1)[:, : len(part["low"])]\n'
        '    values = part["low"] + (cells + 0.5) * part["step"]',
    ),
    "binary": (
        '    return np.packbits(rotated(vectors) > part["threshold"], axis=1, bitorder="little")',
        '    bits = np.unpackbits(codes, axis=1, count=len(part["threshold"]), bitorder="little")\n'
        '    values = np.where(bits, part["above"], part["below"])',
    ),
    "pq": (
        '    books = part["codebooks"]\n'
        '    segments = rotated(vectors)[:, part["order"]].reshape(len(vectors), len(books), -1)\n'
        '    distances = (books**2).sum(axis=2) - 2 * np.einsum("nms,mks->nmk", segments, books)\n'
        "    return distances.argmin(axis=2).astype(np.uint8)",
        '    books = part["codebooks"]\n'
        '    values = np.empty((len(codes), len(part["order"])), dtype=np.float32)\n'
        '    values[:, part["order"]] = books[np.arange(len(books)), codes].reshape(len(codes), -1)',
    ),
}
END = """\
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-30)
"""


def recipe(number_format: str) -> str:
    """Python lines that define `rotated`, `stored` and `decoded` for a format."""
    encode, decode = BODIES[number_format]
    return f"{START}\n\ndef stored(vectors):\n{encode}\n\n\ndef decoded(codes):\n{decode}\n{END}"


def stored_vectors(facts: Mapping[str, Any]) -> Iterator[str]:
    """The paragraphs of the section.

    Args:
        facts: the facts of the quantizer's artifact.
    """
    yield "## Stored vectors"
    yield (
        f"`vectors/` has a quantizer that stores this model's vectors in {counted(facts['bytes'], 'byte')} each "
        f"({facts['format']}, {facts['dimension']} of {facts['model_dimension']} dimensions). Search fidelity: "
        f"{figure(facts['fidelity'], '.1f')}; with the model's own float32 vectors: "
        f"{figure(facts['fidelity_of_float32'], '.1f')} ({markdown(str(facts['protocol']))}). {CHOSEN}"
    )
    command = "sentcompress encode docs.jsonl --model path/of/this/folder --store quantizer -o stored/"
    if DOCUMENT in facts.get("prompts", {}):
        command += " --prompt-name document"
    yield f"`{command}` writes them. In Python without sentcompress:"
    use = (
        '\n\ndocuments, queries = ["A man plays the guitar.", "Two dogs run."], ["who plays music?"]\n'
        "codes = stored(model.encode_document(documents))  # model: as above\n"
        "scores = rotated(model.encode_query(queries)) @ decoded(codes).T  # queries are not quantised"
    )
    yield f"```python\n{recipe(str(facts['format']))}{use}\n```"
    yield (
        'The folder `stored/` has numbered files: `decoded(np.load("stored/vectors-00000.npy"))` are the vectors of '
        "the ids in `stored/ids-00000.json`, a JSON list. With `-o stored.npy` instead, the codes are one array, "
        "without ids."
    )
    yield (
        "Every prefix of the rotated vectors is usable. **Scale a prefix to unit length again** before it is compared "
        "by inner product. Search fidelity of the first dimensions:"
    )
    rows = [
        (f"{row['dimension']}", *("" if row[way] is None else figure(row[way], ".1f") for way in ("float32", "stored")))
        for row in facts["prefixes"]
    ]
    yield markdown_table(("dimensions", "float32", str(facts["format"])), rows)
