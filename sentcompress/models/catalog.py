"""Models by the names that a user gives: `teacher`, a student, an export, `embedded`, a folder, a hub name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from sentcompress.errors import InputError, MissingArtifactError, did_you_mean
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import load_encoder
from sentcompress.models.sources import EMBEDDED, ModelSource, resolve
from sentcompress.store import Artifact, WorkDirectory, name_part

TEACHER = "teacher"
# `teacher-vectors/<name>` is the model that made those vectors, as it made them.
VECTORS = "teacher-vectors"
STUDENT = "student"
MODEL_FOLDER = "model"
KINDS = ("students", "exports", "teachers")


@dataclass(frozen=True)
class NamedModel:
    """A model that was found, not yet loaded.

    Attributes:
        source: its files.
        label: the name to show.
        reference: how a request names it as an input: `students/<name>`, `exports/<name>`, `teachers/<name>` or
            `model:<label>`.
        digest: what the request records for that reference.
        pooling: how a checkpoint without modules is pooled.
        trust_remote_code: whether the user allows the model to run its own code.
        max_length: tokens that are read of a text; None leaves the model's own limit.
        normalize: scale its vectors to length one, whatever the model itself does.
        again: what finds it again, if its reference does not.
    """

    source: ModelSource
    label: str
    reference: str
    digest: str
    pooling: str = "auto"
    trust_remote_code: bool = False
    max_length: int | None = None
    normalize: bool = False
    again: str | None = None

    @property
    def name(self) -> str:
        """A name that finds the same model later, when there is a newer student or another teacher."""
        return self.again or self.reference.removeprefix("model:")

    @property
    def slug(self) -> str:
        """The label as a part of a file name."""
        return name_part(self.label) or "model"

    def load(self) -> Encoder:
        """The encoder, float32, in eval mode, on the CPU."""
        encoder = load_encoder(self.source, pooling=self.pooling, trust_remote_code=self.trust_remote_code)
        if self.max_length is not None:
            encoder.text = replace(encoder.text, max_length=self.max_length)
        encoder.normalize = encoder.normalize or self.normalize
        return encoder


def find_model(
    work: WorkDirectory,
    name: str | None,
    *,
    revision: str | None = None,
    trust_remote_code: bool = False,
    besides: str | None = None,
) -> NamedModel:
    """Find a model by name; None is the student finished last.

    Args:
        trust_remote_code: whether the user allows the model to run its own code, by an option of this command.
        besides: a command whose own students None passes over, so that the command run a second time starts where it
            started the first time.

    Raises:
        MissingArtifactError: if the work directory has no student and none was named.
        InputError: if nothing is called so.
    """
    if name is None:
        return _of_artifact(_newest_student(work, besides), trust_remote_code)
    if name == TEACHER:
        return find_teacher(work, trust_remote_code=trust_remote_code)
    if name.startswith(f"{VECTORS}/"):
        return _of_vectors(work, name.removeprefix(f"{VECTORS}/"), trust_remote_code)
    for kind in KINDS:
        if "/" not in name and name in work.names(kind):
            return _of_artifact(work.get(kind, name), trust_remote_code)
    if artifact := _inside(work, name):
        return _of_artifact(artifact, trust_remote_code)
    refuse_near_miss(work, name)
    source = resolve(name, revision=revision, trust_remote_code=trust_remote_code)
    label = _label(name, source)
    if Path(name).is_dir() and any(label in work.names(kind) for kind in KINDS):
        label = f"{Path(name).resolve().parent.name}/{label}"  # a copy beside the one that is called so here
    return NamedModel(source, label, _reference(name), source.digest, "auto", trust_remote_code)


def _newest_student(work: WorkDirectory, besides: str | None) -> Artifact:
    newest = work.get("students")
    for student in work.newest("students"):
        if student.manifest["command"] != besides:
            return student
    raise MissingArtifactError(
        f"{besides} made all students of {work.path} itself", f"name one: `model` {newest.name}, or `model` teacher"
    )


class Named(Protocol):
    """What was found by a name."""

    @property
    def name(self) -> str:
        """What finds it again."""


def typed_name(name: str | None, found: Named) -> str:
    """The name that was given, or one that still means the same model when there is a newer one."""
    return name if name not in (None, TEACHER, STUDENT) else found.name


def find_teacher(work: WorkDirectory, *, trust_remote_code: bool) -> NamedModel:
    """The model that made the newest teacher vectors; the embedded one where there are none.

    Args:
        trust_remote_code: as in `find_model`. It does not matter whether the vectors were made with trusted code: the
            work directory may come from somebody else.

    Raises:
        InputError: if it no longer exists, or wants to run its own code and is not trusted.
    """
    names = work.names(VECTORS)
    return _of_vectors(work, names[-1], trust_remote_code) if names else find_model(work, EMBEDDED)


def _of_vectors(work: WorkDirectory, name: str, trust_remote_code: bool) -> NamedModel:
    vectors = work.get(VECTORS, name)
    asked = vectors.parameters
    max_length, pooling = asked.get("max_length"), asked.get("pooling", "auto")
    # A second reading is of the vectors alone; what it leaves here is that they have length one.
    normalize = bool(asked.get("normalize") or asked.get("content_words"))
    source = resolve(asked["teacher"], revision=asked.get("revision"), trust_remote_code=trust_remote_code)
    # Read at another length, pooled or scaled in another way, it is another model than its files alone: the vectors
    # stand for it.
    as_files = max_length is None and pooling == "auto" and not normalize
    return NamedModel(
        source,
        _label(asked["teacher"], source),
        _reference(asked["teacher"]) if as_files else vectors.reference,
        source.digest if as_files else vectors.digest,
        pooling,
        trust_remote_code,
        max_length,
        normalize,
        # By the name of its folder, a model of this work directory is an artifact, which is recorded in another way.
        again=vectors.reference if _inside(work, asked["teacher"]) else None,
    )


def _label(name: str, source: ModelSource) -> str:
    return source.label if name == EMBEDDED else (Path(name).resolve().name if Path(name).is_dir() else name)


def _reference(name: str) -> str:
    # A folder's path is made absolute, so that a request means the same wherever it is made.
    return f"model:{Path(name).resolve() if name != EMBEDDED and Path(name).is_dir() else name}"


def _inside(work: WorkDirectory, name: str) -> Artifact | None:
    """The artifact that `exports/small` means, or the path of its folder or of the model in it."""
    root = work.path.resolve()
    place = Path(name).resolve() if Path(name).exists() else root / name
    if not place.is_relative_to(root):
        return None
    kind, *inside = place.relative_to(root).parts or ("",)
    if kind in KINDS and inside and inside[1:] in ([], [MODEL_FOLDER]) and inside[0] in work.names(kind):
        return work.get(kind, inside[0])
    return None


def _of_artifact(artifact: Artifact, trust_remote_code: bool) -> NamedModel:
    # An export has the name of its student, and stands beside it in tables and among evaluations.
    label = f"{artifact.name} (export)" if artifact.manifest["kind"] == "exports" else artifact.name
    folder = artifact.path / MODEL_FOLDER if (artifact.path / MODEL_FOLDER).is_dir() else artifact.path
    source = resolve(str(folder), trust_remote_code=trust_remote_code)
    return NamedModel(source, label, artifact.reference, artifact.digest, "auto", trust_remote_code)


def refuse_near_miss(work: WorkDirectory, name: str) -> None:
    """Refuse a word that is nearly a name of ours: a typing mistake, not a model on the hub.

    Raises:
        InputError: if it is one; it names what was probably meant.
    """
    if name == EMBEDDED or "/" in name or Path(name).exists():
        return
    known = [TEACHER, EMBEDDED, *(name for kind in KINDS for name in work.names(kind))]
    hint = did_you_mean(name, [one for one in known if one != name])
    if hint.startswith("did you mean"):
        raise InputError(f"no model named {name!r} in {work.path}", f"{hint} (a hub's model is named owner/model)")
