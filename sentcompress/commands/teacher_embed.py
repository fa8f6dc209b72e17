"""The options of `sentcompress teacher-embed`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import MODEL, Opt
from sentcompress.commands.shared import Device, EncodingDtype, EncodingTokens, Hub, Named, Sentences, Sharded, Store


@dataclass(frozen=True, kw_only=True)
class Params(Sharded, Hub, Named):
    """The sentences, the teacher, and the format of the vectors."""

    command: ClassVar[str] = "teacher-embed"

    teacher: Annotated[
        str,
        Opt(
            "Teacher: embedded, a model of the work directory by name, a model folder, or a hub name.",
            names=MODEL,
        ),
    ] = "embedded"
    sentences: Sentences = None
    pooling: Annotated[
        str,
        Opt(
            "Pooling of a checkpoint without modules.json: mean, cls, cls-mlp (as SimCSE), or auto: cls-mlp for names "
            "that contain simcse, else mean.",
            choices=("auto", "mean", "cls", "cls-mlp"),
        ),
    ] = "auto"
    max_length: Annotated[
        int | None, Opt("Truncate sentences to this many tokens.", minimum=1, default="the teacher's own")
    ] = None
    normalize: Annotated[
        bool | None,
        Opt(
            "Scale vectors to unit length, as HPD's code does for SimCSE teachers, or leave out the teacher's own "
            "normalisation.",
            default="as the teacher does",
        ),
    ] = None
    store: Store = "float32"
    dtype: EncodingDtype = "auto"
    device: Device = "auto"
    batch_tokens: EncodingTokens = None
    layers: Annotated[
        tuple[int, ...],
        Opt(
            "Also cache the pooled states of these layers, counted from 1, such as 2,4 (for pkd).",
            commas=True,
            minimum=1,
        ),
    ] = ()
    content_words: Annotated[
        float,
        Opt("Two-pass embeddings: add the vector of the content words with this weight, such as 0.5.", minimum=0),
    ] = 0.0

    def faults(self) -> list[str]:
        faults = self.faults_of_shard()
        if list(self.layers) != sorted(set(self.layers)):
            given = ",".join(map(str, self.layers))
            faults.append(f"`layers` must be increasing numbers from 1, such as 2,4,6, not {given}")
        if self.content_words and self.normalize is False:
            faults.append("`content_words` adds vectors of unit length; `normalize` cannot be off")
        return faults


COMMAND = Command(
    Params,
    "Encode the sentences with the teacher. The vectors are cached for training.",
    makes="teacher-vectors",
    needs=("sentences",),
    shared="work",
)
