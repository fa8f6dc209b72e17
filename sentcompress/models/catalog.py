"""Models by name, found and ready to load. What a name means is in `models.names`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from sentcompress.errors import InputError, MissingArtifactError
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import load_pooled, read_back, save_encoder
from sentcompress.models.names import (
    KINDS,
    STUDENT,
    TEACHER,
    is_of_work,
    meaning_in,
    no_such_model,
    refuse_revision,
)
from sentcompress.models.prompts import Prompts, read_prompts
from sentcompress.models.sources import (
    EMBEDDED,
    MODEL_FOLDER,
    ModelSource,
    comes_along,
    digest_now,
    locate,
    model_folder,
    resolve,
)
from sentcompress.plain_text import shell_word
from sentcompress.store import (
    MANIFEST,
    MODEL_FILES,
    Artifact,
    Build,
    Request,
    WorkDirectory,
    made_here,
    name_part,
    taught_by,
)
from sentcompress.store.request import TEACHER_VECTORS


@dataclass(frozen=True)
class NamedModel:
    """A model that was found, not yet loaded.

    Attributes:
        source: its files. Its label is the name that is recorded; for a folder, this is the path as given.
        label: the name to show.
        reference: how a request names it as an input: `students/<name>`, `exports/<name>`, `teacher-vectors/<name>` or
            `model:<place>`.
        digest: the digest that the request records for this reference.
        place: the name under which its files are found, whatever the current folder is: `students/<name>` or
            `exports/<name>` for a model of the work directory, which can be moved; otherwise an argument of
            `sources.locate`: `embedded`, a published student, an absolute path or a hub name.
        revision: the revision of a hub model; None for the newest.
        pooling: how a checkpoint without modules is pooled.
        trust_remote_code: whether the user allows the model to run its own code.
        max_length: maximum number of tokens read per text; None for the model's own limit.
        normalize: whether its vectors are scaled to length one; None: as the model itself does.
    """

    source: ModelSource
    label: str
    reference: str
    digest: str
    place: str
    revision: str | None = None
    pooling: str = "auto"
    trust_remote_code: bool = False
    max_length: int | None = None
    normalize: bool | None = None

    @property
    def name(self) -> str:
        """A name that still finds this model when there is a newer student or another teacher."""
        return self.reference.removeprefix(MODEL_FILES)

    @property
    def covers_all_files(self) -> bool:
        """Whether the digest covers all files of the folder, such as graphs. Only an export's does."""
        return self.reference.startswith("exports/")

    @property
    def slug(self) -> str:
        """The label as a part of a file name."""
        return name_part(self.label) or "model"

    @property
    def prompts(self) -> Prompts:
        """Its prompts. They are part of its files, and so of the digest.

        Raises:
            InputError: if they are not in the form of sentence-transformers.
        """
        return read_prompts(self.source.path)

    def load(self, new_pooling: str = "auto") -> Encoder:
        """The encoder, float32, in eval mode, on the CPU.

        Args:
            new_pooling: the pooling to train, if it is a checkpoint without modules; see `load_pooled`.
        """
        trusted = self.trust_remote_code
        encoder = load_pooled(self.source, new_pooling, otherwise=self.pooling, trust_remote_code=trusted)
        if self.max_length is not None:
            encoder.text = replace(encoder.text, max_length=self.max_length)
        if self.normalize is not None:
            encoder.normalize = self.normalize
        return encoder


def find_model(
    work: WorkDirectory,
    name: str | None,
    *,
    revision: str | None = None,
    trust_remote_code: bool = False,
    besides: str | None = None,
    layers: bool = False,
) -> NamedModel:
    """Find a model by name, as `models.names` says; None is the newest student.

    Args:
        revision: of a hub model.
        trust_remote_code: whether the user allows the model to run its own code, by an option of this command.
        besides: a command whose own students do not count as the newest, so that a second run of it starts from the
            same model as the first.
        layers: whether `teacher:K` could have been given too, for the hint of the error.

    Raises:
        MissingArtifactError: if the newest student is asked for and there is none.
        FetchError: if it is a hub model and cannot be fetched.
        InputError: if there is no model of that name, it cannot be read, or wants to run its own code and is not
            trusted; or if there is a revision, and the model is not one of the hub.
    """
    if name is None:
        refuse_revision(revision, "the newest student")
        return _of_artifact(_newest_student(work, besides), trust_remote_code)
    meaning = meaning_in(work, name)
    if meaning is None:
        raise no_such_model(name, work.path, [own for kind in KINDS for own in work.names(kind)], layers=layers)
    if not meaning.is_of_hub:
        refuse_revision(revision, name)
    if meaning.kind == TEACHER:
        vectors = work.names(TEACHER_VECTORS)
        if not vectors:
            return _of_source(work, EMBEDDED, None, trust_remote_code)
        return _of_vectors(work, work.get(TEACHER_VECTORS, vectors[-1]), trust_remote_code)
    if meaning.kind == STUDENT:
        return _of_artifact(work.get("students"), trust_remote_code)
    if meaning.kind == "source":
        return _of_source(work, meaning.name, revision, trust_remote_code)
    kind, _, own = meaning.name.partition("/")
    if kind == TEACHER_VECTORS:
        return _of_vectors(work, work.get(kind, own), trust_remote_code)
    return _of_artifact(work.get(kind, own), trust_remote_code)


