"""`sentcompress augment`."""

from __future__ import annotations

from typing import Annotated

import typer

from sentcompress.cli import options
from sentcompress.plain_text import shell_word
from sentcompress.store import WorkDirectory


def command(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Files (jsonl, csv, tsv, parquet, text; .gz and .zst of each), - for standard input, "
            "or data sets of the hub by name.",
        ),
    ],
    wordnet: Annotated[
        int | None,
        typer.Option("--wordnet", help="Copies of each sentence with WordNet synonyms.", show_default="1"),
    ] = None,
    back_translate: Annotated[
        int | None,
        typer.Option(
            "--back-translate", help="Copies of each sentence translated and back.", show_default="1 if possible"
        ),
    ] = None,
    translator: Annotated[
        list[str] | None,
        typer.Option(
            "--translator",
            help="apertium; nlpaug (facebook/wmt19 models); two models as FROM,TO (once for each copy); "
            "auto takes apertium, else nlpaug's models if they are on this disk.",
            show_default="auto",
        ),
    ] = None,
    aug_p: Annotated[float, typer.Option("--aug-p", help="Share of the words that WordNet replaces.")] = 0.3,
    seed: options.Seed = 0,
    file_format: Annotated[
        str | None,
        typer.Option("--format", help="jsonl, csv, tsv, parquet or text; by default seen from name and content."),
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option("--column", help="A column that holds sentences; may be repeated.")
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option("--domain", help="The column that tells each row's domain, for metakd.", show_default="domain"),
    ] = None,
    split: Annotated[str, typer.Option("--split", help="Part of a hub data set, or of AllNLI.tsv.")] = "train",
    config: Annotated[str | None, typer.Option("--config", help="Configuration of a hub data set.")] = None,
    revision: Annotated[str | None, typer.Option("--revision", help="Revision of a hub data set.")] = None,
    min_length: Annotated[int, typer.Option("--min-length", help="Leave out sentences of fewer characters.")] = 1,
    max_length: Annotated[
        int | None, typer.Option("--max-length", help="Leave out sentences of more characters (HPD's code: 256).")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Stop after so many original sentences.")] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Skip and count lines that cannot be read.")] = False,
    workers: Annotated[int | None, typer.Option("--workers", help="Processes.", show_default="all cores")] = None,
    name: options.Name = None,
    work: options.Work = options.DEFAULT_WORK,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Read sentences, and make new ones with WordNet synonyms and back-translation."""
    from sentcompress.cli import render
    from sentcompress.stages import augment as stage

    params = stage.Params(
        inputs=tuple(inputs),
        wordnet=wordnet,
        back_translate=back_translate,
        translator=tuple(translator or ()),
        aug_p=aug_p,
        seed=seed,
        format=file_format,
        column=tuple(column or ()),
        domain=domain,
        split=split,
        config=config,
        revision=revision,
        min_length=min_length,
        max_length=max_length,
        limit=limit,
        skip_bad=skip_bad,
        workers=workers,
        name=name,
        force=force,
    )
    with render.reporting(quiet) as reporter:
        artifact = stage.run(params, WorkDirectory(work), reporter)
    facts = artifact.facts
    if not as_json:
        skipped = {f"dropped: {why.replace('_', ' ')}": count for why, count in facts["skipped"].items()}
        made = {source: count for source, count in facts["by_source"].items() if source != "original"}
        by_source = {"original": facts["originals"], **made}
        shown = {"sentences": facts["rows"], **by_source, "triplets": facts["triplets"], **skipped}
        render.print_facts(shown)
    next_command = f"sentcompress teacher-embed --work {shell_word(work)}"
    render.finished(artifact, next_command, as_json=as_json, quiet=quiet)
