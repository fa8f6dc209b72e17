"""`sentcompress teacher-embed`."""

from __future__ import annotations

from typing import Annotated

import typer

from sentcompress.cli import options
from sentcompress.plain_text import shell_word
from sentcompress.store import WorkDirectory


def command(
    teacher: Annotated[
        str,
        typer.Option(
            "--teacher",
            help="embedded, a teacher or student by its name, a sentence-transformers folder, or a hub name.",
        ),
    ] = "embedded",
    sentences: options.Sentences = None,
    revision: options.Revision = None,
    pooling: Annotated[
        str,
        typer.Option(
            "--pooling",
            help="For checkpoints without modules.json: auto, mean, cls, or cls-mlp (as SimCSE). auto is cls-mlp for "
            "names that contain simcse, else mean.",
        ),
    ] = "auto",
    trust_remote_code: options.TrustRemoteCode = False,
    max_length: Annotated[
        int | None, typer.Option("--max-length", help="Cut sentences at so many tokens instead of the teacher's own.")
    ] = None,
    normalize: Annotated[
        bool, typer.Option("--normalize", help="Scale vectors to length one, as HPD's code does with SimCSE's.")
    ] = False,
    store: Annotated[str, typer.Option("--store", help="How vectors are kept: float32 or float16.")] = "float32",
    dtype: options.Dtype = "auto",
    device: options.Device = "auto",
    batch_tokens: Annotated[
        int | None, typer.Option("--batch-tokens", help="Most tokens in a batch. By default what suits the device.")
    ] = None,
    layers: Annotated[
        str | None,
        typer.Option(
            "--layers", help="Keep the pooled states of these layers too, counted from 1, with commas; pkd needs them."
        ),
    ] = None,
    content_words: Annotated[
        float,
        typer.Option(
            "--content-words",
            help="Add, with this weight, the vector of each text's content words alone: without punctuation and the "
            "most frequent tokens. 0.5 is a good start.",
        ),
    ] = 0.0,
    name: options.Name = None,
    work: options.Work = options.DEFAULT_WORK,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Encode the sentences with the teacher and keep the vectors, for every later stage to use."""
    from sentcompress.cli import render
    from sentcompress.stages import teacher_embed as stage

    params = stage.Params(
        layers=options.whole_numbers(layers, "--layers"),
        teacher=teacher,
        sentences=sentences,
        name=name,
        revision=revision,
        pooling=pooling,
        trust_remote_code=trust_remote_code,
        max_length=max_length,
        normalize=normalize,
        store=store,
        dtype=dtype,
        device=device,
        batch_tokens=batch_tokens,
        content_words=content_words,
        force=force,
    )
    with render.reporting(quiet) as reporter:
        artifact = stage.run(params, WorkDirectory(work), reporter)
    if not as_json:
        shown = ("rows", "dimension", "teacher", "compute_dtype", "sentences_per_second")
        render.print_facts({key: artifact.facts[key] for key in shown})
    render.finished(artifact, f"sentcompress fit-pca --dim 128 --work {shell_word(work)}", as_json=as_json, quiet=quiet)
