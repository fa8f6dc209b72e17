"""Reading and writing static models: StaticEmbedding folders of sentence-transformers, also read by model2vec.

Both read `model.safetensors` and `tokenizer.json`. The table is the tensor `embeddings`, as model2vec has it: a row for
each token id, unless `mapping` names another row, multiplied by `weights` if there are any. sentence-transformers' own
name for the table is `embedding.weight`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import save_file
from torch import Tensor

from sentcompress.errors import InputError
from sentcompress.json_documents import read_json
from sentcompress.models.library_errors import reading
from sentcompress.models.model_files import DAMAGED, weight_files
from sentcompress.models.static_encoder import StaticEncoder
from sentcompress.models.tensors import read_tensors
from sentcompress.models.text_settings import TransformersTokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TOKENIZER = "tokenizer.json"
TOKENIZER_SETTINGS = "tokenizer_config.json"
# The names of the table in model2vec and in sentence-transformers.
TABLE, OTHER_TABLE = "embeddings", "embedding.weight"
MAPPING, WEIGHTS = "mapping", "weights"
# A hieroglyph, which most vocabularies lack: its tokens show whether a tokenizer pads with the unknown token.
ODD_TEXT = "\U00013000"
PAD_TOKENS = ("[PAD]", "<pad>")


def load_static(folder: Path, label: str) -> tuple[Tensor, TransformersTokenizer]:
    """The table [V, H] of a StaticEmbedding module, as float32, and its tokenizer.

    Raises:
        InputError: if a file is missing or damaged.
    """
    if not (folder / TOKENIZER).is_file():
        raise InputError(f"the model folder of {label} has no tokenizer", f"it needs {TOKENIZER}")
    with reading(f"{label} cannot be loaded"):
        tokenizer = _read_tokenizer(folder)
    table, pad = _read_table(folder, label), tokenizer.pad_token_id
    if pad is not None and pad < len(table) and pad not in tokenizer.backend_tokenizer.encode(ODD_TEXT).ids:
        # An empty text becomes this token, and sentence-transformers makes its vector zero. Other texts have the token
        # only if they spell it out.
        table[pad] = 0.0
    return table, tokenizer


def static_shape(folder: Path) -> tuple[int, int]:
    """V and H of a StaticEmbedding module.

    Raises:
        InputError: if its weights are missing or damaged.
    """
    rows, width = _read_table(folder, str(folder)).shape
    return rows, width


def save_static(encoder: StaticEncoder, folder: Path) -> None:
    """Write the table and the tokenizer, which truncates texts itself."""
    save_file({TABLE: encoder.embedding.weight.detach().cpu().contiguous()}, folder / "model.safetensors")
    tokenizer = encoder.tokenizer
    tokenizer.model_max_length = encoder.text.max_length
    backend = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.enable_truncation(encoder.text.max_length)
    tokenizer.save_pretrained(folder)
    backend.save(str(folder / TOKENIZER))
    config = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "hidden_dim": encoder.hidden_size,
        "seq_length": encoder.text.max_length,
        "normalize": encoder.normalize,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def plain_tokenizer(tokenizer: TransformersTokenizer, *, lower_case: bool = False) -> TransformersTokenizer:
    """The same tokenizer without special tokens around a text.

    Args:
        lower_case: lower-case texts before anything else.

    Raises:
        InputError: if it is not a fast tokenizer.
    """
    from tokenizers import Tokenizer

    if not tokenizer.is_fast:
        raise InputError("a static model needs a fast tokenizer", f"the teacher's folder needs a {TOKENIZER}")
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    backend |= {"post_processor": None, "truncation": None, "padding": None}
    if lower_case:
        before = [backend["normalizer"]] if backend["normalizer"] else []
        backend["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, *before]}
    return _wrapped(Tokenizer.from_str(json.dumps(backend)), tokenizer.pad_token, tokenizer.unk_token)


def _wrapped(backend: Tokenizer, pad: str | None, unknown: str | None = None) -> TransformersTokenizer:
    from transformers import PreTrainedTokenizerFast

    named = {"pad_token": pad, "unk_token": unknown}
    given = {name: token for name, token in named.items() if token is not None}
    tokenizer: TransformersTokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, **given)
    return tokenizer


def _read_tokenizer(folder: Path) -> TransformersTokenizer:
    """The tokenizer; sentence-transformers adds no special tokens for a static model, whatever the file says."""
    from tokenizers import Tokenizer

    content = read_json(folder / TOKENIZER)
    limit = (content.get("truncation") or {}).get("max_length")
    backend = Tokenizer.from_str(json.dumps(content | {"post_processor": None, "truncation": None, "padding": None}))
    path = folder / TOKENIZER_SETTINGS
    settings = read_json(path) if path.is_file() else {}
    named = settings.get("pad_token") if isinstance(settings, dict) else None
    known = (
        token for token in (named, *PAD_TOKENS) if isinstance(token, str) and backend.token_to_id(token) is not None
    )
    pad = next(known, None)
    tokenizer = _wrapped(backend, pad)
    if limit is not None:
        tokenizer.model_max_length = int(limit)
    return tokenizer


def _read_table(folder: Path, label: str) -> Tensor:
    files = weight_files(folder)
    if not files:
        raise InputError(f"the model folder of {label} has no weights", "it needs model.safetensors")
    with reading(f"{label} cannot be loaded"):
        tensors = {name: value for path in files for name, value in read_tensors(path).items()}
    table = tensors.get(TABLE, tensors.get(OTHER_TABLE))
    if table is None or table.dim() != 2:
        raise InputError(f"the weights of {label} have no table of token vectors ({TABLE})", DAMAGED)
    with reading(f"{label} cannot be loaded"):
        rows = table[tensors[MAPPING].long()] if MAPPING in tensors else table
        weights = tensors.get(WEIGHTS, torch.ones(1))
        return rows.float() * weights.float().reshape(-1, 1)
