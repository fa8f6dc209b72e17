"""Plans: every fault of a recipe at once, with the number of its stage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sentcompress.commands import makers
from sentcompress.recipes.document import Recipe, Slot, Stage
from sentcompress.recipes.plan import Asked, Plan, make_plan
from sentcompress.recipes.references import Known
from sentcompress.recipes.rows import Row

# A work directory with sentences, vectors and a student, each called old.
KNOWN = Known(
    makers(),
    lambda kind, name: kind in ("sentences", "teacher-vectors", "students") and name in (None, "old"),
)
EMPTY = Known(makers(), lambda *_: False)
# What these stages cannot do without, taken from the work directory.
OLD = {
    "teacher-embed": {"sentences": "old"},
    "fit-pca": {"teacher-vectors": "old"},
    "distill": {"teacher-vectors": "old"},
    "finetune": {"sentences": "old"},
}


def plan(
    *stages: dict[str, Any], asked: Asked | None = None, known: Known = KNOWN, named: bool = True, **inputs: Slot
) -> tuple[Plan, list[str]]:
    """The plan of these stages; with `named`, they name what they use."""
    made = tuple(
        Stage(number, values["command"], {key: value for key, value in values.items() if key != "command"})
        for number, values in enumerate(stages, start=1)
    )
    if named:
        made = tuple(replace(stage, values={**OLD.get(stage.command, {}), **stage.values}) for stage in made)
    return make_plan(Recipe(Path("chain.toml"), "A chain", "", (), inputs, made), asked or Asked(), known)


def test_a_plan_has_params_and_words(tmp_path: Path) -> None:
    text = tmp_path / "lines.txt"
    text.touch()
    found, faults = plan(
        {"command": "augment", "inputs": ["${text}"], "name": "lines"},
        {"command": "distill", "method": "mse", "set": {"normalise": True}},
        asked=Asked([f"text={text}"], ["all.dtype=float32", "distill.epochs=2"]),
        text=Slot("sentences"),
    )
    assert not faults
    assert [step.label for step in found.steps] == ["stage 1 (augment)", "stage 2 (distill)"]
    assert found.steps[0].words == ("augment", str(text), "--name", "lines")
    assert found.steps[1].params.options == ("normalise=true",)
    assert found.steps[1].params.epochs == 2
    assert found.steps[1].params.dtype == "float32"


def test_a_setting_for_all_stages_is_spelled_like_one_for_a_stage() -> None:
    stages = {"command": "distill", "method": "mse", "set": {"normalise": True}}, {"command": "fit-pca"}
    found, faults = plan(*stages, asked=Asked((), ["all.batch_size=7", "all.set.head=none"]))
    assert not faults
    assert found.steps[0].params.batch_size == 7
    assert found.steps[0].params.options == ("normalise=true", "head=none")


def test_names_that_no_result_can_have_are_told() -> None:
    _, faults = plan({"command": "distill", "name": "../r"}, {"command": "finetune"}, asked=Asked((), ["2.name= "]))
    assert faults == [
        "stage 1 (distill): --name '../r' cannot be the name of an artifact: use letters, digits, dots and dashes",
        "stage 2 (finetune): --name ' ' cannot be the name of an artifact: use letters, digits, dots and dashes",
    ]


def test_every_fault_is_told_with_its_stage() -> None:
    _, faults = plan(
        {"command": "augment", "inputs": ["${nil}"], "name": "lines"},
        {"command": "distil"},
        {"command": "distill", "method": "hdp", "epoch": 3, "lr": -1.0, "batch-size": "big", "dev": "${dev}"},
        {"command": "eval-sts"},
        asked=Asked(["dev=/nowhere/dev.tsv"], ["all.warmth=3"]),
        nli=Slot("pairs"),
        dev=Slot("graded pairs"),
    )
    told = "\n".join(faults)
    for words in (
        "stage 1 (augment): ${nil} is neither an input nor a value of the recipe; did you mean nli?",
        "--set all.warmth: no stage has that option",
        "stage 2 (distil): no such command; did you mean distill?",
        "stage 3 (distill): no method 'hdp'; did you mean hpd?",
        "stage 3 (distill): no option 'epoch'; did you mean epochs?",
        "stage 3 (distill): --batch-size must be a whole number, not 'big'",
        "stage 4 (eval-sts): --sts is missing",
        "input 'dev': no such file: /nowhere/dev.tsv",
    ):
        assert words in told
    # The file is told once, by its input; the stage that would open it says it no more.
    assert told.count("/nowhere/dev.tsv") == 1


def test_params_are_checked_beside_what_has_the_wrong_type() -> None:
    _, faults = plan({"command": "distill", "lr": -1.0, "set": {"tahn": True}, "epochs": "x"})
    assert [fault.partition("): ")[2][:10] for fault in faults] == ["--epochs m", "--lr must ", "--set tahn"]


def test_stages_without_their_optional_input_are_left_out() -> None:
    stages = ({"command": "distill"}, {"command": "eval-sts", "sts": ["${sts}"]})
    sts = Slot("the STS sets", optional=True)
    found, faults = plan(*stages, sts=sts)
    assert not faults
    assert [step.command for step in found.steps] == ["distill"]
    assert found.left_out == ("stage 2 (eval-sts) is skipped: needs --input sts (the STS sets)",)
    given, _ = plan(*stages, asked=Asked(["sts=mteb"]), sts=sts)
    assert given.steps[1].params.sts == ("mteb",)


def test_a_setting_takes_the_place_of_an_input() -> None:
    stage = {"command": "distill", "dev": "${dev}"}
    found, faults = plan(stage, asked=Asked(settings=["distill.dev=none"]), dev=Slot("graded pairs"))
    assert not faults
    assert found.steps[0].params.dev is None
    assert found.steps[0].words == ("distill", "--teacher-vectors", "old")


def test_names_have_to_be_made_before() -> None:
    embed = {"command": "teacher-embed", "sentences": "nli", "name": "vectors"}
    _, faults = plan(embed, {"command": "distill", "method": "ckd", "teacher-vectors": "vektors"})
    assert "stage 1 (teacher-embed): no earlier stage makes sentences = 'nli'" in faults[0]
    assert "stage 2 (distill): no earlier stage makes teacher-vectors = 'vektors'" in faults[1]
    assert "'vectors'" in faults[1]
    # In the work directory already, or made by a stage that chooses the name itself:
    assert not plan({**embed, "sentences": "old"})[1]
    assert not plan({"command": "augment", "inputs": ["hub:a/b"]}, embed)[1]


def test_models_have_to_be_made_before() -> None:
    _, faults = plan(
        {"command": "whiten", "model": "fin", "name": "white"},
        {"command": "distill", "student": "three", "name": "three"},
        {"command": "finetune", "model": "old", "name": "fin"},
        {"command": "eval-sts", "sts": ["mteb"], "model": "finn", "compare": "white"},
    )
    assert faults == [
        "stage 1 (whiten): model = 'fin' is made later, by stage 3 (finetune)",
        "stage 2 (distill): student = 'three' is made later, by stage 2 (distill)",
        "stage 4 (eval-sts): model = 'finn' is made by no stage; did you mean fin?",
    ]


def test_the_models_of_an_average_are_models_too() -> None:
    stages = [{"command": "distill", "name": "before"}, {"command": "finetune", "model": "before", "name": "after"}]
    mean = {"command": "average", "inputs": ["before", "after"], "weights": "1, 2.5", "name": "mean"}
    found, faults = plan(*stages, mean)
    assert not faults
    assert found.steps[2].params.weights == (1.0, 2.5)
    assert found.steps[2].words == ("average", "before", "after", "--weights", "1,2.5", "--name", "mean")
    _, faults = plan(stages[0], {**mean, "inputs": ["befor", "after"]}, stages[1])
    assert faults == [
        "stage 2 (average): inputs = 'befor' is made by no stage; did you mean before?",
        "stage 2 (average): inputs = 'after' is made later, by stage 3 (finetune)",
    ]
    assert "weights must be numbers, separated by commas" in plan(*stages, {**mean, "weights": "1,x"})[1][0]


def test_models_from_elsewhere_are_no_faults() -> None:
    """Presets, the teacher's layers, the hub's names, and what the work directory has."""
    for student in ("minilm", "teacher:3", "bert-base-uncased", "a/b", "old"):
        chain = [{"command": "distill", "name": "mse-minilm"}, {"command": "distill", "student": student, "name": "x"}]
        assert not plan(*chain)[1]


def test_a_name_that_nothing_makes_is_refused_before_the_first_stage() -> None:
    chain = [{"command": "distill", "name": "one"}]
    told = "stage 2 (eval-sts): model = 'small' is made by no stage and is no known model; a model of the hub is named"
    assert plan(*chain, {"command": "eval-sts", "sts": ["mteb"], "model": "small"})[1] == [
        f"{told} owner/name or hub:small"
    ]
    for name in ("students/two", "exports/one", "teacher-vectors/none", "teacher:3"):
        assert len(plan(*chain, {"command": "eval-sts", "sts": ["mteb"], "model": name})[1]) == 1, name
    known = ("one", "students/one", "students/old", "teacher-vectors/old", "student", "hub:small", "x.npy")
    for name in (*known, "embedded", "roberta-large", "owner/name", "./later"):
        assert not plan(*chain, {"command": "eval-sts", "sts": ["mteb"], "model": name})[1], name
    # A stage without a name chooses one itself.
    assert not plan({"command": "distill"}, {"command": "eval-sts", "sts": ["mteb"], "model": "lrn-kd-teacher-3"})[1]
    assert not plan({"command": "bench", "model": "teacher-vectors/old", "compare": "none"})[1]
    vectors = [{"command": "augment", "inputs": ["hub:a/b"]}, {"command": "teacher-embed"}]
    assert "needs a student" in plan(*vectors, {"command": "whiten", "model": "student"}, known=EMPTY)[1][0]


def test_documents_in_place_of_a_file_have_to_be_made_before() -> None:
    split = {"command": "split-documents", "inputs": ["a.jsonl"], "name": "own"}
    assert not plan(split, {"command": "augment", "inputs": ["documents/own"]})[1]
    weighed = {"command": "augment", "inputs": ["documents/own"], "words": 9, "share": ["documents/own=2"]}
    assert not plan(split, weighed)[1]
    _, faults = plan(split, {"command": "augment", "inputs": ["documents/onw"]}, known=EMPTY)
    assert faults == [
        "stage 2 (augment): no earlier stage makes inputs = 'documents/onw'; documents made before: 'own'"
    ]


def test_two_stages_of_one_name_are_a_fault() -> None:
    _, faults = plan({"command": "distill", "name": "a"}, {"command": "whiten", "name": "a"})
    assert faults == ["stage 2 (whiten): name = 'a' would replace the result of stage 1 (distill)"]
    assert not plan(
        {"command": "augment", "inputs": ["hub:a/b"], "name": "a"}, {"command": "teacher-embed", "name": "a"}
    )[1]


def test_what_a_stage_cannot_do_without_is_made_before_or_named() -> None:
    """The newest of the work directory may be of another recipe."""
    chain = [{"command": "teacher-embed"}, {"command": "distill"}]
    assert not plan({"command": "augment", "inputs": ["hub:a/b"]}, *chain, known=EMPTY, named=False)[1]
    assert plan(*chain, named=False)[1] == [
        "stage 1 (teacher-embed): no earlier stage makes sentences; name one of the work directory: sentences = ..."
    ]
    assert not plan({**chain[0], "sentences": "old"}, chain[1], named=False)[1]
    assert "makes teacher-vectors" in plan({"command": "fit-pca"}, named=False)[1][0]
    assert "makes sentences" in plan({"command": "finetune", "model": "old"}, named=False)[1][0]
    score = {"command": "eval-sts", "sts": ["mteb"]}
    assert plan(score)[1] == ["stage 1 (eval-sts): no earlier stage makes a student; name a model: model = ..."]
    assert not plan({"command": "distill"}, score)[1]
    assert not plan({**score, "model": "old"})[1]


def test_the_teacher_is_that_of_an_earlier_stage() -> None:
    measure = {"command": "bench", "model": "old"}
    told = "stage 1 (bench): compare = 'teacher': no earlier stage has one; write teacher-vectors/NAME or embedded"
    assert plan(measure)[1] == [told]
    assert not plan({**measure, "compare": "teacher-vectors/old"})[1]
    assert not plan({**measure, "compare": "none"})[1]
    assert not plan({"command": "teacher-embed"}, measure)[1]
    assert not plan({**measure, "model": "embedded"}, known=EMPTY)[1], "without vectors it is the embedded one"


def test_a_row_is_about_a_model_that_is_scored() -> None:
    one = {"name": "one", "teacher-vectors": "old"}
    chain = (Stage(1, "distill", one), Stage(2, "eval-sts", {"sts": ["mteb"], "model": "one"}))
    rows = (Row(of="one", metric="STS mean"), Row(of="two", metric="STS mean"))
    asked = Asked(settings=["eval-sts.model=old"])
    _, faults = make_plan(Recipe(Path("chain.toml"), "A chain", "", rows, {}, chain), asked, KNOWN)
    assert faults == ["row 2: no stage scores of = 'two'; scored: one"]


def test_force_is_for_every_stage() -> None:
    found, _ = plan({"command": "fit-pca"}, {"command": "distill"}, asked=Asked(force=True))
    assert all(step.params.force for step in found.steps)
    assert found.steps[0].words == ("fit-pca", "--teacher-vectors", "old", "--force")


def test_only_the_user_can_trust_the_code_of_a_model() -> None:
    stage = {"command": "teacher-embed", "teacher": "owner/model"}
    for value in (True, "true", "${trust}", 1):
        _, faults = plan({**stage, "trust-remote-code": value}, asked=Asked(["trust=true"]), trust=Slot("consent"))
        told = "stage 1 (teacher-embed): a recipe cannot set trust-remote-code; read the model's code, then use --set"
        assert any(fault.startswith(told) for fault in faults), value
    found, faults = plan({**stage, "trust-remote-code": False}, asked=Asked([], ["all.trust-remote-code=true"]))
    assert not faults
    assert found.steps[0].params.trust_remote_code


def test_a_stage_of_a_recipe_is_no_shard() -> None:
    _, faults = plan({"command": "teacher-embed", "shard": "1/2"})
    assert faults == ["stage 1 (teacher-embed): a recipe runs whole stages, without --shard"]
