"""What ranks tell each other through torch's store, and how they notice that one of them has ended.

Rank 0 may work for hours while the others wait: it tokenises, or computes a dev score. Collectives of torch.distributed
have one time limit for everything, so waiting for rank 0 goes through the store. Every rank counts up a number there
once a second, and a rank that is waited for has ended if its number stands still.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from functools import cache
from itertools import count
from typing import Any

from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

from sentcompress.errors import RankError
from sentcompress.ranks.launch import LIMIT, Launch

BEAT_SECONDS = 1.0
# How long a wait goes on before it looks at what became of the other rank, and its pauses.
LOOK_SECONDS = 1.0
SHORTEST_PAUSE, LONGEST_PAUSE = 0.001, 0.2
# Without a sign of life for so long, a rank is the one to blame for an exchange that has failed.
SILENT_SECONDS = 4.0
GO_ON = "run the same command again: it resumes from the last checkpoint, with any number of ranks"
# The meetings that this process has had: each has its own keys.
_meetings = count()


class Meeting:
    """All ranks at one store.

    Args:
        launch: which rank this is, and where they meet.

    Raises:
        RankError: if the port is in use, if there are two processes of one rank, or if a rank does not come in time.
    """

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        prefix = f"sentcompress/{launch.attempt}/{next(_meetings)}"
        self.store, self._beating = (PrefixStore(prefix, store) for store in _connections(launch))
        self._round = 0
        self._beats: dict[int, tuple[bytes, float]] = {}
        self._left = threading.Event()
        if self.store.add(f"started/{launch.number}", 1) > 1:
            raise RankError(f"{launch}: another process is rank {launch.number} already", "give each its own RANK")
        self.store.set(f"host/{launch.number}", socket.gethostname())
        self.hosts = self._arrive()
        self._beat = threading.Thread(target=self._live, daemon=True)
        self._beat.start()

    def _arrive(self) -> list[str]:
        """The host of each rank, once all have come."""
        ranks, limit = range(self.launch.count), self.launch.seconds
        try:
            self._comes([f"host/{rank}" for rank in ranks], limit)
            missing = [rank for rank in ranks if not self.store.check([f"host/{rank}"])]
        except RuntimeError as error:
            raise self._unreachable() from error
        if missing:
            word = f"rank {missing[0]} has" if len(missing) == 1 else f"ranks {', '.join(map(str, missing))} have"
            raise RankError(
                f"{self.launch}: {word} not come within {limit:g} seconds, of {self.launch.count} ranks that were to "
                f"meet at {_place(self.launch)}",
                f"start every rank, with the same command and the same number of ranks; {LIMIT} sets the time limit",
            )
        return [self.store.get(f"host/{rank}").decode() for rank in ranks]

    def name(self, rank: int) -> str:
        """A rank and its host, in words."""
        return f"rank {rank} on {self.hosts[rank]}"

    def tell(self, value: Any) -> Any:
        """Rank 0's value, on every rank."""
        self._round += 1
        if self.launch.number == 0:
            self._say(value)
            return value
        return self._heard(0)

    def collect(self, value: Any) -> list[Any]:
        """The values of all ranks."""
        self._round += 1
        self._say(value)
        return [self._heard(rank) for rank in range(self.launch.count)]

    def _say(self, value: Any) -> None:
        try:
            self.store.set(f"{self._round}/{self.launch.number}", json.dumps(value))
        except RuntimeError as error:
            raise self.lost(error) from error

    def _heard(self, rank: int) -> Any:
        key = f"{self._round}/{rank}"
        try:
            while not self._comes([key], LOOK_SECONDS):
                if failed := self._failed():
                    raise failed
                if self._silence(rank) > self.launch.seconds:
                    raise self._gone([rank])
            return json.loads(self.store.get(key))
        except RuntimeError as error:
            raise self.lost(error) from error

    def _comes(self, keys: Sequence[str], seconds: float) -> bool:
        """Whether all keys are in the store in time. Torch would print a warning for every wait that ends without."""
        until, pause = time.monotonic() + seconds, SHORTEST_PAUSE
        while not self.store.check(list(keys)):
            if time.monotonic() > until:
                return False
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        return True

    def fail(self, reason: str, *, at_once: bool = False) -> None:
        """Tell the others that this rank ends, and why; without `at_once` they have a moment to hear it."""
        with suppress(RuntimeError):
            self.store.set("failed", json.dumps([self.launch.number, reason]))
            self._go(0.0 if at_once else SILENT_SECONDS)
        self._stop()

    def leave(self) -> None:
        """End the meeting.

        Raises:
            RankError: if the store cannot be reached any more.
        """
        try:
            self._go(self.launch.seconds)
        except RuntimeError as error:
            raise self.lost(error) from error
        finally:
            self._stop()

    def _go(self, seconds: float) -> None:
        """Say that this rank needs the store no more; rank 0, which may serve it, waits until all have said so."""
        if self.launch.number:
            self.store.set(f"left/{self.launch.number}", "")
        elif seconds:
            keys = [f"left/{rank}" for rank in range(1, self.launch.count)]
            self._comes(keys, seconds)

    def lost(self, error: Exception) -> RankError:
        """The error that names the rank which has ended, after an exchange that failed."""
        deadline = time.monotonic() + SILENT_SECONDS
        try:
            while time.monotonic() < deadline:
                if failed := self._failed():
                    return failed
                if silent := [rank for rank in self._others() if self._silence(rank) > SILENT_SECONDS / 2]:
                    return self._gone(silent)
                time.sleep(LONGEST_PAUSE)
        except RuntimeError:
            return self._unreachable()
        return RankError(f"{self.launch}: an exchange with the other ranks failed: {_first_line(error)}", GO_ON)

    def _others(self) -> list[int]:
        return [rank for rank in range(self.launch.count) if rank != self.launch.number]

    def _failed(self) -> RankError | None:
        """The error of the last rank that has ended with one."""
        if not self.store.check(["failed"]):
            return None
        rank, reason = json.loads(self.store.get("failed"))
        return RankError(f"{self.launch}: stopped, because {self.name(rank)} has ended: {reason}", GO_ON)

    def _silence(self, rank: int) -> float:
        """Seconds since a rank was last seen to count."""
        now, key = time.monotonic(), f"alive/{rank}"
        beat = self.store.get(key) if self.store.check([key]) else b""
        seen, since = self._beats.get(rank, (None, now))
        if seen != beat:
            since = now
        self._beats[rank] = (beat, since)
        return now - since

    def _gone(self, ranks: Sequence[int]) -> RankError:
        names = " and ".join(map(self.name, ranks))
        verb = "has" if len(ranks) == 1 else "have"
        return RankError(f"{self.launch}: {names} {verb} ended, or cannot be reached any more", GO_ON)

    def _unreachable(self) -> RankError:
        server = "torchrun's agent" if self.launch.agent else "rank 0"
        return RankError(f"{self.launch}: {server} at {_place(self.launch)} has ended, or cannot be reached", GO_ON)

    def _live(self) -> None:
        for beat in count():
            with suppress(RuntimeError):
                self._beating.set(f"alive/{self.launch.number}", str(beat))
            if self._left.wait(BEAT_SECONDS):
                return

    def _stop(self) -> None:
        self._left.set()
        self._beat.join()


