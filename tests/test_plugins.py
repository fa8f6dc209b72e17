"""A package that adds a method, an evaluation and an export format: the one that docs/plugins.md describes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from distilling import make_work
from tiny_models import make_sentences
from warm import Commands

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")


def write_package(folder: Path, entry_points: dict[str, dict[str, str]], version: str = "0.1") -> None:
    """A package `tiny`, as an installer would leave it: its modules and the metadata of its distribution."""
    found = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    (folder / "tiny").mkdir(parents=True, exist_ok=True)
    (folder / "tiny" / "__init__.py").write_text("", encoding="utf-8")
    for name, text in zip(("method", "spread", "npz"), found, strict=True):
        (folder / "tiny" / f"{name}.py").write_text(text, encoding="utf-8")
    metadata = folder / "tiny-0.1.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n", encoding="utf-8")
    lines = [
        f"[{group}]\n" + "".join(f"{n} = {p}\n" for n, p in names.items()) for group, names in entry_points.items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")


def declared() -> dict[str, dict[str, str]]:
    """The entry points of the page."""
    found = tomllib.loads(PAGE.split("```toml\n")[1].split("```")[0])
    return found["project"]["entry-points"]  # type: ignore[no-any-return]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    write_package(tmp_path / "site", declared())
    return tmp_path / "site"


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def sentcompress(commands: Commands) -> Run:
    """Runs a command, or code, in a process that sees the package."""

    def run(package: Path, *words: str, code: str | None = None) -> tuple[int, str, str]:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{package}", "HF_HUB_OFFLINE": "1"}
        done = commands(words, environment=environment, folder=package.parent, path=[package], code=code)
        return done.returncode, done.stdout, done.stderr

    return run


def test_a_method_an_evaluation_and_a_format_of_a_package_work(
    sentcompress: Run, package: Path, tiny_model: Path
) -> None:
    work = make_work(package.parent / "work", tiny_model, make_sentences(60))
    code, _, err = sentcompress(package, "distill", "--method", "tiny-mse", "--student", "teacher:1", "--name", "small")
    assert code == 0, err
    made = work.get("students", "small")
    assert made.facts["method"] == "tiny-mse"
    assert made.parameters["package"] == "tiny 0.1"

    code, out, err = sentcompress(package, "eval-spread", "--model", "small")
    assert (code, re.findall(r"^spread +0\.", out, flags=re.MULTILINE) != []) == (0, True), err
    assert work.get("evaluations", "spread-small").facts["spread"] > 0

    code, out, err = sentcompress(package, "export", "--model", "small", "--format", "npz", "--json")
    assert code == 0, err
    facts = json.loads(out)["facts"]
    assert list(facts["checked"]) == ["folder", "npz"]
    assert facts["formats"]["npz"] == {"title": "token table", "files": ["tokens.npz"]}
    assert "tokens.npz" in facts["bytes"]
    assert "token table" in (work.get("exports", "small").path / "README.md").read_text(encoding="utf-8")

    library = "import sentcompress; work = sentcompress.Workspace('work'); made = work.eval_spread(model='small'); "
    code, out, err = sentcompress(package, code=f"{library}print(made.name, work.scores()[0]['metric'])")
    assert out.split() == ["spread-small", "spread"], err


def test_its_commands_are_in_the_help_and_in_recipes(sentcompress: Run, package: Path) -> None:
    _, out, err = sentcompress(package, "--help")
    assert re.search(r"^  eval-spread +Measure how far apart", out, flags=re.MULTILINE)
    assert err == ""
    _, out, _ = sentcompress(package, "eval-spread", "--help")
    assert "--texts" in out
    recipe = package.parent / "r.toml"
    recipe.write_text('about = "x"\n\n[[stage]]\ncommand = "eval-spread"\nmodel = "m"\ntexts = 3\n', encoding="utf-8")
    code, _, err = sentcompress(package, "run", "r.toml")
    assert (code, "--texts must be a string, or a list of them, not 3" in err) == (2, True), err


def test_a_package_that_loads_the_hub_s_library_is_offline_too(package: Path) -> None:
    spread = package / "tiny" / "spread.py"
    told = "from huggingface_hub import constants\nprint('offline:', constants.HF_HUB_OFFLINE)\n"
    spread.write_text(spread.read_text(encoding="utf-8") + told, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
    for words, offline in (["methods"], False), (["methods", "--offline"], True):
        done = subprocess.run(
            [sys.executable, "-m", "sentcompress", *words],
            env={**environment, "PYTHONPATH": f"{ROOT}{os.pathsep}{package}"},
            cwd=package.parent,
            capture_output=True,
            text=True,
            check=True,
        )
        assert f"offline: {offline}\n" in done.stdout


def test_a_mistyped_name_proposes_what_a_package_adds(sentcompress: Run, package: Path) -> None:
    code, _, err = sentcompress(package, "distill", "--method", "tiny-msee")
    assert (code, "did you mean tiny-mse?" in err) == (2, True)
    code, _, err = sentcompress(package, "export", "--format", "npy")
    assert (code, "did you mean npz?" in err) == (2, True)


def test_another_version_of_the_package_is_another_request(sentcompress: Run, package: Path) -> None:
    code = "from sentcompress.methods import package_of as p; print(p('tiny-mse'), p('mse'))"
    assert sentcompress(package, code=code)[1] == "{'package': 'tiny 0.1'} {}\n"
    write_package(package, declared(), version="0.2")
    assert sentcompress(package, code=code)[1] == "{'package': 'tiny 0.2'} {}\n"


def test_what_cannot_be_used_is_told_and_the_rest_works(sentcompress: Run, tmp_path: Path) -> None:
    broken = {
        "sentcompress.evaluations": {
            "eval-none": "tiny.nowhere",
            "distill": "tiny.spread",
            "eval-other": "tiny.spread",
        },
        "sentcompress.methods": {"mse": "tiny.method:TinyMSE", "path": "pathlib:Path", "gone": "tiny.method:Gone"},
    }
    write_package(tmp_path / "site", broken)
    code, out, err = sentcompress(tmp_path / "site", "--help")
    assert (code, "eval-none" in out, len(err.splitlines())) == (0, False, 3), err
    assert "warning: distill of the package tiny 0.1 is ignored: sentcompress already has that name" in err
    assert "warning: eval-none of the package tiny 0.1 cannot be loaded: ModuleNotFoundError" in err
    assert "warning: eval-other of the package tiny 0.1 cannot be used: tiny.spread.COMMAND must be" in err
    for method, told in (("path", "is not a Method of distill"), ("gone", "AttributeError")):
        code, _, err = sentcompress(tmp_path / "site", "distill", "--method", method)
        assert (code, told in err, "help:  update or remove tiny 0.1" in err) == (1, True, True), err
        assert "warning: mse of the package tiny 0.1 is ignored" in err
        assert "SentcompressWarning" not in err


def test_the_help_loads_no_heavy_package_with_plugins(sentcompress: Run, package: Path) -> None:
    """So that it is as quick as without plugins. In a process of its own: these tests' processes have loaded torch."""
    help_of = "import contextlib, sys; sys.argv = ['sentcompress', '--help']; from sentcompress.__main__ import main\n"
    help_of += "with contextlib.suppress(SystemExit): main()\n"
    help_of += "print('loaded:', *sorted({'torch', 'transformers', 'numpy', 'pyarrow', 'sklearn'} & set(sys.modules)))"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {help_of!r}])"
    assert sentcompress(package, code=code)[1].splitlines()[-1] == "loaded:"
