"""Options that several commands share, declared and explained once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from sentcompress.commands.options import MODEL, Opt, Options
from sentcompress.errors import UsageError

DTYPES = ("auto", "float32", "bfloat16", "float16")
# Formats that store the model's own vectors.
PLAIN_STORES = ("float32", "float16")
A_MODEL = "teacher, a student or export, a published student such as general-9m, embedded, a folder, or a hub name"

# Metrics of search results count the first ten.
CUTOFF = 10
# A search among fewer passages would find all of them.
LEAST_PASSAGES = CUTOFF + 1
# Passages that are searched to score a checkpoint: few enough that this takes seconds.
DEV_PASSAGES = 3000
# A stored vector with more bytes than any model's vector in float32.
MOST_VECTOR_BYTES = 1_000_000
NEWEST_STUDENT = "the newest student"
# Checks the option `name`, so that a recipe with an invalid name is rejected before it runs.
READ_NAME = "sentcompress.store.names:read_name"

Wait = Annotated[
    str | None,
    Opt(
        "How long to wait if another process is making the same result, such as 30m or 2h.",
        metavar="TIME",
        affects="run",
        reads="sentcompress.quantities:read_seconds",
        default="fail at once",
    ),
]
Model = Annotated[str | None, Opt(f"Model: {A_MODEL}.", affects="input", names=MODEL, default=NEWEST_STUDENT)]
# Of a command that makes students, whose next run is not to start from its last result.
ModelOfOthers = Annotated[
    str | None,
    Opt(
        f"Model: {A_MODEL}. The default ignores students that this command made.",
        affects="input",
        names=MODEL,
        default=NEWEST_STUDENT,
    ),
]
Compare = Annotated[str | None, Opt("Second model, named as for --model.", affects="input", names=MODEL)]
Revision = Annotated[str | None, Opt("Revision of a hub model: a branch, tag or commit.", default="the newest")]
TrustRemoteCode = Annotated[
    bool, Opt("Run Python code that comes with a model; only for models that you trust.", affects="input")
]
Device = Annotated[str, Opt("Where models run: auto, cpu, cuda or mps.", affects="run")]
Dtype = Annotated[
    str, Opt("Number format of the computation: auto, float32, bfloat16 or float16 (GPU).", choices=DTYPES)
]
EncodingDtype = Annotated[
    str,
    Opt(
        "Number format of the computation: auto (measured on a CPU, bfloat16 on CUDA), float32, bfloat16 or float16 "
        "(GPU).",
        choices=DTYPES,
    ),
]
EncodingTokens = Annotated[
    int | None,
    Opt("Maximum tokens of a batch, padding included.", minimum=1, affects="run", default="chosen for the device"),
]
RUNTIMES = ("torch", "onnx", "onnx-int8")
Runtime = Annotated[
    str,
    Opt("How --model runs: torch, or an ONNX graph of its export: onnx (float32) or onnx-int8.", choices=RUNTIMES),
]
Store = Annotated[str, Opt("Number format of the stored vectors: float32 or float16.", choices=PLAIN_STORES)]
Seed = Annotated[int, Opt("Random seed.", minimum=0, maximum=2**63 - 1)]
Bootstrap = Annotated[int, Opt("Bootstrap samples for the 95% intervals; 0 for none.", minimum=0)]
SkipBad = Annotated[bool, Opt("Skip lines, and files in folders, that cannot be read; a message says how many.")]
SkipBadLines = Annotated[bool, Opt("Skip lines that cannot be read; a message says how many.")]
Format = Annotated[
    str | None,
    Opt(
        "Format of the input: jsonl, csv, tsv, parquet or text.",
        choices="sentcompress.corpora.readers:FORMATS",
        default="from name and content",
    ),
]
JudgedCollection = Annotated[
    Path | None, Opt("Folder with corpus, queries and judgements, in BEIR's or MS MARCO's layout.", affects="input")
]
IndexKind = Annotated[
    str,
    Opt(
        "Kind of index: flat (exact), ivf, ivfpq, pq, hnsw, sq8, fp16 or binary.",
        choices="sentcompress.evaluation.index_plan:KINDS",
    ),
]
TextColumns = Annotated[
    tuple[str, ...],
    Opt("Column with text; if repeated, the columns are joined in this order.", default="title and text"),
]
IdColumn = Annotated[
    str | None,
    Opt("Column with the ids of the documents, in csv, tsv, jsonl and parquet.", default="_id, id, doc_id, ..."),
]
TextAs = Annotated[
    str | None,
    Opt(
        "What counts as one text in a text file: line, paragraph (between blank lines) or file.",
        choices="sentcompress.corpora.document_files:TEXT_UNITS",
        default="file in a folder, otherwise chosen from the content",
    ),
]
Sentences = Annotated[
    str | None,
    Opt("Sentence table, made by augment or compress.", affects="input", names="sentences", default="the newest"),
]
SIMILARITIES = ("cosine", "dot")
Similarity = Annotated[
    str,
    Opt(
        "Similarity: cosine, or dot for models trained with inner products. The vectors of students are normalised, so "
        "both give the same ranks.",
        choices=SIMILARITIES,
    ),
]
Objective = Annotated[str, Opt("Training objective: simcse or ibkd; see `sentcompress methods`.")]
POOLINGS = ("auto", "mean", "cls", "cls-mlp")
Pooling = Annotated[
    str,
    Opt(
        "Pooling of a checkpoint without modules.json: mean, cls, cls-mlp (CLS, a new Linear and Tanh); auto: mean, "
        "or a SimCSE checkpoint's own.",
        choices=POOLINGS,
    ),
]
TeacherVectors = Annotated[
    str | None,
    Opt("Teacher vectors, made by teacher-embed.", affects="input", names="teacher-vectors", default="the newest"),
]

STDIN = "-"


@dataclass(frozen=True, kw_only=True)
class Named(Options):
    """Options of commands that write an artifact."""

    name: Annotated[
        str | None,
        Opt(
            "Name of the result in the work directory.",
            affects="input",
            reads=READ_NAME,
            default="main, or made from inputs and options",
        ),
    ] = None
    force: Annotated[
        bool, Opt("Rerun even if up to date, and replace a result made with other options.", affects="run")
    ] = False
    wait: Wait = None


@dataclass(frozen=True, kw_only=True)
class Sharded(Options):
    """The option of commands that can be run in shards; their `faults` include `faults_of_shard`."""

    shard: Annotated[
        str | None,
        Opt(
            "Do one part of the work, such as 3/16; merge combines the parts. auto: from SENTCOMPRESS_SHARD or a "
            "Slurm job array.",
            metavar="I/N",
            affects="run",
        ),
    ] = None

    def faults_of_shard(self) -> list[str]:
        """The faults of the option."""
        from sentcompress.store.shard import find_shard

        try:
            find_shard(self.shard)
        except UsageError as error:
            return [error.message]
        return []


@dataclass(frozen=True, kw_only=True)
class Reading(Options):
    """Options of commands that read documents or sentences; their `faults` include `faults_of_inputs`."""

    inputs: Annotated[
        tuple[str, ...],
        Opt(
            "Files or folders (jsonl, csv, tsv, parquet, txt, md, rst, html; also .gz and .zst), BEIR folders, - for "
            "standard input, documents/NAME, or hub data sets.",
            positional=True,
            metavar="INPUT...",
            affects="input",
        ),
    ]
    format: Format = None
    column: Annotated[
        tuple[str, ...],
        Opt("Column with text; if repeated, the columns are joined in this order.", default="found by name"),
    ] = ()
    text_as: TextAs = None
    split: Annotated[str, Opt("Split of a hub data set, or of a table with a column split.")] = "train"
    config: Annotated[str | None, Opt("Configuration of a hub data set.", default="that of the data set")] = None
    revision: Annotated[
        str | None, Opt("Revision of a hub data set: a branch, tag or commit.", default="the newest")
    ] = None

    def faults_of_inputs(self) -> list[str]:
        """The faults of `inputs`."""
        faults = [] if self.inputs else ["name at least one file, folder or data set, or - for standard input"]
        if self.inputs.count(STDIN) > 1:
            faults.append("standard input (-) can be read only once")
        return faults


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
    skip_bad: SkipBadLines = False
    device: Device = "auto"
    dtype: Dtype = "float32"


@dataclass(frozen=True, kw_only=True)
class ReferenceOptions(Hub, Named):
    """Options of commands that measure how well a model reproduces a reference model."""

    model: Model = None
    compare: Annotated[str | None, Opt("Reference model, named as for --model.", affects="input", names=MODEL)] = (
        "teacher"
    )
    bootstrap: Bootstrap = 1000
    seed: Seed = 0
    device: Device = "auto"
    dtype: Dtype = "float32"

    def faults(self) -> list[str]:
        return ["`compare` names the reference model; it cannot be none"] if self.compare is None else []


def no_file(field: str, path: Path) -> list[str]:
    """The fault of an option that names a file, if there is no such file."""
    if path.is_file():
        return []
    return [f"`{field}` {path} is a folder; name a file" if path.is_dir() else f"`{field}` {path}: no such file"]


def nothing_at(path: str | Path, field: str = "") -> str:
    """The fault of a path that does not exist; `field` is the option, if it is not the argument of the command."""
    return f"`{field}` {path}: no such file or folder" if field else f"{path}: no such file or folder"


def unable_to_search(similarity: str, kinds: Iterable[str]) -> list[str]:
    """The faults of index kinds that cannot search by this similarity."""
    from sentcompress.evaluation.index_plan import WITHOUT_LENGTHS

    wrong = [kind for kind in kinds if similarity == "dot" and kind in WITHOUT_LENGTHS]
    return [f"`index` {kind} ignores the lengths of vectors, so it cannot search by `similarity` dot" for kind in wrong]


# FAISS makes room for all of them in every search.
MOST_CANDIDATES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class IndexOptions(Options):
    """Settings of an approximate index; each kind of index uses its own. The defaults of `ivf` are HPD's.

    The `faults` of such a command include `faults_of_settings`.
    """

    nlist: Annotated[int, Opt("Cells of an inverted file (ivf, ivfpq).", minimum=1)] = 1024
    nprobe: Annotated[int, Opt("Cells of an inverted file searched per query.", minimum=1)] = 5
    segments: Annotated[
        int | None, Opt("PQ sub-quantizers (pq, ivfpq).", minimum=1, default="one per 4 dimensions")
    ] = None
    links: Annotated[int, Opt("Neighbours per node of HNSW (M).", minimum=2, maximum=1000)] = 32
    ef_construction: Annotated[
        int, Opt("Candidates that HNSW keeps while building.", minimum=1, maximum=MOST_CANDIDATES)
    ] = 100
    ef_search: Annotated[
        int, Opt("Candidates that HNSW keeps while searching.", minimum=1, maximum=MOST_CANDIDATES)
    ] = 64
    candidates: Annotated[
        int, Opt("Documents that binary and pq retrieve for rescoring; at least as many as are returned.", minimum=1)
    ] = 100
    rescore: Annotated[
        str,
        Opt(
            "Number format in which binary and pq rescore candidates: int8, float16 or float32.",
            choices=("int8", "float16", "float32"),
        ),
    ] = "int8"
    seed: Seed = 0

    def faults_of_settings(self, kinds: Sequence[str]) -> list[str]:
        """The faults of settings that no index of these kinds uses."""
        from sentcompress.evaluation.index_plan import USED_BY

        unused = {name: users for name, users in USED_BY.items() if not set(users) & set(kinds)}
        return [
            f"`{name}` is for `index` {' and '.join(users)}, not {' and '.join(kinds)}"
            for name, users in unused.items()
            if getattr(self, name) != getattr(IndexOptions, name)
        ]
