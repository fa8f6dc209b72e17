"""Options that several commands share, declared and explained once."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from sentcompress.commands.options import MODEL, Opt, Options, keys_of
from sentcompress.errors import UsageError

DTYPES = ("auto", "float32", "bfloat16", "float16")
# Without float16, which would need loss scaling.
TRAINING_DTYPES = ("auto", "float32", "bfloat16")
STORES = ("float32", "float16")
SCHEDULES = ("cosine", "linear", "constant")
A_MODEL = "teacher, a student's or export's name, embedded, a folder, or a hub name"

NEWEST_STUDENT = "the newest student"

Model = Annotated[str | None, Opt(f"{A_MODEL}.", affects="input", names=MODEL, default=NEWEST_STUDENT)]
Compare = Annotated[str | None, Opt("Second model, named as for --model.", affects="input", names=MODEL)]
Revision = Annotated[str | None, Opt("Revision of a hub model.")]
TrustRemoteCode = Annotated[bool, Opt("Allow Python code that comes with a model to run.", affects="input")]
Device = Annotated[str, Opt("auto, cpu, cuda or mps.", affects="run")]
Dtype = Annotated[str, Opt("auto, float32, bfloat16 or float16 (GPU).", choices=DTYPES)]
EncodingDtype = Annotated[
    str, Opt("auto (measured on a CPU, bfloat16 on CUDA), float32, bfloat16 or float16 (GPU).", choices=DTYPES)
]
EncodingTokens = Annotated[
    int | None, Opt("Maximum tokens of a batch, padding included.", minimum=1, affects="run", default="by device")
]
RUNTIMES = ("torch", "onnx", "onnx-int8")
Runtime = Annotated[
    str,
    Opt("How --model runs: torch, or a graph of an exported folder: onnx (float32) or onnx-int8.", choices=RUNTIMES),
]
Store = Annotated[str, Opt("Number format of the vectors: float32 or float16.", choices=STORES)]
Seed = Annotated[int, Opt("Random seed.", minimum=0, maximum=2**63 - 1)]
Bootstrap = Annotated[int, Opt("Bootstrap samples for the 95% intervals; 0 for none.", minimum=0)]
SkipBad = Annotated[bool, Opt("Skip and count lines, and files of folders, that cannot be read.")]
TextAs = Annotated[
    str | None,
    Opt(
        "One document or sentence of a text file: line, paragraph (between blank lines) or file.",
        choices="sentcompress.corpora.document_files:TEXT_UNITS",
        default="a file in a folder, otherwise a line",
    ),
]
Sentences = Annotated[str | None, Opt("Sentence table.", affects="input", names="sentences", default="the newest")]
SIMILARITIES = ("cosine", "dot")
Similarity = Annotated[
    str,
    Opt(
        "cosine, or dot for models trained with inner products; the same for students, whose vectors are normalised.",
        choices=SIMILARITIES,
    ),
]
Objective = Annotated[str, Opt("simcse or ibkd: see `sentcompress methods`.")]
POOLINGS = ("auto", "mean", "cls", "cls-mlp")
Pooling = Annotated[
    str,
    Opt(
        "For a checkpoint without modules.json: mean, cls, cls-mlp (CLS, a new Linear and Tanh); auto: mean, or a "
        "SimCSE checkpoint's own.",
        choices=POOLINGS,
    ),
]
TeacherVectors = Annotated[
    str | None, Opt("Teacher vectors.", affects="input", names="teacher-vectors", default="the newest")
]

STDIN = "-"
Inputs = Annotated[
    tuple[str, ...],
    Opt(
        "Files or folders (jsonl, csv, tsv, parquet, txt, md, rst; also .gz and .zst), BEIR folders, - for standard "
        "input, documents/NAME, or hub data sets.",
        positional=True,
        metavar="INPUT...",
        affects="input",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Named(Options):
    """Options of commands that write an artifact."""

    name: Annotated[str | None, Opt("Name of the result in the work directory.", affects="input")] = None
    force: Annotated[bool, Opt("Rerun even if up to date.", affects="run")] = False
    wait: Annotated[
        str | None,
        Opt(
            "If another process is making the same result, wait for it, such as 30m or 2h, instead of failing.",
            metavar="TIME",
            affects="run",
            reads="sentcompress.quantities:read_seconds",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Sharded(Options):
    """The option of commands that can be run in shards; their `faults` include `faults_of_shard`."""

    shard: Annotated[
        str | None,
        Opt(
            "Do one part of the work, such as 3/16, for merge; auto: from SENTCOMPRESS_SHARD or a Slurm job array.",
            metavar="I/N",
            affects="run",
        ),
    ] = None

    def faults_of_shard(self) -> list[str]:
        """What is wrong with it."""
        from sentcompress.store.shard import find_shard

        try:
            find_shard(self.shard)
        except UsageError as error:
            return [error.message]
        return []


@dataclass(frozen=True, kw_only=True)
class Reading(Options):
    """Options of commands that read documents or sentences; such a command has `inputs`."""

    format: Annotated[
        str | None,
        Opt("jsonl, csv, tsv, parquet or text.", default="from name and content"),
    ] = None
    column: Annotated[tuple[str, ...], Opt("Column with text; if repeated, the columns are joined in this order.")] = ()
    text_as: TextAs = None
    split: Annotated[str, Opt("Split of a hub data set, or of AllNLI.tsv.")] = "train"
    config: Annotated[str | None, Opt("Configuration of a hub data set.")] = None
    revision: Annotated[str | None, Opt("Revision of a hub data set.")] = None


@dataclass(frozen=True, kw_only=True)
class Hub(Options):
    """Options of commands that load a model."""

    revision: Revision = None
    trust_remote_code: TrustRemoteCode = False


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions(Hub, Named):
    """Options of evaluations. The default dtype is float32, as in published scores."""

    model: Model = None
    compare: Compare = None
    bootstrap: Bootstrap = 1000
    seed: Seed = 0
    skip_bad: SkipBad = False
    device: Device = "auto"
    dtype: Dtype = "float32"


@dataclass(frozen=True, kw_only=True)
class SearchFidelityOptions(Hub, Named):
    """Options of commands that measure search fidelity, which needs a reference model."""

    model: Model = None
    compare: Annotated[
        str | None,
        Opt("Model whose search results are to be reproduced, named as for --model.", affects="input", names=MODEL),
    ] = "teacher"
    bootstrap: Bootstrap = 1000
    seed: Seed = 0
    device: Device = "auto"
    dtype: Dtype = "float32"

    def faults(self) -> list[str]:
        return ["`compare` names the reference model; it cannot be none"] if self.compare is None else []


BY_LENGTH = "by-length"
BATCHES = (BY_LENGTH, "random")
DEFAULT = "the method's"
# Options that a default name spells out.
MOST_TOLD = 3


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Hub, Named):
    """Options of commands that train; the defaults of the hyperparameters are the method's."""

    lr: Annotated[float | None, Opt("Peak learning rate.", above=0, default=DEFAULT)] = None
    epochs: Annotated[int | None, Opt("Passes over the data.", minimum=1, maximum=1_000_000, default=DEFAULT)] = None
    batch_size: Annotated[int | None, Opt("Sentences or triplets per batch.", minimum=1, default=DEFAULT)] = None
    batch_tokens: Annotated[
        int | None, Opt("Maximum tokens of a batch, padding included.", minimum=1, default="64 per text")
    ] = None
    batches: Annotated[
        str,
        Opt(
            "by-length: texts of similar length in a batch, with little padding; random: any texts, as in the papers.",
            choices=BATCHES,
        ),
    ] = BY_LENGTH
    grad_accum: Annotated[
        int, Opt("Batches per step; contrastive methods use negatives from all of them.", minimum=1)
    ] = 1
    warmup_steps: Annotated[
        int | None, Opt("Warm-up steps, at most a tenth of all steps.", minimum=0, default=DEFAULT)
    ] = None
    warmup_ratio: Annotated[
        float | None, Opt("Warm-up as a share of all steps, without a limit.", minimum=0, maximum=1)
    ] = None
    schedule: Annotated[
        str | None,
        Opt(
            "Learning rate schedule: cosine, linear or constant.",
            choices=SCHEDULES,
            default=DEFAULT,
        ),
    ] = None
    weight_decay: Annotated[
        float | None, Opt("Weight decay of AdamW, on matrices only.", minimum=0, default=DEFAULT)
    ] = None
    betas: Annotated[
        tuple[float, ...] | None,
        Opt("AdamW's two betas, e.g. 0.9,0.98.", minimum=0, below=1, commas=True, default=DEFAULT),
    ] = None
    clip: Annotated[
        float | None, Opt("Clip gradients to this norm; 0 disables clipping.", minimum=0, default=DEFAULT)
    ] = None
    max_length: Annotated[
        int | None, Opt("Tokens read per sentence in training.", minimum=3, maximum=1_000_000, default=DEFAULT)
    ] = None
    dropout: Annotated[float | None, Opt("Dropout; 0 is also faster.", minimum=0, below=1, default=DEFAULT)] = None
    dev: Annotated[
        Path | None,
        Opt(
            "For checkpoint selection: documents/NAME (search fidelity to the teacher), graded pairs "
            "(score<TAB>sentence1<TAB>sentence2), or a folder as of eval-retrieval; never a test set.",
            affects="input",
            default="held-out training data",
        ),
    ] = None
    eval_every: Annotated[int | None, Opt("Steps between dev scores.", minimum=1, default="4 per epoch")] = None
    patience: Annotated[
        float | None, Opt("Stop after this many epochs without a better dev score.", above=0, default=DEFAULT)
    ] = None
    max_steps: Annotated[int | None, Opt("Stop after this many steps.", minimum=1)] = None
    max_minutes: Annotated[
        float | None,
        Opt(
            "Stop after this many minutes of training and dev scores; the result then depends on the machine's speed.",
            above=0,
        ),
    ] = None
    ema: Annotated[
        float | None,
        Opt("EMA decay, e.g. 0.998; the averaged weights are the ones scored and saved.", above=0, below=1),
    ] = None
    options: Annotated[
        tuple[str, ...], Opt("Option of the method; can be repeated.", flag="set", metavar="NAME=VALUE")
    ] = ()
    seed: Seed = 0
    device: Device = "auto"
    dtype: Annotated[
        str,
        Opt("auto (measured on a CPU, bfloat16 on CUDA), float32 or bfloat16.", choices=TRAINING_DTYPES),
    ] = "auto"
    checkpoint_seconds: Annotated[
        float, Opt("Seconds between checkpoints.", flag="checkpoint-every", minimum=0, affects="run")
    ] = 60.0

    # The option that names the method: `method` of distill, `objective` of the others.
    names_method: ClassVar[str] = "objective"
    # Options that the default name of the result tells already, or that are no property of the model.
    in_name: ClassVar[frozenset[str]] = frozenset({"objective", "model", "dim"})

    @property
    def method_name(self) -> str:
        """The method, or objective, that was asked for."""
        return str(getattr(self, self.names_method))

    def method_is_known(self) -> bool:
        """Whether the method does not depend on anything but these options."""
        return True

    def find_method(self) -> Any:
        """Its class, a `Method`.

        Raises:
            UsageError: if there is none of that name.
        """
        from sentcompress.methods import method_class, objective_class

        return (method_class if self.names_method == "method" else objective_class)(self.method_name)

    def suffix(self) -> str:
        """What the default name of the result says of the other options, such as `-lr-0.0003`.

        More than three options are told by a digest, of six hex digits.
        """
        own = {key: getattr(self, key.field) for key in keys_of(type(self)).values() if key.opt.affects == "result"}
        told = [
            "-".join([key.name, *([] if value is True else _texts(value))])
            for key, value in own.items()
            if key.field not in {*self.in_name, "options"} and value != key.default
        ]
        told += [option.replace("=", "-").replace("_", "-") for option in self.options]
        text = "-".join(told)
        if len(told) > MOST_TOLD:
            return f"-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
        return f"-{text}" if told else ""

    def method_options(self) -> dict[str, Any]:
        """All options of the method, with what was asked for."""
        from sentcompress.methods.hyperparameters import parse_options

        return parse_options(self.find_method().options, self.given_options())[0]

    def given_options(self) -> tuple[str, ...]:
        """Those that were asked for, each as `name=value`."""
        return self.options

    def recipe(self) -> Any:
        """The method's own hyperparameters, for models of every size."""
        return self.find_method().recipe

    def recipe_for(self, size: Any = None) -> Any:
        """These for a model of one size, a `models.shape.Size`; None: not known."""
        return self.recipe().for_size(**(vars(size) if size else {}))

    def hyperparameters(self, size: Any = None) -> Any:
        """These with what was asked for in their place."""
        from sentcompress.training.settings import in_place

        return in_place(self.recipe_for(size), self)

    def settings(self, size: Any = None) -> Any:
        """The same as a `Settings`."""
        from sentcompress.training.settings import Settings

        return Settings.of(self.recipe_for(size), self)

    def faults(self) -> list[str]:
        from sentcompress.corpora.documents_artifact import names_documents
        from sentcompress.methods import METHODS, OBJECTIVES, hint_for
        from sentcompress.methods.hyperparameters import parse_options

        known = METHODS if self.names_method == "method" else OBJECTIVES
        if not self.method_is_known():
            faults = []
        elif self.method_name in known:
            faults = parse_options(self.find_method().options, self.given_options())[1]
        else:
            faults = [f"no {self.names_method} {self.method_name!r}; {hint_for(self.method_name, known)}"]
        if self.betas is not None and len(self.betas) != 2:
            faults.append(f"`betas` must be two numbers, such as 0.9,0.98, not {len(self.betas)}")
        if self.dev is not None and not names_documents(str(self.dev)) and not self.dev.exists():
            faults.append(f"`dev` {self.dev}: no such file or folder")
        return faults