def _place(launch: Launch) -> str:
    return f"{launch.address}:{launch.port}"


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


@cache
def _connections(launch: Launch) -> tuple[TCPStore, TCPStore]:
    """Two connections to the store, because each waits for one answer at a time.

    They last as long as the process: the store of one meeting must not end when others are already at the next one.
    """
    return _connected(launch, serves=launch.number == 0 and not launch.agent), _connected(launch, serves=False)


def _connected(launch: Launch, *, serves: bool) -> TCPStore:
    """The store; this rank `serves` it, or another one, or torchrun."""
    try:
        return TCPStore(
            launch.address,
            launch.port,
            launch.count,
            is_master=serves,
            timeout=timedelta(seconds=launch.seconds),
            wait_for_workers=False,
        )
    except (RuntimeError, OSError) as error:
        text = str(error)
        if serves and ("EADDRINUSE" in text or "address already in use" in text):
            raise RankError(
                f"{launch}: port {launch.port} is in use by another process",
                "set MASTER_PORT to a free port, on every rank; torchrun: --standalone, or another --rdzv-endpoint",
            ) from None
        if serves:
            raise RankError(
                f"{launch}: cannot wait for the other ranks at {_place(launch)}: {_first_line(error)}"
            ) from error
        raise RankError(
            f"{launch}: nobody answers at {_place(launch)}, where rank 0 should, within {launch.seconds:g} seconds",
            f"start rank 0 there, and check MASTER_ADDR and MASTER_PORT; {LIMIT} sets the time limit",
        ) from error
