"""The structure of a model folder: its modules, and the files of each that are read on loading."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from sentcompress.errors import InputError
from sentcompress.json_documents import read_json
from sentcompress.store.manifests import LONGEST_NAME

# The modules that can be read, as sentence-transformers calls them.
TRANSFORMER, STATIC = "Transformer", "StaticEmbedding"
READABLE = (TRANSFORMER, STATIC, "WordWeights", "Pooling", "Dense", "Normalize", "Dropout")
MODULES = "modules.json"
# The settings of a model of sentence-transformers, and what it is instead of a sentence encoder, by its `model_type`.
MODEL_SETTINGS = "config_sentence_transformers.json"
OTHER_KINDS = {
    "CrossEncoder": "a cross-encoder, which scores pairs of texts and makes no vectors of them",
    "SparseEncoder": "a sparse encoder, whose vectors have a dimension for each token of the vocabulary",
    **dict.fromkeys(("MultiVectorEncoder", "ColBERT"), "a multi-vector model, which has a vector for each token"),
}
# The settings of a Router, a module that holds a model for each of its routes.
ROUTER = "router_config.json"
ADAPTER = "adapter_config.json"
SAFETENSORS = "model.safetensors"
# In the order of transformers: only the first one that exists is read.
WHOLE_WEIGHTS = (SAFETENSORS, "pytorch_model.bin")
# Weights saved by one of several processes; transformers prefers them to all others.
DISTRIBUTED_WEIGHTS = "shard-*-model-*.safetensors"
LFS_POINTER = b"version https://git-lfs"
# Hints of errors: for a configuration and weights that do not belong together, for damaged files, and for weights or
# vectors with NaN or infinity.
OTHER_WEIGHTS = "copy or download the model again, with the configuration that belongs to its weights"
DAMAGED = "copy or download the model folder again: it may be incomplete or damaged"
UNUSABLE = "copy or download the model again, or choose another one"
# Bytes of a path: the limit of common file systems.
LONGEST_PATH = 1024


@dataclass(frozen=True)
class Module:
    """A module of a sentence-transformers model: its kind, one of READABLE, and its folder."""

    kind: str
    path: Path


def listed_modules(folder: Path) -> list[Module]:
    """The modules of a folder, in order; an empty list if it has no `modules.json`.

    Raises:
        InputError: if that file is not a list of modules, or names an unsupported module or one outside the folder; if
            the model is one of OTHER_KINDS.
    """
    path = folder / MODULES
    _refuse_other_kinds(folder)
    if not path.exists():
        return []
    listed = read_json(path)
    if not isinstance(listed, list) or not listed or not all(_is_entry(entry) for entry in listed):
        raise InputError(
            f"{path} is not a list of modules with type and path", "name the folder of a sentence-transformers model"
        )
    modules = [Module(_kind(folder, entry["type"]), _inside(folder, entry["path"])) for entry in listed]
    first = [place for place, module in enumerate(modules) if module.kind in (TRANSFORMER, STATIC)]
    if first != [0]:
        raise InputError(
            f"{path} must list one {TRANSFORMER} or {STATIC} module, as the first", "other models are not supported"
        )
    return modules


def _refuse_other_kinds(folder: Path) -> None:
    settings = read_json(folder / MODEL_SETTINGS) if (folder / MODEL_SETTINGS).is_file() else None
    kind = settings.get("model_type") if isinstance(settings, dict) else None
    if isinstance(kind, str) and kind in OTHER_KINDS:
        raise InputError(
            f"{folder} is {OTHER_KINDS[kind]}",
            "name a model with one vector for each text, as SentenceTransformer loads it",
        )


def named_simcse(folder: Path) -> bool:
    """Whether the name of a model's folder, or of the model in the hub cache, contains "simcse".

    Nothing else tells that a checkpoint without modules is to be pooled as SimCSE does. The name is that of the
    resolved folder: the same model can be named from inside it, by a link, or by an absolute path.
    """
    *above, name = folder.resolve().parts
    return any("simcse" in part.lower() for part in [name, *(p for p in above if p.startswith("models--"))])


def is_static(folder: Path) -> bool:
    """Whether a model folder is one of token vectors alone, without a transformer.

    Raises:
        InputError: see `listed_modules`.
    """
    modules = listed_modules(folder)
    return bool(modules) and modules[0].kind == STATIC


def transformer_folder(folder: Path) -> Path:
    """Where the files of the first module are: old saves keep a transformer's in a sub-folder `0_Transformer`.

    Raises:
        InputError: see `listed_modules`.
    """
    modules = listed_modules(folder)
    return modules[0].path if modules else folder


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of a transformer, read from its folder.

    Raises:
        InputError: if it is missing or damaged.
    """
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        raise InputError(f"{folder / 'config.json'} is not a model configuration", DAMAGED)
    return config


def whole_number(config: dict[str, Any], *names: str) -> int:
    """The first of these settings that is a positive integer; 0 if none is."""
    found = (config.get(name) for name in names)
    return next((value for value in found if isinstance(value, int) and value > 0), 0)


