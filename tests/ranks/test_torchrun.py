"""The example script, with the torchrun of torch itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from distilling import write_dev
from ranked import free_port

from sentcompress.store import WorkDirectory

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_example_runs_in_two_ranks(tmp_path: Path, tiny_model: Path, sentences: list[str]) -> None:
    text = tmp_path / "corpus.txt"
    text.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
    own = {
        "TEXT": str(text),
        "DEV": str(write_dev(tmp_path / "dev.tsv", sentences[:40])),
        "TEACHER": f"--teacher {tiny_model} --device cpu",
        "DISTILL": "--method mse --student teacher:1 --max-steps 3 --device cpu",
        "EXPORT": "--format folder",
        "GPUS": "2",
        "PORT": str(free_port()),
        "SENTCOMPRESS_WORK": str(tmp_path / "work"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    script = ROOT / "docs" / "examples" / "torchrun.sh"
    done = subprocess.run(["bash", script], env={**os.environ, **own}, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    work = WorkDirectory(tmp_path / "work")
    assert done.stderr.count("2 ranks on 1 host (gloo)") == 2
    rows = work.get("sentences", "main").facts["rows"]
    assert work.get("teacher-vectors", "main").facts["rows"] == rows
    assert work.get("students", "student").facts["ranks"] == 2
    assert work.names("evaluations") == ["fidelity-student"]
    assert work.names("exports") == ["student"]
