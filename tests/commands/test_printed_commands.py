"""The command that a manifest records finds its artifact fresh later, whatever has been made since."""

from __future__ import annotations

import csv
import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from distilling import write_dev
from search_documents import write_held_out
from tiny_models import make_sentences, make_tiny_model

from sentcompress.cli.main import _run
from sentcompress.commands import makers
from sentcompress.plain_text import shell_word
from sentcompress.store import WorkDirectory, atomic

TEXTS = make_sentences(150)
SHORT = "--epochs 1 --max-steps 2 --batch-size 8 --dtype float32 --eval-every 1"
STUDENT = "hpd-teacher-1-e8-f16-8"
# Once there are graphs, `bench` has more runtimes to choose from.
EXPORT = "export" if find_spec("onnxruntime") else "export --format folder"
# Every artifact and what makes it: as few names as possible, and options that are not default. {name} is a file.
MADE = {
    "documents/split": "split-documents {documents} --queries {text} --passage-words 20 --seed 3 --text-as line "
    "--name split",
    "sentences/main": "augment {nli} --wordnet 0 --back-translate 0 --limit 120 --min-length 2",
    "students/small-simcse": f"train-teacher --model {{small}} --triplets {{nli}} {SHORT} --lr 0.00123 --set dim=16 "
    "--name small-simcse",
    "teacher-vectors/main": "teacher-embed --teacher {teacher} --max-length 20 --no-normalize --layers 1,2",
    "projections/pca-8": "fit-pca --dim 8 --sample 50 --seed 2",
    f"students/{STUDENT}": "distill --method hpd --student teacher:1 --token-dim 8 --feed-forward 16 "
    f"{SHORT} --warmup-ratio 0.1 --clip 0 --set centre=false --set reduction=mean --name {STUDENT}",
    f"students/{STUDENT}-simcse-4": f"finetune {SHORT} --dim 4 --dev {{dev}} --ema 0.9 --name {STUDENT}-simcse-4",
    f"students/{STUDENT}-simcse-4-whiten-3": "whiten --dim 3 --sample 60",
    "students/weighed": "weigh-tokens --smoothing 0.1 --name weighed",
    "students/averaged": f"average {STUDENT} {STUDENT} --weights 2,1 --name averaged",
    "students/precise": f"average {STUDENT} {STUDENT} --weights 2.1234567891,1 --name precise",
    f"students/{STUDENT}-average": f"average {STUDENT} {STUDENT}",
    "sentences/mined": "mine-negatives --negatives 2 --max-score 0 --strategy top",
    "sentences/student": "mine-negatives --negatives 2 --model student --name student",
    "quantizers/small": "fit-quantizer --sentences main --vector-bytes 8 --store int8 --bootstrap 10 --name small",
    f"evaluations/sts-{STUDENT}-average-dev": "eval-sts --sts {dev} --compare teacher --bootstrap 20 --aggregate mean",
    f"evaluations/retrieval-pairs-{STUDENT}-average": "eval-retrieval --pairs {pairs} --compare teacher --index flat "
    "--rounds 1 --threads 0",
    "evaluations/sides": f"eval-retrieval --pairs {{pairs}} --document-model {STUDENT} --query-model averaged "
    "--index flat,hnsw --links 8 --rounds 1 --name sides",
    f"evaluations/transfer-{STUDENT}-average": "eval-transfer --tasks {tasks} --only MR --folds 3",
    f"evaluations/fidelity-{STUDENT}-average": "eval-fidelity --neighbours 2 --show 3 --pairwise 50",
    f"evaluations/fidelity-text-{STUDENT}-average": "eval-fidelity --text {text} --neighbours 2 --sample 40",
    "evaluations/search": f"eval-search --model {STUDENT}-average --collection {{searched}} --max-queries 5 --seed 3 "
    "--name search",
    f"evaluations/bench-{STUDENT}-average": "bench --count 20 --single 3 --rounds 1 --no-memory",
    "teacher-vectors/inside": "teacher-embed --teacher small-simcse --name inside",
    "evaluations/inside": "eval-sts --sts {dev} --compare teacher --bootstrap 0 --name inside",
    f"exports/{STUDENT}-average": EXPORT,
    "evaluations/of-averaged": "eval-sts --sts {dev} --model averaged --bootstrap 0 --name of-averaged",
    "evaluations/of-precise": "eval-sts --sts {dev} --model precise --bootstrap 0 --name of-precise",
    "students/best": "select averaged precise --by spearman_cosine --rank 2 --name best",
}
# After these, all that was left to a command's choice would be chosen otherwise.
NEWER = (
    "augment {more} --wordnet 0 --back-translate 0 --name newer",
    "teacher-embed --teacher {other}",
    "fit-pca --dim 6",
    f"distill --method hpd --projection pca-6 --student teacher:1 {SHORT} --name newer",
)
Manifests = dict[str, Mapping[str, Any]]
UMASK = 0o027


