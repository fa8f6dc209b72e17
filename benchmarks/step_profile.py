"""What a step does, counted on a CPU: kernels, copies, and calls after which the host would wait for a GPU.

The counts are those of a CUDA device but for fused kernels: attention is one kernel there and on a CPU, and operations
on lists of tensors (clipping, the optimizer) are a handful there and one for each tensor here.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from host_waits import HostWaits
from random_training import TINY, make_encoder, make_texts, make_training
from running import RESULTS, machine
from torch.profiler import ProfilerActivity, profile

from sentcompress.encoding.engine import EncodeEngine
from sentcompress.training.loop import LOOK_EVERY

# Operations that launch nothing, if nothing else is inside them. The CPU's versions of operations on lists of tensors
# read numbers, which those of a GPU leave on the device.
FREE = {
    *("view", "_unsafe_view", "as_strided", "t", "transpose", "slice", "select", "expand", "permute", "reshape"),
    *("unsqueeze", "squeeze", "detach", "detach_", "alias", "split", "split_with_sizes", "unbind", "chunk"),
    *(
        "empty",
        "empty_like",
        "empty_strided",
        "resize_",
        "result_type",
        "lift_fresh",
        "is_nonzero",
        "item",
        "_local_scalar_dense",
        "flatten",
    ),
    *("to", "resolve_conj", "resolve_neg", "_reshape_alias", "scalar_tensor", "dropout", "linear", "matmul", "type_as"),
    *("unflatten", "diagonal", "narrow", "view_as", "expand_as", "numpy_T", "broadcast_tensors", "set_", "contiguous"),
}
STEPS = 3


def counted(run: Any, steps: int) -> tuple[Counter[str], Counter[str]]:
    """Kernels by name, and waits by name, of calls of `run`, which does one step."""
    with HostWaits() as waits:
        for _ in range(steps):
            run()
    with profile(activities=[ProfilerActivity.CPU]) as found:
        for _ in range(steps):
            run()
    kernels: Counter[str] = Counter()
    for event in found.events() or []:
        name = event.name.removeprefix("aten::")
        inner = any(child.name.startswith("aten::") for child in event.cpu_children)
        if event.name.startswith("aten::") and not inner and name not in FREE:
            kernels[name] += 1
    return kernels, waits.counts


def steps_of(work: str, folder: Path) -> tuple[Counter[str], Counter[str]]:
    """The same of the steps of a training run between two looks."""
    numbers = {"batch_size": 32, "max_steps": 1 + 2 * LOOK_EVERY, "dtype": "float32"}
    training = make_training(
        work, TINY, torch.device("cpu"), folder, rows=1000, queue=65_536 if work == "ckd" else 0, teacher=16, **numbers
    )
    step, found = training._step, []

    def watched(*arguments: Any) -> Any:
        # One step that is watched stands for several: the batch is given, and its work is done again.
        if training.progress.step == 2 * LOOK_EVERY:
            found.append(counted(lambda: step(*arguments), STEPS))
        return step(*arguments)

    with mock.patch.object(training, "_step", watched):
        training.run()
    return found[0]


def batches_of(folder: Path) -> tuple[Counter[str], Counter[str]]:
    """The same of encoding a window, by batch."""
    engine = EncodeEngine(make_encoder(TINY, folder), device="cpu", dtype="float32", batch_tokens=512)
    texts = make_texts(TINY, 100)
    with mock.patch.object(engine._encoder, "infer", wraps=engine._encoder.infer) as infer:
        engine.encode(texts)
        kernels, waits = counted(lambda: engine.encode(texts), STEPS)
    per_window = infer.call_count / (1 + 2 * STEPS)
    # Waits are told of the whole window: there is one copy of its vectors.
    return Counter({name: round(count / per_window) for name, count in kernels.items()}), waits


def main() -> None:
    """Count, and write benchmarks/results/step_profile.md."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = {
            "`teacher-embed`, per batch (waits: per window)": batches_of(folder),
            "`distill`, ckd, queue of 65,536, per step": steps_of("ckd", folder),
            "`finetune`, simcse, per step": steps_of("simcse", folder),
        }
    lines = [
        "# Kernels, copies and waits of a step",
        "",
        f"Counted with torch.profiler and benchmarks/host_waits.py on a CPU ({machine()['processor']}, torch "
        f"{torch.__version__}): a random BERT of {TINY.layers} layers, float32, steps between two looks at the log. "
        "It stands in for a profile on a GPU. The encode engine's linear layers, which are oneDNN's on a CPU, are not "
        "counted. `python benchmarks/gpu.py --profile`",
        "",
        "| work | kernels | of them copies | calls after which a host waits | most frequent kernels |",
        "|---|---|---|---|---|",
    ]
    for work, (kernels, waits) in found.items():
        often = ", ".join(f"{name} {count / STEPS:.0f}" for name, count in kernels.most_common(8))
        waiting = ", ".join(f"{name} {count / STEPS:g}" for name, count in sorted(waits.items())) or "0"
        copies = kernels["copy_"] + kernels["_to_copy"]
        lines.append(f"| {work} | {sum(kernels.values()) / STEPS:.0f} | {copies / STEPS:.0f} | {waiting} | {often} |")
    (RESULTS / "step_profile.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
