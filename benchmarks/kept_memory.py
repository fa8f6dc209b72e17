"""What it saves that the command line has glibc keep freed memory: training steps and encoding, with and without.

    python benchmarks/kept_memory.py [--rounds 5] [--threads 1]

How malloc behaves cannot be taken back, so each side is a process of its own, the two in turns, on the same random
token ids: batches of 4,096 tokens in four shapes. The model is a student's shape (3 layers of width 384, a table of
width 128), with random weights. Linux with glibc only. Writes benchmarks/results/kept_memory.json and .md.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from typing import Any

import torch
from running import machine, write_results
from transformers import ElectraConfig, ElectraModel

from sentcompress.cli.main import keep_freed_memory
from sentcompress.evaluation.timing import in_turn
from sentcompress.process_memory import peak_memory

SHAPES = ((256, 16), (128, 32), (64, 64), (18, 224))
TURNS = {"train": 3, "encode": 6}


def work(kept: bool, kind: str, threads: int) -> dict[str, float]:
    """Seconds, seconds in the kernel, page faults and peak bytes of this process, the first batches not counted."""
    if kept and not keep_freed_memory():
        raise SystemExit("this C library's malloc cannot be told, or the environment has told it already")
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    shape = {"hidden_size": 384, "embedding_size": 128, "num_hidden_layers": 3, "num_attention_heads": 12}
    model = ElectraModel(ElectraConfig(**shape, intermediate_size=1536))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step(texts: int, tokens: int) -> None:
        ids = torch.randint(0, 30_000, (texts, tokens))
        with torch.autocast("cpu", torch.bfloat16), torch.set_grad_enabled(kind == "train"):
            vectors = model(input_ids=ids).last_hidden_state.mean(dim=1)
        if kind == "train":
            (vectors.float() ** 2).mean().backward()
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

    for sizes in SHAPES:
        step(*sizes)
    before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    for _ in range(TURNS[kind]):
        for sizes in SHAPES:
            step(*sizes)
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": seconds,
        "kernel_seconds": after.ru_stime - before.ru_stime,
        "faults": after.ru_minflt - before.ru_minflt,
        "peak_bytes": peak_memory(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--side", nargs=2, metavar=("KIND", "KEPT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        print(json.dumps(work(given.side[1] == "kept", given.side[0], given.threads)))
        return
    rounds: list[dict[str, Any]] = []
    for number in range(given.rounds):
        for kind in TURNS:
            for side in in_turn(("default", "kept"), number):
                words = [sys.executable, __file__, "--threads", str(given.threads), "--side", kind, side]
                found = json.loads(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout)
                rounds.append({"round": number, "work": kind, "side": side, **found})
                print(rounds[-1], flush=True)
    lines = [
        "# Keeping freed memory",
        "",
        "Training and encoding when freed memory is returned to the system (`default`), and when it is kept for the "
        "next batch (`kept`). Batches of 4,096 tokens, a random student of 3 layers, bfloat16, "
        f"{machine()['processor']}, threads: {given.threads}; each side in its own process, in turns, "
        f"medians of {given.rounds} rounds. "
        "`python benchmarks/kept_memory.py`",
        "",
        "| work | side | ms/batch | speed, default = 1 | share in the kernel | page faults/batch | peak memory |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, turns in TURNS.items():
        batches, usual = turns * len(SHAPES), 0.0
        for side in ("default", "kept"):
            found = [one for one in rounds if (one["work"], one["side"]) == (kind, side)]
            middle = {
                name: statistics.median(one[name] for one in found)
                for name in found[0]
                if name not in ("round", "work", "side")
            }
            usual = usual or middle["seconds"]
            lines.append(
                f"| {kind} | {side} | {1000 * middle['seconds'] / batches:,.0f} | {usual / middle['seconds']:.2f} | "
                f"{middle['kernel_seconds'] / middle['seconds']:.0%} | {middle['faults'] / batches:,.0f} | "
                f"{middle['peak_bytes'] / 1e9:.2f} GB |"
            )
    document = {"machine": machine(), "threads": given.threads, "torch": torch.__version__, "rounds": rounds}
    write_results("kept_memory", document, "\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
