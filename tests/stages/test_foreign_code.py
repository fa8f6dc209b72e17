"""Code that comes with a model: which commands run it, and only when the user says so on that command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distilling import make_work
from hostile import FILES, SPELLINGS, ask_for_code, with_code, write_code
from hub import asking, serve_hub
from warm import Commands

from sentcompress.errors import InputError
from sentcompress.models.catalog import find_model
from sentcompress.stages import (
    augment,
    average,
    distill,
    encode,
    export,
    finetune,
    status,
    teacher_embed,
    train_teacher,
    weigh_tokens,
    whiten,
)
from sentcompress.store import Request, WorkDirectory

SHORT: dict[str, Any] = {"epochs": 1, "batch_size": 8, "max_steps": 2, "dtype": "float32", "device": "cpu"}
REFUSED = "wants to run Python code that comes with it"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path, sentences: list[str]) -> WorkDirectory:
    """Sentences with vectors, called main, and 60 triplets, called nli."""
    folder = tmp_path_factory.mktemp("foreign")
    work = make_work(folder / "work", tiny_model, sentences[:200])
    (folder / "nli.csv").write_text(triplets(sentences), encoding="utf-8")
    augment.run(augment.Params(inputs=(str(folder / "nli.csv"),), wordnet=0, back_translate=0, name="nli"), work)
    return work


def triplets(sentences: list[str]) -> str:
    rows = [",".join(sentences[start : start + 3]) for start in range(0, 180, 3)]
    return "\n".join(["sent0,sent1,hard_neg", *rows]) + "\n"


def run_average(work: WorkDirectory, model: str, other: Path, trusted: bool) -> None:
    average.run(average.Params(inputs=(model, str(other)), trust_remote_code=trusted, name="made"), work)


def run_whiten(work: WorkDirectory, model: str, other: Path, trusted: bool) -> None:
    whiten.run(whiten.Params(model=model, dim=4, sentences="main", trust_remote_code=trusted, name="made"), work)


def run_weigh_tokens(work: WorkDirectory, model: str, other: Path, trusted: bool) -> None:
    weigh_tokens.run(weigh_tokens.Params(model=model, sentences="main", trust_remote_code=trusted, name="made"), work)


def run_distill(work: WorkDirectory, model: str, other: Path, trusted: bool) -> None:
    distill.run(distill.Params(method="mse", student=model, **SHORT, trust_remote_code=trusted, name="made"), work)


def run_finetune(work: WorkDirectory, model: str, other: Path, trusted: bool) -> None:
    finetune.run(finetune.Params(model=model, **SHORT, trust_remote_code=trusted, name="made"), work)


def run_encode(work: WorkDirectory, model: str, other: Path, trusted: bool) -> None:
    lines = work.path.parent / "lines.txt"
    lines.write_text("a dog\na cat\n", encoding="utf-8")
    encode.run(
        encode.Params(lines=str(lines), output=lines.with_suffix(".npy"), model=model, trust_remote_code=trusted), work
    )


def run_export(work: WorkDirectory, model: str, other: Path, trusted: bool) -> None:
    export.run(export.Params(model=model, formats=("folder",), trust_remote_code=trusted, name="made"), work)


def run_train_teacher(work: WorkDirectory, model: str, other: Path, trusted: bool) -> None:
    given = work.path.parent / "nli.csv"
    asked = train_teacher.Params(model=model, triplets=(str(given),), **SHORT, trust_remote_code=trusted, name="made")
    train_teacher.run(asked, work)


def run_teacher_embed(work: WorkDirectory, model: str, other: Path, trusted: bool) -> None:
    asked = teacher_embed.Params(
        teacher=model, sentences="main", dtype="float32", trust_remote_code=trusted, name="made"
    )
    teacher_embed.run(asked, work)


COMMANDS: list[Callable[[WorkDirectory, str, Path, bool], None]] = [
    run_average,
    run_whiten,
    run_weigh_tokens,
    run_distill,
    run_finetune,
    run_encode,
    run_export,
    run_train_teacher,
    run_teacher_embed,
]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("command", COMMANDS)
def test_code_never_runs_without_trust(
    command: Callable[[WorkDirectory, str, Path, bool], None],
    spelling: str,
    prepared: WorkDirectory,
    tiny_model: Path,
    tmp_path: Path,
) -> None:
    mark = tmp_path / "ran"
    own = str(tmp_path / "0")
    for number, (repository, files) in enumerate((("", FILES[:1]), (own, FILES[:1]), (own, FILES[1:]), ("", FILES))):
        folder = with_code(tiny_model, tmp_path / str(number), mark)
        ask_for_code(folder, spelling, repository, files)
        with pytest.raises(InputError, match=REFUSED) as caught:
            command(prepared, str(folder), tiny_model, False)
        assert "`trust_remote_code`" in str(caught.value.hint)
        assert not mark.exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_code_that_is_trusted_runs_and_goes_along(
    command: Callable[[WorkDirectory, str, Path, bool], None],
    prepared: WorkDirectory,
    tiny_model: Path,
    tmp_path: Path,
) -> None:
    mark = tmp_path / "ran"
    folder = with_code(tiny_model, tmp_path / "model", mark)
    ask_for_code(folder, "plain")
    command(prepared, str(folder), tiny_model, True)
    assert mark.exists()
    made = [path for kind in ("students", "exports") for path in (prepared.path / kind).glob("made/**/own.py")]
    for path in made:
        # What was made needs trust again, as its start did.
        label = str(path.parent)
        with pytest.raises(InputError, match=REFUSED):
            run_encode(prepared, label, tiny_model, False)
        run_encode(prepared, label, tiny_model, True)
    for kind in ("students", "exports"):
        for found in (prepared.path / kind).glob("made"):
            found.rename(tmp_path / kind)


def test_trust_in_a_teacher_is_asked_again_by_each_command(
    prepared: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    """The work directory may have been made, or written, by somebody else."""
    mark = tmp_path / "ran"
    folder = with_code(tiny_model, tmp_path / "teacher", mark)
    ask_for_code(folder, "plain")
    work = make_work(tmp_path / "work", tiny_model, [f"a dog {word}" for word in "abcdefghijklmnopqrstuvwxyz"])
    teacher_embed.run(
        teacher_embed.Params(teacher=str(folder), trust_remote_code=True, dtype="float32", force=True), work
    )
    vectors = work.get("teacher-vectors")
    assert "trust_remote_code" not in vectors.parameters
    # As a stranger's program may write it.
    asked = {**vectors.parameters, "trust_remote_code": True}
    with work.build(Request("teacher-vectors", "trusting", "teacher-embed", asked, dict(vectors.inputs))) as build:
        for path in vectors.path.glob("*.npy"):
            with build.write(path.name) as copy:
                copy.write_bytes(path.read_bytes())
        build.finish(vectors.facts)
    assert work.names("teacher-vectors")[-1] == "trusting"
    mark.unlink()
    with pytest.raises(InputError, match=REFUSED):
        find_model(work, "teacher")
    for student, method in (("teacher:1", "mse"), (str(tiny_model), "simtde")):
        with pytest.raises(InputError, match=REFUSED) as caught:
            distill.run(distill.Params(method=method, student=student, **SHORT, name=f"made-{method}"), work)
        assert "`trust_remote_code`" in str(caught.value.hint)
    with pytest.raises(InputError, match=REFUSED):
        run_encode(work, "teacher", tiny_model, False)
    assert status.run(status.Params(), work)
    assert not mark.exists()
    for student, method in (("teacher:1", "mse"), (str(tiny_model), "simtde")):
        distill.run(
            distill.Params(method=method, student=student, **SHORT, trust_remote_code=True, name=f"made-{method}"), work
        )
    run_encode(work, "teacher", tiny_model, True)
    assert mark.exists()


@pytest.mark.parametrize("repository", ["", "owner/code"])
def test_code_of_a_hubs_model_runs_only_when_trusted(
    repository: str, tiny_model: Path, tmp_path: Path, commands: Commands
) -> None:
    mark = tmp_path / "ran"
    model = with_code(tiny_model, tmp_path / "model", mark)
    ask_for_code(model, "escaped", repository)
    if repository:
        (model / "own.py").unlink()
        write_code(tmp_path / "code", mark)
    (tmp_path / "lines.txt").write_text("a dog\na cat\n", encoding="utf-8")
    averaged = ("average", "owner/model", str(tiny_model), "--name", "made", "--work", str(tmp_path / "work"))
    encoded = ("encode", str(tmp_path / "lines.txt"), "--model", "owner/model", "-o", str(tmp_path / "lines.npy"))
    with serve_hub({"owner/model": model, "owner/code": tmp_path / "code"}) as endpoint:
        environment = asking(endpoint, tmp_path / "home")
        for words in (averaged, encoded):
            run = commands(words, environment=environment)
            assert run.returncode == 1
            assert REFUSED in run.stderr
            assert "pass --trust-remote-code" in run.stderr
            assert not mark.exists()
        for words in (averaged, encoded):
            run = commands([*words, "--trust-remote-code"], environment=environment)
            assert run.returncode == 0, run.stderr
            assert mark.exists()
            mark.unlink()
    assert np.load(tmp_path / "lines.npy").shape == (2, 32)
