"""run: a chain from end to end, stopped by faults, by a failing stage, and by a kill."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from distilling import write_dev
from listening import Listener

from sentcompress import signals
from sentcompress.cli.main import COMMANDS, _run
from sentcompress.commands import makers
from sentcompress.errors import BusyError, MissingArtifactError, TrainingError, UsageError
from sentcompress.exit_codes import REQUEUE
from sentcompress.stages import run as stage
from sentcompress.stages.run import Done, Params
from sentcompress.store import Request, WorkDirectory, file_digest
from sentcompress.training.loop import Training

CHAIN = """
title = "A short chain"
paper = "Nobody 2020"

[[row]]
table = "results"
model = "A student"
of = "student"
metric = "STS mean"
score = 81.5

[inputs]
text = "sentences"
dev = "graded pairs"
sts = { about = "graded pairs to be scored on", optional = true }

[[stage]]
command = "augment"
inputs = ["${text}"]
wordnet = 0
back-translate = 0
name = "lines"

[[stage]]
command = "teacher-embed"
teacher = "TEACHER"
sentences = "lines"
name = "vectors"
dtype = "float32"

[[stage]]
command = "distill"
method = "ckd"
student = "teacher:1"
teacher-vectors = "vectors"
set = { queue = 50, head = "linear" }
epochs = 2
batch-size = 16
eval-every = 5
dtype = "float32"
device = "cpu"
dev = "${dev}"
name = "student"

