"""Options that several commands share, so that they are spelt and explained the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sentcompress.errors import UsageError

Work = Annotated[Path, typer.Option("--work", envvar="SENTCOMPRESS_WORK", help="The work directory.")]
DEFAULT_WORK = Path("work")
Name = Annotated[str | None, typer.Option("--name", help="Name of the result in the work directory.")]
Force = Annotated[bool, typer.Option("--force", help="Do it again, even when the result is fresh.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output, nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks; warnings and errors stay.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.")]
Bootstrap = Annotated[
    int, typer.Option("--bootstrap", help="Draws from which 95% intervals are made; 0 for no intervals.")
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Skip and count lines that cannot be read.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
Dtype = Annotated[
    str, typer.Option("--dtype", help="auto, float32 or bfloat16; auto measures on a CPU and takes bfloat16 on CUDA.")
]
Revision = Annotated[str | None, typer.Option("--revision", help="Revision of a model on the hub.")]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Let Python code that comes with a model run.")
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="teacher, a student's or export's name, embedded, a folder, or a hub name. "
        "By default the student finished last.",
    ),
]
# For commands that make students: a second run of the same line starts where the first did.
StartModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="teacher, a student's or export's name, embedded, a folder, or a hub name. "
        "By default the student finished last, besides those of this command itself.",
    ),
]
Compare = Annotated[
    str | None, typer.Option("--compare", help="Another model, named as for --model, to put beside it.")
]
Sentences = Annotated[
    str | None, typer.Option("--sentences", help="Name of the sentence table. By default the one made last.")
]
TeacherVectors = Annotated[
    str | None, typer.Option("--teacher-vectors", help="Name of the teacher vectors. By default the ones made last.")
]


def whole_numbers(text: str | None, flag: str) -> tuple[int, ...]:
    """The numbers of an option such as `2,4,6`.

    Raises:
        UsageError: if one of them is no whole number.
    """
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    if any(not part.isdecimal() for part in parts):
        raise UsageError(
            f"{flag} takes whole numbers with commas between them, not {text!r}", f"for example {flag} 2,4,6"
        )
    return tuple(int(part) for part in parts)
