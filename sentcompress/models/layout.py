"""Reading and writing model folders: the sentence-transformers layout, SimCSE checkpoints, plain transformers.

Written is the long-lived schema: module names `sentence_transformers.models.*` and boolean pooling keys, which
every release of sentence-transformers reads and which text-embeddings-inference needs. Both that schema and the
newer one (`pooling_mode: "mean"`) are read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from sentcompress.models.checks import check_sound, require_sound
from sentcompress.models.encoder import Dense, Encoder
from sentcompress.models.families import readable_positions
from sentcompress.models.foreign_code import refuse_code
from sentcompress.models.model_files import read_config, transformer_folder, whole_number
from sentcompress.models.pretrained import hush_transformers, left_out_pooler, load_transformer
from sentcompress.models.sentence_modules import POOLING_KEYS, plain_modules, read_modules
from sentcompress.models.sources import ModelSource, locate
from sentcompress.models.text import read_text_settings
from sentcompress.models.token_weights import save_token_weights
from sentcompress.models.transformer_encoder import TransformerEncoder

# What a plain checkpoint's vector is: `auto` follows the checkpoint's kind.
POOLING_CHOICES = ("auto", "mean", "cls", "cls-mlp")
UNSOUND_HINT = "nothing was written; was one of its source models damaged, or the training unstable?"


def load_encoder(source: ModelSource, *, pooling: str = "auto", trust_remote_code: bool = False) -> TransformerEncoder:
    """Load a model as float32, in eval mode.

    Args:
        source: the folder, from `sources.resolve`.
        pooling: for folders without `modules.json`: `mean`, `cls`, `cls-mlp` (CLS, then the checkpoint's own
            Linear and Tanh, as SimCSE does) or `auto`: `cls-mlp` for names that contain "simcse", else `mean`.
        trust_remote_code: whether the model may run its own code. Only the user can allow this, by an option of the
            command that loads the model; no file of the model or of a work directory can.

    Raises:
        InputError: if the model wants to run code and is not trusted, has an unsupported module or files that do not
            fit together, or returns no usable vectors.
    """
    refuse_code(source.path, source.label, trusted=trust_remote_code)
    root = transformer_folder(source.path)
    transformer, tokenizer, simcse_head = load_transformer(root, source.label, trust_remote_code)
    modules = read_modules(source.path, len(tokenizer)) or plain_modules(source.label, pooling, simcse_head)
    encoder = TransformerEncoder(
        transformer,
        tokenizer,
        pooling=modules.pooling,
        dense=modules.dense,
        normalize=modules.normalize,
        text=read_text_settings(source.path, tokenizer, readable_positions(transformer)),
        token_weights=modules.token_weights,
    ).eval()
    check_sound(encoder, source.label)
    return encoder


def read_back(folder: Path, *, trust_remote_code: bool) -> TransformerEncoder:
    """Load what `save_encoder` wrote; `trust_remote_code` as when the model was first loaded."""
    return load_encoder(locate(str(folder)), trust_remote_code=trust_remote_code)


def hidden_width(source: ModelSource) -> int:
    """The width of a model's hidden states as its configuration says; 0 where it does not.

    Raises:
        InputError: if the configuration is missing or damaged.
    """
    return whole_number(read_config(transformer_folder(source.path)), "hidden_size", "dim", "d_model")


def save_encoder(encoder: Encoder, folder: Path) -> None:
    """Write an encoder as a sentence-transformers folder, weights as safetensors (float32).

    Raises:
        SentcompressError: if a weight is NaN or infinite; nothing is written in that case.
        TypeError: for an encoder that is no transformer.
    """
    if not isinstance(encoder, TransformerEncoder):
        raise TypeError(f"{type(encoder).__name__} cannot be saved as a model folder")
    require_sound(encoder.state_dict(), "the model to be written", UNSOUND_HINT)
    hush_transformers()
    folder.mkdir(parents=True, exist_ok=True)
    encoder.transformer.save_pretrained(folder, safe_serialization=True)  # type: ignore[operator]
    _save_tokenizer(encoder, folder)
    parts: list[tuple[str, str]] = [("", "Transformer")]
    if encoder.token_weights is not None:
        parts.append((f"{len(parts)}_WordWeights", "WordWeights"))
        save_token_weights(encoder.token_weights, encoder.tokenizer, folder / parts[-1][0])
    parts.append((f"{len(parts)}_Pooling", "Pooling"))
    _write_json(folder / parts[-1][0] / "config.json", _pooling_config(encoder))
    for layer in encoder.dense:
        parts.append((f"{len(parts)}_Dense", "Dense"))
        _save_dense(layer, folder / parts[-1][0])  # type: ignore[arg-type]
    if encoder.normalize:
        parts.append((f"{len(parts)}_Normalize", "Normalize"))
        (folder / parts[-1][0]).mkdir(exist_ok=True)
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(parts)
    ]
    _write_json(folder / "modules.json", modules)
    settings: dict[str, Any] = {"max_seq_length": encoder.text.max_length, "do_lower_case": encoder.text.lower_case}
    if left_out_pooler(encoder.transformer):
        settings["model_args"] = {"add_pooling_layer": False}
    _write_json(folder / "sentence_bert_config.json", settings)
    prompts = {"default": encoder.text.prompt} if encoder.text.prompt else {}
    extra = {"prompts": prompts, "default_prompt_name": "default" if prompts else None, "similarity_fn_name": "cosine"}
    _write_json(folder / "config_sentence_transformers.json", extra)


def _save_tokenizer(encoder: Encoder, folder: Path) -> None:
    """Write the tokenizer, cutting where the encoder does: some tools (fastembed) read the limit here alone."""
    tokenizer = encoder.tokenizer
    tokenizer.model_max_length = encoder.text.max_length
    # What calls of long ago were made with; all-MiniLM-L6-v2 carries a limit that is not its own.
    for key in ("max_length", "truncation_strategy", "stride", "pad_to_multiple_of", "pad_token_type_id"):
        tokenizer.init_kwargs.pop(key, None)
    if tokenizer.is_fast:
        # Left over from the last call or from the teacher's file; written, they would cut and pad on their own.
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    tokenizer.save_pretrained(folder)


def _pooling_config(encoder: Encoder) -> dict[str, Any]:
    config: dict[str, Any] = {"word_embedding_dimension": encoder.hidden_size}
    config |= {key: mode in encoder.pooling for mode, key in POOLING_KEYS.items()}
    if list(encoder.pooling) != [mode for mode in POOLING_KEYS if mode in encoder.pooling]:
        # The switches carry no order; releases that do not know this key refuse it, which beats mixing up columns.
        config["pooling_mode"] = list(encoder.pooling)
    return config


def _save_dense(layer: Dense, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    place = type(layer.activation).__module__
    config = {
        "in_features": layer.linear.in_features,
        "out_features": layer.linear.out_features,
        "bias": layer.linear.bias is not None,
        "activation_function": f"{place}.{layer.activation_name}",
    }
    _write_json(folder / "config.json", config)
    save_file({k: v.detach().cpu().contiguous() for k, v in layer.state_dict().items()}, folder / "model.safetensors")


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