def _newest_student(work: WorkDirectory, besides: str | None) -> Artifact:
    try:
        newest = work.get("students")
    except MissingArtifactError as error:
        raise error.with_alternative("name a model, such as `model` general-9m") from None
    for student in work.newest("students"):
        if student.manifest["command"] != besides:
            return student
    raise MissingArtifactError(
        f"all students in {work.path} were made by {besides} itself",
        f"name one: `model` {newest.name} or `model` teacher",
    )


class FoundByName(Protocol):
    """Something that was found by a name, such as a model."""

    @property
    def name(self) -> str:
        """The name that finds it again."""


def typed_name(name: str | None, found: FoundByName) -> str:
    """The name that was given, or one that still means the same model later.

    Instead of `teacher` and `student`, and of the path of an artifact, because the work directory can be moved.
    """
    if name in (None, TEACHER, STUDENT):
        return found.name
    kind, _, own = found.name.partition("/")
    is_path = kind in KINDS and name not in (own, found.name) and not name.startswith(f"{TEACHER_VECTORS}/")
    return found.name if is_path else name


def typed_names(params: Any, found: Mapping[str, FoundByName]) -> dict[str, str]:
    """The `typed_name` of each option of a command that names a model, by its field."""
    return {field: typed_name(getattr(params, field), model) for field, model in found.items()}


def save_made(
    encoder: Encoder, model: NamedModel, work: WorkDirectory, build: Build, *, trust_remote_code: bool
) -> dict[str, Any]:
    """Write the encoder of a student that was made of a model without training, and read it back.

    Returns:
        Its facts, and the teacher of the model.

    Raises:
        SentcompressError: if it contains NaN or infinity.
    """
    with build.write(MODEL_FOLDER) as folder:
        save_encoder(encoder, folder)
        saved = read_back(folder, trust_remote_code=trust_remote_code)
    return {
        "teacher": taught_by(work, model.reference, model.digest) or model.label,
        "parameters": saved.count_parameters(),
        "dimension": saved.dimension,
    }


def request_on_sentences(params: Any, name: str, model: NamedModel, sentences: Artifact) -> Request:
    """The request of a student that is made of a model and a sentence table, without training.

    Args:
        params: the options, `model` and `name` among them.
        name: its name by default.
    """
    inputs = {model.reference: model.digest, sentences.reference: sentences.digest}
    typed = typed_name(params.model, model)
    return Request.of(params, params.name or name, inputs, {"model": model.reference}, model=typed)


def _of_vectors(work: WorkDirectory, vectors: Artifact, trust_remote_code: bool) -> NamedModel:
    """The teacher that made the vectors, if it has not changed since.

    Whether these were made with trusted code does not matter: the work directory may come from somebody else.
    """
    asked = vectors.parameters
    if is_of_work(asked["teacher"]):
        model = _of_artifact(_artifact_of_teacher(work, vectors), trust_remote_code)
    else:
        model = _of_source(work, asked["teacher"], asked.get("revision"), trust_remote_code)
    _require_unchanged(vectors, model.source)
    max_length, pooling = asked.get("max_length"), asked.get("pooling", "auto")
    # The model itself does not make two-pass embeddings; like them, its vectors are scaled to length one.
    normalize = True if asked.get("content_words") else asked.get("normalize")
    if max_length is None and pooling == "auto" and normalize is None:
        return model
    # With another maximum length, pooling or scaling, it gives other vectors than its files alone would. It is then
    # identified by the artifact of these vectors.
    return replace(
        model,
        reference=vectors.reference,
        digest=vectors.digest,
        pooling=pooling,
        max_length=max_length,
        normalize=normalize,
    )


