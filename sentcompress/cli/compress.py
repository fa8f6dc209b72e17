"""The output of `sentcompress compress`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sentcompress.cli.call import Call
from sentcompress.cli.terminal import say, say_wrapped
from sentcompress.commands.spelling import spelled
from sentcompress.plain_text import shell_line, shell_word
from sentcompress.quantities import told_time
from sentcompress.stages.compress import Result


def document(result: Result, call: Call) -> dict[str, Any]:
    """The plan, and the verdict, for `--json`."""
    return {
        "name": result.name,
        "recipe": str(result.recipe),
        "plan": list(result.plan),
        "seconds": round(result.seconds, 1),
        "verdict": result.verdict.as_dict() if result.verdict else None,
        "report": str(result.report) if result.report else None,
    }


def show(result: Result, call: Call) -> str | None:
    """The plan (dry run), or the verdict and where the model is."""
    if call.params.dry_run:
        for line in result.plan:
            say_wrapped(spelled(line, type(call.params)))
        say(f"Plan: {result.recipe}")
        return "the same command without --dry-run"
    if result.verdict is None:
        say(f"Plan: {result.recipe}, run in {told_time(result.seconds)}")
        return f"sentcompress report --work {shell_word(call.work)}"
    say_wrapped(result.verdict.sentence)
    say_wrapped(result.verdict.results)
    if result.verdict.caution:
        say_wrapped(result.verdict.caution)
    say(f"Model: {result.verdict.export}")
    if result.verdict.graph:
        say(f"Int8 graph: {result.verdict.graph} (to run it, see README.md in the model's folder)")
    if result.report:
        say(f"Report: {result.report}")
    say(f"Plan: {result.recipe}, run in {told_time(result.seconds)}")
    if line := _encode_line(result, call):
        say(f"To encode the documents: {line}")
    search = f"sentcompress search 'your query' --collection {shell_word(f'documents/{result.name}')}"
    search += f" --model {shell_word(f'exports/{result.name}')}"
    kept = " --keep-index" if call.params.keep_index else ""
    return search + f" --compare {shell_word(call.params.teacher)}" + kept + f" --work {shell_word(call.work)}"


def _encode_line(result: Result, call: Call) -> str:
    """The command that encodes the documents; empty if one cannot, or if a kept index has their vectors already."""
    params = call.params
    one = len(params.inputs) == 1 and Path(params.inputs[0]).exists() and not params.text_as
    if params.keep_index or not one:
        return ""
    words = ["sentcompress", "encode", params.inputs[0], "--model", f"exports/{result.name}", "--store", "quantizer"]
    words += ["--runtime", "onnx-int8"] if result.verdict and result.verdict.graph else []  # as it was measured
    for column in params.column:
        words += ["--column", column]
    words += ["--id-column", params.id_column] if params.id_column else []
    words += ["--skip-bad"] if params.skip_bad else []
    return shell_line([*words, "-o", "vectors", "--work", str(call.work)])
