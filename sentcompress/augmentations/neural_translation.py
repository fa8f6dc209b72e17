"""Back-translation with nlpaug's BackTranslationAug: two sequence-to-sequence models of transformers."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentcompress.augmentations.base import Augmenter
from sentcompress.errors import InputError
from sentcompress.extras import check_installed
from sentcompress.models.model_files import read_config
from sentcompress.models.sources import FetchError, ModelSource, resolve
from sentcompress.models.token_batches import by_length

# nlpaug's default. HPD uses nlpaug, and its paper names no models.
DEFAULT_ROUTE = ("facebook/wmt19-en-de", "facebook/wmt19-de-en")
# A model that translates from English, and one that translates back.
Route = tuple[str, str]
# What the tokenizers of these kinds of models need.
PACKAGES = {"fsmt": "sacremoses", "marian": "sentencepiece", "m2m_100": "sentencepiece"}
# Tokens of a batch, padding included. Beam search holds about 1 MB for each with the default models in float32.
BATCH_TOKENS = {"cpu": 1024, "cuda": 8192}
# Long enough that starting the translation takes a small part of the time.
TRIAL = ("The committee will publish its report next week.", "Two dogs are running along the beach.")
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_INSTEAD = "name folders with models (`translator` FROM,TO), or use apertium (`translator` apertium)"


@dataclass(frozen=True)
class NeuralSpec:
    """Translate with one model and back with another; copy k uses the k-th of `routes`."""

    routes: tuple[tuple[ModelSource, ModelSource], ...]

    source = "back-translation"
    in_workers = False

    @property
    def summary(self) -> str:
        return "; ".join(" and ".join(model.label for model in route) for route in self.routes)

    def describe(self) -> dict[str, Any]:
        digests = {model.label: model.digest[:16] for route in self.routes for model in route}
        versions = {name: importlib.metadata.version(name) for name in ("nlpaug", "transformers")}
        return {"routes": [[model.label for model in route] for route in self.routes], "models": digests, **versions}

    def load(self) -> Augmenter:
        return NeuralAugmenter(self)


def check_packages(routes: Sequence[Route]) -> None:
    """Check the packages of models by name, before these are downloaded.

    Raises:
        InputError: if nlpaug, or sacremoses for its default models, is missing.
    """
    check_installed("nlpaug", *(["sacremoses"] if DEFAULT_ROUTE in routes else []))


def neural_spec(routes: Sequence[Route]) -> NeuralSpec:
    """The specification with models by name; those of the hub are downloaded.

    Raises:
        InputError: if a model is not found or asks to run code, or if nlpaug or a package that it needs is missing.
    """
    check_packages(routes)
    found = {name: _found(name) for route in routes for name in route}
    needed = {PACKAGES.get(str(read_config(model.path).get("model_type"))) for model in found.values()}
    check_installed(*sorted(filter(None, needed)))
    return NeuralSpec(tuple((found[there], found[back]) for there, back in routes))


def is_cached(name: str) -> bool:
    """Whether a model can be loaded offline: it is a folder, or in the hub's cache with its weights."""
    if Path(name).is_dir():
        return True
    from huggingface_hub import try_to_load_from_cache

    found = (isinstance(try_to_load_from_cache(name, file), str) for file in _WEIGHTS)
    return any(found)


def _found(name: str) -> ModelSource:
    try:
        return resolve(name)
    except FetchError as error:
        raise InputError(f"translator: {error.message}", _INSTEAD) from None


class NeuralAugmenter:
    """Translates with nlpaug, on CUDA if available.

    nlpaug pads all texts of a call to the longest, so it is called for one batch of similar length at a time.

    Attributes:
        note: the device and the number format, with the reason for it.
    """

    def __init__(self, spec: NeuralSpec) -> None:
        import torch

        from sentcompress.models.dtype_trial import choose_dtype

        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._budget = BATCH_TOKENS[device.type]
        self._models = [_load(route, str(device)) for route in spec.routes]
        first = self._models[0]

        def trial(dtype: str) -> Callable[[], object]:
            model = first.src_model if dtype == "float32" else deepcopy(first.src_model).to(getattr(torch, dtype))
            return lambda: self._translate(TRIAL, first, first.src_tokenizer, model)

        dtype, reason = choose_dtype("auto", device, trial, "translates")
        self.note = f"{dtype} on {device} ({reason})"
        for pair in self._models:
            pair.src_model.to(getattr(torch, dtype))
            pair.tgt_model.to(getattr(torch, dtype))

    def augment(self, texts: Sequence[str], first_row: int, copy: int) -> list[str]:
        if not texts:
            return []
        pair = self._models[copy - 1]
        there = self._translate(texts, pair, pair.src_tokenizer, pair.src_model)
        back = self._translate(there, pair, pair.tgt_tokenizer, pair.tgt_model)
        return [" ".join(str(new).split()) or old for new, old in zip(back, texts, strict=True)]

    def _translate(self, texts: Sequence[str], pair: Any, tokenizer: Any, model: Any) -> list[str]:
        """The translations in the order of `texts`, made in batches of similar length, the longest first."""
        lengths = [len(ids) for ids in tokenizer(list(texts), truncation=True)["input_ids"]]
        out = [""] * len(texts)
        for batch in by_length(lengths, self._budget, longest_first=True):
            pair.batch_size = len(batch)
            new = pair.translate_one_step_batched([texts[place] for place in batch], tokenizer, model)
            for place, text in zip(batch, new, strict=True):
                out[place] = text
        return out


def _load(route: tuple[ModelSource, ModelSource], device: str) -> Any:
    """nlpaug's pair of models, in float32."""
    from nlpaug.augmenter.word.back_translation import BackTranslationAug
    from transformers import dynamic_module_utils
    from transformers.utils import logging

    logging.disable_progress_bar()
    # nlpaug does not pass trust_remote_code, so transformers would ask on the terminal; with 0 it refuses at once.
    dynamic_module_utils.TIME_OUT_REMOTE_CODE = 0
    # nlpaug keeps every model that it loaded; an earlier one may have another number format.
    BackTranslationAug.clear_cache()
    names = " and ".join(model.label for model in route)
    try:
        pair = BackTranslationAug(*(str(model.path) for model in route), device=device).model
    except ImportError as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"the translators {names} need a library: {reason}", "install that library with pip") from None
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"cannot load the translators {names}: {reason}", _INSTEAD) from None
    pair.src_model.float()
    pair.tgt_model.float()
    return pair
