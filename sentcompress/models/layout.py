"""Reading and writing model folders: the sentence-transformers layout, SimCSE checkpoints, plain transformers.

Written is the long-lived schema: module names `sentence_transformers.models.*` and boolean pooling keys, which
every release of sentence-transformers reads and which text-embeddings-inference needs. Both that schema and the
newer one (`pooling_mode: "mean"`) are read.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from sentcompress.errors import InputError
from sentcompress.models.encoder import ACTIVATIONS, Dense, Encoder, TextSettings
from sentcompress.models.pooling import MODES
from sentcompress.models.sources import Source, transformer_folder, weight_files

POOLING_KEYS = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
READABLE = ("Transformer", "Pooling", "Dense", "Normalize", "Dropout")
SETTINGS_FILES = ("sentence_bert_config.json", "sentence_roberta_config.json", "sentence_xlm-roberta_config.json")
# What a plain checkpoint's vector is: `auto` follows the checkpoint's kind.
POOLING_CHOICES = ("auto", "mean", "cls", "cls-mlp")


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
    transformer, tokenizer, simcse_head = _transformer(transformer_folder(source.path), source.label, trust_remote_code)
    text = _text_settings(source.path, transformer.config, tokenizer)
    if (source.path / "modules.json").is_file():
        modes, dense, normalize = _modules(source.path)
    else:
        modes, dense, normalize = _plain(source.label, pooling, simcse_head)
    encoder = Encoder(transformer, tokenizer, pooling=modes, dense=dense, normalize=normalize, text=text)
    return encoder.eval()


def save_encoder(encoder: Encoder, folder: Path) -> None:
    """Write an encoder as a sentence-transformers folder, weights as safetensors (float32)."""
    _hush_transformers()
    folder.mkdir(parents=True, exist_ok=True)
    encoder.transformer.save_pretrained(folder, safe_serialization=True)  # type: ignore[operator]
    encoder.tokenizer.save_pretrained(folder)
    parts: list[tuple[str, str]] = [("", "Transformer"), ("1_Pooling", "Pooling")]
    _write_json(folder / "1_Pooling" / "config.json", _pooling_config(encoder))
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
    if _has_optional_pooler(encoder.transformer):
        settings["model_args"] = {"add_pooling_layer": False}
    _write_json(folder / "sentence_bert_config.json", settings)
    prompts = {"default": encoder.text.prompt} if encoder.text.prompt else {}
    extra = {"prompts": prompts, "default_prompt_name": "default" if prompts else None, "similarity_fn_name": "cosine"}
    _write_json(folder / "config_sentence_transformers.json", extra)


def _transformer(folder: Path, label: str, trust_remote_code: bool) -> tuple[Any, Any, Dense | None]:
    from transformers import AutoModel, AutoTokenizer

    _hush_transformers()
    _check_bin_weights(folder)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code)
        model, report = AutoModel.from_pretrained(
            folder, dtype=torch.float32, trust_remote_code=trust_remote_code, output_loading_info=True
        )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, pickle.UnpicklingError) as error:
        raise InputError(f"{label} cannot be loaded: {_first_line(error)}") from None
    missing = [key for key in report["missing_keys"] if not key.startswith("pooler.") and "position_ids" not in key]
    if missing:
        raise InputError(
            f"the weights of {label} lack {len(missing)} tensors of its architecture, {sorted(missing)[0]} among them",
            "is it a checkpoint of another model, or a damaged download?",
        )
    return model, tokenizer, _take_pooler(model, report)


def _hush_transformers() -> None:
    """No bars and load reports of its own; what matters of them is checked here."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _check_bin_weights(folder: Path) -> None:
    """Pickled weights run code when they are opened, unless opened as plain tensors; refuse anything more."""
    for path in weight_files(folder):
        if path.suffix == ".bin":
            try:
                torch.load(path, map_location="meta", weights_only=True)
            except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
                raise InputError(
                    f"{path} is not a file of plain tensors: {_first_line(error)}",
                    "it was not opened, since it could run code; convert it to safetensors where you trust it",
                ) from None


def _take_pooler(model: Any, report: dict[str, Any]) -> Dense | None:
    """Detach BERT's pooler, which no sentence vector uses but SimCSE's: there it is the trained head."""
    pooler = getattr(model, "pooler", None)
    if pooler is None or not isinstance(getattr(pooler, "dense", None), nn.Linear):
        return None
    head = None
    if not any(key.startswith("pooler.") for key in report["missing_keys"]):
        head = Dense(pooler.dense.in_features, pooler.dense.out_features, activation="Tanh")
        head.linear.load_state_dict(pooler.dense.state_dict())
    model.pooler = None
    return head


