"""Ranks of torch.distributed: how they join, and the tensors that they exchange."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed
from torch.distributed import PrefixStore  # type: ignore[attr-defined]

from sentcompress import __version__
from sentcompress.commands.options import Options
from sentcompress.errors import RankError
from sentcompress.progress import Reporter
from sentcompress.quantities import counted
from sentcompress.ranks.alone import ALONE, GatheredViews, Ranks, Value
from sentcompress.ranks.launch import find_launch
from sentcompress.ranks.meeting import Meeting
from sentcompress.store import Request

# Bytes of gradients that are summed in one exchange.
BUCKET_BYTES = 2**25
Result = TypeVar("Result")


class Group(Ranks):
    """Several processes; see `Ranks`. Tensors are on the CPU, or all on the same kind of GPU."""

    def __init__(self, meeting: Meeting) -> None:
        self._meeting = meeting
        self.number, self.count = meeting.launch.number, meeting.launch.count

    def tell(self, value: Value) -> Value:
        found: Value = self._meeting.tell(value)
        return found

    def spread(self, value: Any) -> Any:
        self._meeting.tell(None)  # waits as long as it takes, unlike an exchange
        found = [value]
        self._watched(lambda: distributed.broadcast_object_list(found, src=0, device=torch.device("cpu")))
        return found[0]

    def collect(self, value: Value) -> list[Value]:
        return self._meeting.collect(value)

    def meet(self) -> None:
        self._meeting.collect(None)

    def numbers_later(self, values: Sequence[float]) -> Callable[[], list[list[float]]]:
        own = torch.tensor(values, dtype=torch.float64)
        parts = [torch.empty_like(own) for _ in range(self.count)]
        exchange: Any = self._watched(lambda: distributed.all_gather(parts, own, async_op=True))

        def wait() -> list[list[float]]:
            self._watched(exchange.wait)
            return [part.tolist() for part in parts]

        return cache(wait)

    def gather(self, views: Mapping[str, Tensor], lengths: Mapping[str, Sequence[int]]) -> GatheredViews:
        found, own = {}, {}
        for name, view in views.items():
            by_rank = lengths[name]
            before = sum(by_rank[: self.number])
            own[name] = slice(before, before + by_rank[self.number])
            # All ranks have to give tensors of one shape, and some of its elements.
            if not max(by_rank):
                found[name] = view
                continue
            padded = view.new_zeros((max(by_rank), *view.shape[1:]))
            padded[: by_rank[self.number]] = view
            parts = [part[:length] for part, length in zip(self._all(padded), by_rank, strict=True)]
            found[name] = torch.cat(parts)
        return GatheredViews(found, own)

    def add(self, tensors: Sequence[Tensor]) -> None:
        for bucket in _buckets(tensors):
            flat = torch.cat([tensor.reshape(-1) for tensor in bucket])
            self._watched(lambda flat=flat: distributed.all_reduce(flat))  # type: ignore[misc]
            for tensor, summed in zip(bucket, torch.split(flat, [tensor.numel() for tensor in bucket]), strict=True):
                tensor.copy_(summed.view_as(tensor))

    def copy(self, tensors: Sequence[Tensor]) -> None:
        for tensor in (tensor for tensor in tensors if tensor.numel()):
            whole = tensor.detach().contiguous()
            self._watched(lambda whole=whole: distributed.broadcast(whole, src=0))  # type: ignore[misc]
            with torch.no_grad():
                tensor.copy_(whole)

    def _all(self, own: Tensor) -> list[Tensor]:
        parts = [torch.empty_like(own) for _ in range(self.count)]
        self._watched(lambda: distributed.all_gather(parts, own))
        return parts

    def _watched(self, exchange: Callable[[], Result]) -> Result:
        """Exchange something; an error names the rank that has ended."""
        try:
            return exchange()
        except RuntimeError as error:
            raise self._meeting.lost(error) from error


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    bucket: list[Tensor] = []
    size = 0
    for tensor in tensors:
        if bucket and (tensor.dtype != bucket[0].dtype or size >= BUCKET_BYTES):
            yield bucket
            bucket, size = [], 0
        bucket.append(tensor)
        size += tensor.numel() * tensor.element_size()
    if bucket:
        yield bucket


@contextmanager
def joined(params: Options, request: Request | None, device: torch.device, reporter: Reporter) -> Iterator[Ranks]:
    """The ranks that run a command together; `ALONE` without torchrun.

    An error on one rank, or its end, ends all. A signal to one stops all, with the same exit code.

    Args:
        params: the options, which have to be the same on all ranks.
        request: the request of the artifact that they make, whose inputs have to be the same, too.
        device: the device of this rank.

    Raises:
        UsageError: if the environment does not tell which rank this is.
        RankError: if a rank does not come, if ranks were started with different options, inputs or versions, or if one
            has ended.
        StoppedError: if another rank was stopped by a signal.
    """
    launch = find_launch()
    if launch is None:
        yield ALONE
        return
    meeting = Meeting(launch)
    try:
        _agree(meeting, params, request, device)
        backend = _begin(meeting, device)
        hosts = len(set(meeting.hosts))
        reporter.note(f"{counted(launch.count, 'rank')} on {counted(hosts, 'host')} ({backend})")
        yield Group(meeting)
        meeting.leave()
    except BaseException as error:
        meeting.fail(error)
        raise
    distributed.destroy_process_group()


def _begin(meeting: Meeting, device: torch.device) -> str:
    """Let torch connect the ranks; returns how it does so."""
    launch = meeting.launch
    # Numbers are exchanged on the CPU, whatever the device. NCCL refuses two ranks on one GPU.
    own_gpu = device.type == "cuda" and launch.local_count <= torch.cuda.device_count()
    backend = "nccl" if own_gpu else "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(device)
    try:
        distributed.init_process_group(
            "cpu:gloo,cuda:nccl" if own_gpu else "gloo",
            store=PrefixStore("exchange", meeting.store),
            rank=launch.number,
            world_size=launch.count,
            timeout=timedelta(seconds=launch.seconds),
        )
    except RuntimeError as error:
        raise meeting.lost(error) from error
    return backend


def _agree(meeting: Meeting, params: Options, request: Request | None, device: torch.device) -> None:
    """Raise RankError that names the first rank which differs from rank 0, and in what."""
    said = {
        "versions": {
            "sentcompress": __version__,
            "Python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in ("torch", "transformers")},
        },
        "options": {"command": params.command, **{name: str(value) for name, value in vars(params).items()}},
        "inputs": dict(request.inputs) if request else {},
        "device": {"kind": device.type},
    }
    first, *others = meeting.collect(said)
    for rank, other in enumerate(others, start=1):
        if other != first:
            raise RankError(
                f"{meeting.launch}: {meeting.name(rank)} differs from {meeting.name(0)}: {_difference(first, other)}",
                "start all ranks with the same options, versions and files",
            )


def _difference(first: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """What differs, in words; versions explain everything else, so they come first."""
    for part in ("versions", "options", "inputs", "device"):
        before, now = first[part], other[part]
        names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        if names and part == "inputs":
            return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} not the same there"
        if names:
            quote = "`" if part == "options" else ""
            return "; ".join(f"{quote}{name}{quote} {now.get(name)} and not {before.get(name)}" for name in names)
    return "its request"