def faults_of_inputs(params: Any) -> list[str]:
    """The faults of `inputs` and of the format of a command with Reading.

    Raises:
        UsageError: for an unknown format.
    """
    from sentcompress.corpora.readers import check_format

    if params.format:
        check_format(params.format)
    faults = [] if params.inputs else ["name at least one file, folder or data set, or - for standard input"]
    if params.inputs.count(STDIN) > 1:
        faults.append("standard input (-) can be read only once")
    return faults


def unable_to_search(similarity: str, kinds: Iterable[str]) -> list[str]:
    """The faults of index kinds that cannot search by this similarity."""
    from sentcompress.evaluation.index_plan import WITHOUT_LENGTHS

    wrong = [kind for kind in kinds if similarity == "dot" and kind in WITHOUT_LENGTHS]
    return [f"`index` {kind} ignores the lengths of vectors, so it cannot search by `similarity` dot" for kind in wrong]


def _texts(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, tuple) else [str(value)]


@dataclass(frozen=True, kw_only=True)
class Index(Options):
    """Settings of an approximate index; each kind of index uses its own."""

    nlist: Annotated[int, Opt("Cells of an inverted file.", minimum=1)] = 1024
    nprobe: Annotated[int, Opt("Cells searched per query.", minimum=1)] = 5
    segments: Annotated[int | None, Opt("PQ sub-quantizers.", minimum=1, default="one per 4 dimensions")] = None
    links: Annotated[int, Opt("Neighbours per node of HNSW (M).", minimum=2)] = 32
    ef_construction: Annotated[int, Opt("Candidates HNSW keeps while building.", minimum=1)] = 100
    ef_search: Annotated[int, Opt("Candidates HNSW keeps while searching.", minimum=1)] = 64
    candidates: Annotated[
        int, Opt("Documents that binary and pq retrieve for rescoring; at least as many as are returned.", minimum=1)
    ] = 100
    rescore: Annotated[
        str,
        Opt(
            "Format for rescoring with binary and pq: int8, float16 or float32.", choices=("int8", "float16", "float32")
        ),
    ] = "int8"
