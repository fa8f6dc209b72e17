"""One pool of workers for all fault tests: it takes half a minute to run every stage without faults."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from faults.pool import Pool, started
from faults.shim import find_compiler
from faults.stages import all_stages


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    """Two workers with all stages but the slow ones; skips where the library cannot be compiled or preloaded."""
    if sys.platform != "linux" or find_compiler() is None:
        pytest.skip("the fault harness needs Linux with a C compiler and libc's headers")
    with started(2, [stage.name for stage in all_stages() if not stage.slow]) as found:
        yield found
