"""methods: the list, and one method whole."""

from __future__ import annotations

import json

import pytest

from sentcompress.cli.main import _run
from sentcompress.errors import UsageError
from sentcompress.methods import METHODS, OBJECTIVES
from sentcompress.stages import methods as stage
from sentcompress.store import WorkDirectory

WORK = WorkDirectory("work")


def test_all_methods_are_listed() -> None:
    found = stage.run(stage.Params(), WORK)
    assert [method["name"] for method in found] == [*METHODS, *OBJECTIVES]
    assert {"hpd", "mse", "ckd", "ibkd", "simtde", "crd", "pkd", "metakd", "lrn-kd", "lmx-kd"} == set(METHODS)
    assert {"simcse", "ibkd"} == set(OBJECTIVES)


def test_one_method_with_the_source_of_each_number() -> None:
    (hpd,) = stage.run(stage.Params(method="hpd"), WORK)
    assert {need: source["command"] for need, source in hpd["needs"].items()} == {
        "teacher": "teacher-embed",
        "pca": "fit-pca",
    }
    assert all(source["what"] for source in hpd["needs"].values())
    assert hpd["recipe"]["lr"] == {"value": 1e-4, "source": "paper, appendix A, and released code, run.sh"}
    assert set(hpd["options"]) == {"centre", "head_start", "tanh", "reduction"}
    assert hpd["options"]["reduction"]["type"] == "sum|mean"
    assert "released code" in hpd["options"]["tanh"]["source"]


def test_a_name_of_two_stages_shows_both() -> None:
    first, second = stage.run(stage.Params(method="ibkd"), WORK)
    assert (first["stage"], second["stage"]) == ("distill", "finetune")
    assert first["options"]["beta"]["default"] == 1.0
    assert second["options"]["beta"]["default"] == 0.5
    assert second["needs"]["triplets"]["command"] == "augment or mine-negatives"
    assert second["needs"]["inputs"]["command"] is None


@pytest.mark.parametrize("name", [*METHODS, *OBJECTIVES])
def test_every_method_says_where_its_needs_come_from(name: str) -> None:
    found = stage.run(stage.Params(method=name), WORK)
    assert len(found) == (name in METHODS) + (name in OBJECTIVES)
    for described in found:
        assert described["name"] == name
        assert described["needs"]
        assert all(source["what"] for source in described["needs"].values())
        assert json.loads(json.dumps(described)) == described


def test_a_slip_of_the_finger() -> None:
    with pytest.raises(UsageError) as caught:
        stage.run(stage.Params(method="cdk"), WORK)
    assert caught.value.hint == "did you mean crd or ckd?"


def test_the_command(capfd: pytest.CaptureFixture[str]) -> None:
    assert _run(["methods", "--json"]) == 0
    assert [method["name"] for method in json.loads(capfd.readouterr().out)] == [*METHODS, *OBJECTIVES]
    assert _run(["methods", "show", "ckd", "--json"]) == 0
    (ckd,) = json.loads(capfd.readouterr().out)
    assert ckd["recipe"]["betas"]["value"] == "0.9 0.98"
    assert _run(["methods", "show", "ckd"]) == 0
    shown = capfd.readouterr().out
    for part in (
        "0.0002",
        "0.0003",
        "below 100,000,000",
        "released code",
        "teacher-embed",
        "--set",
        "65536",
        "DistilCSE",
    ):
        assert part in shown
    assert _run(["methods"]) == 0
    rows = {line.split()[0]: line for line in capfd.readouterr().out.splitlines() if line.split()}
    assert "teacher-embed, fit-pca" in rows["hpd"]
    assert "teacher-embed --layers" in rows["pkd"]
    assert "augment --domain COLUMN, teacher-embed" in rows["metakd"]
    assert _run(["methods", "show", "ibkd"]) == 0
    shown = capfd.readouterr().out
    for part in ("stage 1", "stage 2", "distill --method", "finetune, train-teacher --objective", "mine-negatives"):
        assert part in shown


@pytest.mark.parametrize("words", [["methods", "hpd"], ["methods", "show"], ["methods", "show", "hdp"]])
def test_wrong_words_are_usage_errors(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert _run(words) == 2
    assert "help:" in capfd.readouterr().err


def test_a_wrong_word_is_answered_with_what_can_be_written(capfd: pytest.CaptureFixture[str]) -> None:
    for word, written in (
        ("list", "sentcompress methods, or sentcompress methods show NAME"),
        ("hpd", "sentcompress methods show hpd"),
    ):
        assert _run(["methods", word]) == 2
        assert f"write: {written}\n" in capfd.readouterr().err
