"""Evaluate a model's vectors as features in seven classification tasks, optionally compared with another model's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sentcompress.commands.eval_transfer import Params
from sentcompress.corpora.text_files import BadRecords
from sentcompress.corpora.transfer import ALL, DEV, PAIRS, TASKS, TEST, TRAIN, Split, TransferTask, read_transfer
from sentcompress.encoding.embedded_texts import EmbeddedTexts, embed_texts, for_each_model
from sentcompress.encoding.embedder_sources import EmbedderSource, find_compared, warn_of_itself
from sentcompress.errors import InputError
from sentcompress.evaluation.accuracy import Estimates, compare_predictions, majority
from sentcompress.evaluation.metrics import ACCURACY
from sentcompress.evaluation.results import write_result
from sentcompress.evaluation.score import COMPARE, MODEL, Recorder
from sentcompress.evaluation.similarity import Floats, UndefinedError
from sentcompress.evaluation.stats import Resampling, record_mean
from sentcompress.evaluation.transfer import (
    MAX_ITERATIONS,
    SOLVER,
    Classifiers,
    Examples,
    Labels,
    Prediction,
    check_classes,
    fits_of,
    pair_features,
)
from sentcompress.models.catalog import typed_names
from sentcompress.models.model_files import UNUSABLE
from sentcompress.progress import LOGGED, Reporter
from sentcompress.quantities import counted
from sentcompress.store import Artifact, Request, WorkDirectory, file_inputs

# The positive class for F1 in pair tasks.
PARAPHRASE = "1"


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Evaluate the model on every task found; the artifact's facts are the result.

    Raises:
        InputError: if files cannot be read, or a class of a task is too small for the folds.
    """
    params.check()
    tasks = read_transfer(params.tasks, params.only, BadRecords(skip=params.skip_bad))
    for task in tasks:
        _check_labels(task, params.folds)
    _warn_of_tasks(tasks, reporter)
    models = find_compared(work, params)
    warn_of_itself(models[MODEL].label, same=models[MODEL] == models.get(COMPARE), reporter=reporter)
    if params.normalize is not None:
        models = {role: model.scaled(params.normalize) for role, model in models.items()}
    request = _request(params, tasks, models)
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        return write_result(build, _evaluate(params, tasks, models, reporter))


def _request(params: Params, tasks: Sequence[TransferTask], models: Mapping[str, EmbedderSource]) -> Request:
    inputs = file_inputs(path for task in tasks for split in task.splits.values() for path in split.files)
    for model in models.values():
        inputs |= model.inputs
    resolved = {"tasks": [task.name for task in tasks], **{role: model.reference for role, model in models.items()}}
    name = params.name or f"transfer-{models[MODEL].slug}"
    return Request.of(params, name, inputs, resolved, **typed_names(params, models))


def _warn_of_tasks(tasks: Sequence[TransferTask], reporter: Reporter) -> None:
    for task in tasks:
        for name, split in task.splits.items():
            place = task.name if name == ALL else f"{task.name} {name}"
            if split.empty:
                reporter.warn(f"{place}: dropped {counted(split.empty, 'example')} without text")
            if split.bad:
                reporter.warn(f"{place}: skipped {counted(split.bad, 'unreadable line')}")
            if len(split) != (official := TASKS[task.name][name]):
                reporter.warn(
                    f"{place} has {len(split):,} examples, but the published one has {official:,}: "
                    "the score is not comparable with published ones"
                )


def _check_labels(task: TransferTask, folds: int) -> None:
    """Check, before anything is encoded, that classifiers can be trained and tested on these labels.

    Raises:
        InputError: if a class is too small for the folds, or is missing from the training split.
    """
    numbers = {name: _numbers(task, split) for name, split in task.splits.items()}
    if DEV in numbers:  # C is selected on it, without folds
        return
    try:
        check_classes(numbers[ALL if ALL in numbers else TRAIN], folds, nested=ALL in numbers)
    except UndefinedError as error:
        raise InputError(f"{task.name} cannot be scored: {error}", "lower `folds`, or add examples") from None


def _evaluate(
    params: Params, tasks: Sequence[TransferTask], models: Mapping[str, EmbedderSource], reporter: Reporter
) -> dict[str, Any]:
    def predict(model: EmbedderSource) -> tuple[EmbeddedTexts, list[Prediction]]:
        texts = (text for task in tasks for split in task.splits.values() for text in (*split.first, *split.second))
        opened = model.open(device=params.device, dtype=params.dtype, reporter=reporter)
        embedded = embed_texts(model, opened, texts, reporter, "a classifier learns nothing from them")
        return embedded, [_predict(task, embedded, params, reporter) for task in tasks]

    found = for_each_model(models, predict)
    resampling = Resampling(params.bootstrap, params.seed)
    recorder = Recorder({role: str(embedded.described["reference"]) for role, (embedded, _) in found.items()})
    by_task = [{role: of[number] for role, (_, of) in found.items()} for number in range(len(tasks))]
    accuracies = [_record(recorder, task, of, resampling) for task, of in zip(tasks, by_task, strict=True)]
    if len(tasks) > 1:
        record_mean(recorder, ACCURACY, accuracies)
    return {
        "evaluation": "transfer",
        "protocol": _protocol(params),
        **{role: embedded.described for role, (embedded, _) in found.items()},
        "tasks": [_described(task, of) for task, of in zip(tasks, by_task, strict=True)],
        "scores": recorder.as_dicts(),
    }


