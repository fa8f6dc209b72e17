"""Reading and writing model folders: the sentence-transformers layout, SimCSE checkpoints, plain transformers.

Models are written in the older schema, with module names `sentence_transformers.models.*` and boolean pooling keys:
every release of sentence-transformers reads it, and text-embeddings-inference needs it. Both this schema and the newer
one (`pooling_mode: "mean"`) can be read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from sentcompress.errors import InputError
from sentcompress.models.checks import check_sound, require_sound
from sentcompress.models.encoder import Dense, Encoder
from sentcompress.models.families import readable_positions
from sentcompress.models.foreign_code import refuse_code
from sentcompress.models.memory import require_memory
from sentcompress.models.model_files import MODULES, STATIC, TRANSFORMER, is_static, read_config, transformer_folder
from sentcompress.models.pretrained import hush_transformers, left_out_pooler, load_transformer
from sentcompress.models.prompts import COSINE, PROMPTS_FILE
from sentcompress.models.sentence_modules import POOLING_KEYS, plain_modules, read_modules
from sentcompress.models.shape import Shape, Size, size_of
from sentcompress.models.sources import ModelSource, locate
from sentcompress.models.static_encoder import StaticEncoder, token_vectors
from sentcompress.models.static_folder import load_static, save_static, static_shape
from sentcompress.models.text_settings import read_text_settings
from sentcompress.models.token_weights import save_token_weights
from sentcompress.models.transformer_encoder import TransformerEncoder
from sentcompress.models.transformer_task import check_task

UNSOUND_HINT = "nothing was written; copy its source models again, or train with a lower learning rate"


def load_encoder(source: ModelSource, *, pooling: str = "auto", trust_remote_code: bool = False) -> Encoder:
    """Load a model as float32, in eval mode.

    Args:
        source: the folder, from `sources.resolve`.
        pooling: for folders without `modules.json`: `mean`, `cls`, `cls-mlp` (CLS, then the checkpoint's own
            Linear and Tanh, as SimCSE does) or `auto`: `cls-mlp` for names that contain "simcse", else `mean`.
        trust_remote_code: whether the model may run its own code. Only the user can allow this, by an option of the
            command that loads the model; no file of the model or of a work directory can.

    Raises:
        InputError: if the model wants to run code and is not trusted, has an unsupported module or inconsistent files,
            does not fit into memory, or does not return usable vectors.
    """
    refuse_code(source.path, source.label, trusted=trust_remote_code)
    check_task(source.path)
    require_memory(source)
    encoder = (_read_static(source) if is_static(source.path) else _read(source, pooling, trust_remote_code)).eval()
    check_sound(encoder, source.label)
    return encoder


def _read(source: ModelSource, pooling: str, trust_remote_code: bool) -> TransformerEncoder:
    root = transformer_folder(source.path)
    transformer, tokenizer, simcse_head = load_transformer(root, source.label, trust_remote_code)
    modules = read_modules(source.path, len(tokenizer)) or plain_modules(
        source.path, source.label, pooling, simcse_head
    )
    text = read_text_settings(source.path, tokenizer, readable_positions(transformer))
    return TransformerEncoder(transformer, tokenizer, text=text, **modules.parts())


def _read_static(source: ModelSource) -> StaticEncoder:
    table, tokenizer = load_static(transformer_folder(source.path), source.label)
    modules = read_modules(source.path, len(tokenizer))
    assert modules is not None  # a static model is known by them
    if modules.token_weights is not None:
        raise InputError(f"{source.path} weights the tokens of a {STATIC} module", "multiply its table by the weights")
    text = read_text_settings(source.path, tokenizer, None)
    return StaticEncoder(token_vectors(table), tokenizer, text=text, **modules.parts())


def load_pooled(
    source: ModelSource, pooling: str, *, otherwise: str = "auto", trust_remote_code: bool = False
) -> Encoder:
    """Load a model to train it, with the pooling to train if it is a checkpoint without modules.

    Args:
        pooling: `mean`, `cls`, `cls-mlp`, or `auto` for that of `otherwise`. Here, `cls-mlp` is the first token's
            state, then a new Linear and Tanh, as SimCSE trains them; the layer gets torch's random weights.
        otherwise: the `pooling` of `load_encoder`, where `cls-mlp` has the checkpoint's own layer.

    Raises:
        InputError: see `load_encoder`.
    """
    read = {"auto": otherwise, "cls-mlp": "cls"}.get(pooling, pooling)
    encoder = load_encoder(source, pooling=read, trust_remote_code=trust_remote_code)
    if pooling == "cls-mlp":
        width = encoder.pooled_dimension
        encoder.dense.append(Dense(width, width, activation="Tanh"))
    return encoder


def has_modules(source: ModelSource) -> bool:
    """Whether a model says itself how it is pooled, in its `modules.json`."""
    return (source.path / MODULES).is_file()


def check_poolable(source: ModelSource, pooling: str) -> None:
    """Raise InputError if a pooling is asked for, not `auto`, of a model that says itself how it is pooled."""
    if pooling != "auto" and has_modules(source):
        raise InputError(
            f"`pooling` {pooling}: {source.label} has modules of its own ({MODULES}), which define its pooling",
            "use `pooling` auto, or start from a checkpoint without them",
        )


def read_back(folder: Path, *, trust_remote_code: bool) -> Encoder:
    """Load a model written by `save_encoder`, with `trust_remote_code` as when it was first loaded."""
    return load_encoder(locate(str(folder)), trust_remote_code=trust_remote_code)


def model_size(source: ModelSource, shape: Shape | None = None) -> Size:
    """The size of a model, or of the student of that shape that is cut from it, according to its configuration.

    Raises:
        InputError: if the configuration is missing or damaged.
    """
    if is_static(source.path):
        tokens, width = static_shape(transformer_folder(source.path))
        return Size(tokens * width, width)
    return size_of(read_config(transformer_folder(source.path)), shape or Shape())


def save_encoder(encoder: Encoder, folder: Path) -> None:
    """Write an encoder as a sentence-transformers folder, weights as safetensors (float32).

    Raises:
        SentcompressError: if a weight is NaN or infinite; nothing is written in that case.
        TypeError: if the encoder is neither a transformer nor static.
    """
    require_sound(encoder.state_dict(), "the model to be written", UNSOUND_HINT)
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(encoder, TransformerEncoder):
        parts = _save_transformer(encoder, folder)
    elif isinstance(encoder, StaticEncoder):
        save_static(encoder, folder)
        # As model2vec writes it.
        parts = [(".", STATIC)]
    else:
        raise TypeError(f"{type(encoder).__name__} cannot be saved as a model folder")
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
    _write_json(folder / MODULES, modules)
    _write_json(folder / PROMPTS_FILE, encoder.text.prompts_document(similarity=similarity_of(encoder)))


def similarity_of(encoder: Encoder) -> str:
    """How sentence-transformers compares the vectors of the written model; for unit vectors, all ways rank alike."""
    return COSINE if encoder.normalize else encoder.text.similarity


def _save_transformer(encoder: TransformerEncoder, folder: Path) -> list[tuple[str, str]]:
    """Write everything up to the pooling; returns the folders and kinds of the modules."""
    hush_transformers()
    encoder.transformer.save_pretrained(folder, safe_serialization=True)  # type: ignore[operator]
    _save_tokenizer(encoder, folder)
    settings: dict[str, Any] = {"max_seq_length": encoder.text.max_length, "do_lower_case": encoder.text.lower_case}
    if left_out_pooler(encoder.transformer):
        settings["model_args"] = {"add_pooling_layer": False}
    _write_json(folder / "sentence_bert_config.json", settings)
    parts = [("", TRANSFORMER)]
    if encoder.token_weights is not None:
        parts.append((f"{len(parts)}_WordWeights", "WordWeights"))
        save_token_weights(encoder.token_weights, encoder.tokenizer, folder / parts[-1][0])
    parts.append((f"{len(parts)}_Pooling", "Pooling"))
    _write_json(folder / parts[-1][0] / "config.json", _pooling_config(encoder))
    return parts


def _save_tokenizer(encoder: Encoder, folder: Path) -> None:
    """Write the tokenizer with the encoder's maximum length: some tools (fastembed) read it only from there."""
    tokenizer = encoder.tokenizer
    tokenizer.model_max_length = encoder.text.max_length
    # Leftovers of earlier calls; in all-MiniLM-L6-v2 they contain a wrong limit.
    for key in ("max_length", "truncation_strategy", "stride", "pad_to_multiple_of", "pad_token_type_id"):
        tokenizer.init_kwargs.pop(key, None)
    if tokenizer.is_fast:
        # Leftovers of the last call or the teacher's file, which would truncate and pad by themselves.
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    tokenizer.save_pretrained(folder)


def _pooling_config(encoder: Encoder) -> dict[str, Any]:
    config: dict[str, Any] = {"word_embedding_dimension": encoder.hidden_size}
    config |= {key: mode in encoder.pooling for mode, key in POOLING_KEYS.items()}
    if not encoder.text.pools_prompt:
        config["include_prompt"] = False
    if list(encoder.pooling) != [mode for mode in POOLING_KEYS if mode in encoder.pooling]:
        # The boolean keys have no order. Releases without this key refuse it, which is better than swapped columns.
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
