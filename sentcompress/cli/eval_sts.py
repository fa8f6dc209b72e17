"""`sentcompress eval-sts`."""

from __future__ import annotations

from typing import Annotated

import typer

from sentcompress.cli import options
from sentcompress.cli.evaluations import closing, print_document
from sentcompress.store import Artifact, WorkDirectory


def command(
    sts: Annotated[
        list[str],
        typer.Option(
            "--sts",
            help="A file score<TAB>sentence1<TAB>sentence2, a folder of such files, SentEval's downstream folder, "
            "a data set of the hub (mteb/sts13-sts), or mteb for all seven. May be given several times.",
        ),
    ],
    model: options.Model = None,
    compare: options.Compare = None,
    aggregate: Annotated[
        str, typer.Option("--aggregate", help="How a set's subsets become one score: all, mean or wmean.")
    ] = "all",
    split: Annotated[str, typer.Option("--split", help="test, dev or train.")] = "test",
    bootstrap: options.Bootstrap = 1000,
    seed: options.Seed = 0,
    skip_bad: options.SkipBad = False,
    device: options.Device = "auto",
    dtype: options.Dtype = "float32",
    revision: options.Revision = None,
    trust_remote_code: options.TrustRemoteCode = False,
    name: options.Name = None,
    work: options.Work = options.DEFAULT_WORK,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Score a model on semantic textual similarity: Spearman x 100 of its cosines against people's scores."""
    from sentcompress.cli import render
    from sentcompress.stages import eval_sts as stage

    params = stage.Params(
        sts=sts,
        model=model,
        compare=compare,
        aggregate=aggregate,
        split=split,
        bootstrap=bootstrap,
        seed=seed,
        skip_bad=skip_bad,
        device=device,
        dtype=dtype,
        revision=revision,
        trust_remote_code=trust_remote_code,
        name=name,
        force=force,
    )
    with render.reporting(quiet) as reporter:
        artifact = stage.run(params, WorkDirectory(work), reporter)
    show(artifact, as_json=as_json, quiet=quiet)


def show(artifact: Artifact, *, as_json: bool = False, quiet: bool = False) -> None:
    """Print the scores of every set and subset, alignment and uniformity where they were measured."""
    from sentcompress.cli import render
    from sentcompress.evaluation.measures import ALIGNMENT, SPEARMAN, UNIFORMITY
    from sentcompress.evaluation.results import read_evaluation
    from sentcompress.evaluation.score import select

    if as_json:
        print_document(artifact)
        return
    evaluation = read_evaluation(artifact)
    labels, what = evaluation.labels, evaluation.kind.what
    render.print_scores(select(evaluation.scores, SPEARMAN), labels, what, "STS, Spearman x 100")
    spread = [score for score in evaluation.scores if score.metric in (ALIGNMENT, UNIFORMITY)]
    if spread:
        render.print_scores(spread, labels, "measure", f"{spread[0].data}, smaller is better")
    closing(artifact, quiet=quiet)
