"""The options of `sentcompress report`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import MODEL, Opt, Options


@dataclass(frozen=True, kw_only=True)
class Params(Options):
    """The model to report on, and the output file."""

    command: ClassVar[str] = "report"

    model: Annotated[
        str | None,
        Opt(
            "Student or other measured model to report on.",
            affects="input",
            names=MODEL,
            default="the last export of compress, or the newest measured student",
        ),
    ] = None
    output: Annotated[
        Path | None, Opt("HTML page to write.", short="o", default="report/report.html in the work directory")
    ] = None
    markdown: Annotated[bool, Opt("Print the report as Markdown, for a README.", affects="run")] = False

    def faults(self) -> list[str]:
        if self.output is not None and self.output.suffix not in (".html", ".htm"):
            return [f"`output` names the page, for example {self.output.name}.html, not {self.output}"]
        return []


COMMAND = Command(
    Params, "Show how much quality a student keeps, and what it saves. Writes one page with all results and figures."
)