def _has_optional_pooler(transformer: nn.Module) -> bool:
    return "pooler" in transformer._modules and transformer._modules["pooler"] is None


def _plain(label: str, pooling: str, simcse_head: Dense | None) -> tuple[list[str], list[Dense], bool]:
    if pooling == "auto":
        pooling = "cls-mlp" if "simcse" in label.lower() and simcse_head is not None else "mean"
    if pooling == "cls-mlp":
        if simcse_head is None:
            raise InputError(f"{label} has no trained pooler", "use --pooling mean or --pooling cls")
        return ["cls"], [simcse_head], False
    return [pooling], [], False


def _modules(folder: Path) -> tuple[list[str], list[Dense], bool]:
    modes: list[str] = []
    dense: list[Dense] = []
    normalize = False
    for module in _read_json(folder / "modules.json"):
        kind, path = str(module["type"]).rsplit(".", 1)[-1], folder / str(module["path"])
        if kind not in READABLE:
            raise InputError(f"{folder} has a {kind} module", f"modules that can be read: {', '.join(READABLE)}")
        if kind == "Pooling":
            modes = _pooling_modes(path)
        elif kind == "Dense":
            if normalize:
                raise InputError(f"{folder} normalises before a Dense layer", "only the last module may normalise")
            dense.append(_load_dense(path))
        elif kind == "Normalize":
            normalize = True
    if not modes:
        raise InputError(f"{folder}/modules.json names no Pooling module")
    return modes, dense, normalize


def _pooling_modes(folder: Path) -> list[str]:
    config = _read_json(folder / "config.json")
    if "pooling_mode" in config:
        given = config["pooling_mode"]
        modes = [given] if isinstance(given, str) else list(given)
    else:
        modes = [mode for mode, key in POOLING_KEYS.items() if config.get(key)]
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown or not modes:
        raise InputError(f"{folder}: pooling {unknown or 'of no kind'}", f"known: {', '.join(MODES)}")
    return modes


def _pooling_config(encoder: Encoder) -> dict[str, Any]:
    switches = {key: mode in encoder.pooling for mode, key in POOLING_KEYS.items()}
    return {"word_embedding_dimension": int(encoder.config.hidden_size), **switches}


def _load_dense(folder: Path) -> Dense:
    config = _read_json(folder / "config.json")
    activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh")).rsplit(".", 1)[-1]
    if activation not in ACTIVATIONS or config.get("use_residual"):
        raise InputError(
            f"{folder}: a Dense layer with {activation}{' and a residual' if config.get('use_residual') else ''}",
            f"known activations: {', '.join(ACTIVATIONS)}, without residual",
        )
    layer = Dense(
        int(config["in_features"]), int(config["out_features"]), bias=config.get("bias", True), activation=activation
    )
    safetensors, pickled = folder / "model.safetensors", folder / "pytorch_model.bin"
    try:
        if safetensors.is_file():
            layer.load_state_dict(load_file(safetensors))
        else:
            layer.load_state_dict(torch.load(pickled, map_location="cpu", weights_only=True))
    except (OSError, RuntimeError, pickle.UnpicklingError) as error:
        raise InputError(f"the weights of {folder} cannot be read: {_first_line(error)}") from None
    return layer


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


def _text_settings(folder: Path, config: Any, tokenizer: Any) -> TextSettings:
    root = transformer_folder(folder)
    settings: dict[str, Any] = next((_read_json(root / f) for f in SETTINGS_FILES if (root / f).is_file()), {})
    # As sentence-transformers: its own setting first, else what both tokenizer and position table allow.
    limit = settings.get("max_seq_length")
    if limit is None:
        positions = getattr(config, "max_position_embeddings", None) or tokenizer.model_max_length
        limit = min(int(tokenizer.model_max_length), int(positions))
    extra = folder / "config_sentence_transformers.json"
    prompts = _read_json(extra) if extra.is_file() else {}
    name = prompts.get("default_prompt_name")
    prompt = (prompts.get("prompts") or {}).get(name, "") if name else ""
    return TextSettings(int(limit), bool(settings.get("do_lower_case")), str(prompt or ""))


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} is missing", "is the model folder complete?") from None
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from None


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
