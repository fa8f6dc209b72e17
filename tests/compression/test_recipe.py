"""The recipe is valid TOML with valid options: which stages there are, and what they are given."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest

from sentcompress.commands import find_command
from sentcompress.commands.options import keys_of
from sentcompress.commands.parsing import build
from sentcompress.compression import budget
from sentcompress.compression.budget import Budget
from sentcompress.compression.plan_file import PlanFile
from sentcompress.compression.recipe import (
    CompressionPlan,
    Documents,
    told,
    told_documents,
    written_recipe,
)
from sentcompress.compression.shapes import Candidate

PUBLISHED = Candidate("general-9m", 9_489_094, published=True)
CUT = Candidate("teacher:2", 9_000_000, {"token-dim": 128, "vocabulary": 8000, "start": "sentences"})
WHOLE = Candidate("teacher:6", 16_000_000, {"vocabulary": 12_500}, whole=True)
ROUNDED = Candidate("teacher:6", 9_950_000, {"vocabulary": 15_000}, whole=True, weights="int4")
OWN = Candidate("embedded", 22_800_000, untrained=True)
FIRST = (ROUNDED, PUBLISHED, OWN)
# Commands that encode passages with a student.
ENCODING = ("eval-search", "distill")


def plan(candidates: list[Candidate], rounds: tuple[float, ...] = (), **changes: object) -> CompressionPlan:
    budget = Budget(1800, None, 300_000, 60.0, rounds, 750.0, 5000, 900, 10_000, 500, 90.0, 22.5, 200.0, 150.0)
    of: dict[str, object] = {
        "name": "docs",
        "teacher": "embedded",
        "documents": Documents(["docs/"], ["log.txt"], "scifact", ["body"]),
        "max_bytes": 10_000_000,
        "vector_bytes": 128,
        "budget": budget,
        "candidates": candidates,
    }
    return CompressionPlan(**{**of, **changes})  # type: ignore[arg-type]


def text_of(of: CompressionPlan) -> str:
    return written_recipe(of, PlanFile({}, 1800.0, "", told(of), list(of.stages())))


@pytest.mark.parametrize(
    "of",
    [
        plan([PUBLISHED, CUT], (120.0,)),
        plan([CUT, CUT, CUT, CUT], (60.0, 60.0)),
        plan([WHOLE, PUBLISHED], (120.0,)),
        plan([ROUNDED]),
        plan([replace(CUT, weights="int4"), replace(PUBLISHED, weights="int4")], (120.0,), keep_index=True),
        plan([PUBLISHED]),
        plan([CUT], keep_index=True),
        plan([OWN]),
        plan([PUBLISHED], documents=Documents(["docs/"], general=["/my texts/a=b.txt", "/more"])),
    ],
)
def test_every_stage_has_valid_options_and_names_only_what_is_made_before(of: CompressionPlan) -> None:
    stages = tomllib.loads(text_of(of))["stage"]
    made = {"embedded", "general-9m", "teacher:2", "teacher:6"}
    for stage in stages:
        command = stage.pop("command")
        values = {**stage}
        params, faults = build(find_command(command).params, values)
        assert not faults, (command, faults)
        assert params is not None
        keys = keys_of(find_command(command).params)
        models = [values[name] for name, key in keys.items() if key.opt.names == "model" and name in values]
        for named in (one for found in models for one in (found if isinstance(found, list) else [found])):
            assert named.rpartition("/")[2] in made, (command, named)
        made.add(stage["name"])
    assert stages[-1]["name"] == "docs-speed"


def test_documents_are_split_as_they_were_asked_for() -> None:
    documents = Documents(["a.csv"], columns=["body"], id_column="url", skip_bad=True, text_as="line")
    split = next(plan([PUBLISHED], documents=documents).stages())
    asked = {"column": ["body"], "id-column": "url", "skip-bad": True, "text-as": "line"}
    assert {key: split[key] for key in asked} == asked


def test_a_sample_is_drawn_from_all_documents_and_general_text_is_a_quarter_of_it() -> None:
    whole = plan([PUBLISHED])
    sampled = replace(whole, budget=replace(whole.budget, texts=9000, words=90_000), seed=3)
    mixed = replace(sampled, documents=replace(whole.documents, general=["/a.txt", "/b"]))
    found = [next(one for one in of.stages() if one["command"] == "augment") for of in (whole, sampled, mixed)]
    assert [(one.get("words"), one.get("seed"), one.get("limit")) for one in found] == [
        (None, None, None),
        (90_000, 3, None),
        (90_000, 3, None),
    ]
    assert found[1]["inputs"] == ["documents/docs"]
    assert found[2]["inputs"] == ["documents/docs", "/a.txt", "/b"]
    assert found[2]["share"] == ["documents/docs=0.75", "/a.txt=0.125", "/b=0.125"]
    expected = "60 s: encode a sample of 9,000 texts, a quarter of the words from /a.txt and /b, with the teacher"
    assert told(mixed)[0] == expected


def test_each_round_keeps_the_better_half() -> None:
    stages = list(plan([CUT, CUT, CUT, CUT], (60.0, 60.0)).stages())
    minutes = [stage["max-minutes"] for stage in stages if stage["command"] == "distill"]
    assert minutes == [1.0] * 6 + [12.5]
    starts = [stage["student"] for stage in stages if stage["command"] == "distill"]
    assert starts == ["teacher:2"] * 4 + ["docs-1-best", "docs-1-best-2", "docs-2-best"]
    assert [stage.get("token-dim") for stage in stages if stage["command"] == "distill"] == [128] * 4 + [None] * 3


def test_candidates_are_compared_among_the_passages_that_checkpoints_are_scored_on() -> None:
    stages = list(plan([CUT] * 4, (60.0, 60.0)).stages())
    trained = {stage["dev-passages"] for stage in stages if stage["command"] == "distill"}
    compared = {stage["max-passages"] for stage in stages if stage.get("part") == "dev"}
    assert trained == compared == {900}, "the dev_passages of the budget"


def test_the_speed_of_each_shape_is_measured_once_and_that_of_the_export_as_its_graph_too() -> None:
    stages = [stage for stage in plan([CUT] * 4, (60.0, 60.0)).stages() if stage["command"] == "bench"]
    assert [stage["model"] for stage in stages] == [*(f"docs-1-{place}" for place in range(1, 5)), "exports/docs"]
    assert [stage.get("runtimes") for stage in stages] == [["float32"]] * 4 + [["float32", "onnx-int8"]]
    assert [stage["max-minutes"] for stage in stages] == [0.38] * 4 + [1.5], "as the budget has it"


def test_a_plan_says_that_results_are_compared_among_few_passages() -> None:
    usual = plan([PUBLISHED])
    tight = replace(usual, budget=replace(usual.budget, tight=True, passages=412))
    (line,) = set(told(tight)) - set(told(usual))
    assert "among only 412 passages" in line


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_budget_allows_for_every_stage_and_every_search_of_the_plan(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = {"STAGE": 0, "FITTING": 0, "EXPORTING": 0, "LEAST_BENCHED": 0, "BENCHED": 0, "FITTED": 0}
    for name, value in {**free, "GRAPH_COST": 1}.items():
        monkeypatch.setattr(budget, name, value)
    # A second to encode a text, of which there is one.
    load = budget.EmbeddingLoad(
        texts=1, words=1, tokens=1, tokens_per_second=1e9, exact_tokens_per_second=1, searched=1, student_cost=1
    )
    shared = budget.share_out(1e6, load, count)
    documents = Documents(["docs/"])
    stages = list(replace(plan([PUBLISHED, *[CUT] * (count - 1)]), budget=shared, documents=documents).stages())
    commands = [stage["command"] for stage in stages]
    # The teacher encodes once and a half, and a student for each of these; `distill` scores its end. For the
    # quantizer, both have encoded what checkpoints are scored on.
    assert shared.measuring == 1.5 + sum(command in ENCODING for command in commands)
    monkeypatch.setattr(budget, "STAGE", 1)
    allowed = budget.share_out(1e6, replace(load, student_cost=0), count).measuring - 1.5
    # To select among results takes no time, and the documents have been read.
    counted = sum(command not in ("select", "split-documents", "augment") for command in commands)
    counted += (budget.TRAINING_STAGES - 1) * commands.count("distill")
    assert counted <= allowed <= counted + 2


@pytest.mark.parametrize(
    ("candidates", "rounds", "start"),
    [
        ([PUBLISHED], (), "general-9m"),
        ([CUT, CUT], (120.0,), "docs-1-best"),
        ([PUBLISHED, CUT], (120.0,), "docs-1-best"),
        ([CUT], (), None),
        ([WHOLE], (), None),
        ([replace(PUBLISHED, options={"vocabulary": 8000})], (), None),
    ],
)
def test_the_last_training_is_averaged_with_its_start_if_that_is_a_model_of_the_same_shape(
    candidates: list[Candidate], rounds: tuple[float, ...], start: str | None
) -> None:
    stages = list(plan(candidates, rounds).stages())
    mixed = [(one["inputs"], one["weights"], one["name"]) for one in stages if one["command"] == "average"]
    exported = next(one["model"] for one in stages if one["command"] == "export")
    if start is None:
        assert (mixed, exported) == ([], "docs-last")
        return
    assert mixed == [(["docs-last", start], [0.75, 0.25], "docs-mixed")]
    *_, last = [one for one in stages if one["command"] == "select"]
    assert (last["inputs"], last["name"], exported) == (["docs-last", "docs-mixed"], "docs", "docs")
    tried = {one["model"] for one in stages if one["command"] == "eval-search"}
    assert tried >= {"docs-last", "docs-mixed"}


def test_the_teacher_without_rare_tokens_is_trained_gently() -> None:
    stages = plan([WHOLE, PUBLISHED], (120.0,)).stages()
    trained = [(stage["student"], stage.get("lr")) for stage in stages if stage["command"] == "distill"]
    assert trained == [("teacher:6", 5e-5), ("general-9m", 3e-4), ("docs-1-best", None)], "the best keeps its own rate"


def test_weights_of_four_bits_are_trained_and_exported_as_such() -> None:
    rounds = plan([replace(PUBLISHED, weights="int4"), replace(CUT, weights="int4")], (120.0,))
    for of in (plan([ROUNDED]), rounds):
        stages = list(of.stages())
        assert {one.get("weight-format") for one in stages if one["command"] in ("distill", "export")} == {"int4"}
        # The mean of rounded weights is not rounded.
        assert not [one for one in stages if one["command"] == "average"]
        [export] = [one for one in stages if one["command"] == "export"]
        assert export["model"] == "docs-last"
    assert not [one for one in plan([PUBLISHED]).stages() if one.get("weight-format") == "int4"]


def test_a_model_with_all_of_the_teachers_layers_is_said_to_be_no_faster() -> None:
    whole, published, own = (any("as much as the teacher" in line for line in told(plan([one]))) for one in FIRST)
    assert (whole, published, own) == (True, False, True)


@pytest.mark.parametrize("keep_index", [False, True])
def test_dev_chooses_and_test_proves_what_is_deployed(keep_index: bool) -> None:
    stages = list(plan([CUT, CUT], (60.0,), keep_index=keep_index).stages())
    *trials, proof = [stage for stage in stages if stage["command"] == "eval-search"]
    assert {stage["part"] for stage in trials} == {"dev"}
    assert not any("runtime" in stage or "stored" in stage for stage in trials)
    assert {stage["data"] for stage in stages if stage["command"] == "select"} == {"docs dev"}
    assert (proof["model"], proof["part"], proof["runtime"]) == ("exports/docs", "test", "onnx-int8")
    assert proof.get("stored", False) == (not keep_index)
    judged = next(stage for stage in stages if stage["command"] == "eval-retrieval")
    assert (judged["runtime"], judged.get("document-model")) == ("onnx-int8", "embedded" if keep_index else None)


def test_the_teacher_itself_is_not_trained() -> None:
    commands = [stage["command"] for stage in plan([OWN]).stages()]
    assert "distill" not in commands
    assert next(stage["model"] for stage in plan([OWN]).stages() if stage["command"] == "export") == "embedded"


def test_a_student_for_the_index_that_is_there_is_exported_as_a_router() -> None:
    def router(of: CompressionPlan) -> object:
        return next(stage.get("router") for stage in of.stages() if stage["command"] == "export")

    assert router(plan([CUT], keep_index=True)) == "embedded"
    assert router(plan([CUT])) is None
    assert router(plan([OWN], keep_index=True)) is None


@pytest.mark.parametrize("name", ["docs.txt", 'a "quoted"\\ name', "\x7f\t", "文書", "𝄞"])
def test_any_file_name_survives(name: str) -> None:
    text = text_of(plan([PUBLISHED], documents=Documents([name])))
    assert tomllib.loads(text)["stage"][0]["inputs"] == [name]


def test_the_plan_in_words() -> None:
    lines = told(plan([PUBLISHED, CUT], (120.0,)))
    assert lines[0] == "60 s: encode all texts with the teacher"
    assert lines[1] == "4 min: train 2 candidates, 2 min each, and keep the better one"
    assert lines[-2:] == [
        "Candidates: general-9m, a published student (9.49 MB); 2 of the teacher's layers, a vocabulary of 8,000 "
        "tokens, token embeddings of 128 dimensions (9 MB)",
        "A model whose vocabulary is cut to your documents loses more on other text",
    ]
    assert told(plan([PUBLISHED, CUT]))[-1].startswith("With more time, "), "the cut one is not trained"


@pytest.mark.parametrize(("count", "kept"), [(2, "the better one"), (3, "the best one"), (4, "the better half")])
def test_what_a_round_keeps_is_told(count: int, kept: str) -> None:
    rounds = (60.0,) if count < 4 else (60.0, 60.0)
    assert told(plan([CUT] * count, rounds))[1].endswith(f"and keep {kept}")


def test_a_plan_begins_with_what_was_read() -> None:
    facts = {"documents": 1200, "passages": 4000, "titles": 3, "queries": 8000, "held_out_documents": 60}
    facts |= {"logged_queries": 0, "held_out_logged_queries": 0}
    read = told_documents({**facts, "held_out_by": "document"})
    assert told(plan([PUBLISHED], read=read))[0] == (
        "Read 1,200 documents: 4,000 passages, 3 titles and 8,000 queries made from them to train on; 60 documents are "
        "held out for measuring"
    )
    assert "; 60 sections are held out" in told_documents({**facts, "held_out_by": "section"})
    skipped = told_documents({**facts, "held_out_by": "document", "skipped": {"bad_lines": 3, "repeated": 7}})
    assert skipped.endswith("held out for measuring; skipped 3 unreadable lines or files"), "also when it is resumed"
    logged = told_documents({**facts, "held_out_by": "document", "logged_queries": 900, "held_out_logged_queries": 90})
    assert "8,000 queries (made from them, and your own) to train on; 60 documents and 90 of your 900 queries" in logged
    pairs = told_documents({**facts, "held_out_by": "document", "columns": ["question1", "question2"]})
    assert pairs.startswith(
        "Read 1,200 documents (each text in the columns question1, question2; choose with `column`): 4,000 passages, "
    )


def test_a_kept_index_has_no_vectors_to_store() -> None:
    kept = plan([PUBLISHED], keep_index=True)
    assert not any("stored" in line for line in told(kept))
    assert any("choose how vectors are stored, export" in line for line in told(plan([PUBLISHED])))
    assert "bytes a vector" not in text_of(kept)


def test_only_candidates_that_train_are_told() -> None:
    lines = told(plan([PUBLISHED, CUT]))
    assert lines[-2] == "The model: general-9m, a published student (9.49 MB)"
    assert lines[-1] == (
        "With more time, it would be compared with 2 of the teacher's layers, a vocabulary of 8,000 tokens, token "
        "embeddings of 128 dimensions (9 MB)"
    )
    assert told(plan([PUBLISHED]))[-1] == "The model: general-9m, a published student (9.49 MB)"


def test_measuring_that_takes_longer_than_the_time_asked_for_is_told() -> None:
    of = plan([OWN])
    longer = "This is more than the time asked for, and cannot be shortened."
    assert longer not in told(of)
    assert told(replace(of, budget=replace(of.budget, seconds=100.0)))[-1] == longer
