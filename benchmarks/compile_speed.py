"""Does torch.compile pay in training? The same steps with and without it, in turns.

    python benchmarks/compile_speed.py [--device cpu] [--rounds 5] [--steps 20] [--out FOLDER]

A step is a forward and a backward pass of a random student and AdamW, on batches of random sentences of 8 to 48 tokens
that are padded as in training, so that nearly every batch has another width. The student is compiled with
dynamic=True, so that a new width needs no new compilation. The first steps, which compile, are timed apart. TinyBERT's
size; on a GPU, BERT-base's too. Writes compile_speed-DEVICE.md to --out or benchmarks/results. Compiling needs a C++
compiler on a CPU.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from random_training import BERT_BASE, TINYBERT, Size, make_encoder, make_tokens
from running import machine
from torch.nn import functional

from sentcompress.training.batches import Batch, BatchPlan, collate

BATCH, ROWS = 64, 20_000
# Steps before the clock: the first two widths compile, others may once more.
FIRST = 10


def batches_of(size: Size, count: int, device: torch.device) -> list[Batch]:
    """Batches as `distill` makes them."""
    tokens = make_tokens(size, ROWS)
    plan = BatchPlan(np.arange(ROWS), tokens.lengths, BATCH, 10**9, 0)
    return [collate(rows, tokens, {}, 0).to(device) for rows in plan.epoch(0)[:count]]


def make_steps(size: Size, folder: Path, device: torch.device, *, compiled: bool) -> Callable[[Batch], None]:
    """What does one step with a fresh student."""
    encoder = make_encoder(size, folder).to(device).train()
    embed = torch.compile(encoder.embed, dynamic=True) if compiled else encoder.embed
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-4)
    target = torch.randn(BATCH, size.width, device=device)

    def step(batch: Batch) -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            vectors = embed(batch.input_ids, batch.attention_mask, padded=batch.layout.padded)
        functional.mse_loss(vectors.float(), target[: len(vectors)]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def seconds_of(step: Callable[[Batch], None], batches: list[Batch], device: torch.device) -> float:
    """Wall time of a step for each batch."""
    started = time.perf_counter()
    for batch in batches:
        step(batch)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - started


def row(size: Size, device: torch.device, rounds: int, steps: int) -> str:
    """One line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        batches = batches_of(size, FIRST + steps * rounds, device)
        sides = {
            name: make_steps(size, Path(folder), device, compiled=name == "compiled") for name in ("eager", "compiled")
        }
        warm = {name: seconds_of(step, batches[:FIRST], device) for name, step in sides.items()}
        taken: dict[str, list[float]] = {name: [] for name in sides}
        for number in range(rounds):
            mine = batches[FIRST + steps * number :][:steps]
            for name in sorted(sides, reverse=bool(number % 2)):
                taken[name].append(seconds_of(sides[name], mine, device) / steps)
    ratios = [eager / compiled for eager, compiled in zip(taken["eager"], taken["compiled"], strict=True)]
    eager, compiled = (statistics.median(taken[name]) for name in sides)
    compiling = warm["compiled"] - warm["eager"]
    even = f"{compiling / (eager - compiled):,.0f}" if eager > compiled else "never"
    line = (
        f"| {size.name} | {1000 * eager:.1f} | {1000 * compiled:.1f} | {statistics.median(ratios):.2f} "
        f"({min(ratios):.2f} to {max(ratios):.2f}) | {compiling:.0f} | {even} |"
    )
    print(line, flush=True)
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    asked = parser.parse_args()
    device = torch.device(asked.device)
    name = torch.cuda.get_device_name(device) if asked.device == "cuda" else machine()["processor"]
    lines = [
        "# torch.compile in training",
        "",
        f"{name}, threads: {torch.get_num_threads()}, torch {torch.__version__}, "
        f"{'bfloat16' if asked.device == 'cuda' else 'float32'}; random students, batches of {BATCH} sentences of 8 to "
        f"48 tokens; {asked.rounds} rounds of {asked.steps} steps, in turns. `python benchmarks/compile_speed.py`",
        "",
        "| size | eager, ms a step | compiled, ms a step | eager / compiled (of all rounds) | seconds to compile | "
        "steps until it pays |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    sizes = (TINYBERT,) if asked.device == "cpu" else (TINYBERT, BERT_BASE)
    lines += [row(size, device, asked.rounds, asked.steps) for size in sizes]
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / f"compile_speed-{asked.device}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
