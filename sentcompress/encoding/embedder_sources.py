"""Sources of vectors for evaluations: a model that encodes, or a file of precomputed vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from sentcompress.commands.shared import EvaluationOptions, ReferenceOptions
from sentcompress.corpora.vector_file import SUFFIX, VectorFile
from sentcompress.encoding.batches import windows
from sentcompress.encoding.embedder import Embedder, PromptedEmbedder, Vectors, WrappedEmbedder
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.encoding.sharing import current_sharing
from sentcompress.encoding.token_counts import TokenCounts, count_tokens
from sentcompress.encoding.vector_cache import WINDOW_CHARACTERS, WINDOW_TEXTS, VectorCache
from sentcompress.errors import UsageError
from sentcompress.models.catalog import NamedModel, find_model
from sentcompress.models.cautions import told_guess
from sentcompress.models.encoder import Encoder
from sentcompress.models.model_files import weight_bytes
from sentcompress.models.names import refuse_revision
from sentcompress.progress import SILENT, Reporter, Task
from sentcompress.store import WorkDirectory, file_digest, name_part

# The folder of a work directory for data that can be recomputed.
CACHE = "cache"
# Part of a cache's name: increased with every change of the vectors of the same model and text.
ENCODING = 1


@dataclass(frozen=True)
class EmbedderSource:
    """A source of vectors with its digest; nothing is loaded yet.

    Attributes:
        label: the name to show.
        reference, digest: recorded as an input in a request.
        model: the model, unless it is a file.
        vectors, texts: the files, if it is a file of vectors.
        cache: the cache folder, for a model.
        normalize: whether vectors are scaled to length one; None: as the model itself does.
        prompt: what precedes every text in place of the model's default prompt; None: the default prompt.
    """

    label: str
    reference: str
    digest: str
    model: NamedModel | None = None
    vectors: Path | None = None
    texts: Path | None = None
    cache: Path | None = None
    normalize: bool | None = None
    prompt: str | None = None

    @property
    def name(self) -> str:
        """The name that finds it again."""
        return self.model.name if self.model else self.reference.removeprefix("file:")

    @property
    def slug(self) -> str:
        """The label as part of a file name."""
        # Files of vectors often have the same name; their folder distinguishes them.
        label = f"{self.vectors.resolve().parent.name}-{self.label}" if self.vectors else self.label
        return name_part(label) or "model"

    @property
    def inputs(self) -> Mapping[str, str]:
        """The inputs to record in a request: digest by reference."""
        return {self.reference: self.digest}

    @property
    def described(self) -> dict[str, Any]:
        """The facts that every evaluation records about it, including the bytes of a model's weights."""
        found = {"label": self.label, "reference": self.reference, "digest": self.digest}
        return found if self.model is None else {**found, "weight_bytes": weight_bytes(self.model.source.path)}

    def scaled(self, normalize: bool) -> EmbedderSource:
        """The same model, but with its vectors scaled to length one, or without its own normalisation.

        Raises:
            UsageError: if it is a file of vectors, which are used as they are.
        """
        if self.model is None:
            raise UsageError(f"`normalize` is for models; the vectors of {self.label} are used as they are")
        return replace(self, model=replace(self.model, normalize=normalize), normalize=normalize)

    def of_role(self, role: str) -> EmbedderSource:
        """The same source for texts of a role, with the prompt of `encode_query` or `encode_document`, if it has any.

        Args:
            role: one of `prompts.ROLES`; empty for texts without a role, which get the default prompt.

        Raises:
            InputError: if the model's prompts cannot be read, or are not supported.
        """
        if self.model is None:
            return self
        prompts = self.model.prompts
        prompt = prompts.of_role(role) if role else prompts.default
        return replace(self, prompt=prompts.override(prompt, self.label))

    def is_model_of(self, other: EmbedderSource) -> bool:
        """Whether both are the same model, whatever precedes the texts."""
        return replace(self, prompt=None) == replace(other, prompt=None)

    def open(self, *, device: str = "auto", dtype: str = "float32", reporter: Reporter = SILENT) -> Embedder:
        """Load the model or open the file. `reporter` is warned of unused prompts and damaged vectors in the cache.

        Raises:
            InputError: if that fails.
        """
        if self.model is not None and (unused := self.model.prompts.told_unused(self.label)):
            reporter.warn(unused)
        return self.prompted(self.open_bare(device=device, dtype=dtype, reporter=reporter))

    @property
    def before_texts(self) -> str:
        """What precedes every text: `prompt`, else the model's default prompt."""
        if self.prompt is not None:
            return self.prompt
        return self.model.prompts.default if self.model else ""

    def prompted(self, bare: Embedder) -> Embedder:
        """What `open_bare` returned, with the prompt of this source before every text."""
        prompt = self.before_texts
        return PromptedEmbedder(bare, lambda _: prompt) if prompt else bare

    def open_bare(self, *, device: str = "auto", dtype: str = "float32", reporter: Reporter = SILENT) -> Embedder:
        """Load the model or open the file; no prompt precedes a text.

        The cache is looked up by texts with their prompts. So texts of all roles share it.

        Raises:
            InputError: if that fails.
        """
        if self.model is not None:
            embedder: Embedder = ModelEmbedder(load_bare(self.model), device=device, dtype=dtype)
            if shared := current_sharing():
                embedder = shared.of(self.model, embedder, device)
            if guess := told_guess(self.model.source, self.label, self.model.pooling):
                reporter.warn(guess)
            # "auto" can give another format in the next run.
            return embedder if dtype == "auto" else self.cached(embedder, self._cache_key(dtype), reporter)
        assert self.vectors is not None
        return FileEmbedder(VectorFile(self.vectors, self.texts))

    def _cache_key(self, dtype: str) -> str:
        """The folder of its vectors in the cache; other vectors of the same model are in another one."""
        scaled = {None: "", True: "-unit", False: "-unscaled"}[self.normalize]
        return f"{self.digest[:40]}-{dtype}{scaled}{self.bare_key}"

    @property
    def bare_key(self) -> str:
        """Part of a cache's name: of a model with a default prompt, the vectors are those of texts without it."""
        return "-bare" if self.model and self.model.prompts.default else ""

    def cached(self, embedder: Embedder, key: str, reporter: Reporter) -> Embedder:
        """The embedder with a cache of its vectors in the folder `key`, if this source has a cache."""
        if self.cache is None:
            return embedder
        if self.cache.is_symlink():
            reporter.warn(f"{self.cache} is a symbolic link, so vectors are not cached")
            return embedder
        cache = VectorCache(self.cache / f"{key}-{ENCODING}", reporter)
        if cache.damaged:
            reporter.warn(f"{cache.damaged} damaged batches of {self.label} were removed from {self.cache}")
        return CachingEmbedder(embedder, cache)


