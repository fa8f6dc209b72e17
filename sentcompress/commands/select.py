"""The options of `sentcompress select`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import MODEL, Opt
from sentcompress.commands.shared import Named, TrustRemoteCode
from sentcompress.errors import did_you_mean


@dataclass(frozen=True, kw_only=True)
class Params(Named):
    """The models, and the metric that ranks them."""

    command: ClassVar[str] = "select"

    inputs: Annotated[
        tuple[str, ...],
        Opt(
            "Evaluated models to choose from, by name.",
            positional=True,
            metavar="MODEL...",
            affects="input",
            names=MODEL,
        ),
    ]
    by: Annotated[
        str | None,
        Opt("Metric to rank the models by, such as spearman_cosine.", default="search fidelity"),
    ] = None
    data: Annotated[str | None, Opt("Data set that the metric was measured on.", default="the only one")] = None
    rank: Annotated[int, Opt("Rank of the model to keep; 1 is the best.", minimum=1)] = 1
    trust_remote_code: TrustRemoteCode = False

    @property
    def metric(self) -> str:
        """The name of the metric."""
        from sentcompress.evaluation.metrics import SEARCH_FIDELITY

        return self.by or SEARCH_FIDELITY

    def faults(self) -> list[str]:
        from sentcompress.evaluation.metrics import METRICS

        faults = []
        if not self.inputs:
            faults.append("name at least one model")
        if len(set(self.inputs)) < len(self.inputs):
            faults.append("a model is named twice")
        if self.rank > len(self.inputs) > 0:
            faults.append(f"`rank` {self.rank} of {len(self.inputs)} models does not exist")
        if self.by is not None and self.by not in METRICS:
            faults.append(f"`by` {self.by}: {did_you_mean(self.by, list(METRICS))}")
        return faults


COMMAND = Command(Params, "Keep the best of several evaluated models under one name.", makes="students", version=2)
