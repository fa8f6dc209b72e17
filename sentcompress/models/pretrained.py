"""Reads and checks a transformer's own files: weights, configuration, tokenizer."""

from __future__ import annotations

import inspect
import json
import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from tokenizers import Tokenizer
from torch import Tensor, nn

from sentcompress.errors import InputError
from sentcompress.json_documents import read_json
from sentcompress.models.checks import NO_STATES
from sentcompress.models.encoder import Dense
from sentcompress.models.families import ENCODERS, FAMILIES
from sentcompress.models.foreign_code import nothing_fetched
from sentcompress.models.library_errors import reading
from sentcompress.models.model_files import DAMAGED, OTHER_WEIGHTS, check_inside, read_config, weight_files
from sentcompress.models.tensors import plain_tensors
from sentcompress.models.text_settings import TransformersTokenizer

VOCABULARY_FILES = ("tokenizer.json", "vocab.*", "*.model", "bpe.codes", "tokenizer*.py")
# Tokenizer settings that name a vocabulary file; used if there is no tokenizer.json.
NAMED_FILES = ("vocab_file", "merges_file", "gguf_file")
# Configuration keys that change which weights are read, or how.
UNREADABLE = {
    "quantization_config": "quantised weights cannot be read; use the float32 model",
    "transformers_weights": "rename the file to model.safetensors and remove that key",
}
# The hints if transformers cannot load a model.
UNREAD = (DAMAGED, "update transformers, if it is older than the architecture")
# A configuration can repeat parts that share weights; these are upper limits.
MOST_PARTS, LARGEST_NUMBER, MOST_LABELS = 64, 2**31, 10**6
# The architecture can have SPARE_FACTOR times the parameters in the weight files, plus SPARE_NUMBERS.
SPARE_FACTOR, SPARE_NUMBERS = 2, 2**24
# The parameters that configurations ask for, by the content of the file: the model is built to count them, which takes
# a third as long as loading it, and most commands load a model twice or more.
_ASKED: dict[bytes, int] = {}


def load_transformer(
    folder: Path, label: str, trust_remote_code: bool
) -> tuple[Any, TransformersTokenizer, Dense | None]:
    """A transformer in float32, its tokenizer, and the trained head of a SimCSE checkpoint if there is one.

    Raises:
        InputError: if the files are damaged, belong to another architecture, or would run code.
    """
    from transformers import AutoModel, AutoTokenizer

    hush_transformers()
    _check_vocabulary(folder, label)
    _check_config(folder, label, trusted=trust_remote_code)
    # Trusted code may be fetched from another repository on the hub.
    fetching = nullcontext() if trust_remote_code else nothing_fetched()
    with fetching, reading(f"{label} cannot be loaded", UNREAD):
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code)
        model, report = (_encoder_class(folder) or AutoModel).from_pretrained(
            folder, dtype=torch.float32, trust_remote_code=trust_remote_code, output_loading_info=True
        )
    with reading(f"{label} cannot be used", NO_STATES):
        _drop_tokens_without_embedding(tokenizer, model.get_input_embeddings().num_embeddings)
    missing = [key for key in report["missing_keys"] if not key.startswith("pooler.") and "position_ids" not in key]
    if missing:
        raise InputError(
            f"the weights of {label} lack {len(missing)} tensors of its architecture, including {sorted(missing)[0]}",
            "download it again, or name a complete checkpoint of this architecture",
        )
    if model.config.model_type not in FAMILIES and getattr(model.config, "use_cache", False):
        # Decoders would keep the keys and values of all layers, for tokens that are never generated.
        model.config.use_cache = False
    return model, tokenizer, _take_pooler(model, report)


def _encoder_class(folder: Path) -> Any:
    """The class that loads only the encoder of an encoder-decoder; None for other models, which AutoModel loads."""
    import transformers

    config = read_config(folder)
    name = ENCODERS.get(str(config.get("model_type")))
    # A model with its own code has its own class.
    return None if name is None or "auto_map" in config else getattr(transformers, name)


def _drop_tokens_without_embedding(tokenizer: Any, rows: int) -> None:
    """Remove special tokens that the model has no embedding for, such as EmbeddingGemma's placeholder of images.

    A text that spells one out is then read like other text.
    """
    if not tokenizer.is_fast:
        return
    added = tokenizer.backend_tokenizer.get_added_tokens_decoder()
    dropped = [number for number, token in added.items() if number >= rows and token.special]
    if dropped:
        content = json.loads(tokenizer.backend_tokenizer.to_str())
        content["added_tokens"] = [token for token in content["added_tokens"] if token["id"] not in dropped]
        tokenizer._tokenizer = Tokenizer.from_str(json.dumps(content))


