"""`sentcompress eval-sts`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from sentcompress.artifacts import WorkDirectory
from sentcompress.cli import options


def command(
    sts: Annotated[
        list[Path],
        typer.Option(
            "--sts",
            help="A file score<TAB>sentence1<TAB>sentence2, a folder of such files, or SentEval's downstream folder. "
            "May be given several times.",
        ),
    ],
    model: options.Model = None,
    compare: options.Compare = None,
    aggregate: Annotated[
        str, typer.Option("--aggregate", help="How a set's subsets become one score: all, mean or wmean.")
    ] = "all",
    split: Annotated[str, typer.Option("--split", help="test, dev or train.")] = "test",
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
        sts, model, compare, aggregate, split, device, dtype, revision, trust_remote_code, name, force
    )
    with render.reporting(quiet) as reporter:
        artifact = stage.run(params, WorkDirectory(work), reporter)
    result = artifact.facts
    if as_json:
        render.print_json({**result, "artifact": artifact.reference, "path": str(artifact.path)})
        return
    columns, rows = _table(result)
    render.print_table(columns, rows, "STS, Spearman x 100")
    render.print_facts({"protocol": result["protocol"]["statement"]})
    render.finished(artifact, None, as_json=False, quiet=quiet)


def _table(result: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows: a line for each set, its subsets below it, the mean of the sets last."""
    compared = "compare" in result
    ours = result["model"]["label"]
    if compared:
        columns = ["set", "pairs", ours, result["compare"]["label"], "% kept", "Pearson", "Pearson (compared)"]
    else:
        columns = ["set", "pairs", ours, "Pearson"]
    rows = [_cells(line, compared) for line in _lines(result)]
    if len(result["sets"]) > 1:
        mean = result["mean"]
        scores = [mean["model"], mean["compare"], mean["share_kept"], None, None] if compared else [mean["model"], None]
        rows.append(["mean of sets", sum(found["pairs"] for found in result["sets"]), *scores])
    return columns, rows


def _lines(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for found in result["sets"]:
        yield found
        for subset in found["subsets"]:
            yield {**subset, "name": f"  {subset['name']}"}


def _cells(line: Mapping[str, Any], compared: bool) -> list[Any]:
    ours, other = line["model"] or {}, line.get("compare") or {}
    cells = [line["name"], line["pairs"], ours.get("spearman_cosine")]
    if compared:
        cells += [other.get("spearman_cosine"), line["share_kept"]]
    cells.append(ours.get("pearson_cosine"))
    return [*cells, other.get("pearson_cosine")] if compared else cells
