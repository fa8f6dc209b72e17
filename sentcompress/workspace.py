"""The Python API: a work directory with a method for every command, models that encode, and scores as records."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentcompress.commands import Command, all_commands
from sentcompress.commands.options import Key, keys_of
from sentcompress.commands.parsing import of_fields
from sentcompress.commands.spelling import DEFAULT_WORK
from sentcompress.errors import InputError, UsageError, did_you_mean
from sentcompress.progress import LOGGED, Reporter
from sentcompress.store import Artifact, WorkDirectory

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sentcompress.encoding.engine import EncodeEngine
    from sentcompress.encoding.vector_folder import StoredVectors
    from sentcompress.models.prompts import Prompts


class Model:
    """An embedding model, with the engine of `sentcompress encode`; `load` and `Workspace.load` make one.

    >>> model = load("embedded")
    >>> vectors = model.encode(["A sentence.", "Another one."])
    >>> vectors.shape, model.dimension
    ((2, 384), 384)

    Attributes:
        name: display name.
    """

    def __init__(self, name: str, engine: EncodeEngine, prompts: Prompts) -> None:
        self.name = name
        self._engine = engine  # of the model without its default prompt
        self._prompts = prompts

    @property
    def dimension(self) -> int:
        """The embedding dimension D."""
        return self._engine.dimension

    def encode(self, texts: Sequence[str], *, prompt_name: str | None = None) -> npt.NDArray[np.float32]:
        """The [N, D] float32 vectors of N texts, in order.

        Args:
            prompt_name: a named prompt of the model to put before every text, such as query or document; by default,
                its default prompt, if it has one. Every model has a prompt query and a prompt document, which can be
                empty.

        Raises:
            UsageError: if `texts` is not a list of strings, but for example one string or a table.
            InputError: if a text contains a lone surrogate, or the model has no such prompt or does not pool it.
        """
        prompt, prompts = self._prompts.default, self._prompts
        if prompt_name is not None:
            prompt = prompts.of_name(prompt_name, self.name)
            prompts.override(prompt, self.name)
        return self._engine.encode([prompt + text for text in _texts(texts)])

    def __repr__(self) -> str:
        return f"<Model {self.name}: {self.dimension} dimensions, {self._engine.compute_dtype}>"


class Scores(list[dict[str, Any]]):
    """The scores of all evaluations of a work directory, one record each.

    >>> [score["value"] for score in Workspace("work").scores() if score["role"] == "model"]

    The keys of a record: `evaluation` (its name in the work directory), `command`, and the fields of
    `sentcompress.evaluation.score.Score` that were measured: `model`, `role` (model or compare), `data`, `part`,
    `metric`, `value`, `count`, `interval`, `kept`, `difference`, `difference_interval`. None means undefined.
    """

    def to_dataframe(self) -> Any:
        """The records as rows of a pandas DataFrame.

        Raises:
            InputError: if pandas is not installed.
        """
        from sentcompress.extras import require

        return require("pandas").DataFrame.from_records(list(self))


class Workspace:
    """A work directory with a method for every command; the command's options are keyword arguments.

    >>> work = Workspace("work")
    >>> work.augment("sentences.txt")
    >>> work.distill(method="ckd", lr=1e-3)

    The method of a command that makes an artifact returns it, made now or found up to date; its `facts` are the
    results. The methods of the other commands return the data that these print. An option that takes a list also takes
    a single value.

    Args:
        path: the folder; by default the environment variable SENTCOMPRESS_WORK, or `work`. It need not exist.
        reporter: receives progress, notes and warnings. By default, notes go to the logger `sentcompress`, and warnings
            are issued as SentcompressWarning.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, reporter: Reporter = LOGGED) -> None:
        self.directory = _directory(path)
        self.reporter = reporter

    def load(
        self,
        name: str | None = None,
        *,
        device: str = "auto",
        dtype: str = "auto",
        revision: str | None = None,
        trust_remote_code: bool = False,
    ) -> Model:
        """Load a model.

        Args:
            name: a student or export of this work directory, `teacher`, a published student such as `general-9m`,
                `embedded`, a folder, or a hub name; by default the most recent student.
            device: auto, cpu, cuda or mps.
            dtype: auto, float32 or bfloat16; auto measures on a CPU and uses bfloat16 on CUDA.
            revision: revision of a hub model.
            trust_remote_code: allow Python code that comes with the model to run.

        Raises:
            MissingArtifactError: if the work directory has no student and no name was given.
            InputError: if there is no such model, or it cannot be loaded.
        """
        from sentcompress.encoding.embedder_sources import load_bare
        from sentcompress.encoding.engine import EncodeEngine
        from sentcompress.models.catalog import find_model

        found = find_model(self.directory, name, revision=revision, trust_remote_code=trust_remote_code)
        return Model(found.label, EncodeEngine(load_bare(found), device=device, dtype=dtype), found.prompts)

    def scores(self) -> Scores:
        """The scores of all evaluations, most recent first."""
        return Scores(
            {"evaluation": found.name, "command": found.manifest["command"], **score}
            for found in self.directory.newest("evaluations")
            for score in found.facts.get("scores", [])
        )

    def __repr__(self) -> str:
        return f"Workspace({str(self.directory.path)!r})"

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        commands = [command.slug for command in all_commands().values()]
        raise AttributeError(f"no command {name}; {did_you_mean(name, commands)}")