def hush_transformers() -> None:
    """Disable transformers' progress bars and load reports; `load_transformer` checks what they would report."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _check_vocabulary(folder: Path, label: str) -> None:
    """Refuse a folder without a vocabulary: transformers would use an empty one, with every word unknown."""
    if not any(path.is_file() for pattern in VOCABULARY_FILES for path in folder.glob(pattern)):
        raise InputError(
            f"the model folder of {label} has no tokenizer",
            "it needs tokenizer.json or a vocabulary file",
        )
    path = folder / "tokenizer_config.json"
    settings = read_json(path) if path.exists() else {}
    if not isinstance(settings, dict):
        raise InputError(f"{path} is not a tokenizer configuration", DAMAGED)
    versions = settings.get("fast_tokenizer_files")
    named = list(versions) if isinstance(versions, list) else []
    if not (folder / "tokenizer.json").is_file():
        named += [settings.get(key) for key in NAMED_FILES]
    for name in named:
        # Often a path on the machine where the model was made, which does not exist here.
        for other in (Path(name), folder / name) if isinstance(name, str) and "\0" not in name else ():
            if other.is_file():
                check_inside(other, folder)


def _take_pooler(model: Any, report: dict[str, Any]) -> Dense | None:
    """Remove BERT's pooler and return it: only SimCSE uses it, as its trained head."""
    pooler = getattr(model, "pooler", None)
    layer = getattr(pooler, "dense", pooler)  # ALBERT's is the layer itself
    if not isinstance(layer, nn.Linear):
        return None
    head = None
    if not any(key.startswith("pooler.") for key in report["missing_keys"]):
        head = Dense(layer.in_features, layer.out_features, activation="Tanh")
        head.linear.load_state_dict(layer.state_dict())
    model.pooler = None if _has_optional_pooler(model) else NoPooler()
    return head


class NoPooler(nn.Module):
    """In place of the pooler of architectures that always call theirs, such as LayoutLM and SqueezeBERT."""

    def forward(self, states: Tensor) -> None:
        """Nothing."""


def left_out_pooler(transformer: nn.Module) -> bool:
    """Whether the model has no pooler although its architecture does, so that loading would add a random one."""
    return _has_optional_pooler(transformer) and getattr(transformer, "pooler", None) is None


def _has_optional_pooler(transformer: nn.Module) -> bool:
    return "add_pooling_layer" in inspect.signature(type(transformer).__init__).parameters


def _check_config(folder: Path, label: str, *, trusted: bool) -> None:
    """Refuse a configuration that cannot belong to the weights, before time and memory go into building the model.

    Args:
        folder: the folder of the transformer.
        label: the name to show.
        trusted: whether the model may run its own code; its architecture cannot be checked then.

    Raises:
        InputError: if it asks for quantised weights, or for far more parameters than the weight files have.
    """
    config = read_config(folder)
    for key, hint in UNREADABLE.items():
        parts = (config, *(part for part in config.values() if isinstance(part, dict)))
        if any(part.get(key) for part in parts):
            raise InputError(f"{folder / 'config.json'} has the key {key}", hint)
    tensors, numbers = _size_of_weights(folder, label)
    for key, value in config.items():
        most = MOST_LABELS if key == "num_labels" else LARGEST_NUMBER
        if key.endswith(("layer", "layers", "groups", "group_num", "blocks", "experts")):
            most = max(MOST_PARTS, tensors)
        if isinstance(value, int) and abs(value) > most:
            raise InputError(f"{folder / 'config.json'}: {key} cannot be {value}", OTHER_WEIGHTS)
    if not trusted:
        _check_architecture(folder, label, SPARE_FACTOR * numbers + SPARE_NUMBERS)


def _check_architecture(folder: Path, label: str, most: int) -> None:
    content = (folder / "config.json").read_bytes()
    if content not in _ASKED:
        _ASKED[content] = _parameters(folder, label)
    asked = _ASKED[content]
    if asked > most:
        raise InputError(
            f"the configuration of {label} asks for {asked} parameters, far more than its weight files have",
            OTHER_WEIGHTS,
        )


def _parameters(folder: Path, label: str) -> int:
    """The number of parameters that a configuration asks for."""
    from transformers import AutoConfig, AutoModel

    encoder_class = _encoder_class(folder)
    with nothing_fetched(), reading(f"{label} cannot be loaded", UNREAD), torch.device("meta"):
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        model = encoder_class(config) if encoder_class else AutoModel.from_config(config, trust_remote_code=False)
        return sum(tensor.numel() for tensor in (*model.parameters(), *model.buffers()))


def _size_of_weights(folder: Path, label: str) -> tuple[int, int]:
    """The number of tensors, and of parameters, in the weight files."""
    tensors, numbers = 0, 0
    for path in weight_files(folder):
        if path.suffix == ".bin":
            sizes = [v.numel() for v in plain_tensors(path, "meta").values()]
        else:
            with reading(f"{label} cannot be loaded"), safe_open(path, "pt") as file:
                sizes = [math.prod(file.get_slice(name).get_shape()) for name in file.keys()]  # noqa: SIM118
        tensors, numbers = tensors + len(sizes), numbers + sum(sizes)
    return tensors, numbers
