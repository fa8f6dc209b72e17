"""Speed on a CUDA device: sentences per second, and the share of the chip's peak.

    python benchmarks/gpu.py [--seconds 25] [--out FOLDER]
    python benchmarks/gpu.py --profile

`teacher-embed`, `distill` with ckd and its queue of 65,536 vectors, and `finetune` with simcse, each with random models
of TinyBERT's and BERT-base's size, which are built here, and random sentences of 8 to 48 tokens; teacher vectors of
1,024 dimensions. At most 8 minutes. Sentences of `finetune` are triplets of three texts. Writes gpu.json and gpu.md to
--out, $OUT or benchmarks/results.

The share counts what the layers and the queue multiply (three times the forward pass in training; the queue once), and
compares it with the dense bfloat16 peak. --profile needs no GPU: it counts kernels, copies and waits of a step on the
CPU (step_profile.py) and writes benchmarks/results/step_profile.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from random_training import BERT_BASE, LENGTHS, TINYBERT, Size, make_encoder, make_texts, make_training
from running import machine

from sentcompress.encoding.engine import EncodeEngine

# Dense bfloat16 operations per second, by the vendor's data sheets, and a part of the device's name.
PEAKS = {"H200": 989e12, "H100 PCIe": 756e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12}
QUEUE, TEACHER = 65_536, 1024
BATCH = {"ckd": 512, "simcse": 128}
TEXTS = {"teacher-embed": 1, "ckd": 1, "simcse": 3}
MEAN_LENGTH = sum(LENGTHS) / 2


def encoding_speed(size: Size, device: torch.device, folder: Path, seconds: float) -> tuple[float, str]:
    """Sentences per second of the encode engine, tokenisation included, and its number format."""
    engine = EncodeEngine(make_encoder(size, folder), device=device.type)
    texts = make_texts(size, 100_000)
    # A chunk is told apart from its copies by its first word, so that no text is encoded once for several.
    chunks = ([f"w{number % 9999} {text}" for text in texts] for number in cycle(range(9999)))
    stream = engine.stream(chunks)
    next(stream)
    torch.cuda.synchronize(device)
    started, done = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        done += len(next(stream))
    speed = done / (time.perf_counter() - started)
    stream.close()  # type: ignore[attr-defined]
    return speed, engine.compute_dtype


def training_speed(work: str, size: Size, device: torch.device, folder: Path, seconds: float) -> tuple[float, str]:
    """Sentences per second of a training run, by its own log, and its number format; the first looks do not count."""
    numbers: dict[str, Any] = {"batch_size": BATCH[work], "max_minutes": seconds / 60}
    training = make_training(
        work, size, device, folder, rows=200_000, queue=QUEUE if work == "ckd" else 0, teacher=TEACHER, **numbers
    )
    training.run()
    entries = [json.loads(line) for line in training.log_path.read_text(encoding="utf-8").splitlines()]
    speeds = [entry["sentences_per_second"] for entry in entries if "sentences_per_second" in entry]
    return statistics.median(speeds[len(speeds) // 4 :]), training.progress.dtype


def operations(work: str, size: Size) -> float:
    """Multiplications and additions for one sentence."""
    forward = TEXTS[work] * MEAN_LENGTH * size.flops(MEAN_LENGTH)
    if work == "teacher-embed":
        return forward
    # The products with the queue and, in the same pass, their gradient; the head in front of them.
    queue = 4 * QUEUE * TEACHER + 6 * size.width * TEACHER if work == "ckd" else 0
    return 3 * forward + queue


def measured(device: torch.device, seconds: float) -> list[dict[str, Any]]:
    """One row for each work and size."""
    name = torch.cuda.get_device_name(device)
    peak = next((value for part, value in PEAKS.items() if part in name), None)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for size in (TINYBERT, BERT_BASE):
            for work in ("teacher-embed", "ckd", "simcse"):
                torch.cuda.reset_peak_memory_stats(device)
                if work == "teacher-embed":
                    speed, dtype = encoding_speed(size, device, Path(temporary), seconds)
                else:
                    speed, dtype = training_speed(work, size, device, Path(temporary), seconds)
                share = speed * operations(work, size) / peak if peak else None
                memory = torch.cuda.max_memory_allocated(device)
                row = {"work": work, "size": size.name, "dtype": dtype, "sentences_per_second": round(speed, 1)}
                rows.append({**row, "share_of_peak": share and round(share, 4), "peak_memory_bytes": memory})
                print(rows[-1], flush=True)
                torch.cuda.empty_cache()
    return rows


def table(rows: list[dict[str, Any]], device: str) -> str:
    """The rows in Markdown."""
    lines = [
        "# Speed on a GPU",
        "",
        f"{device}, torch {torch.__version__}; random models and sentences of {LENGTHS[0]} to {LENGTHS[1]} tokens; "
        f"ckd with a queue of {QUEUE:,} vectors of {TEACHER:,} dimensions. `python benchmarks/gpu.py`",
        "",
        "| work | size | format | sentences/s | share of the peak | peak memory |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        share = "unknown" if row["share_of_peak"] is None else f"{row['share_of_peak']:.1%}"
        lines.append(
            f"| {row['work']} | {row['size']} | {row['dtype']} | {row['sentences_per_second']:,.0f} | {share} | "
            f"{row['peak_memory_bytes'] / 1e9:.1f} GB |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=25, help="of each measurement")
    parser.add_argument("--out", type=Path, default=os.environ.get("OUT") or Path(__file__).parent / "results")
    parser.add_argument("--profile", action="store_true", help="count the kernels and waits of a step on the CPU")
    asked = parser.parse_args()
    if asked.profile:
        import step_profile

        step_profile.main()
        return
    if not torch.cuda.is_available():
        raise SystemExit("this benchmark needs a CUDA device; --profile counts what a step does on a CPU")
    device = torch.device("cuda")
    rows, name = measured(device, asked.seconds), torch.cuda.get_device_name(device)
    out = Path(asked.out)
    out.mkdir(parents=True, exist_ok=True)
    document = {"machine": machine(), "device": name, "torch": torch.__version__, "rows": rows}
    (out / "gpu.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (out / "gpu.md").write_text(table(rows, name), encoding="utf-8")
    print(table(rows, name))


if __name__ == "__main__":
    main()
