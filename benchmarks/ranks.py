"""Two and four gloo ranks against one process, for every method, with tiny random models: differences of the weights.

    python benchmarks/ranks.py [--steps 12] [--lr 5e-5] [--kills N]

Every method also runs in four ranks of which one, drawn at random, is killed (SIGKILL) in a random step; the run then
continues from its last checkpoint in two ranks. Batches hold 10 rows, so that the shares of four ranks differ in size.
All dev scores are made equal, so that the weights of the last step are compared and not those of another one. Writes
benchmarks/results/ranks.json and ranks.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # a killed rank is no news

import torch
from running import machine, write_results
from safetensors.torch import load_file

from sentcompress.commands.distill import Params as Distill
from sentcompress.commands.finetune import Params as Finetune
from sentcompress.commands.fit_pca import Params as FitPCA
from sentcompress.commands.teacher_embed import Params as TeacherEmbed
from sentcompress.errors import RankError
from sentcompress.methods import METHODS
from sentcompress.models.layout import load_encoder
from sentcompress.models.sources import resolve
from sentcompress.progress import SILENT
from sentcompress.stages import distill, finetune, fit_pca, teacher_embed
from sentcompress.store import Artifact, WorkDirectory
from sentcompress.training import deploy, loop, selection

ROOT = Path(__file__).resolve().parents[1]
SENTENCES, TRIPLETS = 300, 90
Numbers = dict[str, Any]


def runs() -> dict[str, tuple[str, Numbers]]:
    """Each row of the table: the command and its own options."""
    student = {"student": "teacher:2"}
    found: dict[str, tuple[str, Numbers]] = {name: ("distill", {"method": name, **student}) for name in METHODS}
    for name in ("ckd", "simtde"):
        options: Numbers = {"options": ("relation=1",)} if name == "simtde" else {"options": ("queue=50",)}
        found[f"{name}, `--grad-accum 2`"] = ("distill", {"method": name, **student, "grad_accum": 2, **options})
    for name in ("simcse", "ibkd"):
        found[f"finetune {name}"] = ("finetune", {"objective": name})
    found["finetune simcse, `keep=1`"] = ("finetune", {"objective": "simcse", "options": ("keep=1",)})
    return found


def prepare(folder: Path) -> None:
    """A work directory for every method, and graded pairs."""
    sys.path.insert(0, str(ROOT / "tests"))
    from distilling import add_triplets, make_work, write_dev
    from tiny_models import make_sentences, make_tiny_model

    sentences = make_sentences(SENTENCES)
    teacher = make_tiny_model(folder / "teacher", layers=4)
    work = make_work(folder / "work", teacher, sentences)
    asked = TeacherEmbed(teacher=str(teacher), dtype="float32", layers=(2, 4), device="cpu", force=True)
    teacher_embed.run(asked, work, SILENT)
    fit_pca.run(FitPCA(dim=8), work, SILENT)
    add_triplets(work, sentences[:TRIPLETS])
    write_dev(folder / "dev.tsv", sentences[:20])


def train(folder: Path, work: WorkDirectory, command: str, options: Numbers) -> Artifact:
    if command == "distill":
        return distill.run(Distill(**options, dev=folder / "dev.tsv"), work, SILENT)
    asked = Finetune(**options, dev=folder / "dev.tsv", model=str(folder / "teacher"))
    return finetune.run(asked, work, SILENT)


def in_rank(variables: Mapping[str, str], killed_at: int | None, jobs: Sequence[tuple[Any, ...]]) -> None:
    """Train as one rank, which is killed in a step, if one is given."""
    os.environ.update(variables)
    step = loop.Training._step

    def deadly(training: loop.Training, *more: Any) -> Any:
        if training.progress.step == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(training, *more)

    try:
        with mock.patch.object(loop.Training, "_step", deadly):
            for given in jobs:
                train(*given)
    except RankError:
        if variables["KILLED"] == "0":
            raise
        sys.exit(1)


def in_ranks(count: int, jobs: Sequence[tuple[Any, ...]], killed: tuple[int, int] | None = None) -> None:
    """Train one student after another in several ranks.

    Args:
        killed: a rank, and the step in which it is killed.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    common |= {"GLOO_SOCKET_IFNAME": "lo", "KILLED": str(int(killed is not None))}
    # A fork has loaded all modules already.
    context = multiprocessing.get_context("fork")
    processes = []
    for rank in range(count):
        step = killed[1] if killed and killed[0] == rank else None
        variables = {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        processes.append(context.Process(target=in_rank, args=(variables, step, jobs)))
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    codes = [process.exitcode for process in processes]
    if killed is None and any(codes):
        raise SystemExit(f"the ranks ended with {codes}")
    if killed is not None and not all(codes):
        raise SystemExit(f"rank {killed[0]} was killed, but the ranks ended with {codes}")


def differences(one: Artifact, other: Artifact, texts: Sequence[str]) -> dict[str, float]:
    """The largest differences of weights and of vectors."""
    first, second = (load_file(found.path / "model" / "model.safetensors") for found in (one, other))
    ours, theirs = (vectors(found.path / "model", texts) for found in (one, other))
    return {
        "weights": max(float((first[name] - second[name]).abs().max()) for name in first),
        "vectors": float((ours - theirs).abs().max()),
    }


def vectors(folder: Path, texts: Sequence[str]) -> torch.Tensor:
    encoder = load_encoder(resolve(str(folder))).eval()
    with torch.no_grad():
        return torch.cat([encoder(torch.tensor([ids]), torch.ones(1, len(ids))) for ids in encoder.tokenize(texts)])


def measure(steps: int, lr: float, kills: int) -> list[dict[str, Any]]:
    """A row for every method."""
    numbers: Numbers = {"lr": lr, "epochs": 9, "max_steps": steps, "batch_size": 10, "eval_every": steps}
    numbers |= {"dropout": 0.0, "dtype": "float32", "device": "cpu"}
    generator = random.Random(0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        prepare(folder)
        from tiny_models import make_sentences

        texts = make_sentences(50)
        places = {
            name: WorkDirectory(shutil.copytree(folder / "work", folder / name)) for name in ("1", "2", "4", "killed")
        }
        jobs = {
            place: [
                (folder, work, command, {**options, **numbers, "name": f"student-{number}"})
                for number, (command, options) in enumerate(runs().values())
            ]
            for place, work in places.items()
        }
        for *_, options in jobs["killed"]:
            options["checkpoint_seconds"] = 1e-3  # after every step
        for count in (1, 2, 4):
            in_ranks(count, jobs[str(count)])
            print(f"{count} ranks have trained {len(runs())} students", flush=True)
        rows = []
        for number, name in enumerate(runs()):
            found = {place: work.find("students", f"student-{number}") for place, work in places.items()}
            row: dict[str, Any] = {"method": name}
            if number < kills:
                rank, step = generator.randrange(4), generator.randrange(1, steps)
                in_ranks(4, [jobs["killed"][number]], (rank, step))
                in_ranks(2, [jobs["killed"][number]])
                found["killed"] = places["killed"].get("students", f"student-{number}")
                row["rank_killed"], row["step_killed"] = rank, step
            one = found.pop("1")
            assert one is not None
            row |= {place: differences(one, other, texts) for place, other in found.items() if other}
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows


def equal(*_: Any) -> float:
    """The dev score of every checkpoint."""
    return 50.0


def page(document: dict[str, Any]) -> str:
    """The results as Markdown."""
    rows, places = document["rows"], ("2", "4", "killed")
    lines = [
        "| method | 2 ranks | 4 ranks | 4 ranks, one killed, continued with 2 | vectors |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        found = {place: row[place] for place in places if place in row}
        cells = [f"{found[place]['weights']:.1e}" if place in found else "not run" for place in places]
        cells.append(f"{max(one['vectors'] for one in found.values()):.1e}")
        lines.append(f"| {row['method']} | {' | '.join(cells)} |")
    largest = max(row[place]["weights"] for row in rows for place in places if place in row)
    return (
        "# Ranks against one process\n\n"
        "Largest absolute difference of a weight after training in several ranks and in one process, with the same\n"
        f"global batch: {document['steps']} steps of 10 rows, learning rate {document['lr']:g}, float32 on the CPU,\n"
        "no dropout, tiny random BERT models. In the fourth column, one of four ranks is killed in a random step; the\n"
        "run continues from its last checkpoint with two ranks. The last column is the largest of all runs.\n\n"
        + "\n".join(lines)
        + f"\n\nThe largest difference is {largest:.1e}.\n\n"
        f"{document['machine']['processor']}, {document['machine']['cores']} cores. "
        f"`python benchmarks/ranks.py --steps {document['steps']} --lr {document['lr']:g}` repeats the measurement.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--lr", type=float, default=5e-5)
    parser.add_argument("--kills", type=int, default=len(runs()), help="in the first N rows only")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with mock.patch.object(deploy, "score_of", equal), mock.patch.object(selection, "score_of", equal):
        rows = measure(asked.steps, asked.lr, asked.kills)
    document = {"steps": asked.steps, "lr": asked.lr, "machine": machine(), "rows": rows}
    write_results("ranks", document, page(document))
    print(page(document))


if __name__ == "__main__":
    main()
