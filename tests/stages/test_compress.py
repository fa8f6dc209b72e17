"""compress with a tiny teacher: the plan, its run, the second run, and requests that cannot be met."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from beir import write_beir
from listening import Listener
from tiny_models import make_roberta, make_t5, make_tiny_model
from tracing import traced_once

from sentcompress.commands import find_command
from sentcompress.commands.run import Params as RunParams
from sentcompress.compression import budget, measuring_time, planning
from sentcompress.compression.embedding_load import EmbeddingLoad
from sentcompress.compression.graph_size import TransformerSize
from sentcompress.compression.plan_file import read_plan
from sentcompress.compression.recipe import TRAINING
from sentcompress.compression.shapes import own_shape
from sentcompress.errors import BusyError, InputError, SentcompressError, UsageError
from sentcompress.evaluation.results import read_evaluation
from sentcompress.evaluation.score import MODEL, select
from sentcompress.measuring.turns import take_turns
from sentcompress.models.model_files import read_config, transformer_folder
from sentcompress.progress import Reporter
from sentcompress.quantities import read_bytes
from sentcompress.signals import StoppedError
from sentcompress.stages import average, bench, compress, export, split_documents
from sentcompress.stages.compress import Params, run
from sentcompress.store import WorkDirectory
from sentcompress.store.atomic import beside
from sentcompress.store.locking import locked

WORDS = "water river mountain cloud storm engine wheel garden flower music letter window bridge market winter".split()


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    draw = random.Random(0)
    lines = []
    for number in range(160):
        sentences = [" ".join(draw.choices(WORDS, k=8)) + f" {number}." for _ in range(3)]
        lines.append(
            json.dumps({"_id": str(number), "title": f"{draw.choice(WORDS)} {number}", "text": " ".join(sentences)})
        )
    path = tmp_path / "docs.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, figures_not_drawn: None) -> Iterator[None]:
    """Seconds in place of minutes, and exports that are checked and calibrated with fewer texts."""
    for name in ("STAGE", "FITTING", "EXPORTING"):
        monkeypatch.setattr(measuring_time, name, 0)
    for name, value in {"LEAST_TRAINING": 1.0, "LEAST_TRIAL": 0.31, "FOR_ROUNDS": 1.0}.items():
        monkeypatch.setattr(budget, name, value)
    # The machine may be busy: the plan must not depend on its speed.
    monkeypatch.setattr(planning, "measured_workload", lambda *_: EmbeddingLoad(475, 7000, 9500, 1e5, 1e5, 100, 0.1))
    monkeypatch.setattr(
        bench,
        "take_turns",
        lambda some, texts, single, rounds, task, *_: take_turns(some, texts[:40], single[:4], 1, task),
    )
    monkeypatch.setattr(export, "SAMPLE", 30)
    monkeypatch.setattr(export, "CALIBRATION_TEXTS", 30)
    with traced_once():
        yield


def asked(documents: Path, teacher: Path, **changes: object) -> Params:
    given: dict[str, object] = {"inputs": (str(documents),), "teacher": str(teacher), "time": "5s", "vector_bytes": 16}
    return Params(**{**given, **changes})  # type: ignore[arg-type]


def just_below(teacher: Path) -> str:
    """A limit for the graph that a teacher with vectors of 32 dimensions does not fit into, but most of it does."""
    size = TransformerSize.of(read_config(transformer_folder(teacher)), 32)
    assert size is not None
    return f"{own_shape(size, teacher.name).bytes - 1}B"


def stopped(*_: object, **__: object) -> None:
    raise StoppedError(signal.SIGINT)


def as_far_as(function: str, params: Params, work: WorkDirectory) -> None:
    """Run it until a stage comes to this function, which ends it like an interrupt."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(f"sentcompress.stages.{function}", stopped)
        with pytest.raises(StoppedError):
            run(params, work, Reporter())


