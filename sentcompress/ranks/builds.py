"""One artifact that several ranks make: rank 0 holds the lock, writes and finishes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sentcompress.errors import RankError
from sentcompress.progress import Reporter
from sentcompress.ranks.alone import Ranks
from sentcompress.store import Artifact, Build, Request, WorkDirectory
from sentcompress.store.atomic import beside
from sentcompress.store.unfinished import read_request


@contextmanager
def shared_build(
    ranks: Ranks, work: WorkDirectory, request: Request, *, force: bool, reporter: Reporter
) -> Iterator[Build]:
    """The build of an artifact on all ranks; see `WorkDirectory.build`. Only rank 0 may finish it.

    `build.fresh` is the finished artifact on all ranks, if rank 0 finds it.

    Raises:
        RankError: if a rank does not see the build, because it has another work directory.
    """
    if ranks.first:
        with work.build(request, force=force, reporter=reporter) as build:
            ranks.tell({"fresh": build.fresh is not None, "resumed": build.resumed})
            yield build
        return
    said = ranks.tell({"fresh": False, "resumed": False})
    target = work.path / request.kind / request.name
    if said["fresh"]:
        yield Build(request, target, target, find_shared(ranks, work, request), resumed=False)
        return
    partial = beside(target, "partial")
    if read_request(partial).get("fingerprint") != request.fingerprint:
        raise _unseen(ranks, f"the unfinished {request.kind}/{request.name}", work)
    yield Build(request, target, partial, None, resumed=said["resumed"])


def find_shared(ranks: Ranks, work: WorkDirectory, request: Request) -> Artifact:
    """The artifact that rank 0 has finished.

    Raises:
        RankError: if this rank does not see it.
    """
    found = work.find(request.kind, request.name)
    if found is None or found.fingerprint != request.fingerprint:
        raise _unseen(ranks, f"{request.kind}/{request.name}", work)
    return found


def _unseen(ranks: Ranks, what: str, work: WorkDirectory) -> RankError:
    return RankError(
        f"rank {ranks.number} does not see {what}, written by rank 0, in {work.path}",
        "use the same `work` for all ranks, on a file system that their hosts share",
    )
