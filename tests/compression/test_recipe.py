"""The recipe is valid TOML with valid options: which stages there are, and what they are given."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest
from compression_plans import CUT, OWN, PUBLISHED, ROUNDED, WHOLE, plan

from sentcompress.commands import find_command
from sentcompress.commands.options import keys_of
from sentcompress.commands.parsing import build
from sentcompress.compression import budget, measuring_time
from sentcompress.compression.embedding_load import EmbeddingLoad
from sentcompress.compression.plan_file import PlanFile
from sentcompress.compression.plan_words import told
from sentcompress.compression.recipe import CompressionPlan, Documents, written_recipe
from sentcompress.compression.shapes import Candidate

# Commands that encode passages with a student.
ENCODING = ("eval-search", "distill")


def text_of(of: CompressionPlan) -> str:
    return written_recipe(of, PlanFile({}, 1800.0, "", told(of), list(of.stages())))


@pytest.mark.parametrize(
    "of",
    [
        plan([PUBLISHED, CUT], (120.0,)),
        plan([CUT, CUT, CUT, CUT], (60.0, 60.0)),
        plan([WHOLE, PUBLISHED], (120.0,)),
        plan([ROUNDED]),
        plan([replace(CUT, weight_format="int4"), replace(PUBLISHED, weight_format="int4")], (120.0,), keep_index=True),
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


def test_lines_of_general_text_are_skipped_like_those_of_documents() -> None:
    def asked(documents: Documents) -> object:
        stages = plan([PUBLISHED], documents=documents).stages()
        return next(stage for stage in stages if stage["command"] == "augment").get("skip-bad")

    assert asked(Documents(["docs/"], general=["/wiki"], skip_bad=True))
    assert not asked(Documents(["docs/"], general=["/wiki"]))
    assert not asked(Documents(["docs/"], skip_bad=True)), "their passages were written by split-documents"


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


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_budget_allows_for_every_stage_and_every_search_of_the_plan(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = {"STAGE": 0, "FITTING": 0, "EXPORTING": 0, "LEAST_BENCHED": 0, "BENCHED": 0, "FITTED": 0}
    for name, value in {**free, "GRAPH_COST": 1, "MARGIN": 0}.items():
        monkeypatch.setattr(measuring_time, name, value)
    # A second to encode a text, of which there is one.
    load = EmbeddingLoad(
        texts=1, words=1, tokens=1, tokens_per_second=1e9, exact_tokens_per_second=1, searched=1, student_cost=1
    )
    shared = budget.share_out(1e6, load, count)
    documents = Documents(["docs/"])
    stages = list(replace(plan([PUBLISHED, *[CUT] * (count - 1)]), budget=shared, documents=documents).stages())
    commands = [stage["command"] for stage in stages]
    # The teacher encodes once and a half, and a student for each of these; `distill` scores its end. For the
    # quantizer, both have encoded what checkpoints are scored on.
    assert shared.measuring == 1.5 + sum(command in ENCODING for command in commands)
    monkeypatch.setattr(measuring_time, "STAGE", 1)
    allowed = budget.share_out(1e6, replace(load, student_cost=0), count).measuring - 1.5
    # To select among results takes no time, and the documents have been read.
    counted = sum(command not in ("select", "split-documents", "augment") for command in commands)
    counted += (measuring_time.TRAINING_STAGES - 1) * commands.count("distill")
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
    assert trained == [("teacher:6", 3e-5), ("general-9m", 3e-4), ("docs-1-best", None)], "the best keeps its own rate"


def test_weights_of_four_bits_are_trained_and_exported_as_such() -> None:
    rounds = plan([replace(PUBLISHED, weight_format="int4"), replace(CUT, weight_format="int4")], (120.0,))
    for of in (plan([ROUNDED]), rounds):
        stages = list(of.stages())
        assert {one.get("weight-format") for one in stages if one["command"] in ("distill", "export")} == {"int4"}
        # The mean of rounded weights is not rounded.
        assert not [one for one in stages if one["command"] == "average"]
        [export] = [one for one in stages if one["command"] == "export"]
        assert export["model"] == "docs-last"
    assert not [one for one in plan([PUBLISHED]).stages() if one.get("weight-format") == "int4"]


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


def test_general_text_is_not_read_where_nothing_is_trained() -> None:
    of = plan([OWN], documents=Documents(["docs/"], general=["/wiki"]))
    augment = next(stage for stage in of.stages() if stage["command"] == "augment")
    assert augment["inputs"] == ["documents/docs"]
    assert not {"share", "words"} & augment.keys()
    assert "`general_text` has no effect, because it would only be trained on." in told(of)


def test_a_student_for_the_index_that_is_there_is_exported_as_a_router() -> None:
    def router(of: CompressionPlan) -> object:
        return next(stage.get("router") for stage in of.stages() if stage["command"] == "export")

    assert router(plan([CUT], keep_index=True)) == "embedded"
    assert router(plan([CUT])) is None
    assert router(plan([OWN], keep_index=True)) is None


def test_the_title_has_the_bytes_of_a_vector_unless_the_index_is_kept() -> None:
    asked, kept = (text_of(plan([PUBLISHED], keep_index=keep_index)) for keep_index in (False, True))
    assert 'title = "docs: at most 10 MB, 128 bytes a vector"' in asked
    assert 'title = "docs: at most 10 MB, vectors of the teacher"' in kept


@pytest.mark.parametrize("name", ["docs.txt", 'a "quoted"\\ name', "\x7f\t", "文書", "𝄞"])
def test_any_file_name_survives(name: str) -> None:
    text = text_of(plan([PUBLISHED], documents=Documents([name])))
    assert tomllib.loads(text)["stage"][0]["inputs"] == [name]
