"""Measure speed, size and memory of a model and a compared model in several runtimes, alternately in one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sentcompress.commands.bench import Params
from sentcompress.commands.spelling import work_words
from sentcompress.encoding.embedder_sources import warn_of_itself
from sentcompress.errors import InputError, MissingArtifactError
from sentcompress.evaluation.metrics import METRICS
from sentcompress.evaluation.results import write_result
from sentcompress.evaluation.score import COMPARE, MODEL, Recorder
from sentcompress.extras import check_installed, installing
from sentcompress.measuring.contender import BATCH_TOKENS, Contender
from sentcompress.measuring.lineup import FILES, FoundGraph, described, find_graphs, graphs_can_run, line_up
from sentcompress.measuring.memory import measure_memory
from sentcompress.measuring.runtimes import RUNTIMES
from sentcompress.measuring.turns import Extent, take_turns, work_of
from sentcompress.measuring.workload import SIMTDE_PAIRS, SIMTDE_ROUNDS, Workload, of_file, of_simtde, of_table
from sentcompress.models.catalog import NamedModel, find_model, typed_names
from sentcompress.models.devices import pick_device
from sentcompress.plain_text import shell_line
from sentcompress.progress import LOGGED, Reporter
from sentcompress.quantities import counted, told_time
from sentcompress.store import Artifact, Request, WorkDirectory

COMMAND = Params.command
TORCH_RUNTIMES = tuple(name for name in RUNTIMES if name not in FILES)
# Number of longest sentences encoded to find the peak memory, which they determine.
MEMORY_TEXTS = 256


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Measure; the artifact's facts are the result.

    Raises:
        MissingArtifactError: if no sentences were given and the work directory has none.
        InputError: if a file has no text, or a requested runtime is not available.
    """
    params.check()
    workload = _workload(params, work, reporter)
    models = {
        MODEL: find_model(work, params.model, revision=params.revision, trust_remote_code=params.trust_remote_code)
    }
    if params.compare:
        models[COMPARE] = find_model(work, params.compare, trust_remote_code=params.trust_remote_code)
    warn_of_itself(models[MODEL].label, same=models[MODEL] == models.get(COMPARE), reporter=reporter)
    graphs = {role: find_graphs(work, model) for role, model in models.items()}
    runtimes = _runtimes(params, models[MODEL], graphs[MODEL], work, reporter)
    request = _request(params, workload, models, graphs, runtimes)
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            reporter.note(f"{COMMAND}: times as measured on {build.fresh.manifest['finished'][:19]} UTC")
            return build.fresh
        encoders = {role: model.load() for role, model in models.items()}
        device = _device(params, reporter)
        contenders, missing = line_up(models, encoders, graphs, runtimes, device)
        reasons = {
            one: f"{one}: {model.label} is skipped because it has no such graph" for one, model in missing.items()
        }
        for runtime, model in missing.items():
            reporter.note(f"{reasons[runtime]} (run: {_export_line(model, work)})")
        rounds = SIMTDE_ROUNDS if params.preset else params.rounds
        limit = params.max_minutes and 60 * params.max_minutes
        total = None if limit else work_of(contenders, workload.batched, workload.single, rounds)
        with reporter.track("measuring", total=total) as task:
            extent = take_turns(contenders, workload.batched, workload.single, rounds, task, limit)
        if shortened := _shortened(extent, workload, rounds):
            reporter.note(f"{COMMAND}: timed {shortened} because of `max_minutes`")
        memory = _memory(params, contenders, workload, reporter)
        roles = {role: described(models[role], encoder) for role, encoder in encoders.items()}
        recorder = Recorder({role: model.reference for role, model in models.items()})
        details = _record(recorder, contenders, workload, extent, memory)
        result = {
            "evaluation": "bench",
            "protocol": _protocol(params, workload, extent, device),
            **roles,
            "runtimes": details,
            "missing": reasons,
            "scores": recorder.as_dicts(),
        }
        return write_result(build, result)


def _device(params: Params, reporter: Reporter) -> str:
    """The device to measure on; SimTDE's protocol is for the CPU, even if there is a GPU."""
    if params.preset is None or params.device != "auto":
        return pick_device(params.device).type
    found = pick_device().type
    if found != "cpu":
        reporter.note(f"{COMMAND}: SimTDE's protocol is measured on the CPU (for the GPU: `device` {found})")
    return "cpu"


def _workload(params: Params, work: WorkDirectory, reporter: Reporter) -> Workload:
    if params.preset:
        workload = of_simtde(params.sts, params.count, params.seed)
        if workload.pairs != SIMTDE_PAIRS:
            reporter.warn(f"{workload.pairs} pairs; SimTDE's times are for the {SIMTDE_PAIRS} pairs of STS-B test")
        return workload
    if params.text:
        return of_file(params.text, params.count, params.single, params.seed)
    try:
        artifact = work.get("sentences", params.sentences)
    except MissingArtifactError as error:
        raise error.with_alternative("name a file of sentences with `text`", first=True) from None
    return of_table(artifact, params.count, params.single, params.seed)


def _export_line(model: NamedModel, work: WorkDirectory) -> str:
    return shell_line(["sentcompress", "export", "--model", model.name, *work_words(work.path)])


