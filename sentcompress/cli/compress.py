"""The output of `sentcompress compress`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sentcompress.cli.call import Call
from sentcompress.cli.terminal import say, say_wrapped
from sentcompress.commands.spelling import spelled
from sentcompress.corpora.byte_streams import as_source
from sentcompress.corpora.collection_folders import CORPUS, existing
from sentcompress.corpora.document_files import LINE, usual_unit
from sentcompress.corpora.identified_texts import identified_texts
from sentcompress.corpora.markup import PAGES
from sentcompress.corpora.readers import ReadOptions, find_format
from sentcompress.errors import InputError
from sentcompress.models.weight_formats import with_weights
from sentcompress.plain_text import shell_line, shell_word
from sentcompress.quantities import told_time
from sentcompress.stages.compress import Result


def document(result: Result, call: Call) -> dict[str, Any]:
    """The plan, and the verdict, for `--json`."""
    return {
        "name": result.name,
        "recipe": str(result.recipe),
        "plan": _plan(result, call),
        "seconds": round(result.seconds, 1),
        "verdict": result.verdict.as_dict() if result.verdict else None,
        "report": str(result.report) if result.report else None,
    }


def show(result: Result, call: Call) -> str | None:
    """The plan (dry run), or the verdict and where the model is."""
    if call.params.dry_run:
        for line in _plan(result, call):
            say_wrapped(line)
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
        kind = f"Int8 graph{with_weights(result.verdict.weight_format)}"
        say(f"{kind}: {result.verdict.graph} (to run it, see README.md in the model's folder)")
    if result.report:
        say(f"Report: {result.report}")
    say(f"Plan: {result.recipe}, run in {told_time(result.seconds)}")
    if line := _encode_line(result, call):
        say(f"To encode the documents: {line}")
    search = f"sentcompress search 'your query' --collection {shell_word(f'documents/{result.name}')}"
    search += f" --model {shell_word(f'exports/{result.name}')}"
    kept = " --keep-index" if call.params.keep_index else ""
    return search + f" --compare {shell_word(call.params.teacher)}" + kept + f" --work {shell_word(call.work)}"


def _plan(result: Result, call: Call) -> list[str]:
    return [spelled(line, type(call.params)) for line in result.plan]


def _encode_line(result: Result, call: Call) -> str:
    """The command that encodes the documents; empty if `encode` cannot, or if an index has their vectors already."""
    params = call.params
    if params.keep_index or params.text_as or len(params.inputs) != 1 or not Path(params.inputs[0]).exists():
        return ""
    place = Path(params.inputs[0])
    collection = place.is_dir() and existing(place, CORPUS) is not None
    if place.is_file() and not _is_read_alike(place, params):
        return ""
    words = ["sentcompress", "encode", params.inputs[0], "--model", f"exports/{result.name}", "--store", "quantizer"]
    words += ["--runtime", "onnx-int8"] if result.verdict and result.verdict.graph else []  # as it was measured
    if not collection:
        # With the texts: no other file has the passages that a search then finds.
        words += ["--passages", "--texts"] if place.is_dir() or as_source(place).extension in PAGES else []
        words += [word for column in params.column for word in ("--column", column)]
        words += ["--id-column", params.id_column] if params.id_column else []
        words += ["--skip-bad"] if params.skip_bad else []
    return shell_line([*words, "-o", "vectors", "--work", str(call.work)])


def _is_read_alike(file: Path, params: Any) -> bool:
    """Whether `encode` reads the same documents: it reads neither both columns of pairs nor hard-wrapped paragraphs."""
    source, options = as_source(file), ReadOptions(columns=params.column, id_column=params.id_column)
    try:
        if source.extension not in PAGES and find_format(source, None) == "text":
            return usual_unit(source) == LINE
        identified_texts(source, options, skip_bad=params.skip_bad)
    except InputError:
        return False
    return True
