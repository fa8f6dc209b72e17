"""The error boundary: two lines on standard error, an exit code, never a traceback."""

from __future__ import annotations

import errno
import json
import os
import platform
import signal
import subprocess
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from warm import Commands

from sentcompress import __main__ as start
from sentcompress.cli import main as command_line
from sentcompress.cli.main import COMMANDS, _run, main
from sentcompress.errors import InputError, SentcompressError, UsageError
from sentcompress.exit_codes import BUSY
from sentcompress.signals import GO_ON
from sentcompress.stages import status
from sentcompress.store import Request, WorkDirectory

ROOT = Path(__file__).resolve().parents[2]

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let `sentcompress status` fail with this error."""

    def run(*_: Any) -> None:
        raise error

    monkeypatch.setattr(status, "run", run)


def outcome(capsys: Captured, arguments: list[str]) -> tuple[int, str, str]:
    code = _run(arguments)
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


def test_success_is_0(capsys: Captured, work: Path) -> None:
    code, out, err = outcome(capsys, ["status", "--work", str(work)])
    assert (code, err) == (0, "")
    assert str(work) in out.replace("\n", "")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"], ["fit-pca", "--help"]])
def test_help_and_version_are_0(capsys: Captured, arguments: list[str]) -> None:
    code, out, err = outcome(capsys, arguments)
    assert (code, err) == (0, "")
    assert out


def test_every_command_is_in_the_help(capsys: Captured) -> None:
    _, out, _ = outcome(capsys, ["--help"])
    listed = out.split("Commands:")[1]
    assert [line.split()[0] for line in listed.splitlines() if line[:3].strip()] == [*COMMANDS]


def test_no_command_prints_the_help_and_is_2(capsys: Captured) -> None:
    code, out, err = outcome(capsys, [])
    assert (code, out) == (2, "")
    assert err.startswith("Usage: sentcompress")


@pytest.mark.parametrize(
    ("arguments", "error", "help_line"),
    [
        (["fitpca"], "no such command: fitpca", "did you mean fit-pca?"),
        (["zzz"], "no such command: zzz", f"choose one of: {', '.join(sorted(COMMANDS))}"),
        (["--versoin"], "no such option: --versoin", "did you mean --version? (run: sentcompress --help)"),
        (
            ["fit-pca", "--dimm", "3"],
            "no such option: --dimm",
            "did you mean --dim? (run: sentcompress fit-pca --help)",
        ),
        (["fit-pca", "--dim"], "option '--dim' requires an argument.", "run: sentcompress fit-pca --help"),
        (["fit-pca", "more"], "sentcompress fit-pca takes no more arguments: more", "run: sentcompress fit-pca --help"),
        (["eval-sts"], "eval-sts: --sts is missing", "run: sentcompress eval-sts --help"),
    ],
)
def test_usage_mistakes_are_2(capsys: Captured, arguments: list[str], error: str, help_line: str) -> None:
    assert outcome(capsys, arguments) == (2, "", f"error: {error}\nhelp:  {help_line}\n")


def test_an_option_that_resembles_no_other_is_told_all_options_and_nothing_else(capsys: Captured) -> None:
    _, _, err = outcome(capsys, ["encode", "--zzzz"])
    listed = err.partition("choose one of: ")[2].partition(" (run:")[0].split(", ")
    assert "--store" in listed
    assert [name for name in listed if not name.startswith("--")] == []


def test_a_value_of_the_wrong_type_is_2_and_names_the_option(capsys: Captured) -> None:
    code, _, err = outcome(capsys, ["fit-pca", "--dim", "many"])
    assert code == 2
    assert err == "error: fit-pca: --dim must be a whole number, not 'many'\nhelp:  run: sentcompress fit-pca --help\n"


def test_all_faults_of_a_request_are_told_at_once(capsys: Captured, work: Path) -> None:
    code, _, err = outcome(capsys, ["fit-pca", "--dim", "0", "--sample", "1", "--work", str(work)])
    assert code == 2
    assert err.splitlines() == [
        "error: fit-pca: 2 errors",
        "  - --dim must be at least 1, not 0",
        "  - --sample must be at least 2, not 1",
        "help:  run: sentcompress fit-pca --help",
    ]


def test_a_missing_stage_names_the_command(capsys: Captured, work: Path) -> None:
    assert outcome(capsys, ["fit-pca", "--work", str(work)]) == (
        1,
        "",
        f"error: no teacher vectors in {work}\nhelp:  run: sentcompress teacher-embed --work {work}\n",
    )


def test_the_work_directory_comes_from_the_environment_and_a_flag_beats_it(
    capsys: Captured, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENTCOMPRESS_WORK", "/nowhere/at/all")
    assert "in /nowhere/at/all" in outcome(capsys, ["fit-pca"])[2]
    assert f"in {work}" in outcome(capsys, ["fit-pca", "--work", str(work)])[2]


def test_a_work_directory_that_is_a_file_is_1(capsys: Captured, tmp_path: Path) -> None:
    (tmp_path / "work").touch()
    for command in ("status", "fit-pca"):
        code, _, err = outcome(capsys, [command, "--work", str(tmp_path / "work")])
        assert code == 1
        assert "is a file" in err


FORESEEN: list[tuple[BaseException, int, str]] = [
    (InputError("no such thing", "look elsewhere"), 1, "error: no such thing\nhelp:  look elsewhere\n"),
    (SentcompressError("just so"), 1, "error: just so\n"),
    (UsageError("not so"), 2, "error: not so\n"),
    (KeyboardInterrupt(), 130, f"error: interrupted\nhelp:  {GO_ON}\n"),
    (typer.Exit(3), 3, ""),
]
FULL = "error: the disk is full\n"
UNFORESEEN: list[tuple[Exception, str]] = [
    (OSError(errno.ENOSPC, "No space left on device"), FULL),
    (OSError(errno.EDQUOT, "Disk quota exceeded"), FULL),
    (OSError(errno.ENOSPC, "No space left on device", "work/x.npy"), "error: the disk is full: work/x.npy\n"),
    (OSError("4096 requested and 100 written"), FULL),
    (Exception("Error parsing message with type 'onnx.ModelProto': Wire format was corrupt"), FULL),
    (RuntimeError("[enforce fail at inline_container.cc:668] . PytorchStreamWriter failed writing file data/0"), FULL),
    (Exception("Error while serializing: I/O error: No space left on device (os error 28)"), FULL),
    (
        OSError(errno.EFBIG, "File too large", "big.npy"),
        "error: the file is too large for this disk",
    ),
    (Exception("I/O error: File too large (os error 27)"), "error: the file is too large for this disk"),
    (PermissionError(errno.EACCES, "Permission denied", "/their/file"), "error: no permission to write /their/file\n"),
    (OSError(errno.EROFS, "Read-only file system", "/cdrom/x"), "error: no permission to write /cdrom/x\n"),
    (
        FileNotFoundError(errno.ENOENT, "No such file or directory", "gone"),
        "error: No such file or directory: gone\nhelp:  fix the cause",
    ),
    (
        OSError(errno.EIO, "Input/output error", "x.npy"),
        "error: the disk failed to read or write: Input/output error: x.npy\nhelp:  check the disk",
    ),
    (
        Exception("Input/output error (os error 5)"),
        "error: the disk failed to read or write: Input/output error (os error 5)\nhelp:  check the disk",
    ),
    (Exception("Too many open files (os error 24)"), "error: Too many open files (os error 24)\nhelp:  fix the cause"),
    (MemoryError(), "error: out of memory: MemoryError\nhelp:  free some memory, or use a machine with more\n"),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "error: out of memory"),
    (RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be reported later"), "error: out of memory"),
    (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"), "error: out of memory"),
    (ValueError("first line\nsecond line"), "error: ValueError: first line\nhelp:  this is a bug in sentcompress"),
    (AssertionError(), "error: AssertionError: AssertionError\nhelp:  this is a bug in sentcompress"),
]


@pytest.mark.parametrize(("error", "code", "lines"), FORESEEN, ids=lambda value: type(value).__name__)
def test_foreseen_errors(
    capsys: Captured, work: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, lines: str
) -> None:
    failing(monkeypatch, error)
    assert outcome(capsys, ["status", "--work", str(work)]) == (code, "", lines)


@pytest.mark.parametrize(("error", "lines"), UNFORESEEN, ids=lambda value: str(value)[:30])
def test_unforeseen_errors_are_1_and_told_in_two_lines(
    capsys: Captured, work: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, lines: str
) -> None:
    failing(monkeypatch, error)
    code, out, err = outcome(capsys, ["status", "--work", str(work)])
    assert (code, out) == (1, "")
    assert err.startswith(lines)
    assert len(err.splitlines()) <= 2


@pytest.mark.parametrize(
    ("command", "options"),
    [("distill", ("--batch-size", "--batch-tokens")), ("encode", ("--batch-tokens",)), ("eval-sts", ())],
)
def test_who_runs_out_of_memory_is_told_an_option_that_the_command_has(command: str, options: tuple[str, ...]) -> None:
    smaller = "".join(f"use a smaller {option}, or " for option in options)
    hint = command_line._unforeseen(MemoryError(), [command]).hint
    assert hint == f"{smaller}free some memory, or use a machine with more"


@pytest.mark.parametrize(
    ("error", "code"),
    [(InputError("no such thing", "look elsewhere"), 1), (KeyboardInterrupt(), 130), (ValueError("a defect"), 1)],
)
def test_with_json_a_failure_is_a_document_too(
    capsys: Captured, work: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    failing(monkeypatch, error)
    ended, out, err = outcome(capsys, ["status", "--json", "--work", str(work)])
    document = json.loads(out)
    assert ended == document["exit_code"] == code
    assert err == f"error: {document['error']}\nhelp:  {document['help']}\n"


def test_with_json_a_mistake_on_the_command_line_is_a_document_too(capsys: Captured) -> None:
    code, out, _ = outcome(capsys, ["fit-pca", "--json", "--dimm", "3"])
    assert (code, json.loads(out)) == (
        2,
        {
            "error": "no such option: --dimm",
            "help": "did you mean --dim? (run: sentcompress fit-pca --help)",
            "exit_code": 2,
        },
    )


def test_a_failure_after_the_result_adds_no_second_document(capsys: Captured, work: Path) -> None:
    directory = WorkDirectory(work)
    with directory.build(Request("sentences", "main", "augment", {})) as build:
        with build.write("a.txt") as path:
            path.write_text("one", encoding="utf-8")
        made = build.finish({})
    (made.path / "a.txt").write_text("two", encoding="utf-8")
    code, out, err = outcome(capsys, ["status", "--verify", "--json", "--work", str(work)])
    assert (code, [row["state"] for row in json.loads(out)["artifacts"]]) == (1, ["damaged"])
    assert err.startswith("error: damaged: sentences/main")


def test_a_developer_may_have_the_traceback(capsys: Captured, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, ValueError("here"))
    monkeypatch.setenv("SENTCOMPRESS_DEBUG", "1")
    assert _run(["status", "--work", str(work)]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--offline", "status"], ["status", "--offline"]])
def test_offline_may_stand_anywhere(work: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--work", str(work)])
    assert ended.value.code == 0
    assert os.environ["HF_HUB_OFFLINE"] == "1"


def test_a_second_run_is_told_of_the_first(capsys: Captured, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = WorkDirectory(work)
    with directory.build(Request("teacher-vectors", "main", "teacher-embed", {})) as build:
        with build.write("vectors-00000.npy") as path, path.open("wb") as stream:
            np.save(stream, np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32))
        build.finish({})
    for module in ("artifacts", "locking"):
        monkeypatch.setattr(f"sentcompress.store.{module}.PATIENCE_SECONDS", 0.0)
    with directory.build(Request("projections", "pca-4", "fit-pca", {})):
        code, _, err = outcome(capsys, ["fit-pca", "--dim", "4", "--work", str(work)])
    assert code == BUSY
    assert f"is being written by process {os.getpid()} on" in err
    assert outcome(capsys, ["fit-pca", "--dim", "4", "--work", str(work), "-q"])[0] == 0


# What only a process of its own can show


def sentcompress(arguments: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sentcompress", *arguments]
    return subprocess.run(command, text=True, stderr=subprocess.PIPE, timeout=600, **options)


@pytest.mark.parametrize("asked", ["--help", "status", "status --json"])
def test_a_reader_that_has_gone_is_141_and_silent(asked: str, work: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "SENTCOMPRESS_WORK": str(work)}
    done = sentcompress(asked.split(), stdout=writing, env=environment)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_standard_streams_may_be_closed(closed: str, work: Path) -> None:
    """As a daemon may leave them."""
    command = [sys.executable, "-m", "sentcompress", "status", "--work", str(work)]
    done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *command], capture_output=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_standard_output_is_told() -> None:
    with Path("/dev/full").open("w") as full:
        done = sentcompress(["--help"], stdout=full)
    assert done.returncode == 1
    assert done.stderr.startswith(FULL)


def test_an_output_that_is_not_utf_8_gets_escapes(work: Path) -> None:
    strange = work.parent / "Größe"
    strange.mkdir()
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = sentcompress(["status", "--json", "--work", str(strange)], stdout=subprocess.PIPE, env=environment)
    assert done.returncode == 0, done.stderr
    assert r"Gr\u00f6\u00dfe" in done.stdout


@pytest.mark.parametrize(
    ("sent", "code", "told"),
    [(signal.SIGINT, 130, "error: interrupted"), (signal.SIGTERM, 143, "error: stopped by SIGTERM")],
)
def test_an_interrupt_and_the_end_that_a_scheduler_sends_are_told(
    tmp_path: Path, sent: signal.Signals, code: int, told: str
) -> None:
    pipe = tmp_path / "lines.txt"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "sentcompress", "augment", str(pipe), "--work", str(tmp_path / "work")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    with pipe.open("w"):  # opens when the command does: it is at work and waits for lines
        time.sleep(0.2)
        process.send_signal(sent)
        _, err = process.communicate(timeout=600)
    assert process.returncode == code
    assert told in err
    assert "Traceback" not in err


def test_a_limit_on_file_sizes_is_told(work: Path, commands: Commands) -> None:
    with WorkDirectory(work).build(Request("teacher-vectors", "main", "teacher-embed", {})) as build:
        with build.write("vectors-00000.npy") as path, path.open("wb") as stream:
            np.save(stream, np.random.default_rng(0).normal(size=(300, 200)).astype(np.float32))
        build.finish({})

    done = commands(["fit-pca", "--work", work], file_size=4096)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "too large for this disk" in done.stderr
    assert WorkDirectory(work).names("projections") == []


def test_the_console_script_begins_where_the_module_does() -> None:
    (script,) = (entry for entry in entry_points(group="console_scripts") if entry.name == "sentcompress")
    assert script.load() is start.main


FAULTS = """
import resource, sys
from sentcompress.cli.main import keep_freed_memory
kept = sys.argv[1] == "kept" and keep_freed_memory()
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
block = b"x" * (48 << 20)
del block
before = faults()
for _ in range(20):
    block = b"x" * (48 << 20)
    del block