def _of_source(work: WorkDirectory, name: str, revision: str | None, trust_remote_code: bool) -> NamedModel:
    """The model in a folder, which may be that of an artifact, of the hub, or the embedded one."""
    if comes_along(name) or not Path(name).is_dir():
        source = resolve(name, revision=revision, trust_remote_code=trust_remote_code)
        return NamedModel(
            source, source.label, f"model:{name}", source.digest, name, revision, trust_remote_code=trust_remote_code
        )
    if artifact := artifact_at(work, name):
        return _of_artifact(artifact, trust_remote_code)
    folder = Path(name)
    if (folder / MANIFEST).is_file() and (folder / MODEL_FOLDER).is_dir():  # a student of another work directory
        folder = folder / MODEL_FOLDER
    source = replace(resolve(str(folder), trust_remote_code=trust_remote_code), label=name)
    place = folder.resolve()
    label = Path(name).resolve().name
    if any(work.has(kind, label) for kind in KINDS):
        label = f"{Path(name).resolve().parent.name}/{label}"  # a model of the work directory has the same name
    # The path is absolute, so that a request means the same wherever it is made.
    return NamedModel(source, label, f"model:{place}", source.digest, str(place), trust_remote_code=trust_remote_code)


def artifact_at(work: WorkDirectory, path: str) -> Artifact | None:
    """The student or export whose folder, or the model in it, has that path."""
    root, place = work.path.resolve(), Path(path).resolve()
    if not place.is_relative_to(root):
        return None
    kind, *inside = place.relative_to(root).parts or ("",)
    if kind in KINDS and inside and inside[1:] in ([], [MODEL_FOLDER]) and work.find(kind, inside[0]):
        return work.get(kind, inside[0])
    return None


def _of_artifact(artifact: Artifact, trust_remote_code: bool) -> NamedModel:
    # An export has the same name as its student, and both can be in one table.
    label = f"{artifact.name} (export)" if artifact.manifest["kind"] == "exports" else artifact.name
    source = replace(resolve(str(model_folder(artifact)), trust_remote_code=trust_remote_code), label=label)
    reference = artifact.reference
    return NamedModel(source, label, reference, artifact.digest, reference, trust_remote_code=trust_remote_code)


def find_teacher_of(vectors: Artifact) -> ModelSource:
    """The teacher that made the vectors. Whether it may run its own code is checked when it is loaded.

    Raises:
        MissingArtifactError: if it was a model of the work directory, which is gone.
        InputError: if its files have changed since.
    """
    place = str(vectors.parameters["teacher"])
    if is_of_work(place):
        found = _artifact_of_teacher(WorkDirectory(vectors.path.parents[1]), vectors)
        source = replace(locate(str(model_folder(found))), label=place)
    else:
        source = locate(place, revision=vectors.parameters.get("revision"))
    _require_unchanged(vectors, source)
    return source


def _artifact_of_teacher(work: WorkDirectory, vectors: Artifact) -> Artifact:
    """The current version of the teacher of vectors, a model of the work directory."""
    place = str(vectors.parameters["teacher"])
    found = work.at(place)
    if found is None:
        raise MissingArtifactError(
            f"{place}, the teacher that made {vectors.reference}, no longer exists in {work.path}",
            ("restore its folder", f"make the vectors with another teacher: {_other_teacher(work, vectors)}"),
        )
    return found


def _other_teacher(work: WorkDirectory, vectors: Artifact) -> str:
    named = f" --sentences {shell_word(vectors.input_of_kind('sentences'))} --name {shell_word(vectors.name)}"
    return f"sentcompress teacher-embed --teacher MODEL{named} --work {shell_word(work.path)}"


def _require_unchanged(vectors: Artifact, teacher: ModelSource) -> None:
    place = vectors.parameters["teacher"]
    if vectors.inputs.get(f"{MODEL_FILES}{place}") not in (None, teacher.digest):
        raise InputError(
            f"the teacher {place} is no longer the one that made {vectors.reference}: its files have changed",
            f"run: {vectors.command_line()}",
        )


def teacher_made_here(work: WorkDirectory, vectors: Artifact) -> Artifact | None:
    """The teacher of vectors if it is a model of the work directory, and its files are as they were then."""
    for reference, digest in vectors.inputs.items():
        place = made_here(reference)
        if place and digest_now(work, place) == digest:
            return work.at(place)
    return None


def teacher_digests(work: WorkDirectory, vectors: Artifact) -> set[str]:
    """The digests by which the teacher of vectors is known: of its files and, if it was made here, of the artifact."""
    digests = {digest for reference, digest in vectors.inputs.items() if reference.startswith(MODEL_FILES)}
    artifact = teacher_made_here(work, vectors)
    return {*digests, artifact.digest} if artifact else digests
