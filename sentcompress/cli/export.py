"""`sentcompress export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sentcompress.cli import options
from sentcompress.plain_text import shell_word
from sentcompress.store import WorkDirectory


def command(
    model: options.Model = None,
    onnx: Annotated[
        bool, typer.Option("--onnx/--no-onnx", help="Write the fused ONNX graphs, float32 and int8, too.")
    ] = True,
    sts: Annotated[
        list[Path] | None,
        typer.Option(
            "--sts",
            help="Graded pairs, as for eval-sts, to score the int8 graph beside the float32 one. "
            "May be given several times.",
        ),
    ] = None,
    revision: options.Revision = None,
    trust_remote_code: options.TrustRemoteCode = False,
    name: options.Name = None,
    work: options.Work = options.DEFAULT_WORK,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a model for others: a sentence-transformers folder, ONNX graphs, a model card, all of it checked."""
    from sentcompress.cli import render
    from sentcompress.stages import export as stage

    params = stage.Params(model, onnx, tuple(sts or ()), revision, trust_remote_code, name, force)
    with render.reporting(quiet) as reporter:
        artifact = stage.run(params, WorkDirectory(work), reporter)
    if not as_json:
        _show(artifact.facts)
    next_command = f"sentcompress encode lines.txt --model {shell_word(artifact.path)} -o vectors.npy"
    render.finished(artifact, next_command, as_json=as_json, quiet=quiet)


def _show(facts: dict[str, Any]) -> None:
    from sentcompress.cli import render

    checked, sizes = facts["checked"], facts["bytes"]
    weights = sum(size for name, size in sizes.items() if name.endswith(".safetensors"))
    rows = [["sentence-transformers folder", weights, *_cosines(checked["folder"])]]
    if "onnx" in facts:
        int8 = checked["int8"]
        size = sizes[facts["onnx"]["int8"]]
        rows += [
            ["ONNX float32", sizes[facts["onnx"]["float32"]], *_cosines(checked["float32"])],
            ["ONNX int8, in batches", size, *_cosines(int8)],
            ["ONNX int8, one at a time", size, f"{int8['single_min_cosine']:.6f}", f"{int8['single_mean_cosine']:.6f}"],
        ]
    title = f"checked on {checked['folder']['texts']} sentences: cosine to the model's own vectors"
    render.print_table(["file", "bytes", "smallest", "mean"], rows, title)
    if facts.get("sts"):
        columns = ["set", "pairs", "float32", "int8, in batches", "int8, one at a time"]
        keys = ("set", "pairs", "float32", "int8", "int8_single")
        render.print_table(columns, [[score[key] for key in keys] for score in facts["sts"]], "STS, Spearman x 100")


def _cosines(found: dict[str, Any]) -> tuple[str, str]:
    return f"{found['min_cosine']:.6f}", f"{found['mean_cosine']:.6f}"
