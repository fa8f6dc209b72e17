"""Exchange of small values between ranks through torch's store, and detection of ranks that have ended.

Rank 0 may work for hours while the others wait: it tokenises, or computes a dev score. Collectives of torch.distributed
have one time limit for everything, so waiting for rank 0 goes through the store. Every rank counts up a number there
once a second, and a rank that is waited for has ended if its number stands still.

The thread that counts also carries signals: what one rank got, all get within two seconds. So all ranks stop, and end
with the same exit code, whichever of them a scheduler has told (docs/decisions/0017-jobs.md).
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import cache
from itertools import count
from typing import Any

from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

from sentcompress import signals
from sentcompress.errors import RankError, SentcompressError, reason_of
from sentcompress.ranks.launch import LIMIT, Launch

BEAT_SECONDS = 1.0
# How long a rank waits for another one before it checks whether that has ended; and its pauses while it waits.
LOOK_SECONDS = 1.0
SHORTEST_PAUSE, LONGEST_PAUSE = 0.001, 0.2
# After a failed exchange, how long to look for the cause: a rank that has ended, or has no heartbeat for half of this.
SILENT_SECONDS = 4.0
# How long a rank that has failed waits at most until the others know why: less than torchrun waits before it kills.
HEARD_SECONDS = 15.0
GO_ON = "run the same command again: it resumes from the last checkpoint, with any number of ranks"
# The meetings that this process has had: each has its own keys.
_meetings = count()
# Where the first signal stands that a rank got, and how the first rank has ended that did so before its work was done.
SIGNAL, ENDED = "signal", "ended"


@dataclass(frozen=True)
class _Ended:
    """How a rank has ended.

    Attributes:
        rank: its number.
        reason: the error, in words.
        signal: the signal that stopped it, if it was one.
        hint: with a signal, what was kept, and what to do.
    """

    rank: int
    reason: str
    signal: int | None = None
    hint: str | None = None

    @classmethod
    def by(cls, rank: int, error: BaseException) -> _Ended:
        """The end of a rank with an error."""
        if isinstance(error, signals.StoppedError):
            return cls(rank, str(error), error.number, error.hint)
        if isinstance(error, KeyboardInterrupt):
            return cls(rank, "it was interrupted")
        return cls(rank, error.message if isinstance(error, SentcompressError) else str(error) or type(error).__name__)


class Meeting:
    """All ranks at one store.

    Args:
        launch: which rank this is, and where they meet.

    Raises:
        RankError: if the port is in use, if two processes have the same rank, or if a rank does not join in time.
    """

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        prefix = f"sentcompress/{launch.attempt}/{next(_meetings)}"
        self.store, self._beating = (PrefixStore(prefix, store) for store in _connections(launch))
        self._round = 0
        self._beats: dict[int, tuple[bytes, float, float]] = {}
        self._ended: _Ended | None = None
        self._left = threading.Event()
        self._exchanging = False
        if self.store.add(f"started/{launch.number}", 1) > 1:
            raise RankError(f"{launch}: another process already has this rank", "give each its own RANK")
        self.store.set(f"host/{launch.number}", socket.gethostname())
        self.hosts = self._arrive()
        self._beat = threading.Thread(target=self._live, daemon=True)
        self._beat.start()

    def _arrive(self) -> list[str]:
        """The host of each rank, once all have joined."""
        ranks, limit = range(self.launch.count), self.launch.seconds
        try:
            self._comes([f"host/{rank}" for rank in ranks], limit)
            missing = [rank for rank in ranks if not self.store.check([f"host/{rank}"])]
        except RuntimeError as error:
            raise self._unreachable() from error
        if missing:
            word = f"rank {missing[0]} has" if len(missing) == 1 else f"ranks {', '.join(map(str, missing))} have"
            raise RankError(
                f"{self.launch}: {word} not joined at {_place(self.launch)} within {limit:g} seconds; "
                f"{self.launch.count} ranks are expected",
                f"start every rank, with the same command and the same number of ranks; {LIMIT} sets the time limit",
            )
        return [self.store.get(f"host/{rank}").decode() for rank in ranks]

    def name(self, rank: int) -> str:
        """A rank and its host, in words."""
        return f"rank {rank} on {self.hosts[rank]}"

    def tell(self, value: Any) -> Any:
        """Broadcast a value from rank 0."""
        self._round += 1
        if self.launch.number == 0:
            self._say(value)
            return value
        with self._needing_the_store():
            return self._heard(0)

    @contextmanager
    def _needing_the_store(self) -> Iterator[None]:
        """A block in which rank 0 must not end the store, even if its thread has noticed that another rank has ended.

        The messages of the others can then still be read; one may be the error that all ranks report.
        """
        self._exchanging = True
        try:
            yield
        finally:
            self._exchanging = False

    def collect(self, value: Any) -> list[Any]:
        """All-gather: the values of all ranks, in rank order."""
        self._round += 1
        with self._needing_the_store():
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
                if ended := self._end_of_another():
                    raise ended
                if self._silence(rank, LOOK_SECONDS) > self.launch.seconds:
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

    def fail(self, error: BaseException) -> None:
        """Tell the others that this rank ends, and why, and wait a moment until they have heard it."""
        ended = _Ended.by(self.launch.number, error)
        with suppress(RuntimeError):
            if ended.signal is not None:
                self.store.compare_set(SIGNAL, "", str(ended.signal))
            self.store.compare_set(ENDED, "", json.dumps(asdict(ended)))
            self.store.set(f"left/{self.launch.number}", "")
            self._wait_until_heard()
        self._stop()

    def _wait_until_heard(self) -> None:
        """Wait until no living rank needs the store any more, which rank 0 may serve, or a launcher ends them all.

        A rank that is slow to hear it, on a busy machine, would only find that the store is gone.
        """
        until = time.monotonic() + HEARD_SECONDS
        while time.monotonic() < until:
            waiting = [rank for rank in self._others() if not self.store.check([f"left/{rank}"])]
            if all(self._silence(rank, LONGEST_PAUSE) > SILENT_SECONDS for rank in waiting):
                return
            time.sleep(LONGEST_PAUSE / 4)

    def leave(self) -> None:
        """End the meeting.

        Raises:
            RankError: if the store cannot be reached any more.
        """
        try:
            if self.launch.number:
                self.store.set(f"left/{self.launch.number}", "")
            else:  # which may serve the store
                self._comes([f"left/{rank}" for rank in self._others()], self.launch.seconds)
        except RuntimeError as error:
            raise self.lost(error) from error
        finally:
            self._stop()

    def lost(self, error: Exception) -> RankError | signals.StoppedError:
        """The error after an exchange that failed: it names the rank which has ended.

        If a signal has reached this rank too, the others have most likely ended because of it, and so does this one:
        with its exit code, the scheduler starts the job again.
        """
        found = self._cause(error)
        number = signals.received()
        return found if number is None or isinstance(found, signals.StoppedError) else signals.stopped(number)

    def _cause(self, error: Exception) -> RankError | signals.StoppedError:
        try:
            # A number of checks instead of a time, because this rank may itself be paused meanwhile.
            for _ in range(round(SILENT_SECONDS / LONGEST_PAUSE)):
                if ended := self._end_of_another():
                    return ended
                silences = {rank: self._silence(rank, LONGEST_PAUSE) for rank in self._others()}
                if silent := [rank for rank, seconds in silences.items() if seconds > SILENT_SECONDS / 2]:
                    return self._gone(silent)
                time.sleep(LONGEST_PAUSE)
        except RuntimeError:
            return self._unreachable()
        return RankError(f"{self.launch}: communication with the other ranks failed: {reason_of(error)}", GO_ON)

    def _others(self) -> list[int]:
        return [rank for rank in range(self.launch.count) if rank != self.launch.number]

    def _end_of_another(self) -> RankError | signals.StoppedError | None:
        """The error of the first rank that has ended with one; a signal that stopped it stops this rank too."""
        ended = self._ended or _read_end(self.store)
        if ended is None:
            return None
        if ended.signal is not None:
            return signals.stopped(ended.signal, hint=ended.hint)
        return RankError(f"{self.launch}: stopped, because {self.name(ended.rank)} has ended: {ended.reason}", GO_ON)

    def _silence(self, rank: int, pause: float) -> float:
        """Seconds since the last heartbeat of a rank, without the time in which this rank did not look either.

        Otherwise, a rank that was paused itself would find the others silent when it wakes up.

        Args:
            pause: seconds from one look to the next.
        """
        now, key = time.monotonic(), f"alive/{rank}"
        beat = self.store.get(key) if self.store.check([key]) else b""
        seen, looked, silent = self._beats.get(rank, (None, now, 0.0))
        silent = silent + min(now - looked, 2 * pause) if seen == beat else 0.0
        self._beats[rank] = (beat, now, silent)
        return silent

    def _gone(self, ranks: Sequence[int]) -> RankError:
        names = " and ".join(map(self.name, ranks))
        verb = "has" if len(ranks) == 1 else "have"
        return RankError(f"{self.launch}: {names} {verb} ended, or cannot be reached", GO_ON)

    def _unreachable(self) -> RankError:
        server = "torchrun's agent" if self.launch.agent else "rank 0"
        return RankError(f"{self.launch}: {server} at {_place(self.launch)} has ended, or cannot be reached", GO_ON)

    def _live(self) -> None:
        for beat in count():
            with suppress(RuntimeError):
                self._beating.set(f"alive/{self.launch.number}", str(beat))
                self._listen()
            if self._left.wait(BEAT_SECONDS):
                return

    def _listen(self) -> None:
        """Forward signals in both directions, and notice ranks that have ended, while the main thread works."""
        if (number := signals.asked()) is not None:
            self._beating.compare_set(SIGNAL, "", str(number))
        if self._beating.check([SIGNAL]):
            signals.pass_on(int(self._beating.get(SIGNAL)))
        if self._ended is None and (ended := _read_end(self._beating)):
            self._ended = ended
        if self._ended and not self._exchanging:
            self._beating.set(f"left/{self.launch.number}", "")

    def _stop(self) -> None:
        self._left.set()
        self._beat.join()


def _read_end(store: PrefixStore) -> _Ended | None:
    return _Ended(**json.loads(store.get(ENDED))) if store.check([ENDED]) else None


def _place(launch: Launch) -> str:
    return f"{launch.address}:{launch.port}"


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
                f"{launch}: cannot wait for the other ranks at {_place(launch)}: {reason_of(error)}"
            ) from error
        raise RankError(
            f"{launch}: rank 0 did not answer at {_place(launch)} within {launch.seconds:g} seconds",
            f"start rank 0 there, and check MASTER_ADDR and MASTER_PORT; {LIMIT} sets the time limit",
        ) from error
