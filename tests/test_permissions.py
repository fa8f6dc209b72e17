"""Every file and folder that any stage writes is as open to others as the umask says."""

from __future__ import annotations

import importlib.util
import json
import os
import stat
from pathlib import Path

import pytest
from distilling import write_dev
from warm import Commands

from sentcompress.store import Request, WorkDirectory, atomic

RUN = """
import json, sys
from sentcompress.cli.main import _run
for words in json.loads(sys.argv[1]):
    assert _run(words) == 0, words
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# Each takes eleven commands; test_printed_commands.py has another chain, with umask 027.
@pytest.mark.slow
@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077], ids=oct)
def test_a_chain_of_stages(
    umask: int, tiny_model: Path, sentences: list[str], tmp_path: Path, commands: Commands
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"{text}\n" for text in sentences))
    dev = write_dev(tmp_path / "dev.tsv", sentences[:40])
    made = tmp_path / "made"
    training = ["--max-steps", "2", "--checkpoint-every", "0"]
    exported = ["export", *([] if importlib.util.find_spec("onnxscript") else ["--format", "folder"])]
    chain: list[list[str]] = [
        ["augment", str(lines), "--wordnet", "0", "--back-translate", "0"],
        ["teacher-embed", "--teacher", str(tiny_model)],
        ["fit-pca", "--dim", "8"],
        ["distill", "--method", "hpd", "--student", "teacher:1", *training, "--name", "s"],
        ["whiten", "--model", "s", "--dim", "4", "--name", "w"],
        ["weigh-tokens", "--model", "s", "--name", "t"],
        ["average", "s", "s", "--name", "a"],
        ["eval-sts", "--sts", str(dev), "--model", "s", "--compare", str(tiny_model)],
        [*exported, "--model", "s"],
        ["encode", str(lines), "--model", "s", "-o", str(made / "vectors.npy")],
        ["report", "-o", str(made / "pages" / "report.html")],
    ]
    given = json.dumps([[*words, "--work", str(made / "work")] for words in chain])
    done = commands([given], code=RUN, umask=umask)
    assert done.returncode == 0, done.stderr[-2000:]
    found = list(made.rglob("*"))
    assert sum(path.suffix == ".safetensors" for path in found) > 6
    wrong = {str(path.relative_to(made)): oct(mode(path)) for path in found if mode(path) != expected(path, umask)}
    assert wrong == {}


def expected(path: Path, umask: int) -> int:
    return (0o777 if path.is_dir() else 0o666) & ~umask


def test_an_unfinished_build_is_open_too(tmp_path: Path) -> None:
    """Whoever shares the work directory may look at what was interrupted."""
    work = WorkDirectory(tmp_path / "work")

    def stop() -> None:
        with work.build(Request("students", "s", "distill", {})) as build:
            with build.write("model") as folder:
                folder.mkdir()
                (folder / "weights").write_text("all")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert work.unfinished("students") == ["s"]
    for path in work.path.rglob("*"):
        assert mode(path) == expected(path, atomic.UMASK), path


def test_permissions_are_added_and_none_is_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "UMASK", 0o027)
    with atomic.written(tmp_path / "folder") as folder:
        folder.mkdir()
        folder.chmod(0o2700)  # a folder of a group hands its group on
        for name, given in (("closed", 0o600), ("program", 0o755)):
            (folder / name).touch()
            (folder / name).chmod(given)
    assert mode(tmp_path / "folder") == 0o2750
    assert mode(tmp_path / "folder" / "closed") == 0o640
    assert mode(tmp_path / "folder" / "program") == 0o755


def test_another_users_file_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch(mode=0o600)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "chmod", refuse)
    monkeypatch.setattr(atomic, "UMASK", 0)
    atomic.fsync_tree(tmp_path / "file")
    assert mode(tmp_path / "file") == 0o600