def test_documents_become_an_export_that_is_measured_and_a_second_run_is_fresh(tmp_path: Path, documents: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    teacher = make_tiny_model(tmp_path / "teacher", layers=4)
    params = asked(documents, teacher, max_bytes=just_below(teacher), time="3s")
    result = run(params, work, Reporter())
    assert result.verdict is not None
    assert result.verdict.bytes <= 1.2 * read_bytes(params.max_bytes)
    assert result.verdict.vector_bytes <= 16
    assert 0 < result.verdict.fidelity <= 100
    assert "instead of" in result.verdict.sentence
    assert (Path(result.verdict.export) / "modules.json").is_file()
    tried = {name for name in work.names("students") if name.startswith("docs-1-")}
    assert tried >= {"docs-1-1", "docs-1-2"}, "candidates were tried"
    assert result.report is not None
    page = result.report.read_text(encoding="utf-8")
    assert result.verdict.sentence.replace(" ", "") in page.replace("\u00a0", " ").replace(" ", "").replace(
        "&#x27;", "'"
    )
    assert 'id="figure-tried-docs"' in page
    assert 'id="figure-vectors-docs"' in page
    scores = read_evaluation(work.get("evaluations", "docs-search")).scores
    of_export = {score.metric: score.value for score in select(scores, role=MODEL) if not score.part}
    assert of_export["results_shared"] == result.verdict.shared
    assert of_export["first_result_found"] == result.verdict.first_found
    digest = work.get("exports", "docs").digest
    notes = Listener()
    again = run(params, work, notes)
    assert again.verdict == result.verdict
    assert work.get("exports", "docs").digest == digest
    assert f"using the plan {result.recipe}" in notes.notes
    assert compress.FRESH in notes.notes
    with pytest.raises(UsageError, match=r"a plan for another request: `vector_bytes` changed"):
        run(replace(params, vector_bytes=8), work, Reporter())
    misspelt = replace(params, inputs=("docs.jsnl",), name="docs")
    with pytest.raises(UsageError, match="a plan for another request: `inputs` changed") as refused:
        run(misspelt, work, Reporter())
    assert refused.value.alternatives[0] == "check the path: there is no file or folder docs.jsnl here"


def test_the_teacher_itself_is_the_answer_where_it_fits(tmp_path: Path, documents: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    teacher = make_tiny_model(tmp_path / "teacher")
    result = run(asked(documents, teacher, dry_run=True), work, Reporter())
    assert result.verdict is None
    assert result.plan[0].startswith("Read 160 documents: ")
    assert result.plan[1] == "The teacher itself fits, with weights in int8 instead of float32: nothing is trained."
    written = read_plan(result.recipe)
    assert written is not None
    assert "students" not in [one.kind for one in written.results()]
    assert written.request["inputs"] == [str(documents)]
    assert not work.names("exports")


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("convert", "a bert model cannot be converted to ONNX: no"),
        ("require_tokenizer", "the tokenizer has no tokenizer.json"),
    ],
)
def test_a_teacher_that_cannot_become_a_graph_is_told_before_the_documents_are_read(
    tmp_path: Path, documents: Path, monkeypatch: pytest.MonkeyPatch, check: str, message: str
) -> None:
    def refuse(_: object) -> None:
        raise SentcompressError(message, "export with `formats` folder")

    work, params = WorkDirectory(tmp_path / "work"), asked(documents, make_tiny_model(tmp_path / "teacher"))
    if check == "convert":  # known architectures are not converted
        monkeypatch.setattr(planning, "FAMILIES", {})
    monkeypatch.setattr(planning, check, refuse)
    with pytest.raises(InputError, match=message) as refused:
        run(params, work, Reporter())
    assert refused.value.hint == "choose another `teacher`: compress exports an ONNX graph"
    assert not work.names("documents")