[[stage]]
command = "eval-sts"
sts = ["${sts}"]
model = "student"
bootstrap = 0
"""


def run_all(*given: Any) -> list[Done]:
    """What came of the steps of a recipe."""
    return stage.run(*given).done


@pytest.fixture
def params(tmp_path: Path, tiny_model: Path, sentences: list[str]) -> Params:
    """The chain above, with sentences and graded pairs for it."""
    (tmp_path / "lines.txt").write_text("\n".join(sentences[:150]) + "\n", encoding="utf-8")
    write_dev(tmp_path / "dev.tsv", sentences[150:180])
    write_dev(tmp_path / "sts.tsv", sentences[200:230])
    recipe = tmp_path / "chain.toml"
    recipe.write_text(CHAIN.replace("TEACHER", str(tiny_model)), encoding="utf-8")
    return Params(recipe=recipe, inputs=tuple(f"{name}={tmp_path}/{file}" for name, file in FILES.items()))


FILES = {"text": "lines.txt", "dev": "dev.tsv", "sts": "sts.tsv"}


def words(params: Params, *more: str) -> list[str]:
    return ["run", str(params.recipe), *(word for given in params.inputs for word in ("--input", given)), *more]


def test_the_whole_chain_and_again(params: Params, tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    first = run_all(params, work)
    assert [done.artifact.reference for done in first] == [
        "sentences/lines",
        "teacher-vectors/vectors",
        "students/student",
        "evaluations/sts-student",
    ]
    assert not any(done.fresh for done in first)
    student = work.get("students", "student")
    assert student.parameters["epochs"] == 2
    assert student.parameters["options"]["queue"] == 50
    listener = Listener()
    again = run_all(params, work, listener)
    assert all(done.fresh for done in again)
    assert [done.artifact.digest for done in again] == [done.artifact.digest for done in first]
    assert sum("is up to date, skipped" in note for note in listener.notes) == 4
    assert "stage 3 of 4: sentcompress distill (train a student on the teacher's cached vectors)" in listener.notes


def test_the_end_says_where_the_model_is_and_what_comes_next(
    params: Params, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    optional = '[[stage]]\ncommand = "augment"\ninputs = ["${sts}"]\nname = "others"\n\n'
    text = params.recipe.read_text(encoding="utf-8")
    params.recipe.write_text(text.replace("[[stage]]", f"{optional}[[stage]]", 1), encoding="utf-8")
    work = tmp_path / "my work"
    assert _run([*words(replace(params, inputs=params.inputs[:2])), "--work", str(work)]) == 0
    found = capsys.readouterr()
    assert f"Model: {work}/students/student/model" in found.out
    assert "stage 2 of 3 (number 3 of the recipe): sentcompress teacher-embed" in found.err
    assert found.err.endswith(f"Next: sentcompress eval-fidelity --text FILE --model student --work '{work}'\n")
    assert _run([*words(replace(params, inputs=params.inputs[:2])), "--work", str(work), "-q"]) == 0
    assert "Next" not in capsys.readouterr().err


def test_a_setting_redoes_what_depends_on_it(params: Params, tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    run_all(params, work)
    settings = ("distill.max-steps=4", "distill.set.queue=20")
    with pytest.raises(UsageError, match="already exists with different options") as raised:
        run_all(replace(params, settings=settings), work)
    assert "use --set 3.force=true to replace it" in str(raised.value.hint)
    again = run_all(replace(params, settings=(*settings, "distill.force=true")), work)
    assert [done.fresh for done in again] == [True, True, False, False]
    assert work.get("students", "student").parameters["options"]["queue"] == 20
    # The embedded student of the second run has other weights, and so another score.
    assert work.get("students", "student").facts["steps"] == 4
    forced = run_all(replace(params, settings=settings, force=True), work)
    assert not any(done.fresh for done in forced)


def test_faults_are_told_before_anything_is_made(params: Params, tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    asked = replace(params, inputs=params.inputs[:1], settings=("teacher-embed.pooling=maen", "distill.lr=fast"))
    with pytest.raises(UsageError) as raised:
        run_all(asked, work)
    assert raised.value.faults == (
        "input 'dev' is missing: graded pairs (--input dev=...)",
        "stage 2 (teacher-embed): --pooling maen: did you mean mean?",
        "stage 3 (distill): --lr must be a number, not 'fast'",
    )
    assert not work.path.exists()


def test_a_failing_stage_says_where_and_how_to_go_on(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = WorkDirectory(tmp_path / "work")

    def fail(*arguments: object) -> None:
        raise TrainingError("the loss is no longer a number", "lower --lr")

    with monkeypatch.context() as patched:
        patched.setattr("sentcompress.stages.distill.run", fail)
        with pytest.raises(TrainingError, match=r"stage 3 \(distill\): the loss is no longer a number") as raised:
            run_all(params, work)
    assert raised.value.hint == "lower --lr; then run the same command again: finished stages are skipped"
    assert not work.names("evaluations")
    assert [done.fresh for done in run_all(params, work)] == [True, True, False, False]


def test_a_hint_names_an_option_of_the_stage_as_run_takes_it(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise BusyError("busy", ("use `wait` 30m", "wait for it", "choose another `name` or `work`"))

    monkeypatch.setattr("sentcompress.stages.teacher_embed.run", fail)
    with pytest.raises(BusyError) as raised:
        run_all(params, WorkDirectory(tmp_path / "work"))
    assert raised.value.hint == (
        "use --wait 30m, or wait for it, or choose another --name or --work (as --set 2.OPTION=VALUE); "
        "then run the same command again: finished stages are skipped"
    )


def test_the_error_of_a_stage_keeps_its_kind(params: Params, tmp_path: Path) -> None:
    text = params.recipe.read_text(encoding="utf-8")
    params.recipe.write_text(text.replace('method = "ckd"', 'method = "hpd"'), encoding="utf-8")
    asked = replace(params, settings=("distill.set=tanh=true",))
    with pytest.raises(MissingArtifactError, match=r"stage 3 \(distill\): no projection fitted on"):
        run_all(asked, WorkDirectory(tmp_path / "work"))


def test_stages_are_run_one_by_one_as_in_the_queues_of_a_cluster(params: Params, tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    # Another recipe's results, which are the newest of their kinds.
    recipe = params.recipe.read_text(encoding="utf-8")
    other = tmp_path / "other.toml"
    other.write_text(
        recipe.replace('"lines"', '"other"').replace('"vectors"', '"others"').replace('"student"', '"its"')
    )
    with pytest.raises(MissingArtifactError, match=r"stage 1 \(augment\): sentences/lines is missing") as raised:
        run_all(replace(params, only=("student",)), work)
    assert raised.value.hint == f"run it first: sentcompress run {params.recipe} --only 1, with the same options"
    assert not work.path.exists()
    assert [done.artifact.name for done in run_all(replace(params, last="augment"), work)] == ["lines"]
    with pytest.raises(MissingArtifactError, match=r"stage 2 \(teacher-embed\): teacher-vectors/vectors is missing"):
        run_all(replace(params, first="3"), work)
    assert [done.artifact.name for done in run_all(replace(params, only=("vectors",)), work)] == ["vectors"]
    run_all(replace(params, recipe=other, last="distill"), work)
    # Left out, the vectors are those of this recipe.
    params.recipe.write_text(recipe.replace('teacher-vectors = "vectors"\n', ""), encoding="utf-8")
    listener = Listener()
    done = run_all(replace(params, first="distill"), work, listener)
    assert listener.notes[0].startswith("stage 1 of 2 (number 3 of the recipe): sentcompress distill (train")
    assert [one.artifact.reference for one in done] == ["students/student", "evaluations/sts-student"]
    assert set(done[0].artifact.inputs) >= {"sentences/lines", "teacher-vectors/vectors"}
    lines = tmp_path / "lines.txt"
    lines.write_text(lines.read_text(encoding="utf-8") + "One more sentence.\n", encoding="utf-8")
    with pytest.raises(MissingArtifactError, match=r"stage 1 \(augment\): sentences/lines is not up to date"):
        run_all(replace(params, only=("eval-sts",)), work)


def test_a_stage_that_another_process_makes_is_not_there_yet(params: Params, tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    run_all(replace(params, last="augment"), work)
    with (
        work.build(Request("teacher-vectors", "vectors", "teacher-embed", {})),
        pytest.raises(MissingArtifactError, match="teacher-vectors/vectors is being written by process"),
    ):
        run_all(replace(params, only=("distill",)), work)


def test_an_interruption_names_the_stage_and_what_is_kept(
    params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise signals.StoppedError(signal.SIGINT)

    work = WorkDirectory(tmp_path / "work")
    monkeypatch.setattr("sentcompress.stages.teacher_embed._Embedding.whole", stop)
    with pytest.raises(signals.StoppedError) as stopped:
        run_all(params, work)
    assert stopped.value.hint == f"stopped in stage 2 (teacher-embed): {stage.EARLIER_KEPT}"
    with pytest.raises(signals.StoppedError) as stopped:
        run_all(replace(params, force=True), work)
    assert str(stopped.value.hint).endswith("(--force runs finished stages again; --from 2 omits them)")


def run_as_a_command(words: list[str]) -> None:
    """What the stopped process runs; in the middle of the training, it says so and waits to be stopped."""
    os.fsync = os.fstat  # type: ignore[assignment]  # as in the tests themselves, see conftest.py
    step = Training._step

    def waiting(training: Training, *given: Any) -> Any:
        while training.progress.step >= 80 and signals.asked() is None:
            Path(words[-1], "waiting").touch()
            time.sleep(0.01)
        return step(training, *given)

    Training._step = waiting  # type: ignore[method-assign]
    signals.install()
    sys.exit(_run(words))


@pytest.mark.parametrize(
    ("how", "code", "every"), [(signal.SIGKILL, -signal.SIGKILL, "0.01"), (signal.SIGUSR1, REQUEUE, "3600")]
)
def test_stopped_in_the_middle_of_a_training_it_goes_on(
    params: Params, tmp_path: Path, how: signal.Signals, code: int, every: str
) -> None:
    settings = ("distill.epochs=10", f"distill.checkpoint-every={every}", "distill.eval-every=20")
    asked = replace(params, settings=settings)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sentcompress.stages.distill", "transformers.models.bert.modeling_bert"])
    line = words(asked, *(word for one in settings for word in ("--set", one)), "--work", str(tmp_path / "stopped"))
    process = context.Process(target=run_as_a_command, args=(line,), daemon=True)
    process.start()
    state = tmp_path / "stopped" / "students" / ".student.partial" / ".scaffold" / "state"
    checkpoint = state / "checkpoints" / "checkpoint.json"
    begun = checkpoint if how == signal.SIGKILL else tmp_path / "stopped" / "waiting"
    while not begun.exists():
        assert process.is_alive()
        time.sleep(0.01)
    os.kill(process.pid or 0, how)
    process.join()
    assert process.exitcode == code
    assert checkpoint.is_file()
    listener = Listener()
    stopped = run_all(asked, WorkDirectory(tmp_path / "stopped"), listener)  # type: ignore[arg-type]
    assert [done.fresh for done in stopped] == [True, True, False, False]
    assert "distill: resuming the unfinished students/student" in listener.notes
    whole = run_all(asked, WorkDirectory(tmp_path / "whole"))
    assert stopped[2].artifact.digest == whole[2].artifact.digest


def test_the_recipe_of_the_guide_is_right(tmp_path: Path) -> None:
    guide = (Path(__file__).resolve().parents[2] / "docs" / "run.md").read_text(encoding="utf-8")
    recipe = tmp_path / "guide.toml"
    recipe.write_text(guide.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    asked = Params(recipe=recipe, variant="hpd-128", inputs=("nli=hub:someone/nli", "sts=mteb"))
    chain = ["augment", "teacher-embed", "fit-pca", "distill", "eval-sts"]
    assert [step.command for step in stage.plan(asked, WorkDirectory(tmp_path / "work")).steps] == chain
    plan = stage.plan(replace(asked, variant="whiten-64"), WorkDirectory(tmp_path / "work"))
    assert [step.command for step in plan.steps] == [*chain[:-1], "whiten", "eval-sts", "eval-sts"]


def test_every_command_that_makes_an_artifact_can_be_a_stage() -> None:
    found = [
        command
        for command in COMMANDS
        if importlib.import_module(f"sentcompress.stages.{command.replace('-', '_')}").run.__annotations__["return"]
        == "Artifact"  # annotations are text here
    ]
    assert sorted(found) == sorted(makers())


def test_a_dry_run_prints_commands_that_do_the_same(
    params: Params, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _run(words(params, "--dry-run", "--work", "dry", "--json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert not Path("dry").exists()
    assert document["rows"][0]["score"] == 81.5
    assert [line[1] for line in document["commands"]] == ["augment", "teacher-embed", "distill", "eval-sts"]
    assert _run(words(params, "--work", "chain", "--json", "--quiet")) == 0
    made = json.loads(capsys.readouterr().out)
    for line in document["commands"]:
        assert line[0] == "sentcompress"
        assert _run([*line[1:], "--quiet"]) == 0, line
    for done in made["stages"]:
        kind, name = done["artifact"].split("/")
        assert WorkDirectory("dry").get(kind, name).digest == done["digest"] or kind == "evaluations"
    assert [done["fresh"] for done in made["stages"]] == [False] * 4


def test_inputs_other_than_the_recipes_are_warned_about_or_refused(
    params: Params, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = params.recipe.read_text()
    named = f'text = {{ about = "sentences", sha256 = "{"0" * 64}" }}'
    params.recipe.write_text(text.replace('text = "sentences"', named))
    told = f"input 'text': {tmp_path}/lines.txt has the SHA-256 "
    assert _run(words(params, "--dry-run", "--work", str(tmp_path / "work"))) == 0
    assert f"# {told}" in capsys.readouterr().out
    with pytest.raises(UsageError, match="but the recipe names 0000") as failure:
        run_all(replace(params, exact=True), WorkDirectory(tmp_path / "work"))
    assert told in str(failure.value)
    listener = Listener()
    work = WorkDirectory(tmp_path / "work")
    assert len(run_all(params, work, listener)) == 4  # type: ignore[arg-type]
    assert listener.warnings[0].startswith(told)
    digest = file_digest(tmp_path / "lines.txt")
    params.recipe.write_text(params.recipe.read_text().replace("0" * 64, digest))
    assert all(done.fresh for done in run_all(replace(params, exact=True), work))


def test_a_dry_run_names_what_is_left_out(params: Params, capsys: pytest.CaptureFixture[str]) -> None:
    asked = replace(params, inputs=params.inputs[:2])
    assert _run(words(asked, "--dry-run", "--work", "a b")) == 0
    title, row, *lines = capsys.readouterr().out.splitlines()
    assert title == "# A short chain"
    assert row == "# results, A student, STS mean 81.50"
    assert lines[0].startswith("sentcompress augment ")
    assert all(line.endswith("--work 'a b'") for line in lines[:3])
    assert lines[3:] == ["# stage 4 (eval-sts) is skipped: needs --input sts (graded pairs to be scored on)"]


def test_a_variant_is_run_and_shares_what_it_has_in_common(
    params: Params, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = params.recipe.read_text(encoding="utf-8").replace("epochs = 2", 'epochs = 2\nmax-steps = "${steps}"')
    text = text.replace('"student"', '"student-${steps}"').replace("[[row]]", "[[variant.row]]")
    variants = '[values]\nsteps = 2\n[[variant]]\nname = "two"\n[[variant]]\nname = "four"\nvalues.steps = 4\n'
    params.recipe.write_text(text.replace("[[variant.row]]", variants + "[[variant.row]]"), encoding="utf-8")
    work = WorkDirectory(tmp_path / "work")
    with pytest.raises(UsageError, match="has 2 variants; name one with `variant`"):
        run_all(params, work)
    assert [done.fresh for done in run_all(replace(params, variant="two"), work)] == [False] * 4
    assert _run(words(params, "--variant", "four", "--work", str(work.path), "--json", "--quiet")) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["variant"] == "four"
    assert [done["fresh"] for done in document["stages"]] == [True, True, False, False]
    assert work.get("students", "student-4").facts["steps"] == 4
    assert document["rows"] == [
        {
            "table": "results",
            "model": "A student",
            "of": "student-4",
            "metric": "STS mean",
            "score": 81.5,
            "why": "not all 7 sets were scored",
        }
    ]


def test_the_table_of_a_run(params: Params, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--set", "distill.max-steps=2", "--work", str(tmp_path / "work"), "--quiet")
    assert _run(words(params, *asked)) == 0
    shown = capsys.readouterr().out
    for part in ("A short chain", "students/student", "evaluations/sts-student", "Spearman x 100", "made"):
        assert part in shown
    assert "81.50" in shown
    assert "\n(1) not all 7 sets were scored\n" in shown
