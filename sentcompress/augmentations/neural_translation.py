"""Back-translation with nlpaug's BackTranslationAug: two sequence-to-sequence models of transformers."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentcompress.augmentations.base import Augmenter
from sentcompress.errors import InputError

# nlpaug's default, which HPD uses.
DEFAULT_ROUTE = ("facebook/wmt19-en-de", "facebook/wmt19-de-en")
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")


@dataclass(frozen=True)
class NeuralSpec:
    """Translate with one model and back with another; copy k uses the k-th of `routes`."""

    routes: tuple[tuple[str, str], ...]
    batch_size: int = 32

    source = "back-translation"
    in_workers = False

    @property
    def summary(self) -> str:
        return "; ".join(" and ".join(route) for route in self.routes)

    def describe(self) -> dict[str, Any]:
        revisions = {name: _revision(name) for route in self.routes for name in route}
        versions = {name: importlib.metadata.version(name) for name in ("nlpaug", "transformers")}
        return {"routes": [list(route) for route in self.routes], "revisions": revisions, **versions}

    def load(self) -> Augmenter:
        return NeuralAugmenter(self)


class NeuralAugmenter:
    """Translates with nlpaug, on CUDA if available."""

    def __init__(self, spec: NeuralSpec) -> None:
        self._models = [_load(route, spec.batch_size) for route in spec.routes]

    def augment(self, texts: Sequence[str], first_row: int, copy: int) -> list[str]:
        if not texts:
            return []
        # Sorted by length, so that batches need little padding. This hardly changes the translations.
        order = sorted(range(len(texts)), key=lambda place: (len(texts[place]), place))
        new = self._models[copy - 1].augment([texts[place] for place in order])
        out = list(texts)
        for place, text in zip(order, new, strict=True):
            out[place] = " ".join(str(text).split()) or texts[place]
        return out


def is_cached(name: str) -> bool:
    """Whether a model can be loaded offline: it is a folder, or in the hub's cache with its weights."""
    if Path(name).is_dir():
        return True
    from huggingface_hub import try_to_load_from_cache

    found = (isinstance(try_to_load_from_cache(name, file), str) for file in _WEIGHTS)
    return any(found)


def _load(route: tuple[str, str], batch_size: int) -> Any:
    import torch
    from nlpaug.augmenter.word.back_translation import BackTranslationAug
    from transformers import dynamic_module_utils

    device = "cuda" if torch.cuda.is_available() else "cpu"
    # nlpaug does not pass trust_remote_code, so transformers would ask on the terminal; with 0 it refuses at once.
    dynamic_module_utils.TIME_OUT_REMOTE_CODE = 0
    try:
        return BackTranslationAug(*route, device=device, batch_size=batch_size)
    except ImportError as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"the translators {' and '.join(route)} need a library: {reason}", "pip install it") from None
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        offline = "; the hub is disabled (HF_HUB_OFFLINE)" if os.environ.get("HF_HUB_OFFLINE") else ""
        raise InputError(
            f"cannot load the translators {' and '.join(route)}: {reason}{offline}",
            "use apertium (see `sentcompress augment --help`), folders with models, or `back_translate` 0",
        ) from None


def _revision(name: str) -> str:
    """The commit of a model in the hub's cache, or a digest of a folder's files."""
    if Path(name).is_dir():
        from sentcompress.store import tree_digest

        files = {path.name: path for path in Path(name).iterdir() if path.is_file()}
        return tree_digest(files)[:16]
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(name, "config.json")
    return Path(found).parent.name if isinstance(found, str) else "main"
