"""The output of `sentcompress export`."""

from __future__ import annotations

from typing import Any

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.plain_text import shell_word
from sentcompress.store import Artifact


def show(artifact: Artifact, call: Call) -> str:
    """The files, and how exactly they give the model's vectors."""
    _show(artifact.facts)
    return f"sentcompress encode lines.txt --model {shell_word(artifact.path)} -o vectors.npy"


def _show(facts: dict[str, Any]) -> None:
    from sentcompress.exporting.verification_tables import cosines_of, router_rows, sts_table

    checked, sizes = facts["checked"], facts["bytes"]
    rows = []
    for name, one in facts["formats"].items():
        size = sum(sizes.get(file, 0) for file in one["files"])
        rows += [[title, size, *cosines] for title, *cosines in cosines_of(one["title"], checked[name])]
    rows += [[title, facts["router"]["bytes"], *cosines] for title, *cosines in router_rows(facts)]
    title = f"checked on {checked['folder']['texts']} sentences: cosine to the model's own vectors"
    render.print_table(["file", "bytes", "smallest", "mean"], rows, title)
    if int8 := facts.get("int8"):
        cosines = ", ".join(f"{name} {value:.4f}" for name, value in int8["mean_cosine"].items())
        render.print_facts({"int8 quantisation": f"{int8['quantisation']} (mean cosine: {cosines})"})
    if facts["sts"]:
        render.print_table(*sts_table(facts), "STS, Spearman x 100")