def weight_files(folder: Path) -> list[Path]:
    """The weight files of a transformer or another module: safetensors if there are any, otherwise `.bin`.

    Raises:
        InputError: if they are of an unsupported kind, or one of several files is missing.
    """
    if (folder / ADAPTER).exists():
        raise InputError(
            f"{folder} holds an adapter ({ADAPTER}), which is not supported",
            "merge it into the weights of the model (PEFT: merge_and_unload) and remove that file",
        )
    if any(folder.glob(DISTRIBUTED_WEIGHTS)):
        raise InputError(
            f"{folder} holds weights of a distributed training run ({DISTRIBUTED_WEIGHTS})",
            "save the model as model.safetensors",
        )
    for name in WHOLE_WEIGHTS:
        if (folder / name).is_file():
            return [folder / name]
        if (folder / f"{name}.index.json").is_file():
            return _parts(folder, f"{name}.index.json")
    return []


def weight_bytes(folder: Path) -> int:
    """Bytes of all weights: the transformer's and those of Dense layers.

    Raises:
        InputError: see `listed_modules` and `weight_files`.
    """
    folders = [module.path for module in listed_modules(folder)] or [folder]
    return sum(path.stat().st_size for one in folders for path in weight_files(one))


def check_fetched(path: Path) -> None:
    """Raise InputError if a file is only a git-lfs pointer."""
    with path.open("rb") as stream:
        if stream.read(len(LFS_POINTER)) == LFS_POINTER:
            raise InputError(f"{path} is a git-lfs pointer, not the file itself", "fetch it: git lfs pull")


def check_inside(path: Path, folder: Path) -> None:
    """Raise InputError if a file or folder of a model is a symbolic link to a place outside the model folder.

    Snapshots in the hub cache consist of links into the `blobs` folder next to them; these are allowed.
    """
    home = folder.resolve()
    # The cache itself may be a link, to a larger disk.
    homes = [home, (home.parent.parent / "blobs").resolve()] if home.parent.name == "snapshots" else [home]
    try:
        real = path.resolve()
    except (OSError, RuntimeError):  # links in a circle
        raise InputError(f"{path} cannot be resolved", "copy all files of the model into its folder") from None
    if not any(real.is_relative_to(one) for one in homes):
        raise InputError(
            f"{path} points outside the model folder, to {real}", "copy all files of the model into its folder"
        )


def _parts(folder: Path, index: str) -> list[Path]:
    listed = read_json(folder / index)
    names = listed.get("weight_map") if isinstance(listed, dict) else None
    files = set(names.values()) if isinstance(names, dict) and all(map(_is_name, names.values())) else set()
    if not files:
        raise InputError(f"{folder / index} does not list files in this folder", DAMAGED)
    for name in files:
        if not (folder / name).is_file():
            raise InputError(f"{folder / name} is missing; {index} lists it", DAMAGED)
    return sorted(folder / name for name in files)


def _is_name(value: object) -> bool:
    """Whether a value is the bare name of a file, without a folder."""
    if not isinstance(value, str) or value in ("", ".", ".."):
        return False
    return PurePath(value).name == value and _can_be_path(value)


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("type"), str) and isinstance(entry.get("path"), str)


def _kind(folder: Path, name: str) -> str:
    package, _, kind = name.rpartition(".")
    # The two schemas of sentence-transformers differ only in the package names. The name is never imported.
    if kind == "Router":
        raise _router_error(folder)
    if kind not in READABLE or not package.startswith("sentence_transformers."):
        raise InputError(f"{folder} has a module {name}", f"supported modules: {', '.join(READABLE)}")
    return kind


def _router_error(folder: Path) -> InputError:
    """The error for a model of several routes."""
    routes = sorted(path.parent.name for path in folder.glob(f"*/{MODULES}"))
    named = " or ".join(str(folder / route) for route in routes)
    return InputError(
        f"{folder} is a Router of sentence-transformers, which holds a model for each of its routes",
        f"name the model of one route: {named}"
        if routes
        else "save the modules of one route as a model of their own: "
        "SentenceTransformer(modules=list(model[0].sub_modules['query'])).save(FOLDER)",
    )


def _inside(folder: Path, name: str) -> Path:
    """The folder of a module; it must be inside the model folder."""
    path = PurePath(name)
    if path.is_absolute() or ".." in path.parts or not _can_be_path(name):
        raise InputError(
            f"{folder / MODULES} names a module outside the model folder: {name[:LONGEST_NAME]!r}",
            "copy all files of the model into its folder",
        )
    check_inside(folder / path, folder)
    return folder / path


def _can_be_path(name: str) -> bool:
    try:
        longest = max((len(os.fsencode(part)) for part in PurePath(name).parts), default=0)
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return "\0" not in name and longest <= LONGEST_NAME and len(name) <= LONGEST_PATH