def load_bare(model: NamedModel) -> Encoder:
    """The encoder of a model, without its default prompt.

    Raises:
        InputError: see `NamedModel.load`.
    """
    encoder = model.load()
    encoder.text = replace(encoder.text, prompt="")
    return encoder


class ModelEmbedder:
    """A model in the encode engine."""

    def __init__(self, encoder: Encoder, *, device: str, dtype: str) -> None:
        # Not the encoder itself: the engine has its own weights.
        self._tokenizer, self._text = encoder.tokenizer, encoder.text
        self._parameters = encoder.count_parameters()
        self._engine = EncodeEngine(encoder, device=device, dtype=dtype)

    @property
    def dimension(self) -> int:
        return self._engine.dimension

    def encode(self, texts: Sequence[str], task: Task | None = None) -> Vectors:
        return self._engine.encode(texts, task)

    def stream(self, chunks: Iterable[Sequence[str]], task: Task | None = None) -> Iterator[Vectors]:
        return self._engine.stream(chunks, task)

    def described(self) -> dict[str, Any]:
        return {"dimension": self.dimension, "parameters": self._parameters, "dtype": self._engine.compute_dtype}

    def count_tokens(self, texts: Sequence[str]) -> TokenCounts | None:
        return count_tokens(self._tokenizer, self._text, texts)


