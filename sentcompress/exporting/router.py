"""A model with two routes for sentence-transformers: queries are encoded by one model, documents by another.

The folder holds a `Router` module of sentence-transformers. Each route is a complete model folder by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sentcompress.errors import InputError
from sentcompress.exporting import verification
from sentcompress.exporting.formats import BATCH
from sentcompress.exporting.verification import Vectors
from sentcompress.json_documents import read_json, to_json
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import save_encoder
from sentcompress.models.model_files import MODULES, ROUTER
from sentcompress.models.pretrained import hush_transformers

FOLDER = "router"
QUERY, DOCUMENT = "query", "document"
SETTINGS = "config_sentence_transformers.json"


def check_widths(query: Encoder, document: Encoder, label: str, other: str) -> None:
    """Raise InputError if the two models' vectors cannot be compared because their dimensions differ."""
    if query.dimension != document.dimension:
        raise InputError(
            f"the vectors of {label} have {query.dimension} dimensions, those of {other} {document.dimension}",
            "a router needs a student in the teacher's space: distil without a projection, or run sentcompress "
            "compress --keep-index",
        )


def write_router(routes: Mapping[str, Encoder], folder: Path) -> None:
    """Write a folder that `SentenceTransformer(folder)` loads.

    Args:
        routes: the encoders of QUERY and DOCUMENT. Text without a task takes the route DOCUMENT, so that it fits the
            vectors of documents that are there already.

    Raises:
        SentcompressError: if a weight is NaN or infinite.
    """
    types: dict[str, str] = {}
    structure: dict[str, list[str]] = {}
    for route, encoder in routes.items():
        save_encoder(encoder, folder / route)
        modules = read_json(folder / route / MODULES)
        # The transformer's files are in the folder of its route itself, those of the other modules below it.
        own = {f"{route}/{module['path']}".rstrip("/"): str(module["type"]) for module in modules}
        structure[route] = list(own)
        types |= own
    parameters = {"default_route": DOCUMENT, "allow_empty_key": True, "route_mappings": {}}
    _write(folder / ROUTER, {"types": types, "structure": structure, "parameters": parameters})
    _write(folder / MODULES, [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Router"}])
    prompts = {route: encoder.text.prompt for route, encoder in routes.items()}
    default = DOCUMENT if prompts[DOCUMENT] else None
    _write(folder / SETTINGS, {"prompts": prompts, "default_prompt_name": default, "similarity_fn_name": "cosine"})


def verify_router(
    routes: Mapping[str, Encoder], texts: Mapping[str, Sequence[str]], folder: Path, *, trust_remote_code: bool
) -> dict[str, dict[str, Any]]:
    """Route -> agreement of `encode_query` or `encode_document` with the vectors of its encoder.

    Args:
        texts: those to compare, for each route.

    Raises:
        SentcompressError: if a route fails verification.
    """
    checked = {}
    for route, encoder in routes.items():
        expected = verification.encoder_vectors(encoder, texts[route])
        found = router_vectors(folder, route, texts[route], trust_remote_code=trust_remote_code)
        what = f"the router's route {route}"
        checked[route] = verification.require_agreement(found, expected, what).as_dict()
    return checked


def router_vectors(folder: Path, route: str, texts: Sequence[str], *, trust_remote_code: bool) -> Vectors:
    """The vectors of `encode_query` or `encode_document` of sentence-transformers on the CPU, [N, D]."""
    from sentence_transformers import SentenceTransformer

    hush_transformers()
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True, trust_remote_code=trust_remote_code)
    encode = model.encode_query if route == QUERY else model.encode_document
    return np.asarray(encode(list(texts), batch_size=BATCH, show_progress_bar=False), dtype=np.float32)


def _write(path: Path, value: Any) -> None:
    path.write_text(to_json(value) + "\n", encoding="utf-8")
