"""How many files a process may have open at once; a mapped file stays open."""

from __future__ import annotations

import os
import resource

from sentcompress.errors import SentcompressError

# For all that is opened besides: libraries, locks, pipes.
SPARE = 200


def allow_open_files(count: int, what: str) -> None:
    """Raise this process's limit of open files if `count` more would exceed it. Many systems begin with 1,024.

    Args:
        what: what is opened, for the error.

    Raises:
        SentcompressError: if the system's own limit is lower.
    """
    needed = len(os.listdir("/dev/fd")) + count + SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    except (ValueError, OSError):  # above the hard limit, or macOS's own
        raise SentcompressError(
            f"{count:,} {what} must be open at the same time, more than the system allows a process to open",
            f"raise the limit of open files to {needed} (ulimit -n, or nofile in /etc/security/limits.conf)",
        ) from None
