"""The options of `sentcompress bench`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import MODEL, Opt
from sentcompress.commands.shared import Hub, Model, Named, Seed, Sentences


@dataclass(frozen=True, kw_only=True)
class Params(Hub, Named):
    """What to measure: `count` sentences in batches, and the first `single` of them one at a time."""

    command: ClassVar[str] = "bench"

    model: Model = None
    compare: Annotated[
        str | None,
        Opt("Second model, named as for --model; none: measure one model.", affects="input", names=MODEL),
    ] = "teacher"
    text: Annotated[
        Path | None,
        Opt(
            "File of sentences: one per line, or csv, tsv, jsonl or parquet.",
            affects="input",
            default="a sample of --sentences",
        ),
    ] = None
    sentences: Sentences = None
    count: Annotated[int, Opt("Sentences to encode in batches.", minimum=1)] = 1000
    single: Annotated[int, Opt("Sentences to encode one at a time.", minimum=1)] = 100
    rounds: Annotated[int, Opt("Timed rounds; their median is reported.", minimum=1)] = 3
    max_minutes: Annotated[
        float | None,
        Opt("Time limit in minutes; fewer sentences and rounds are timed if necessary.", above=0),
    ] = None
    runtimes: Annotated[
        tuple[str, ...],
        Opt(
            "Runtimes, separated by commas: float32, bfloat16 (torch), onnx, onnx-int8.",
            commas=True,
            choices="sentcompress.measuring.runtimes:RUNTIMES",
            default="all available",
        ),
    ] = ()
    preset: Annotated[
        str | None,
        Opt(
            "A paper's measurement. simtde: seconds per pass over the STS-B test pairs, unbatched, on the CPU.",
            choices=("simtde",),
        ),
    ] = None
    sts: Annotated[
        tuple[Path, ...],
        Opt("For --preset simtde: the STS-B test file, or a folder with it.", affects="input"),
    ] = ()
    memory: Annotated[bool, Opt("Measure peak memory, each model in its own process.")] = True
    seed: Seed = 0
    device: Annotated[str, Opt("Where models run: auto, cpu, cuda or mps; with --preset simtde, auto is cpu.")] = "auto"

    def faults(self) -> list[str]:
        faults = []
        if len(set(self.runtimes)) < len(self.runtimes):
            faults.append("`runtimes` lists a runtime twice")
        if self.preset and not self.sts:
            faults.append("`preset` simtde encodes the pairs of STS-B; name its test file, or its folder, with `sts`")
        if self.sts and not self.preset:
            faults.append("`sts` is for `preset` simtde")
        if self.preset:
            usual = {"single": Params.single, "rounds": Params.rounds, "max_minutes": None}
            faults += [
                f"`preset` fixes how much is timed, so `{name}` cannot be given with it"
                for name, default in usual.items()
                if getattr(self, name) != default
            ]
        sources = [f"`{name}`" for name in ("text", "sentences", "preset") if getattr(self, name)]
        if len(sources) > 1:
            faults.append(f"{' and '.join(sources)} cannot be given together")
        return faults


COMMAND = Command(
    Params,
    "Measure speed, size and memory of two models. The models are measured alternately.",
    makes="evaluations",
    version=4,  # --text reads tables; with a limit, fast models repeat their passes
)
