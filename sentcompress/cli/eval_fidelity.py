"""`sentcompress eval-fidelity`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from sentcompress.cli import options
from sentcompress.cli.evaluations import closing, print_document
from sentcompress.numeric import measured
from sentcompress.store import Artifact, WorkDirectory

# Characters of a sentence that a table shows.
SHOWN = 60


def command(
    text: Annotated[
        list[Path] | None,
        typer.Option(
            "--text",
            help="Sentences: a text file with one a line, jsonl, csv, tsv or parquet, or a folder of such files. May "
            "be given several times. By default the sentence table, as far as the training held it out.",
        ),
    ] = None,
    sentences: options.Sentences = None,
    model: options.Model = None,
    compare: Annotated[
        str, typer.Option("--compare", help="The model to hold it against, named as for --model.")
    ] = "teacher",
    sample: Annotated[int, typer.Option("--sample", help="The most sentences to use, drawn with the seed.")] = 10_000,
    neighbours: Annotated[
        int, typer.Option("--neighbours", help="Nearest neighbours of a sentence that are compared.")
    ] = 10,
    pairwise: Annotated[int, typer.Option("--pairwise", help="Sentences of which all pairs are compared.")] = 1000,
    show: Annotated[int, typer.Option("--show", help="Pairs of sentences to show on which the models disagree.")] = 10,
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
    """Tell without labels what a model keeps of its teacher, on your own sentences, and what to expect of it."""
    from sentcompress.cli import render
    from sentcompress.stages import eval_fidelity as stage

    params = stage.Params(
        text=text or (),
        sentences=sentences,
        model=model,
        compare=compare,
        sample=sample,
        neighbours=neighbours,
        pairwise=pairwise,
        show=show,
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
    _show(artifact, as_json=as_json, quiet=quiet)


def show(artifact: Artifact, *, as_json: bool = False, quiet: bool = False) -> None:
    """Print what is kept, by length, the shape of both models' vectors, disagreements and the verdict."""
    from sentcompress.cli import render
    from sentcompress.evaluation.results import read_evaluation
    from sentcompress.evaluation.tables import short

    if as_json:
        print_document(artifact)
        return
    result, evaluation = artifact.facts, read_evaluation(artifact)
    labels = evaluation.labels
    heads = [short(label) for label in labels.values()]
    title = f"{heads[0]} compared with {heads[1]}, {result['sentences']:,} sentences"
    render.print_scores(evaluation.scores, labels, evaluation.kind.what, title)
    render.print_facts(_agreement(result))
    render.print_table(
        [f"length in {result['unit_of_length']}", "sentences", "neighbours kept, %"],
        [_bucket(bucket) for bucket in result["neighbours"]["by_length"]],
    )
    render.print_table(["each on its own", *heads], _shapes(result["model"], result["compare"]))
    if result["disagreements"]:
        render.print_table(
            ["where they disagree most", "", *heads],
            [_disagreement(pair) for pair in result["disagreements"]],
        )
    verdict = result["verdict"]
    cautions = [f"Caution: {caution}." for caution in verdict["cautions"]]
    closing(artifact, quiet=quiet, remarks=[verdict["text"], *_searched(artifact), *cautions])


def _searched(artifact: Artifact) -> list[str]:
    """What retrieval measured of the same two models in this work directory."""
    from sentcompress.evaluation.fidelity_verdict import retrieval_of_the_same

    work = WorkDirectory(artifact.path.parents[1])
    return retrieval_of_the_same(artifact, work.newest("evaluations"))


def _agreement(result: Mapping[str, Any]) -> dict[str, Any]:
    near, cosine = result["neighbours"], result["cosine_to_compared"]
    facts = {
        "shared by chance": f"{100 * near['by_chance']:.1f}%",
        "cosine of each sentence": result["cosine_is_to"],
    }
    if cosine:
        facts["cosine of each sentence"] = (
            f"mean {cosine['mean']:.4f}, 5th percentile {cosine['percentile_5']:.4f} (to {result['cosine_is_to']})"
        )
    return facts


def _bucket(bucket: Mapping[str, Any]) -> list[Any]:
    name = f"{bucket['name']}, {bucket['shortest']} to {bucket['longest']}"
    return [name, bucket["sentences"], 100 * bucket["overlap"]]


def _shapes(ours: Mapping[str, Any], other: Mapping[str, Any]) -> list[list[Any]]:
    of_first = f"first {ours['dimensions_shown']} dimensions"
    measures = {
        "anisotropy (mean cosine of pairs)": "anisotropy",
        "effective rank": "effective_rank",
        f"mean |correlation|, {of_first}": "mean_absolute_correlation",
        f"mean |covariance|, {of_first}": "mean_absolute_covariance",
    }
    both = (ours, other)
    tokens = {"sentences that are cut off, %": "truncated_share", "unknown tokens, %": "unknown_share"}
    return [
        ["dimensions", *(of["dimension"] for of in both)],
        *([name, *(of["tokens"] and 100 * of["tokens"][key] for of in both)] for name, key in tokens.items()),
        *([name, *(measured(of[key]) for of in both)] for name, key in measures.items()),
    ]


def _disagreement(pair: Mapping[str, Any]) -> list[Any]:
    first, second = (_cut(pair[side]) for side in ("first", "second"))
    return [first, second, pair["model"], pair["compare"]]


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


# An option of the command has the name of the function.
_show = show