def _predict(task: TransferTask, embedded: EmbeddedTexts, params: Params, reporter: Reporter) -> Prediction:
    fits = fits_of(len(task.splits), params.folds)
    with reporter.track(f"{task.name} with {embedded.label}", fits, "fits") as progress:
        classifiers = Classifiers(params.folds, params.seed, progress.advance)
        try:
            examples = {name: _examples(task, split, embedded) for name, split in task.splits.items()}
            if ALL in examples:
                found = classifiers.nested(examples[ALL])
            elif DEV in examples:
                found = classifiers.on_test_by_dev(examples[TRAIN], examples[DEV], examples[TEST].features)
            else:
                found = classifiers.on_test(examples[TRAIN], examples[TEST].features)
        except UndefinedError as error:
            raise InputError(f"{task.name} cannot be scored: {error}", UNUSABLE) from None
    if found.unfinished:
        reporter.warn(f"{task.name}: {found.unfinished} fits stopped after {MAX_ITERATIONS} iterations")
    return found


def _examples(task: TransferTask, split: Split, embedded: EmbeddedTexts) -> Examples:
    features: Floats = embedded.of(split.first)
    if task.name in PAIRS:
        features = pair_features(embedded.of(split.first), embedded.of(split.second))
    return Examples(features, _numbers(task, split))


def _classes(task: TransferTask) -> list[str]:
    """The sorted labels of the training split; class n is the n-th of them."""
    return sorted(set(_trained(task).labels))


def _numbers(task: TransferTask, split: Split) -> Labels:
    classes = _classes(task)
    if unknown := sorted(set(split.labels) - set(classes)):
        raise InputError(
            f"{', '.join(map(str, split.files))}: labels missing from the training split: {', '.join(unknown)}",
            f"labels of the training split: {', '.join(classes)}",
        )
    return np.array([classes.index(label) for label in split.labels], dtype=np.int64)


def _trained(task: TransferTask) -> Split:
    return task.splits.get(TRAIN) or task.splits[ALL]


def _tested(task: TransferTask) -> Split:
    return task.splits.get(TEST) or task.splits[ALL]


def _record(
    recorder: Recorder, task: TransferTask, predictions: Mapping[str, Prediction], resampling: Resampling
) -> Estimates:
    classes = _classes(task)
    positive = classes.index(PARAPHRASE) if task.name in PAIRS and PARAPHRASE in classes else None
    predicted = {role: of.predicted for role, of in predictions.items()}
    truth = _numbers(task, _tested(task))
    return compare_predictions(recorder, task.name, truth, predicted, resampling, positive)


def _described(task: TransferTask, predictions: Mapping[str, Prediction]) -> dict[str, Any]:
    """Facts about a task; `c` is the selected C for each model and fold."""
    return {
        "name": task.name,
        "examples": {name: len(split) for name, split in task.splits.items()},
        "classes": len(_classes(task)),
        "majority": majority(*(_numbers(task, split) for split in (_trained(task), _tested(task)))),
        "without_text": sum(split.empty for split in task.splits.values()),
        "unreadable": sum(split.bad for split in task.splits.values()),
        "c": {role: list(of.chosen) for role, of in predictions.items()},
    }


def _protocol(params: Params) -> dict[str, Any]:
    import sklearn

    scaled = {None: "", True: ", scaled to unit length", False: " before any normalisation"}[params.normalize]
    return {
        "statement": f"SentEval's configuration: logistic regression on frozen vectors{scaled}, "
        f"{params.folds} stratified folds (seed {params.seed}), nested for MR, CR, SUBJ and MPQA with C from 2^-2 to "
        "2^3; the official splits of SST-2 (C from the same grid on the dev split), TREC and MRPC (C from 2^-1 to 2^5 "
        "by folds of the training split); MRPC on |u - v| and u * v; accuracy x 100. The solver is scikit-learn "
        f"{sklearn.__version__}'s {SOLVER} (L2) instead of SentEval's PyTorch loop, which changes scores by a few "
        f"tenths; {Resampling(params.bootstrap).statement('the test examples')}",
        "main_score": ACCURACY,
        "scale": 100,
        "solver": f"scikit-learn {SOLVER}",
        "folds": params.folds,
        "seed": params.seed,
        "bootstrap": params.bootstrap,
    }
