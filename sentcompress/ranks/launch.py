"""Detects from the environment variables of torchrun whether a process is one of several ranks."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

from sentcompress.errors import UsageError

# The longest wait for another rank: to start, to answer, and to take part in an exchange of tensors.
LIMIT, DEFAULT_LIMIT = "SENTCOMPRESS_RANK_SECONDS", 600.0
COUNT, NUMBER, LOCAL, LOCAL_COUNT = "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"
ADDRESS, PORT = "MASTER_ADDR", "MASTER_PORT"
# Set by torchrun: whether its agent serves the store, and how often it has started the ranks again.
AGENT, ATTEMPT = "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RESTART_COUNT"
_START = "start it with torchrun, or unset WORLD_SIZE to run in one process"


@dataclass(frozen=True)
class Launch:
    """One of several ranks.

    Attributes:
        number: its rank, from 0.
        count: the number of ranks.
        local, local_count: the same among the ranks of this host.
        address, port: where the ranks meet.
        agent: whether torchrun serves the store there; otherwise rank 0 does.
        attempt: how often torchrun has started the ranks again.
        seconds: the longest wait for another rank.
    """

    number: int
    count: int
    local: int
    local_count: int
    address: str
    port: int
    agent: bool
    attempt: int
    seconds: float

    def __str__(self) -> str:
        return f"rank {self.number} on {socket.gethostname()}"


def find_launch(environment: Mapping[str, str] = os.environ) -> Launch | None:
    """This process as one of several ranks; None if it runs alone.

    Raises:
        UsageError: if the variables are incomplete or contradict each other.
    """
    if environment.get(COUNT, "1").strip() in ("", "1"):
        return None
    count = _whole(environment, COUNT, least=1)
    number = _whole(environment, NUMBER)
    local = _whole(environment, LOCAL, default=0)
    if number >= count:
        raise UsageError(f"{NUMBER} {number}: there are {count} ranks, from 0 to {count - 1} ({COUNT})", _START)
    if not environment.get(ADDRESS):
        raise UsageError(f"{COUNT} is {count}, but {ADDRESS} is not set", _START)
    return Launch(
        number=number,
        count=count,
        local=local,
        local_count=_whole(environment, LOCAL_COUNT, least=1, default=local + 1),
        address=environment[ADDRESS],
        port=_whole(environment, PORT, least=1, most=65_535),
        agent=environment.get(AGENT) == "True",
        attempt=_whole(environment, ATTEMPT, default=0),
        seconds=_seconds(environment),
    )


def without_traces(environment: MutableMapping[str, str] = os.environ) -> None:
    """Keep torch from printing a stack of C++ calls when a rank is missing or has ended.

    To be called before torch is loaded. The user's own TORCH_CPP_LOG_LEVEL remains.
    """
    environment.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")


def by_rank(message: str, environment: Mapping[str, str] = os.environ) -> str:
    """A message of a process, with its rank in front, unless it is the first or the message names one."""
    try:
        launch = find_launch(environment)
    except UsageError:
        return message
    return message if launch is None or launch.number == 0 or message.startswith("rank ") else f"{launch}: {message}"


def run_alone(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let this process, and those that it starts, run as if there were no other ranks."""
    for name in (COUNT, NUMBER, LOCAL, LOCAL_COUNT):
        environment.pop(name, None)


def local_rank(environment: Mapping[str, str] = os.environ) -> int | None:
    """The number of this process among the ranks of this host; None if it runs alone."""
    launch = find_launch(environment)
    return None if launch is None else launch.local


def _whole(
    environment: Mapping[str, str], name: str, *, least: int = 0, most: int = 2**31 - 1, default: int | None = None
) -> int:
    text = environment.get(name)
    if text is None:
        if default is None:
            raise UsageError(f"{COUNT} is {environment[COUNT]}, but {name} is not set", _START)
        return default
    if not text.isascii() or not text.isdecimal() or not least <= int(text) <= most:
        raise UsageError(f"{name} must be a whole number from {least} to {most}, not {text[:40]!r}", _START)
    return int(text)


def _seconds(environment: Mapping[str, str]) -> float:
    text = environment.get(LIMIT, str(DEFAULT_LIMIT))
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found < float("inf"):
        raise UsageError(f"{LIMIT} must be a number of seconds above 0, not {text[:40]!r}", f"unset {LIMIT}")
    return found
