"""The modules of a sentence-transformers folder that follow its transformer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from sentcompress.errors import InputError
from sentcompress.json_documents import read_json
from sentcompress.models.encoder import ACTIVATIONS, Dense
from sentcompress.models.library_errors import reading
from sentcompress.models.model_files import (
    DAMAGED,
    OTHER_WEIGHTS,
    STATIC,
    listed_modules,
    named_simcse,
    read_config,
)
from sentcompress.models.pooling import MODES
from sentcompress.models.prompts import read_prompts
from sentcompress.models.tensors import module_weights
from sentcompress.models.token_weights import load_token_weights

# In the order in which sentence-transformers concatenates the vectors of several modes.
POOLING_KEYS = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
# The end of the name of transformers' classes for classifiers.
CLASSIFIER = "ForSequenceClassification"
# The only input and output that a Dense layer can name.
SENTENCE = "sentence_embedding"


@dataclass(frozen=True)
class SentenceModules:
    """The parts of a model after the transformer."""

    pooling: list[str]
    dense: list[Dense]
    normalize: bool
    token_weights: Tensor | None = None

    def parts(self) -> dict[str, Any]:
        """The arguments of `Encoder` that they are."""
        return dict(vars(self))


def plain_modules(folder: Path, label: str, pooling: str, simcse_head: Dense | None) -> SentenceModules:
    """The parts after the transformer for a model without `modules.json`.

    Args:
        folder: the folder of the model.
        label: the name to show.
        pooling: `auto`, `mean`, `cls` or `cls-mlp`; see `layout.load_encoder`.
        simcse_head: the trained head of a SimCSE checkpoint.

    Raises:
        InputError: if that head is requested but does not exist, or the model is a cross-encoder or another classifier
            and no pooling is requested.
    """
    if pooling == "auto":
        pooling = "cls-mlp" if named_simcse(folder) and simcse_head is not None else "mean"
        _refuse_classifier(folder, label)
    if pooling == "cls-mlp":
        if simcse_head is None:
            raise InputError(f"{label} has no trained pooler", "use `pooling` mean or `pooling` cls")
        return SentenceModules(["cls"], [simcse_head], normalize=False)
    return SentenceModules([pooling], [], normalize=False)


def _refuse_classifier(folder: Path, label: str) -> None:
    """Raise InputError if the checkpoint is of a cross-encoder or another classifier, whose states were not trained.

    Not if it has modules: sentence encoders that were trained from a classifier can keep its name in their
    configuration.
    """
    architectures = read_config(folder).get("architectures")
    for name in architectures if isinstance(architectures, list) else []:
        if isinstance(name, str) and name.endswith(CLASSIFIER):
            raise InputError(
                f"{label} is a cross-encoder or another classifier ({name}): it scores texts or pairs of texts, and "
                "does not make vectors of them",
                ("name a sentence encoder", "set `pooling` to mean to use the states of its transformer all the same"),
            )


def read_modules(folder: Path, tokens: int) -> SentenceModules | None:
    """The parts of a model after the transformer; None if it has no `modules.json`.

    Args:
        folder: the folder of the model.
        tokens: the size of its vocabulary.

    Raises:
        InputError: if a module cannot be read, or the order of the modules is not supported.
    """
    modes: list[str] = []
    dense: list[Dense] = []
    normalize = False
    weights: Tensor | None = None
    modules = listed_modules(folder)
    for kind, path in ((module.kind, module.path) for module in modules):
        if kind in ("Dense", "Normalize") and not modes:
            raise InputError(
                f"{folder} has a {kind} module before its Pooling", "only sentence vectors can be projected"
            )
        if kind == "WordWeights":
            if modes or weights is not None:
                raise InputError(
                    f"{folder} has a WordWeights module that is not before its Pooling, or two of them", DAMAGED
                )
            weights = load_token_weights(path, tokens)
        elif kind == STATIC:
            modes = ["mean"]
        elif kind == "Pooling":
            if modes:
                raise InputError(f"{folder} has a Pooling module whose input is pooled already", DAMAGED)
            modes = _pooling_modes(path, folder)
        elif kind == "Dense":
            if normalize:
                raise InputError(f"{folder} normalises before a Dense layer", "only the last module may normalise")
            dense.append(_load_dense(path))
        elif kind == "Normalize":
            normalize = True
    if not modules:
        return None
    if not modes:
        raise InputError(f"{folder}/modules.json lists no Pooling module", DAMAGED)
    if weights is not None and modes != ["mean"]:
        raise InputError(f"{folder} weights tokens before pooling {', '.join(modes)}", "only a mean can be weighted")
    return SentenceModules(modes, dense, normalize, weights)


def _pooling_modes(folder: Path, whole: Path) -> list[str]:
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        raise InputError(f"{folder}/config.json does not describe a Pooling module", DAMAGED)
    if "pooling_mode" in config:
        given = config["pooling_mode"]
        modes = given if isinstance(given, list) else [given]
    else:
        modes = [mode for mode, key in POOLING_KEYS.items() if config.get(key)]
    if config.get("include_prompt") is False and read_prompts(whole).default:
        raise InputError(f"{folder} excludes the prompt from pooling", "such models are not supported")
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown or not modes or len(modes) > len(MODES):
        raise InputError(
            f"{folder}: {f'unknown pooling {unknown}' if unknown else 'invalid pooling'}", f"known: {', '.join(MODES)}"
        )
    return modes


def _load_dense(folder: Path) -> Dense:
    config = read_json(folder / "config.json")
    activation = _check_dense(config, folder)
    tensors = module_weights(folder)
    given = (config["out_features"], config["in_features"])
    found = tuple(tensors["linear.weight"].shape) if "linear.weight" in tensors else ()
    if found != given:
        raise InputError(
            f"{folder}: the weights of the Dense layer have the shape {found}, its configuration says {given}",
            OTHER_WEIGHTS,
        )
    with reading(f"the weights of {folder} cannot be read"):
        layer = Dense(*reversed(given), bias=config.get("bias", True), activation=activation)
        layer.load_state_dict(tensors)
    return layer


def _check_dense(config: Any, folder: Path) -> str:
    """The name of the activation; raises InputError if the layer is not supported."""
    widths = [config.get(key) for key in ("in_features", "out_features")] if isinstance(config, dict) else []
    if not widths or not all(type(width) is int and width > 0 for width in widths):
        raise InputError(f"{folder}/config.json does not describe a Dense layer", DAMAGED)
    if not isinstance(config.get("bias", True), bool):
        raise InputError(f"{folder}/config.json: bias must be true or false", DAMAGED)
    activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh")).rsplit(".", 1)[-1]
    given = (config.get("module_input_name"), config.get("module_output_name"))
    if activation not in ACTIVATIONS or config.get("use_residual") or any(n not in (None, SENTENCE) for n in given):
        raise InputError(
            f"{folder}: a Dense layer with {activation} that is not supported",
            f"supported: layers over sentence vectors, without residual, with {', '.join(ACTIVATIONS)}",
        )
    return activation
