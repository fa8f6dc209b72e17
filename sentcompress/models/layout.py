"""Reading and writing model folders: the sentence-transformers layout, SimCSE checkpoints, plain transformers.

Written is the long-lived schema: module names `sentence_transformers.models.*` and boolean pooling keys, which
every release of sentence-transformers reads and which text-embeddings-inference needs. Both that schema and the
newer one (`pooling_mode: "mean"`) are read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from sentcompress.errors import InputError
from sentcompress.models.checkpoint import (
    first_line,
    hush_transformers,
    left_out_pooler,
    load_transformer,
    module_weights,
    read_json,
)
from sentcompress.models.encoder import ACTIVATIONS, Dense, Encoder, TextSettings
from sentcompress.models.pooling import MODES
from sentcompress.models.positions import readable_positions
from sentcompress.models.soundness import require_sound
from sentcompress.models.sources import Source, resolve, transformer_folder
from sentcompress.models.token_weights import load_token_weights, save_token_weights

# In the order in which sentence-transformers concatenates the vectors of several modes.
POOLING_KEYS = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
READABLE = ("Transformer", "WordWeights", "Pooling", "Dense", "Normalize", "Dropout")
SETTINGS_FILES = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
# What a plain checkpoint's vector is: `auto` follows the checkpoint's kind.
POOLING_CHOICES = ("auto", "mean", "cls", "cls-mlp")
UNSOUND_HINT = "nothing was written; was a model that it was made of damaged, or its training unstable?"


def load_encoder(source: Source, *, pooling: str = "auto", trust_remote_code: bool = False) -> Encoder:
    """Load a model as float32, in eval mode.

    Args:
        source: the folder, from `sources.resolve`.
        pooling: for folders without `modules.json`: `mean`, `cls`, `cls-mlp` (CLS, then the checkpoint's own
            Linear and Tanh, as SimCSE does) or `auto`: `cls-mlp` for names that contain "simcse", else `mean`.
        trust_remote_code: let code that comes with the model run.

    Raises:
        InputError: if the folder holds a module that is not one of READABLE, or weights that do not fit.
    """
    transformer, tokenizer, simcse_head = load_transformer(
        transformer_folder(source.path), source.label, trust_remote_code
    )
    text = _text_settings(source.path, transformer, tokenizer)
    if (source.path / "modules.json").is_file():
        modules = _modules(source.path, len(tokenizer))
    else:
        modules = _plain(source.label, pooling, simcse_head)
    return Encoder(
        transformer,
        tokenizer,
        pooling=modules.pooling,
        dense=modules.dense,
        normalize=modules.normalize,
        text=text,
        token_weights=modules.token_weights,
    ).eval()


def hidden_width(source: Source) -> int:
    """The width of a model's hidden states as its configuration says; 0 where it does not.

    Raises:
        InputError: if the configuration is missing or damaged.
    """
    config = read_json(transformer_folder(source.path) / "config.json")
    named = (config.get(name) for name in ("hidden_size", "dim", "d_model"))
    return next((int(width) for width in named if width), 0)


def save_encoder(encoder: Encoder, folder: Path) -> None:
    """Write an encoder as a sentence-transformers folder, weights as safetensors (float32).

    Raises:
        SentcompressError: if a weight is NaN or infinite; nothing is written then.
    """
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


def read_back(encoder: Encoder, folder: Path) -> Encoder:
    """Load what `save_encoder` wrote of `encoder`.

    Code that came with the model was trusted when the encoder was loaded, and is trusted here.
    """
    trusted = hasattr(encoder.config, "auto_map") or "auto_map" in encoder.tokenizer.init_kwargs
    return load_encoder(resolve(str(folder), trust_remote_code=trusted), trust_remote_code=trusted)


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


@dataclass(frozen=True)
class _Modules:
    """What follows the transformer."""

    pooling: list[str]
    dense: list[Dense]
    normalize: bool
    token_weights: Tensor | None = None


def _plain(label: str, pooling: str, simcse_head: Dense | None) -> _Modules:
    if pooling == "auto":
        pooling = "cls-mlp" if _named_simcse(label) and simcse_head is not None else "mean"
    if pooling == "cls-mlp":
        if simcse_head is None:
            raise InputError(f"{label} has no trained pooler", "use --pooling mean or --pooling cls")
        return _Modules(["cls"], [simcse_head], normalize=False)
    return _Modules([pooling], [], normalize=False)


def _named_simcse(label: str) -> bool:
    """By the model's own name, or that of its folder in the hub's cache; folders above may be called anything."""
    *above, name = Path(label).parts
    return any("simcse" in part.lower() for part in [name, *(p for p in above if p.startswith("models--"))])


def _modules(folder: Path, tokens: int) -> _Modules:
    modes: list[str] = []
    dense: list[Dense] = []
    normalize = False
    weights: Tensor | None = None
    for kind, path in _module_list(folder):
        if kind in ("Dense", "Normalize") and not modes:
            raise InputError(
                f"{folder} has a {kind} module before its Pooling", "only sentence vectors can be projected"
            )
        if kind == "WordWeights":
            if modes or weights is not None:
                raise InputError(f"{folder} has a WordWeights module that is not before its Pooling, or two of them")
            weights = load_token_weights(path, tokens)
        elif kind == "Pooling":
            modes = _pooling_modes(path)
        elif kind == "Dense":
            if normalize:
                raise InputError(f"{folder} normalises before a Dense layer", "only the last module may normalise")
            dense.append(_load_dense(path))
        elif kind == "Normalize":
            normalize = True
    if not modes:
        raise InputError(f"{folder}/modules.json names no Pooling module")
    if weights is not None and modes != ["mean"]:
        raise InputError(f"{folder} weighs tokens before pooling {', '.join(modes)}", "only a mean can be weighted")
    return _Modules(modes, dense, normalize, weights)


def _module_list(folder: Path) -> list[tuple[str, Path]]:
    """The kind and folder of each module; the schemas differ in the package names alone."""
    try:
        listed = [(str(m["type"]), folder / str(m["path"])) for m in read_json(folder / "modules.json")]
    except (KeyError, TypeError):
        raise InputError(
            f"{folder / 'modules.json'} is not a list of modules with type and path",
            "is it a sentence-transformers folder?",
        ) from None
    known = []
    for name, path in listed:
        package, _, kind = name.rpartition(".")
        if kind not in READABLE or not package.startswith("sentence_transformers."):
            raise InputError(f"{folder} has a module {name}", f"modules that can be read: {', '.join(READABLE)}")
        known.append((kind, path))
    return known


def _pooling_modes(folder: Path) -> list[str]:
    config = read_json(folder / "config.json")
    if "pooling_mode" in config:
        given = config["pooling_mode"]
        modes = [given] if isinstance(given, str) else list(given)
    else:
        modes = [mode for mode, key in POOLING_KEYS.items() if config.get(key)]
    if config.get("include_prompt") is False and _default_prompt(folder.parent):
        raise InputError(f"{folder} leaves the prompt out of the pooling", "such models cannot be used here yet")
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown or not modes:
        raise InputError(f"{folder}: pooling {unknown or 'of no kind'}", f"known: {', '.join(MODES)}")
    return modes


def _pooling_config(encoder: Encoder) -> dict[str, Any]:
    config: dict[str, Any] = {"word_embedding_dimension": int(encoder.config.hidden_size)}
    config |= {key: mode in encoder.pooling for mode, key in POOLING_KEYS.items()}
    if list(encoder.pooling) != [mode for mode in POOLING_KEYS if mode in encoder.pooling]:
        # The switches carry no order; releases that do not know this key refuse it, which beats mixing up columns.
        config["pooling_mode"] = list(encoder.pooling)
    return config


def _load_dense(folder: Path) -> Dense:
    config = read_json(folder / "config.json")
    activation = _check_dense(config, folder)
    layer = Dense(
        int(config["in_features"]), int(config["out_features"]), bias=config.get("bias", True), activation=activation
    )
    try:
        layer.load_state_dict(module_weights(folder))
    except RuntimeError as error:
        raise InputError(f"the weights of {folder} cannot be read: {first_line(error)}") from None
    return layer


def _check_dense(config: Any, folder: Path) -> str:
    """The name of the activation, if this is a layer that we have."""
    if not isinstance(config, dict) or not {"in_features", "out_features"} <= config.keys():
        raise InputError(f"{folder}/config.json does not describe a Dense layer")
    activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh")).rsplit(".", 1)[-1]
    given = (config.get("module_input_name"), config.get("module_output_name"))
    if activation not in ACTIVATIONS or config.get("use_residual") or set(given) - {None, "sentence_embedding"}:
        raise InputError(
            f"{folder}: a Dense layer with {activation} that cannot be read",
            f"known are layers over sentence vectors, without residual, with {', '.join(ACTIVATIONS)}",
        )
    return activation


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


def _text_settings(folder: Path, transformer: Any, tokenizer: Any) -> TextSettings:
    root = transformer_folder(folder)
    settings: dict[str, Any] = next((read_json(root / f) for f in SETTINGS_FILES if (root / f).is_file()), {})
    # As sentence-transformers: its own setting first, else what the tokenizer allows; but never more than the position
    # table holds, where sentence-transformers lets RoBERTa's 514 rows count as 514 tokens.
    limit = settings.get("max_seq_length") or tokenizer.model_max_length
    limit = min(int(limit), readable_positions(transformer) or int(limit))
    return TextSettings(limit, bool(settings.get("do_lower_case")), _default_prompt(folder))


def _default_prompt(folder: Path) -> str:
    """What is put before every text when the caller names no prompt."""
    path = folder / "config_sentence_transformers.json"
    config = read_json(path) if path.is_file() else {}
    name = config.get("default_prompt_name")
    return str((config.get("prompts") or {}).get(name) or "") if name else ""


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