def cache_windows(chunks: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """Texts as they are looked up and encoded together."""
    return windows(chunks, WINDOW_TEXTS, WINDOW_CHARACTERS)


class CachingEmbedder(WrappedEmbedder):
    """Looks vectors up in a cache and computes only the missing ones."""

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        super().__init__(embedder)
        self._cache = cache

    def encode(self, texts: Sequence[str], task: Task | None = None) -> Vectors:
        computed = 0

        def compute(unknown: Sequence[str]) -> Vectors:
            nonlocal computed
            computed = len(unknown)
            return self._embedder.encode(unknown, task)

        vectors = self._cache.encode(texts, compute)
        if task:
            task.advance(len(texts) - computed)
        return vectors

    def stream(self, chunks: Iterable[Sequence[str]], task: Task | None = None) -> Iterator[Vectors]:
        return (self.encode(window, task) for window in cache_windows(chunks))


class FileEmbedder:
    """Precomputed vectors from a file."""

    def __init__(self, file: VectorFile) -> None:
        self._file = file

    @property
    def dimension(self) -> int:
        return self._file.dimension

    def encode(self, texts: Sequence[str], task: Task | None = None) -> Vectors:
        vectors = self._file.rows(texts)
        if task:
            task.advance(len(texts))
        return vectors

    def stream(self, chunks: Iterable[Sequence[str]], task: Task | None = None) -> Iterator[Vectors]:
        return (self.encode(chunk, task) for chunk in chunks)

    def described(self) -> dict[str, Any]:
        return {"dimension": self.dimension, "parameters": None, "dtype": "as in the file"}

    def count_tokens(self, texts: Sequence[str]) -> TokenCounts | None:
        return None


def find_compared(work: WorkDirectory, params: EvaluationOptions | ReferenceOptions) -> dict[str, EmbedderSource]:
    """The sources of an evaluation's model and of the compared model, if there is one, by the field of the option.

    Raises:
        MissingArtifactError, InputError: see `find_embedder`.
    """
    find = partial(find_embedder, work, trust_remote_code=params.trust_remote_code)
    found = {"model": find(params.model, revision=params.revision)}
    return found | ({"compare": find(params.compare)} if params.compare else {})


def warn_of_itself(label: str, *, same: bool, reporter: Reporter) -> None:
    """Warn if the model and the compared one are the `same`: such a comparison says nothing."""
    if same:
        reporter.warn(f"{label} is compared with itself; to compare it with another model, name that with `compare`")


def find_embedder(
    work: WorkDirectory, name: str | None, *, revision: str | None = None, trust_remote_code: bool = False
) -> EmbedderSource:
    """Find a source by name: `vectors.npy` (its texts in `vectors.txt`), `vectors.npy:texts.txt`, or a model's name.

    Raises:
        MissingArtifactError, InputError: see `models.catalog.find_model` and `VectorFile`.
    """
    path, _, texts = (name or "").partition(f"{SUFFIX}:")
    if name and (texts or name.endswith(SUFFIX)):
        refuse_revision(revision, name)
        vectors = Path(path + SUFFIX) if texts else Path(name)
        # Opened here, so that a wrong file is reported before anything slow starts.
        file = VectorFile(vectors, Path(texts) if texts else None)
        digest = file_digest(vectors)[:32] + file_digest(file.texts)[:32]
        return EmbedderSource(vectors.name, f"file:{vectors.resolve()}", digest, None, vectors, file.texts)
    model = find_model(work, name, revision=revision, trust_remote_code=trust_remote_code)
    return EmbedderSource(model.label, model.reference, model.digest, model, cache=work.path / CACHE)
