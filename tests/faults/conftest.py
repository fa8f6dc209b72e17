"""One pool of workers for all fault tests: each worker first runs every stage without faults, for twenty seconds."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from faults.pool import Pool, started
from faults.shim import find_compiler
from faults.stages import all_stages


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    """Workers with all stages but the slow ones; skips where the library cannot be compiled or preloaded."""
    if sys.platform != "linux" or find_compiler() is None:
        pytest.skip("the fault harness needs Linux with a C compiler and libc's headers")
    # With two cores and two processes of xdist, a second worker would only add its preparation.
    jobs = 1 if "PYTEST_XDIST_WORKER" in os.environ and (os.cpu_count() or 1) <= 2 else 2
    with started(jobs, [stage.name for stage in all_stages() if not stage.slow]) as found:
        yield found