print(int(kept), faults() - before)
"""


def page_faults(side: str, **environment: str) -> tuple[int, int]:
    """Whether glibc was told to keep memory, and the page faults of 20 blocks of 48 MiB, each freed before the next."""
    usual = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    command = [sys.executable, "-c", FAULTS, side]
    out = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=usual | environment).stdout
    kept, count = out.split()
    return int(kept), int(count)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's malloc can be told to keep memory")
def test_freed_blocks_are_kept_for_the_next() -> None:
    kept, faults = page_faults("kept")
    assert kept
    assert faults < page_faults("default")[1] / 10


@pytest.mark.parametrize("variable", ["MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"])
def test_malloc_stays_as_the_environment_has_it(variable: str) -> None:
    value = {"MALLOC_TRIM_THRESHOLD_": "131072", "GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072"}[variable]
    assert page_faults("kept", **{variable: value})[0] == 0


def test_the_command_line_tells_malloc(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[bool] = []
    monkeypatch.setattr(command_line, "keep_freed_memory", lambda: told.append(True))
    with pytest.raises(SystemExit):
        main(["--version"])
    assert told == [True]


@pytest.mark.parametrize("given", [["--work", " "], ["--work", ""], []])
def test_a_blank_work_directory_is_an_error(
    capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SENTCOMPRESS_WORK", " ")
    Path("a.txt").write_text("A line of text.\n", encoding="utf-8")
    code, out, err = outcome(capsys, ["augment", "a.txt", *given])
    assert (code, out) == (2, "")
    assert err == (
        "error: augment: --work, or SENTCOMPRESS_WORK, must not be blank\nhelp:  name a folder, or leave both out\n"
    )
    assert os.listdir() == ["a.txt"]


@pytest.mark.parametrize(("threads", "entries"), [(1, 16), (2, 16), (4, 32), (16, 128), (64, 128)])
def test_the_caches_hold_the_kernels_of_all_batches_that_are_encoded_at_a_time(threads: int, entries: int) -> None:
    assert command_line.kernel_cache_entries(threads) == entries


def test_cache_sizes_that_are_set_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "7")
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", raising=False)
    with pytest.raises(SystemExit):
        command_line.main(["--version"])
    expected = str(command_line.kernel_cache_entries(os.cpu_count() or 1))
    assert [os.environ.pop(name) for name in command_line.KERNEL_CACHES] == [expected, "7"]
