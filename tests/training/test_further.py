"""Defaults for training a finished student further: from the package, from a run, from a selection, from an average."""

from __future__ import annotations

from typing import Any

import pytest
from distilling import make_work
from listening import Listener
from tiny_models import make_tiny_model

from sentcompress.commands.distill import Params
from sentcompress.progress import SILENT
from sentcompress.stages import average, distill, eval_fidelity, select
from sentcompress.store import WorkDirectory
from sentcompress.training.further import GENTLE, further

TEXTS = [f"the {word} of number {number}" for number in range(300) for word in ("river", "window", "storm")]
SHORT: dict[str, Any] = {"epochs": 1, "batch_size": 32, "student": "teacher:1"}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> WorkDirectory:
    """Students that were trained at a high and at a low rate, one with a new head, and what was made of the two."""
    folder = tmp_path_factory.mktemp("further")
    made = make_work(folder / "work", make_tiny_model(folder / "teacher"), TEXTS)
    for name, rate in (("quick", 2e-3), ("slow", 1e-6)):
        options = ("normalise=true", "alpha=0")
        distill.run(Params(**SHORT, method="simtde", options=options, lr=rate, name=name), made, SILENT)
        eval_fidelity.run(eval_fidelity.Params(model=name, name=f"of-{name}", neighbours=3, pairwise=5), made, SILENT)
    for rank in (1, 2):
        chosen = select.Params(inputs=("quick", "slow"), by="neighbours_shared", rank=rank, name=f"rank-{rank}")
        select.run(chosen, made, SILENT)
    average.run(average.Params(inputs=("slow", "quick"), name="mean"), made, SILENT)
    return made


def taken(work: WorkDirectory, student: str, **changes: Any) -> tuple[str | None, float | None, tuple[str, ...]]:
    found = further(Params(student=student, **changes), work, SILENT)
    return found.method, found.lr, found.options


def test_its_method_and_options_stay_and_its_rate_is_at_most_its_own(work: WorkDirectory) -> None:
    options = ("alpha=0.0", "normalise=true")
    gentle = pytest.approx(GENTLE * 5e-4)
    assert taken(work, "quick") == ("simtde", gentle, options)
    assert taken(work, "slow") == ("simtde", 1e-6, options)
    assert taken(work, "general-5m") == (
        "simtde",
        gentle,
        ("normalise=true", "reduction=sum", "alpha=0", "relation=20"),
    )


def test_of_a_selection_it_is_what_the_chosen_one_had_and_of_an_average_the_first(work: WorkDirectory) -> None:
    rates = sorted(taken(work, name)[1] or 0 for name in ("rank-1", "rank-2"))
    assert rates == pytest.approx([1e-6, GENTLE * 5e-4])
    for rank in (1, 2):
        chosen = work.get("students", f"rank-{rank}").facts["models"][0]
        assert taken(work, f"rank-{rank}") == taken(work, chosen.rpartition("/")[2])
    assert taken(work, "mean")[1] == 1e-6


def test_what_was_asked_for_comes_first(work: WorkDirectory) -> None:
    assert taken(work, "quick", lr=1e-3, options=("alpha=0.5",)) == ("simtde", 1e-3, ("normalise=true", "alpha=0.5"))
    assert taken(work, "quick", method="mse") == ("mse", None, ())
    assert taken(work, "teacher:1") == (None, None, ())


def test_it_is_told(work: WorkDirectory) -> None:
    listener = Listener()
    further(Params(student="slow"), work, listener)
    assert listener.notes == [
        "slow is a finished student: training continues with its own method, simtde, learning rate 1e-06"
    ]
