"""The options of `sentcompress distill`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import MODEL, Opt
from sentcompress.commands.shared import Pooling, Sentences, TeacherVectors
from sentcompress.commands.training import StudentTrainingOptions
from sentcompress.errors import UsageError

FOR_TEACHER_LAYERS = "With --student teacher:K:"
# The best of all methods on retrieval, and the second best on STS: docs/methods.md.
DEFAULT_METHOD = "lrn-kd"
# Schedule and batches for a published student, and for all that `compress` trains:
# docs/decisions/0010-small-students.md.
OF_PUBLISHED: Mapping[str, Any] = {
    "schedule": "cosine",
    "warmup_steps": 30,
    "batch_size": 64,
    "batch_tokens": 2048,
    "max_length": 256,
}


@dataclass(frozen=True, kw_only=True)
class Params(StudentTrainingOptions):
    """The student, the method, and the data."""

    command: ClassVar[str] = "distill"
    names_method: ClassVar[str] = "method"
    in_name: ClassVar[frozenset[str]] = frozenset(
        {"method", "student", "token_dim", "vocabulary", "character_count", "feed_forward", "passes", "start"}
    )

    method: Annotated[
        str | None,
        Opt("Training objective: see `sentcompress methods`.", default="lrn-kd, or a finished student's own"),
    ] = None
    student: Annotated[
        str,
        Opt(
            "Student to train: teacher:K (the teacher's last K layers), teacher:static (token vectors and their mean), "
            "a student, a published student such as general-9m, a preset (tinybert, tinybert-huawei, tinybert6, "
            "minilm, bert-base), a folder, or a hub name.",
            names=MODEL,
        ),
    ] = "teacher:3"
    dim: Annotated[
        int | None,
        Opt(
            "For methods that learn a projection, such as hpd: use the projection pca-DIM.",
            minimum=1,
            affects="input",
            default="the only projection",
        ),
    ] = None
    token_dim: Annotated[
        int | None,
        Opt(f"{FOR_TEACHER_LAYERS} factorise the token table to this width (as in SimTDE).", minimum=1),
    ] = None
    vocabulary: Annotated[
        int | None, Opt("Keep the N tokens that are most frequent in the sentences (WordPiece).", minimum=1)
    ] = None
    character_count: Annotated[
        int, Opt("With --vocabulary: keep characters with at least N occurrences; 0 keeps all.", minimum=0)
    ] = 0
    feed_forward: Annotated[int | None, Opt("Keep N neurons in each feed-forward network.", minimum=1)] = None
    passes: Annotated[
        int, Opt("With --token-dim: reuse the layers N times (weight sharing, as in ALBERT).", minimum=1)
    ] = 1
    start: Annotated[
        str,
        Opt(
            "Initial weights: weights (those of the model); sentences (narrowed parts, and the token vectors of "
            "teacher:static, are fitted to the model's activations); random (for teacher:K, only the layers).",
            choices="sentcompress.models.shape:STARTS",
        ),
    ] = "weights"
    pooling: Pooling = "auto"
    sentences: Sentences = None
    teacher_vectors: TeacherVectors = None
    projection: Annotated[
        str | None, Opt("Projection, made by fit-pca.", affects="input", names="projections", default="the only one")
    ] = None

    @property
    def method_name(self) -> str:
        return self.method or DEFAULT_METHOD

    def method_is_known(self) -> bool:
        return self.method is not None or self.student.startswith("teacher:")

    def faults(self) -> list[str]:
        from sentcompress.methods import METHODS

        faults = super().faults()
        if self.method_is_known() and self.method_name in METHODS and "pca" not in self.find_method().needs:
            given = [f"`{name}`" for name in ("dim", "projection") if getattr(self, name)]
            which = self.method or f"{DEFAULT_METHOD}, the default"
            faults += [f"{name} is for methods that learn a projection, such as hpd, not for {which}" for name in given]
        if self.dim is not None and self.projection is not None:
            faults.append("`dim` and `projection` both choose the projection; give one of them")
        return faults + self._faults_of_student()

    def _faults_of_student(self) -> list[str]:
        from sentcompress.models.shape import layer_count

        try:
            layers = layer_count(self.student)
        except UsageError as error:
            return [error.message]
        faults = []
        narrowed = [name for name in ("token_dim", "vocabulary", "feed_forward") if getattr(self, name) is not None]
        if layers is None:
            names = [*({"token_dim"} & set(narrowed)), *(["passes"] if self.passes > 1 else [])]
            faults += [f"`{name}` is for `student` teacher:K, not {self.student}" for name in names]
        elif layers == 0:
            given = {"feed_forward": self.feed_forward is not None, "passes": self.passes > 1}
            given |= {"pooling": self.pooling != "auto", "start random": self.start == "random"}
            faults += [f"`{name}` is for layers, which {self.student} does not have" for name in given if given[name]]
        elif self.passes > 1 and self.token_dim is None:
            faults.append("`passes` needs a factorised token table: give `token_dim`")
        if self.character_count and self.vocabulary is None:
            faults.append("`character_count` is for a smaller vocabulary: give `vocabulary`")
        if self.start == "sentences" and layers != 0 and not {"token_dim", "feed_forward"} & set(narrowed):
            faults.append(f"`start` {self.start} is for narrowed parts: `token_dim` or `feed_forward`")
        return faults


COMMAND = Command(
    Params,
    "Train a student on the teacher's cached vectors. An interrupted run resumes where it stopped.",
    makes="students",
    version=6,  # weights of 4 bits start fitted to texts
    needs=("teacher-vectors",),
    shared="work",
)
