"""A model with two routes for sentence-transformers: queries are encoded by one model, documents by another.

The folder holds a `Router` module of sentence-transformers. Each route is a complete model folder by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sentcompress.errors import InputError
from sentcompress.exporting import verification
from sentcompress.exporting.verification import BoundedReader, EncodeReader, open_folder
from sentcompress.json_documents import read_json, write_json
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import save_encoder, similarity_of
from sentcompress.models.model_files import MODULES, ROUTER
from sentcompress.models.prompts import DOCUMENT, PROMPTS_FILE, QUERY, Prompts
from sentcompress.models.text_settings import TextSettings

FOLDER = "router"


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
    write_json(folder / ROUTER, {"types": types, "structure": structure, "parameters": parameters})
    write_json(folder / MODULES, [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Router"}])
    prompts = {route: route_prompt(route, encoder.text) for route, encoder in routes.items()}
    documents = routes[DOCUMENT]
    text = replace(documents.text, prompts=prompts)
    write_json(folder / PROMPTS_FILE, text.prompts_document(similarity=similarity_of(documents)))


def route_prompt(route: str, text: TextSettings) -> str:
    """The prompt of `encode_query` or `encode_document` with the route's model."""
    return Prompts(text.prompt, text.prompts).of_role(route)


def verify_router(
    routes: Mapping[str, Encoder], texts: Mapping[str, Sequence[str]], folder: Path, *, trust_remote_code: bool
) -> dict[str, dict[str, Any]]:
    """Route -> agreement of `encode_query` or `encode_document` with the vectors of its encoder and prompt.

    Args:
        texts: the texts to compare, for each route.

    Raises:
        SentcompressError: if a route fails verification.
    """
    checked = {}
    model = open_folder(folder, trust_remote_code=trust_remote_code)
    for route, encoder in routes.items():
        text = replace(encoder.text, prompt=route_prompt(route, encoder.text))
        prompted = type(encoder)(**encoder.parts() | {"text": text})
        expected = verification.encoder_vectors(prompted, texts[route])
        encode = model.encode_query if route == QUERY else model.encode_document
        found = BoundedReader(EncodeReader(encode), prompted.tokenize).vectors(texts[route])
        what = f"the router's route {route}"
        checked[route] = verification.require_agreement(found, expected, what).as_dict()
    return checked