def test_a_teacher_of_an_unknown_architecture_fits_only_if_its_weights_do(
    tmp_path: Path, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, teacher = WorkDirectory(tmp_path / "work"), make_tiny_model(tmp_path / "teacher", layers=3)
    params = asked(documents, teacher, max_bytes="9MB", dry_run=True)
    fits = "The teacher itself fits, with weights in int8 instead of float32: nothing is trained."
    assert fits in run(params, work).plan
    monkeypatch.setattr(planning, "FAMILIES", {})
    monkeypatch.setattr(planning, "counted_bytes", lambda *_: 9_000_001)
    assert fits not in run(replace(params, name="other"), work).plan


def test_the_sizes_of_t5_are_known_although_its_configuration_names_them_otherwise(
    tmp_path: Path, documents: Path
) -> None:
    work, teacher = WorkDirectory(tmp_path / "work"), make_t5(tmp_path / "teacher")
    with pytest.raises(UsageError, match="cannot be made smaller: the layers of its architecture cannot be cut"):
        run(asked(documents, teacher, max_bytes="10kB"), work, Reporter())
    assert not work.names("documents")
    fits = "The teacher itself fits, with weights in int8 instead of float32: nothing is trained."
    assert fits in run(asked(documents, teacher, dry_run=True), work, Reporter()).plan


def test_a_static_teacher_is_refused_before_the_documents_are_read(tmp_path: Path, documents: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    with pytest.raises(InputError, match="general-static is a static model") as refused:
        run(asked(documents, Path("general-static")), work, Reporter())
    assert refused.value.hint == planning.OTHER_TEACHERS
    assert not work.names("documents")


def test_what_to_allow_instead_of_a_fast_model_that_does_not_fit(documents: Path) -> None:
    def refused(size: TransformerSize, most: int) -> UsageError:
        with pytest.raises(UsageError) as found:
            planning.candidates_within(asked(documents, Path("it"), prefer="speed"), named, size, most)  # type: ignore[arg-type]
        return found.value

    named = SimpleNamespace(label="it", source=SimpleNamespace(label="it"))
    size = TransformerSize(6, 384, 1536, 30_522, 512, 384)
    small = refused(size, 800_000)
    assert small.message == "no model that computes at most half of what it does fits into 800 kB"
    assert str(small.hint).startswith("the smallest has 1 of the teacher's layers, ")
    assert str(small.hint).endswith(": allow `max_bytes` 0.9MB")
    one = refused(replace(size, layers=1, neurons=384), 10_000_000)
    assert one.message == "no model cut from it computes at most half of what it does"
    assert str(one.hint).endswith(" as an int8 graph: omit `prefer`")
    fixed = replace(size, can_cut=False)
    for most, what in ((30_000_000, "omit `prefer`"), (10_000_000, "omit `prefer` and allow `max_bytes` 22.9MB")):
        whole = refused(fixed, most)
        assert whole.message == "it cannot be made smaller: the layers of its architecture cannot be cut"
        assert whole.alternatives == (
            f"the teacher itself is 22.8 MB as an int8 graph: {what}",
            "distill a student of another architecture from it, step by step",
        )


def test_a_misspelt_column_is_named_before_the_plan_that_is_there(tmp_path: Path, documents: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    params = asked(documents, make_tiny_model(tmp_path / "teacher"), column=("text",))
    as_far_as("fit_quantizer.run", params, work)
    written = (work.path / "plans" / "docs.toml").read_bytes()
    for wrong in ({"column": ("txet",)}, {"id_column": "txet"}):
        for force in (False, True):
            with pytest.raises(InputError, match=r"docs\.jsonl has no column 'txet'") as raised:
                run(replace(params, force=force, **wrong), work, Reporter())  # type: ignore[arg-type]
            assert str(raised.value.hint).startswith("did you mean text? its columns: ")
    assert (work.path / "plans" / "docs.toml").read_bytes() == written, "the plan is not lost"
    with pytest.raises(UsageError, match=r"a plan for another request: `column` changed"):
        run(replace(params, column=("title",)), work, Reporter())


def test_a_plan_of_which_nothing_was_run_gives_way_to_another(tmp_path: Path, documents: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    asked_first = asked(documents, make_tiny_model(tmp_path / "teacher"), dry_run=True)
    run(asked_first, work, Reporter())
    before = work.get("documents", "docs").digest
    path = work.path / "plans" / "docs.toml"
    path.write_text(
        f"{path.read_text(encoding='utf-8')}\n[[stage]]\ncommand = 'bench'\nname = 'more'\n", encoding="utf-8"
    )
    other = run(replace(asked_first, vector_bytes=8), work, Reporter())
    written = read_plan(other.recipe)
    assert written is not None
    assert written.request["vector_bytes"] == 8
    assert written.replaced == ["evaluations/more"]
    assert "documents/docs" in written.references()
    assert work.get("documents", "docs").digest == before
    log = tmp_path / "log.txt"
    log.write_text("".join(f"water {word} bridge\n" for word in WORDS), encoding="utf-8")
    run(replace(asked_first, queries=(log,)), work, Reporter())
    assert work.get("documents", "docs").facts["logged_queries"] == len(WORDS)
    third = read_plan(path)
    assert third is not None
    assert third.replaced == written.replaced, "those of all plans before"


def test_a_request_that_failed_in_planning_does_not_stand_in_the_way_of_another(
    tmp_path: Path, documents: Path
) -> None:
    work = WorkDirectory(tmp_path / "work")
    teacher = make_tiny_model(tmp_path / "teacher", layers=3)
    params = asked(documents, teacher, max_bytes=just_below(teacher), dry_run=True)
    finished = set()
    for time in ("1s", "1.1s"):
        with pytest.raises(UsageError, match="too short"):
            run(replace(params, time=time), work, Reporter())
        finished.add(work.get("documents", "docs").manifest["finished"])
    assert len(finished) == 1, "the documents are not read again"
    log = tmp_path / "log.txt"
    log.write_text("".join(f"water {word} bridge\n" for word in WORDS), encoding="utf-8")
    result = run(replace(params, queries=(log,)), work, Reporter())
    assert work.get("documents", "docs").facts["logged_queries"] == len(WORDS)
    assert "7 of your 15 queries are held out" in result.plan[0]
    plan = read_plan(result.recipe)
    assert plan is not None
    assert plan.spent == 0.1, "of the workload above: what is told as planned is what counts"
    assert plan.seconds_left(work) == pytest.approx(4.9)


def test_documents_that_compress_did_not_read_are_not_replaced(tmp_path: Path, documents: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    own = split_documents.Params(inputs=(str(documents),), passage_words=20, name="docs")
    digest = split_documents.run(own, work, Reporter()).digest
    params = asked(documents, make_tiny_model(tmp_path / "teacher"), dry_run=True)
    for seed in (0, 1):
        with pytest.raises(UsageError, match="documents/docs already exists with different options"):
            run(replace(params, seed=seed), work, Reporter())
    assert work.get("documents", "docs").digest == digest


def test_stopped_and_run_again_the_plan_goes_on_to_a_student_for_an_index_that_is_kept(
    tmp_path: Path, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = WorkDirectory(tmp_path / "work")
    teacher = make_tiny_model(tmp_path / "teacher", layers=2)
    params = asked(documents, teacher, max_bytes=just_below(teacher), vector_bytes=None, keep_index=True, time="2s")
    with monkeypatch.context() as patched:
        patched.setattr("sentcompress.stages.teacher_embed._Embedding.whole", stopped)
        with pytest.raises(StoppedError) as raised:
            run(params, work, Reporter())
    assert str(raised.value.hint).startswith("stopped in stage 3 (teacher-embed)")
    read = work.get("documents", "docs").manifest["finished"]
    notes = Listener()
    result = run(params, work, notes)
    assert f"using the plan {result.recipe}" in notes.notes
    assert work.get("documents", "docs").manifest["finished"] == read
    assert result.verdict is not None
    assert result.verdict.vector_bytes == result.verdict.teacher_vector_bytes == 4 * 32
    assert "it searches vectors of the teacher" in result.verdict.sentence
    assert read_evaluation(work.get("evaluations", "docs-search")).facts["keep_index"]
    assert "--keep-index" in work.get("students", "docs-last").manifest["line"], "its checkpoints are chosen for it"
    assert (Path(result.verdict.export) / "router" / "router_config.json").is_file()
    assert not work.names("quantizers")


def test_time_that_the_encoding_did_not_need_goes_to_the_last_training(
    tmp_path: Path, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The teacher was slow when it was measured: 190 seconds are planned for what takes one."""
    slow = EmbeddingLoad(475, 7000, 9500, 50.0, 1e5, 100, 0.1)
    monkeypatch.setattr(planning, "measured_workload", lambda *_: slow)
    monkeypatch.setattr(budget, "FOR_ROUNDS", 1e9)
    monkeypatch.setitem(TRAINING, "epochs", 2)  # type: ignore[index]
    work = WorkDirectory(tmp_path / "work")
    teacher = make_tiny_model(tmp_path / "teacher", layers=2)
    params = asked(documents, teacher, max_bytes=just_below(teacher), time="10m")

    def minutes() -> float:
        plan = read_plan(work.path / "plans" / "docs.toml")
        last = plan.last_training() if plan else None
        assert last is not None
        return last.trains / 60

    as_far_as("augment.run", params, work)
    planned = minutes()
    as_far_as("distill.train", params, work)  # before there is anything to resume
    given = minutes()
    assert planned + 2 < given < planned + 3.2
    notes = Listener()
    result = run(params, work, notes)
    assert minutes() == given
    assert work.get("students", "docs-last").parameters["max_minutes"] == given
    assert result.plan[-1].endswith("more for training: the stages before it took less time than planned")
    again = Listener()
    assert run(params, work, again).plan == result.plan
    assert compress.FRESH in again.notes
    outcome = find_command("run").load().run(RunParams(recipe=result.recipe), work, Reporter())
    assert all(one.fresh for one in outcome.done)


def test_files_that_are_missing_are_told_with_their_option(tmp_path: Path, documents: Path) -> None:
    with pytest.raises(UsageError) as raised:
        run(
            asked(documents, tmp_path, queries=(tmp_path, tmp_path / "none.txt"), judged=tmp_path / "gone"),
            WorkDirectory(tmp_path / "work"),
        )
    assert raised.value.faults == (
        f"`queries` {tmp_path} is a folder; name a file",
        f"`queries` {tmp_path / 'none.txt'}: no such file",
        f"`judged` {tmp_path / 'gone'}: no such folder",
    )


def test_a_kept_index_has_no_size_to_choose(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`vector_bytes` and `keep_index` cannot both be given"):
        Params(inputs=("docs/",), keep_index=True, vector_bytes=128).check()


def test_a_size_that_a_later_stage_would_refuse_is_refused_at_once(documents: Path) -> None:
    fit = find_command("fit-quantizer").params(vector_bytes=2_000_000)
    for params in (asked(documents, Path("embedded"), vector_bytes=2_000_000), fit):
        with pytest.raises(UsageError, match=r"`vector_bytes` must be .*1000000"):
            params.check()


def test_a_wrong_judged_folder_is_found_before_the_documents_are_read(tmp_path: Path, documents: Path) -> None:
    work, empty = WorkDirectory(tmp_path / "work"), tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="empty has no corpus"):
        run(asked(documents, make_tiny_model(tmp_path / "teacher"), judged=empty), work, Reporter())
    assert not work.names("documents")


def test_missing_packages_are_told_before_the_documents_are_read(
    tmp_path: Path, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, heard = WorkDirectory(tmp_path / "work"), Listener()
    params = asked(documents, make_tiny_model(tmp_path / "teacher"), dry_run=True)
    assert run(params, work, heard).plan
    assert "cannot be run yet" not in " ".join(heard.warnings)
    monkeypatch.setattr("sentcompress.extras.is_installed", lambda package: package != "onnxruntime")
    run(params, work, heard)
    told = "the plan cannot be run yet: stage 4 (export): onnxruntime is not installed; run: pip install "
    assert [warning for warning in heard.warnings if "cannot be run yet" in warning] == heard.warnings[-1:]
    assert heard.warnings[-1].startswith(told)
    other = WorkDirectory(tmp_path / "other")
    with pytest.raises(InputError, match="onnxruntime is not installed"):
        run(replace(params, dry_run=False), other)
    monkeypatch.setattr("sentcompress.extras.is_installed", lambda package: package != "faiss")
    with pytest.raises(InputError, match="faiss is not installed"):
        run(replace(params, judged=judged_collection(tmp_path / "judged")), other)
    assert not other.path.joinpath("documents").exists()


def test_a_text_file_of_paragraphs_is_read_as_one_document_each(tmp_path: Path) -> None:
    work, path = WorkDirectory(tmp_path / "work"), tmp_path / "book.txt"
    paragraphs = [
        f"The {word} of\nthe {other} {number}." for number in range(8) for word in WORDS for other in ("sea",)
    ]
    path.write_text("\n\n".join(paragraphs), encoding="utf-8")
    teacher = make_tiny_model(tmp_path / "teacher")
    result = run(asked(path, teacher, text_as="paragraph", dry_run=True), work, Reporter())
    assert 'text-as = "paragraph"' in result.recipe.read_text(encoding="utf-8")
    assert work.get("documents", "book").facts["documents"] == len(paragraphs)


def test_budgets_that_cannot_be_met_name_what_would_do(tmp_path: Path, documents: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    teacher = make_tiny_model(tmp_path / "teacher", layers=3)
    with pytest.raises(UsageError) as found:
        run(asked(documents, teacher, max_bytes="1kB"), work, Reporter())
    assert "no model cut from" in found.value.message
    least = str(found.value.hint).split("allow `max_bytes` ")[1]
    assert not run(asked(documents, teacher, max_bytes=least, dry_run=True, name="least"), work).verdict
    told = r"`time` 1s is too short: .* to read the documents and measure this speed, .* to encode [\d,]+ texts with"
    with pytest.raises(UsageError, match=told) as found:
        run(asked(documents, teacher, max_bytes=just_below(teacher), time="1s"), work, Reporter())
    least = str(found.value.hint).removeprefix("allow `time` ")
    assert least == "1m", "no more than is needed"
    assert not run(asked(documents, teacher, max_bytes=just_below(teacher), time=least, dry_run=True), work).verdict
    with pytest.raises(UsageError, match=r"`time` must be a time, such as 30m"):
        run(asked(documents, teacher, time="soon"), work, Reporter())


def test_files_that_cannot_be_read_are_skipped_if_that_is_asked_for(tmp_path: Path, documents: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    teacher = make_tiny_model(tmp_path / "teacher", layers=3)
    folder = tmp_path / "folder"
    folder.mkdir()
    documents.rename(folder / "docs.jsonl")
    (folder / "picture.txt").write_bytes(b"\x00\x01\xff" * 100)
    params = asked(folder, teacher, max_bytes="120kB", dry_run=True)
    with pytest.raises(InputError, match=r"picture.txt is a binary file"):
        run(params, work)
    result = run(replace(params, skip_bad=True), work)
    assert "skip-bad = true" in result.recipe.read_text(encoding="utf-8")
    assert work.get("documents").facts["skipped"]["bad_lines"] == 1


def judged_collection(folder: Path) -> Path:
    """A BEIR folder of ten documents and two queries."""
    texts = [f"{word} and {other}" for word, other in pairwise(WORDS[:11])]
    documents = [{"_id": str(number), "title": "", "text": text} for number, text in enumerate(texts)]
    queries = [{"_id": "q0", "text": "water"}, {"_id": "q1", "text": "storm engine"}]
    return write_beir(folder, documents, queries, test=[("q0", "0", 1), ("q1", "4", 1)])


def test_forced_and_stopped_it_goes_on_and_keeps_what_it_had_made(tmp_path: Path, documents: Path) -> None:
    def finished() -> str:
        return str(work.get("quantizers", "docs").manifest["finished"])

    work = WorkDirectory(tmp_path / "work")
    judged = judged_collection(tmp_path / "judged")
    params = asked(documents, make_tiny_model(tmp_path / "teacher"), judged=judged, max_bytes="250kB")
    heard = Listener()
    first = run(params, work, heard)
    assert not [line for line in heard.warnings if "Recall" in line], "a metric that nobody asked for"
    assert first.verdict is not None
    assert first.verdict.judged is not None
    assert "; on your judged queries, it keeps " in first.verdict.sentence
    before = finished()
    other = replace(params, vector_bytes=8, force=True)
    as_far_as("export._write", other, work)
    replaced = finished()
    assert replaced > before
    as_far_as("export._write", replace(other, force=False), work)
    assert finished() == replaced, "it is not made again"
    result = run(other, work, Reporter())
    assert finished() == replaced, "it is not made again"
    assert result.verdict is not None
    assert result.verdict.vector_bytes <= 8
    assert run(replace(other, force=False), work, Reporter()).verdict == result.verdict
    as_far_as("export._write", other, work)
    assert finished() > replaced, "what is finished is replaced again"


def test_other_documents_are_planned_for_again(tmp_path: Path, documents: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    params = asked(documents, make_tiny_model(tmp_path / "teacher"))
    run(params, work, Reporter())
    export = work.get("exports", "docs")
    lines = documents.read_text(encoding="utf-8")
    documents.write_text(
        lines + lines.replace('"_id": "', '"_id": "1').replace("water", "lava").replace(".", " more."), encoding="utf-8"
    )
    notes = Listener()
    shown = run(replace(params, dry_run=True), work, notes)
    assert shown.plan[0].startswith("Read 160 documents: "), "a dry run replaces nothing"
    assert any("documents/docs is not up to date" in line for line in notes.warnings)
    result = run(params, work, notes)
    assert result.plan[0].startswith("Read 320 documents: ")
    assert f"the documents have changed since {result.recipe} was made: planning again" in notes.notes
    assert result.verdict is not None
    assert work.get("exports", "docs").manifest["finished"] > export.manifest["finished"]
    again = Listener()
    assert run(params, work, again).verdict == result.verdict
    assert compress.FRESH in again.notes


def test_another_teacher_in_the_same_folder_is_planned_for_again(tmp_path: Path, documents: Path) -> None:
    work, teacher = WorkDirectory(tmp_path / "work"), make_tiny_model(tmp_path / "teacher", layers=4)
    params = asked(documents, teacher, max_bytes=just_below(teacher), time="2s")
    as_far_as("teacher_embed._Embedding.whole", params, work)
    first = read_plan(work.path / "plans" / "docs.toml")
    make_tiny_model(teacher, layers=2)
    notes = Listener()
    dry = run(replace(params, dry_run=True), work, notes)
    assert f"{teacher} has changed since {dry.recipe} was made" in notes.warnings
    assert read_plan(dry.recipe) == first, "a dry run replaces nothing"
    as_far_as("export.run", params, work)  # this teacher fits as it is
    plan = read_plan(dry.recipe)
    assert plan is not None
    assert "of the teacher's layers" in "".join(dry.plan)
    assert "The teacher itself fits" in "".join(plan.told)
    assert plan.is_for(json.loads(json.dumps(first.request if first else None)))


def test_two_runs_of_one_name_do_not_overwrite_each_other(tmp_path: Path, documents: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    path = work.path / "plans" / "docs.toml"
    path.parent.mkdir(parents=True)
    with (
        locked(beside(path, "lock"), "it"),
        pytest.raises(BusyError, match=r"plans/docs\.toml is being written by process"),
    ):
        run(asked(documents, make_tiny_model(tmp_path / "teacher"), dry_run=True), work, Reporter())
    assert not path.exists()


def test_documents_that_cannot_be_read_leave_no_plan(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    with pytest.raises(UsageError, match=r"nosuch\.jsonl: no such file or folder"):
        run(asked(tmp_path / "nosuch.jsonl", tmp_path), work, Reporter())
    Params(inputs=("owner/data", "hub:data", "documents/main")).check()
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no file of text"):
        run(asked(tmp_path / "empty", make_tiny_model(tmp_path / "teacher")), work, Reporter())
    assert not list((work.path / "plans").glob("*.toml"))


@pytest.mark.parametrize("name", ["../evil", "a/b", "/tmp/evil", ".hidden", " "])
def test_a_name_that_no_result_can_have_writes_nothing(tmp_path: Path, documents: Path, name: str) -> None:
    work = WorkDirectory(tmp_path / "deep" / "work")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match=r"'.*' cannot be the name of an artifact"):
        run(asked(documents, tmp_path, name=name, force=True), work, Reporter())
    assert sorted(tmp_path.rglob("*")) == before


def test_documents_that_can_be_read_only_once_are_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UsageError) as raised:
        Params(inputs=("-", str(pipe)), general_text=("-",)).check()
    refused = [fault.partition(" can be read")[0] for fault in raised.value.faults]
    assert refused == ["standard input", str(pipe), "standard input"]
    with pytest.raises(UsageError, match="`dry_run` replaces nothing"):
        Params(inputs=("docs/",), dry_run=True, force=True).check()


def test_a_plan_means_the_same_teacher_from_any_folder(
    tmp_path: Path, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, teacher = WorkDirectory(tmp_path / "work"), make_tiny_model(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    result = run(asked(documents, Path("mine"), dry_run=True), work, Reporter())
    assert f'compare = "{teacher}"' in result.recipe.read_text(encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    notes = Listener()
    run(asked(documents, Path("../mine"), dry_run=True), work, notes)
    assert f"using the plan {result.recipe}" in notes.notes


def test_a_plan_may_be_edited(tmp_path: Path, documents: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    params = asked(documents, make_tiny_model(tmp_path / "teacher"))
    path = run(params, work, Reporter()).recipe
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('runtime = "onnx-int8"\n', "", 1), encoding="utf-8")
    with pytest.raises(UsageError, match="already exists with different options") as raised:
        run(params, work, Reporter())
    command = f"sentcompress run {path} --work {work.path} --set 5.force=true"
    assert f"use {command} to replace it" in str(raised.value.hint)
    assert str(raised.value.hint).endswith("; then run the same command again: finished stages are skipped")
    head, *stages = text.split("[[stage]]")
    shorter = [stage for stage in stages if 'command = "split-documents"' in stage or 'command = "augment"' in stage]
    path.write_text("[[stage]]".join([head, *shorter]), encoding="utf-8")
    listener = Listener()
    result = run(params, work, listener)
    assert result.verdict is None
    assert any("does not end with a search of its export" in line for line in listener.warnings)
    path.write_text('title = "mine"\n', encoding="utf-8")
    with pytest.raises(UsageError, match="is not a plan of compress"):
        run(replace(params, force=True), work, Reporter())


def test_a_teacher_is_cut_only_where_it_can_be(tmp_path: Path, documents: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    roberta = make_roberta(tmp_path / "roberta")
    with pytest.raises(UsageError, match="no model cut from") as found:
        run(asked(documents, roberta, max_bytes="1kB"), work, Reporter())
    assert "a vocabulary" not in str(found.value.hint)
    albert = SimpleNamespace(label="albert", source=SimpleNamespace(label="albert"))
    size = TransformerSize(6, 768, 3072, 30_000, 512, 768, table=128, distinct_layers=1, can_cut=False)
    with pytest.raises(UsageError, match="albert cannot be made smaller") as found:
        planning.candidates_within(asked(documents, roberta), albert, size, 10_000_000)  # type: ignore[arg-type]
    assert str(found.value.hint).startswith("the teacher itself is 11.")
    assert "as an int8 graph: allow `max_bytes` 11." in str(found.value.hint)


def test_a_plan_for_a_teacher_of_the_work_directory_is_found_after_a_move(tmp_path: Path, documents: Path) -> None:
    models = [str(make_tiny_model(tmp_path / name, layers=3, seed=seed)) for seed, name in enumerate(("one", "two"))]
    here = WorkDirectory(tmp_path / "here" / "work")
    big = average.run(average.Params(inputs=tuple(models), name="big"), here, Reporter())
    planned = run(asked(documents, big.path, max_bytes="120kB", dry_run=True), here, Reporter())
    assert str(here.path) not in planned.recipe.read_text(encoding="utf-8")
    (tmp_path / "there").mkdir()
    there = WorkDirectory(shutil.move(here.path, tmp_path / "there" / "else"))
    for teacher in ("big", "students/big", str(there.path / "students" / "big")):
        notes = Listener()
        again = run(replace(asked(documents, big.path, max_bytes="120kB", dry_run=True), teacher=teacher), there, notes)
        assert f"using the plan {again.recipe}" in notes.notes
        assert again.plan == planned.plan