def write_files(folder: Path) -> dict[str, str]:
    """Models, and every file that a command reads."""
    for seed, name in enumerate(("teacher", "small", "other")):
        make_tiny_model(folder / name, layers=1 if name == "small" else 2, seed=seed)
    for name, texts in (("nli.csv", TEXTS[:120]), ("more.csv", TEXTS[30:150])):
        rows = [texts[start : start + 3] for start in range(0, len(texts), 3)]
        write_rows(folder / name, [("sent0", "sent1", "hard_neg"), *rows], ",")
    write_dev(folder / "dev.tsv", TEXTS[:30])
    (folder / "text.txt").write_text("\n".join(TEXTS[:60]) + "\n", encoding="utf-8")
    (folder / "documents.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    asked = [(first, second, n % 2) for n, (first, second) in enumerate(pairwise(TEXTS[:60]))]
    write_rows(folder / "pairs.tsv", [("question1", "question2", "is_duplicate"), *asked], "\t")
    write_held_out(folder / "searched", TEXTS[:80], TEXTS[80:90])
    (folder / "my tasks" / "MR").mkdir(parents=True)
    write_rows(folder / "my tasks" / "MR" / "all.tsv", [(int("dog" in text), text) for text in TEXTS[:90]], "\t")
    return {path.stem.removeprefix("my "): str(path) for path in folder.iterdir()}


def write_rows(path: Path, rows: Sequence[Sequence[Any]], delimiter: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=delimiter, lineterminator="\n").writerows(rows)


@pytest.fixture(scope="module")
def under_umask(tmp_path_factory: pytest.TempPathFactory) -> tuple[WorkDirectory, Manifests, dict[Path, int]]:
    """The work directory, the manifests of `MADE` before `NEWER`, and the modes of all files."""
    files = write_files(tmp_path_factory.mktemp("files"))
    work = WorkDirectory(tmp_path_factory.mktemp("printed") / "my work")
    manifests: Manifests = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atomic, "UMASK", UMASK)
        before = os.umask(UMASK)
        try:
            for reference, line in [*MADE.items(), *(("", line) for line in NEWER)]:
                words = [word.format(**files) for word in line.split()]
                assert _run([*words, "--work", str(work.path), "-q", "--json"]) == 0, line
                if reference:
                    manifests[reference] = work.get(*reference.split("/", 1)).manifest
        finally:
            os.umask(before)
    return work, manifests, {path: stat.S_IMODE(path.stat().st_mode) for path in work.path.rglob("*")}


@pytest.fixture(scope="module")
def made(under_umask: tuple[WorkDirectory, Manifests, dict[Path, int]]) -> tuple[WorkDirectory, Manifests]:
    return under_umask[:2]


def test_every_file_is_as_open_as_the_umask_says(
    under_umask: tuple[WorkDirectory, Manifests, dict[Path, int]],
) -> None:
    modes = under_umask[2]
    assert sum(path.suffix == ".safetensors" for path in modes) > 6
    wrong = {path: oct(mode) for path, mode in modes.items() if mode != (0o777 if path.is_dir() else 0o666) & ~UMASK}
    assert wrong == {}


@pytest.mark.parametrize("reference", MADE)
def test_the_recorded_command_run_again_finds_its_artifact_fresh(
    made: tuple[WorkDirectory, Manifests], reference: str
) -> None:
    work, manifests = made
    kind, name = reference.split("/", 1)
    there = set(work.names(kind))
    line = work.get(kind, name).command_line()
    words = shlex.split(line.removesuffix(f" --work {shell_word(work.path)}"))
    assert words[0] == "sentcompress"
    assert _run([*words[1:], "--work", str(work.path), "-q"]) == 0
    assert work.get(kind, name).manifest == manifests[reference], words
    assert set(work.names(kind)) == there, words


def test_every_command_that_makes_an_artifact_is_among_them() -> None:
    assert {line.split()[0] for line in MADE.values()} == set(makers())
