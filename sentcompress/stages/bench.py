"""Measure speed and size of a model next to another one, both in turn in one run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sentcompress.artifacts import Artifact, Request, WorkDirectory, file_digest
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.corpora.text_files import open_lines
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.errors import InputError, MissingArtifactError, raise_faults
from sentcompress.evaluation.results import write_result
from sentcompress.evaluation.timing import alternate, percentiles
from sentcompress.models.catalog import NamedModel, find_model
from sentcompress.progress import SILENT, Reporter

COMMAND = "bench"
# Tokens of a batch, padding included, among which the fastest is looked for.
BATCH_TOKENS = (1024, 4096, 16384)
# Sentences of the trial that picks one of them.
TRIAL = 256


@dataclass(frozen=True)
class Params:
    """What to measure. `count` sentences at the best batch, the first `single` of them one at a time as well."""

    model: str | None = None
    against: str | None = "teacher"
    text: Path | None = None
    sentences: str | None = None
    count: int = 1000
    single: int = 100
    rounds: int = 3
    seed: int = 0
    device: str = "auto"
    dtype: str = "auto"
    revision: str | None = None
    trust_remote_code: bool = False
    name: str | None = None
    force: bool = False

    def check(self) -> None:
        """Raise UsageError that lists every fault."""
        faults = [
            f"--{option} must be at least 1, not {getattr(self, option)}"
            for option in ("count", "single", "rounds")
            if getattr(self, option) < 1
        ]
        if self.text and self.sentences:
            faults.append("--text and --sentences cannot both be given")
        raise_faults(faults, COMMAND)


def run(params: Params, work: WorkDirectory, reporter: Reporter = SILENT) -> Artifact:
    """Measure; the artifact's facts are the result.

    Raises:
        MissingArtifactError: no sentences named and none in the work directory.
        InputError: a file without text.
    """
    params.check()
    texts, inputs = _texts(params, work)
    models = {
        "model": find_model(work, params.model, revision=params.revision, trust_remote_code=params.trust_remote_code)
    }
    if params.against:
        models["against"] = find_model(work, params.against, trust_remote_code=params.trust_remote_code)
    inputs |= {model.reference: model.digest for model in models.values()}
    asked = {
        **{key: getattr(params, key) for key in ("count", "single", "rounds", "seed", "device", "dtype")},
        **{role: model.reference for role, model in models.items()},
    }
    name = params.name or f"bench-{models['model'].slug}"
    request = Request("evaluations", name, COMMAND, asked, inputs)
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            reporter.note(f"{COMMAND}: times as measured on {build.fresh.manifest['finished'][:19]} UTC")
            return build.fresh
        runners = {role: _Runner.load(model, params, texts) for role, model in models.items()}
        _measure(runners, texts, params, reporter)
        described = {role: runner.described(texts) for role, runner in runners.items()}
        return write_result(build, {"evaluation": "bench", "protocol": _protocol(params, texts), **described})


def _texts(params: Params, work: WorkDirectory) -> tuple[list[str], dict[str, str]]:
    """Distinct sentences to encode, drawn with the seed, and what they come from."""
    if params.text:
        lines = (line.strip() for _, line in open_lines(params.text))
        found = list(dict.fromkeys(line for line in lines if line))
        inputs = {f"file:{params.text.resolve()}": file_digest(params.text)}
    else:
        try:
            artifact = work.get("sentences", params.sentences)
        except MissingArtifactError as error:
            raise MissingArtifactError(
                error.message, f"{error.hint}, or give a file of sentences with --text"
            ) from None
        found = [text for texts in SentenceTable(artifact.path).stream() for text in texts]
        inputs = {artifact.reference: artifact.digest}
    if not found:
        raise InputError(f"{params.text} has no line with text", "give one sentence a line")
    rows = np.random.default_rng(params.seed).permutation(len(found))[: params.count]
    return [found[row] for row in rows], inputs


@dataclass
class _Runner:
    """One model, ready to encode, and the seconds of its calls."""

    model: NamedModel
    parameters: int
    dimension: int
    engine: EncodeEngine
    batch_tokens: int
    single: list[float]
    whole: list[float]

    @classmethod
    def load(cls, model: NamedModel, params: Params, texts: Sequence[str]) -> _Runner:
        """Load the model and pick its fastest batch by a short trial."""
        encoder = model.load()
        build = partial(EncodeEngine, encoder, device=params.device)
        first = build(dtype=params.dtype, batch_tokens=BATCH_TOKENS[0])
        # `auto` measures; once is enough.
        others = {tokens: build(dtype=first.compute_dtype, batch_tokens=tokens) for tokens in BATCH_TOKENS[1:]}
        engines = {BATCH_TOKENS[0]: first, **others}
        trial = {str(tokens): partial(engine.encode, texts[:TRIAL]) for tokens, engine in engines.items()}
        seconds = alternate(trial, rounds=1)
        best = min(BATCH_TOKENS, key=lambda tokens: min(seconds[str(tokens)]))
        return cls(model, encoder.count_parameters(), encoder.dimension, engines[best], best, [], [])

    def encode_singly(self, texts: Sequence[str]) -> None:
        for text in texts:
            start = time.perf_counter()
            self.engine.encode([text])
            self.single.append(time.perf_counter() - start)

    def described(self, texts: Sequence[str]) -> dict[str, Any]:
        latency = {f"latency_{of}_milliseconds": round(value, 3) for of, value in percentiles(self.single).items()}
        return {
            "label": self.model.label,
            "reference": self.model.reference,
            "digest": self.model.digest,
            "sentences_per_second": round(len(texts) / statistics.median(self.whole), 1),
            "best_batch_tokens": self.batch_tokens,
            "sentences_per_second_batch_1": round(1 / statistics.mean(self.single), 1),
            **latency,
            "parameters": self.parameters,
            "weight_bytes": _weight_bytes(self.model.source.path),
            "dimension": self.dimension,
            "vector_bytes": 4 * self.dimension,
            "dtype": self.engine.compute_dtype,
        }


def _measure(runners: Mapping[str, _Runner], texts: Sequence[str], params: Params, reporter: Reporter) -> None:
    few = texts[: params.single]
    total = (params.rounds + 1) * len(runners) * (len(texts) + len(few))
    with reporter.track("measuring", total=total) as task:

        def encode_all(runner: _Runner) -> None:
            runner.engine.encode(texts)
            task.advance(len(texts))

        def encode_few(runner: _Runner) -> None:
            runner.encode_singly(few)
            task.advance(len(few))

        for role, seconds in alternate({k: partial(encode_all, r) for k, r in runners.items()}, params.rounds).items():
            runners[role].whole = seconds
        alternate({role: partial(encode_few, runner) for role, runner in runners.items()}, params.rounds)
    for runner in runners.values():
        # The first pass only warms up.
        runner.single = runner.single[len(few) :]


def _weight_bytes(folder: Path) -> int:
    """Bytes of all weights: the transformer's and those of Dense layers; `.bin` only where nothing else is there."""
    found = [path for path in folder.rglob("*.safetensors") if "onnx" not in path.parts]
    return sum(path.stat().st_size for path in found or folder.rglob("pytorch_model*.bin"))


def _protocol(params: Params, texts: Sequence[str]) -> dict[str, Any]:
    return {
        "statement": f"{len(texts)} distinct sentences through the encode engine, whole sentences per second; median "
        f"of {params.rounds} rounds at the fastest of the batches {', '.join(map(str, BATCH_TOKENS))} tokens; latency "
        f"of {min(params.single, len(texts))} sentences one at a time, tokenisation included; "
        "models in turn in one run",
        "sentences": len(texts),
        "characters": sum(len(text) for text in texts),
        "rounds": params.rounds,
    }
