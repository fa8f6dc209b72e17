"""The errors' helpers: near names, and all faults at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentcompress import errors
from sentcompress.errors import BusyError, SentcompressError, UsageError, did_you_mean, path_hint, raise_faults


def test_a_near_name_is_proposed() -> None:
    assert did_you_mean("hdp", ["hpd", "mse", "ckd"]) == "did you mean hpd?"


def test_several_near_names_are_proposed() -> None:
    assert did_you_mean("pca-12", ["pca-128", "pca-122", "other"]) in (
        "did you mean pca-128 or pca-122?",
        "did you mean pca-122 or pca-128?",
    )


def test_far_names_list_what_there_is_in_order() -> None:
    assert did_you_mean("zzz", ["mse", "ckd"]) == "choose one of: ckd, mse"


def test_a_suggestion_ignores_case_and_dashes_and_knows_parts_of_names() -> None:
    assert did_you_mean("INT8", ["int8", "binary"]) == "did you mean int8?"
    assert did_you_mean("ndcg", ["accuracy", "ndcg_at_10", "mrr_at_10"]) == "did you mean ndcg_at_10?"
    # The dashes are no likeness.
    assert did_you_mean("--text", ["--quiet", "--dtype"]) == "choose one of: --dtype, --quiet"
    assert did_you_mean("--txt", ["--text", "--dtype"]) == "did you mean --text?"


def test_no_fault_is_no_error() -> None:
    raise_faults([], "fit-pca")


def test_one_fault_is_one_line() -> None:
    with pytest.raises(UsageError) as raised:
        raise_faults(["`dim` must be at least 1"], "fit-pca")
    assert raised.value.message == "fit-pca: `dim` must be at least 1"
    assert raised.value.hint == "run: sentcompress fit-pca --help"


def test_faults_are_told_together() -> None:
    with pytest.raises(UsageError) as raised:
        raise_faults(["one", "two"], "fit-pca")
    assert raised.value.message == "fit-pca: 2 errors\n  - one\n  - two"


def test_faults_survive_other_words() -> None:
    error = UsageError("distill: 2 errors", "run: x", ["one", "two"])
    other = error.reworded("stage 3: distill: 2 errors", None)
    assert type(other) is UsageError
    assert (str(other), other.hint, other.faults) == ("stage 3: distill: 2 errors", None, ("one", "two"))
    assert (error.message, error.hint) == ("distill: 2 errors", "run: x")


def test_a_hint_can_have_alternatives() -> None:
    error = SentcompressError("no table", ("make one", "name a file"))
    assert error.hint == "make one, or name a file"
    assert error.with_alternative("wait").alternatives == ("make one", "name a file", "wait")
    assert SentcompressError("no table").with_alternative("wait").hint == "wait"


def test_every_error_has_a_message_a_hint_and_an_exit_code() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, SentcompressError)]
    assert len(kinds) > 5
    for kind in kinds:
        error = kind("what", "do")
        assert (error.message, error.hint, str(error)) == ("what", "do", "what")
        assert error.exit_code == {UsageError: 2, BusyError: 75}.get(kind, 1)
        assert kind.__doc__


def test_very_many_and_very_long_faults_are_cut() -> None:
    with pytest.raises(UsageError) as raised:
        raise_faults(["x" * 10_000, *(f"fault {number}" for number in range(1000))], "run a.toml")
    assert len(raised.value.message) < 2000
    assert raised.value.message.startswith("run a.toml: 1001 errors\n  - xxx")
    assert raised.value.message.endswith("\n  - and 961 more")
    assert len(raised.value.faults) == 1001


def test_a_missing_path_names_the_files_beside_it_that_are_spelt_alike(tmp_path: Path) -> None:
    for name in ("lines.txt", "docs.jsonl", "other.csv"):
        (tmp_path / name).touch()
    assert path_hint(tmp_path / "line.txt") == f"did you mean {tmp_path / 'lines.txt'}?"
    assert path_hint(tmp_path / "docs.jsnl", "give a table") == f"did you mean {tmp_path / 'docs.jsonl'}?"


@pytest.mark.parametrize("name", ["quite_different.parquet", "gone/lines.txt", "lines.txt/lines.txt"])
def test_a_missing_path_unlike_all_others_has_the_usual_hint(tmp_path: Path, name: str) -> None:
    (tmp_path / "lines.txt").touch()
    assert path_hint(tmp_path / name) == "check the path"
    assert path_hint(tmp_path / name, "give a table") == "give a table"