def _runtimes(
    params: Params, model: NamedModel, graphs: Mapping[str, FoundGraph], work: WorkDirectory, reporter: Reporter
) -> list[str]:
    """The requested runtimes, or by default all that are available for the model."""
    wanted = [name for name in params.runtimes if name in FILES]
    if wanted:
        check_installed("onnxruntime", otherwise=f"remove the runtime {wanted[0]}")
    if missing := [name for name in wanted if name not in graphs]:
        raise InputError(
            f"{model.label} has no ONNX graph for {missing[0]}",
            f"run: {_export_line(model, work)}, or remove {missing[0]}",
        )
    if params.runtimes:
        return list(params.runtimes)
    if graphs and not graphs_can_run():
        install = installing("onnxruntime")
        reporter.note(f"{COMMAND}: without {' and '.join(graphs)}: onnxruntime is not installed (run: {install})")
        return list(TORCH_RUNTIMES)
    return [*TORCH_RUNTIMES, *graphs]


def _request(
    params: Params,
    workload: Workload,
    models: Mapping[str, NamedModel],
    graphs: Mapping[str, Mapping[str, FoundGraph]],
    runtimes: Sequence[str],
) -> Request:
    inputs = dict(workload.inputs) | {model.reference: model.digest for model in models.values()}
    for found in graphs.values():
        for runtime in set(runtimes) & set(found):
            inputs |= found[runtime].inputs
    resolved = {"runtimes": list(runtimes), **{role: model.reference for role, model in models.items()}}
    suffix = f"-{params.preset}" if params.preset else ""
    name = params.name or f"bench-{models[MODEL].slug}{suffix}"
    return Request.of(params, name, inputs, resolved, **typed_names(params, models), runtimes=tuple(runtimes))


def _memory(
    params: Params, contenders: Sequence[Contender], workload: Workload, reporter: Reporter
) -> dict[str, dict[str, int | None]]:
    if not params.memory:
        return {}
    texts = sorted(workload.batched, key=len, reverse=True)[:MEMORY_TEXTS]
    found = {}
    with reporter.track("measuring memory", total=len(contenders), unit="processes") as task:
        for contender in contenders:
            found[contender.key] = measure_memory(contender.job, texts, contender.engine.batch_tokens).as_dict()
            task.advance()
    return found


def _record(
    recorder: Recorder,
    contenders: Sequence[Contender],
    workload: Workload,
    extent: Extent,
    memory: Mapping[str, Mapping[str, int | None]],
) -> list[dict[str, Any]]:
    """Record the scores of every runtime, those with all models first, and return the other details of each."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for one in contenders:
        figures = one.figures(extent.batched) | dict(memory.get(one.key, {}))
        if workload.pairs is not None:
            figures |= one.seconds_of_a_pass()
        found.setdefault(one.runtime, {})[one.role] = figures
    for runtime in sorted(found, key=lambda name: len(found[name]) < len(recorder.models)):
        of = found[runtime]
        for metric in METRICS:
            values = {role: figures[metric] for role, figures in of.items() if figures.get(metric) is not None}
            recorder.add("", metric, values, part=runtime)
    return [
        {
            "runtime": runtime,
            "what": RUNTIMES[runtime],
            **{role: {key: value for key, value in of.items() if key not in METRICS} for role, of in roles.items()},
        }
        for runtime, roles in found.items()
    ]


def _shortened(extent: Extent, workload: Workload, rounds: int) -> str:
    """The part of the workload that a time limit left, in words; empty if it was timed completely."""
    whole = Extent(len(workload.batched), rounds, len(workload.single), rounds)
    if extent == whole:
        return ""
    return (
        f"{extent.batched:,} of {whole.batched:,} sentences in batches, {extent.rounds} of {counted(rounds, 'round')}, "
        f"and {extent.single:,} of {whole.single:,} one at a time, {extent.single_rounds} of {counted(rounds, 'round')}"
    )


def _protocol(params: Params, workload: Workload, extent: Extent, device: str) -> dict[str, Any]:
    import torch

    rounds = extent.rounds
    single = (
        f"latency of {counted(extent.single, 'sentence')} one at a time in {counted(extent.single_rounds, 'round')}, "
        "including tokenisation"
        if workload.pairs is None
        else f"SimTDE's: {workload.pairs} pairs of STS-B test, both sentences one at a time, including tokenisation, "
        f"on the {'CPU' if device == 'cpu' else 'GPU (the paper: on the CPU)'}; seconds per pass, mean of {rounds}"
    )
    limit = f"; limited to about {told_time(60 * params.max_minutes)}" if params.max_minutes else ""
    memory = (
        "; peak memory: resident bytes of a separate process that loads the model and encodes the "
        f"{min(MEMORY_TEXTS, len(workload.batched))} longest sentences with that batch size, in total and minus the "
        "memory after importing the libraries, without a model"
        if params.memory
        else ""
    )
    return {
        "statement": f"{counted(extent.batched, 'distinct sentence')}, including tokenisation, in sentences per "
        f"second; median of {counted(rounds, 'round')} with the fastest batch size of "
        f"{', '.join(map(str, BATCH_TOKENS))} tokens; {single}; all models and runtimes measured alternately in one "
        f"run{limit}{memory}",
        "sentences": extent.batched,
        "single": extent.single,
        "characters": sum(len(text) for text in workload.batched[: extent.batched]),
        "rounds": rounds,
        "single_rounds": extent.single_rounds,
        "threads": torch.get_num_threads(),
        "preset": params.preset,
        "device": device,
    }