def load(
    model: str | os.PathLike[str] | Artifact,
    *,
    work: str | os.PathLike[str] | None = None,
    device: str = "auto",
    dtype: str = "auto",
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> Model:
    """Load a model.

    >>> load("embedded").encode(["A sentence."]).shape
    (1, 384)

    Args:
        model: an artifact returned by `distill`, `finetune`, `export`, ..., or a name as for `Workspace.load`.
        work: the work directory; see `Workspace`.
        device, dtype, revision, trust_remote_code: see `Workspace.load`.

    Raises:
        InputError: if there is no such model, or it cannot be loaded.
    """
    name = str(model.path) if isinstance(model, Artifact) else _path(model, "model")
    # An artifact determines its work directory, which must not be the default one.
    place = model.path.parent.parent if isinstance(model, Artifact) else work
    return Workspace(place).load(
        name, device=device, dtype=dtype, revision=revision, trust_remote_code=trust_remote_code
    )


def read_vectors(path: str | os.PathLike[str]) -> StoredVectors:
    """Open the vectors that `encode` wrote into a folder.

    >>> stored = read_vectors("vectors")
    >>> queries = stored.query(load("small").encode(["a question"]))
    >>> for ids, vectors in stored.blocks():  # decoded, float32
    ...     scores = queries @ vectors.T

    Raises:
        InputError: if it is not such a folder, or is not complete or damaged.
    """
    from sentcompress.encoding.vector_folder import read_vectors

    return read_vectors(_path(path, "path"))


def _directory(path: str | os.PathLike[str] | None) -> WorkDirectory:
    named = _path(path or os.environ.get("SENTCOMPRESS_WORK") or DEFAULT_WORK, "work")
    if not named.strip():
        raise UsageError("`work`, or SENTCOMPRESS_WORK, must not be blank", "name a folder, or leave both out")
    return WorkDirectory(Path(named))


def _path(given: object, name: str) -> str:
    """A path, or the name of a model, as text."""
    if not isinstance(given, str | os.PathLike):
        raise UsageError(f"`{name}` must be a string or a path, not {given!r}")
    return os.fspath(given)


def _texts(given: object) -> list[str]:
    from sentcompress.corpora.text_files import LONE_SURROGATE, is_encodable

    if isinstance(given, str):
        raise UsageError("`texts` must be a list of texts, not one text", "write encode([text])")
    # A dictionary or a table would be read as its keys or the names of its columns.
    if not isinstance(given, Iterable) or isinstance(given, Mapping) or getattr(given, "ndim", 1) != 1:
        raise UsageError(f"`texts` must be a list of texts, not of type {type(given).__name__}")
    texts = list(given)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise UsageError(f"`texts` must be a list of texts, but texts[{number}] is {text!r}")
        if not is_encodable(text):
            raise InputError(
                f"texts[{number}] {LONE_SURROGATE}",
                'replace it: text.encode("utf-8", "replace").decode()',
            )
    return texts


def _method_of(command: Command) -> Callable[..., Any]:
    """The method of Workspace for a command, with signature and docstring generated from its options."""
    keys = sorted(keys_of(command.params).values(), key=lambda key: not key.opt.positional)
    positional = [key.field for key in keys if key.opt.positional]

    def method(self: Workspace, *given: Any, **options: Any) -> Any:
        if len(given) > len(positional):
            raise UsageError(
                f"{command.name}: options must be keyword arguments", f"see help(Workspace.{command.slug})"
            )
        params = of_fields(command.params, dict(zip(positional, given, strict=False)) | options)
        return command.run(params, self.directory, self.reporter)

    method.__name__ = command.slug
    method.__qualname__ = f"Workspace.{command.slug}"
    method.__doc__ = _docstring(command, keys)
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    method.__signature__ = inspect.Signature([this, *map(_parameter, keys)])  # type: ignore[attr-defined]
    return method


def _parameter(key: Key) -> inspect.Parameter:
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD if key.opt.positional else inspect.Parameter.KEYWORD_ONLY
    default = inspect.Parameter.empty if key.default is MISSING else key.default
    return inspect.Parameter(key.field, positional, default=default, annotation=key.hint)


def _docstring(command: Command, keys: Sequence[Key]) -> str:
    lines = [
        f"{key.field}: {key.opt.help}" + (f" Default: {key.opt.default}." if key.opt.default else "") for key in keys
    ]
    made = f"Returns:\n    The artifact, of kind {command.makes}.\n" if command.makes else ""
    text = f"{command.summary}\n\nArgs:\n    " + "\n    ".join(lines) + f"\n\n{made}"
    fields = {key.name: key.field for key in keys}
    return re.sub(r"--([a-z-]+)", lambda flag: f"`{fields[flag[1]]}`" if flag[1] in fields else flag[0], text)


for _command in all_commands().values():
    if not hasattr(Workspace, _command.slug):
        setattr(Workspace, _command.slug, _method_of(_command))
