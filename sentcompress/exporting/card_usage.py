"""The sections of the model card with code to copy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sentcompress.exporting.graph_formats import STATIC
from sentcompress.exporting.onnx import FLOAT32_FILE, INT8_FILE
from sentcompress.exporting.router import FOLDER
from sentcompress.models.encoder import Encoder
from sentcompress.models.prompts import DOCUMENT, QUERY
from sentcompress.models.text_settings import TransformersTokenizer
from sentcompress.plain_text import markdown

# What the graphs do with named prompts; sentence-transformers leaves the prompts of some models out of the pooling.
PROMPTED = "Put the prompt of a query or a document before its text yourself."
UNPROMPTED = "The graphs also pool the tokens of a prompt, unlike sentence-transformers: give them no named prompt."
OF_BATCH = (
    "The int8 graph quantises activations with their range in the batch, so a vector depends slightly on the other "
    "texts of its batch."
)


def usage(encoder: Encoder, facts: Mapping[str, Any]) -> Iterator[str]:
    """How to encode with the exported folder: with sentence-transformers, and with its graphs if it has any.

    Args:
        facts: the facts of the export.
    """
    yield "## Use"
    yield "\n".join(
        [
            "```python",
            "from sentence_transformers import SentenceTransformer",
            "",
            'model = SentenceTransformer("path/of/this/folder")',
            'vectors = model.encode(["A man plays the guitar.", "Two dogs run."])',
            "print(model.similarity(vectors, vectors))",
            "```",
        ]
    )
    if encoder.text.unused_prompts:
        yield (
            "The named prompts in the table are for some kinds of text: `encode_query` and `encode_document` put those "
            "of queries and documents before the text, `encode(..., prompt_name=...)` any other, and `encode` alone "
            "none of them. Of the evaluations on this card, those of retrieval and search were made with the prompts "
            "that their protocols name, and the others without."
        )
    if encoder.normalize:
        yield (
            "`truncate_dim` truncates the vectors after normalisation, so their length is no longer 1. This does "
            "not affect cosine similarity; for a vector store that ranks by inner product, normalise them again "
            "(`encode(..., normalize_embeddings=True)`)."
        )
    else:
        yield (
            "The vectors are not normalised. For a vector store that ranks by inner product, use "
            "`encode(..., normalize_embeddings=True)`, also with `truncate_dim`."
        )
    if "onnx" in facts["formats"]:
        yield from _graph_usage(encoder, int8="int8" in facts["formats"])
        quantised = "int8" in facts["formats"] and (encoder.depth > 0 or len(encoder.dense) > 0)
        if quantised and facts.get("int8", {}).get("quantisation") != STATIC:
            yield OF_BATCH


def _graph_usage(encoder: Encoder, *, int8: bool) -> Iterator[str]:
    """How to encode without PyTorch."""
    yield (
        "Without PyTorch: the ONNX graphs take tokens and return normalised embeddings; pooling, dense layers and "
        "normalisation are included. They are not named `model.onnx`, because software that looks for that name "
        "would pool the output again. They need onnxruntime 1.18 or later; the code below also uses tokenizers "
        "(`pip install onnxruntime tokenizers`). Run it in this folder, or put the path of the folder before the names "
        "of the files."
    )
    text = encoder.text
    if text.unused_prompts:
        yield PROMPTED if text.pools_prompt else UNPROMPTED
    prepared = f"({text.prompt!r} + text)" if text.prompt else "text"
    prepared = f"{prepared}.lower()" if text.lower_case else prepared
    side = ', direction="left"' if encoder.tokenizer.truncation_side == "left" else ""
    given = "texts" if prepared == "text" else f"[{prepared} for text in texts]"
    yield "\n".join(
        [
            "```python",
            "import numpy as np",
            "import onnxruntime",
            "from tokenizers import Tokenizer",
            "",
            'tokenizer = Tokenizer.from_file("tokenizer.json")',
            f"tokenizer.enable_truncation({text.max_length}{side})",
            f"tokenizer.enable_padding({_padding(encoder.tokenizer)})",
            f'session = onnxruntime.InferenceSession("{FLOAT32_FILE}")' + (f"  # or {INT8_FILE}" if int8 else ""),
            'texts = ["A man plays the guitar.", "Two dogs run."]',
            f"encoded = tokenizer.encode_batch({given})",
            "inputs = {",
            '    "input_ids": np.array([one.ids for one in encoded], dtype=np.int64),',
            '    "attention_mask": np.array([one.attention_mask for one in encoded], dtype=np.int64),',
            "}",
            "vectors = session.run(None, inputs)[0]",
            "```",
        ]
    )


def router_usage(facts: Mapping[str, Any]) -> Iterator[str]:
    """How to search vectors of the teacher, if the export has a router."""
    if not (found := facts.get("router")):
        return
    documents = markdown(str(found["documents"]))
    yield "## Search vectors of the teacher"
    yield (
        f"The vectors of this model can be compared with those of {documents}: its queries can search an index with "
        f"vectors of {documents}. In an application that only encodes queries, use this folder as above. `{FOLDER}/` "
        "holds both models as a Router of sentence-transformers, for an application that also adds documents:"
    )
    yield "\n".join(
        [
            "```python",
            "from sentence_transformers import SentenceTransformer",
            "",
            f'model = SentenceTransformer("path/of/this/folder/{FOLDER}")',
            'queries = model.encode_query(["who plays the guitar?"])  # this model',
            'documents = model.encode_document(["A man plays the guitar."])  # the teacher',
            "print(model.similarity(queries, documents))",
            "```",
        ]
    )
    yield (
        f"`encode` without a task encodes documents. `{FOLDER}/{QUERY}` and `{FOLDER}/{DOCUMENT}` are complete "
        f"models; the weights of both have {found['bytes']:,} bytes."
    )


def _padding(tokenizer: TransformersTokenizer) -> str:
    return (
        f"pad_id={tokenizer.pad_token_id}, pad_token={json.dumps(tokenizer.pad_token)}" if tokenizer.pad_token else ""
    )
