"""Which rank a process is, from the variables that torchrun sets."""

from __future__ import annotations

import pytest

from sentcompress.errors import UsageError
from sentcompress.ranks.launch import by_rank, find_launch, local_rank, run_alone

SET = {"WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "1", "MASTER_ADDR": "node1", "MASTER_PORT": "29500"}


@pytest.mark.parametrize("environment", [{}, {"WORLD_SIZE": "1"}, {"WORLD_SIZE": "1", "RANK": "nine"}, {"RANK": "3"}])
def test_a_single_process_is_no_rank(environment: dict[str, str]) -> None:
    assert find_launch(environment) is None
    assert by_rank("no sentences", environment) == "no sentences"


def test_what_torchrun_says() -> None:
    launch = find_launch({**SET, "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_USE_AGENT_STORE": "True"})
    assert launch is not None
    assert (launch.number, launch.count, launch.local, launch.local_count) == (3, 4, 1, 2)
    assert (launch.address, launch.port, launch.agent, launch.attempt, launch.seconds) == ("node1", 29500, True, 0, 600)
    assert local_rank(SET) == 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"RANK": "4"}, "RANK 4: there are 4 ranks, from 0 to 3"),
        ({"RANK": "-1"}, "RANK must be a whole number from 0"),
        ({"WORLD_SIZE": "many"}, "WORLD_SIZE must be a whole number from 1"),
        ({"MASTER_PORT": "70000"}, "MASTER_PORT must be a whole number from 1 to 65535"),
        ({"SENTCOMPRESS_RANK_SECONDS": "0"}, "SENTCOMPRESS_RANK_SECONDS must be a number of seconds above 0"),
        ({"SENTCOMPRESS_RANK_SECONDS": "nan"}, "SENTCOMPRESS_RANK_SECONDS must be a number of seconds above 0"),
    ],
)
def test_a_wrong_value_is_told(changed: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        find_launch({**SET, **changed})


@pytest.mark.parametrize("missing", ["RANK", "MASTER_ADDR", "MASTER_PORT"])
def test_a_missing_variable_is_told(missing: str) -> None:
    with pytest.raises(UsageError, match=f"WORLD_SIZE is 4, but {missing} is not set"):
        find_launch({name: value for name, value in SET.items() if name != missing})


def test_errors_name_the_rank_but_for_the_first_one() -> None:
    assert by_rank("the disk is full", SET).startswith("rank 3 on ")
    assert by_rank("the disk is full", SET).endswith(": the disk is full")
    assert by_rank("rank 3 on here: the disk is full", SET) == "rank 3 on here: the disk is full"
    assert by_rank("the disk is full", {**SET, "RANK": "0"}) == "the disk is full"
    assert by_rank("RANK is wrong", {**SET, "RANK": "x"}) == "RANK is wrong"


def test_a_command_that_is_not_shared_forgets_the_others() -> None:
    environment = dict(SET)
    run_alone(environment)
    assert find_launch(environment) is None
