"""One profile for all property tests: how many examples, from which seed.

SENTCOMPRESS_PROPERTY_EXAMPLES: examples for each test (25; without the variable they are the same in every run).
SENTCOMPRESS_PROPERTY_SEED: with the variable above, the seed to begin with; by default a new one.
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import HealthCheck, core, settings

_EXAMPLES = os.environ.get("SENTCOMPRESS_PROPERTY_EXAMPLES")
_SEED = int(os.environ.get("SENTCOMPRESS_PROPERTY_SEED", random.SystemRandom().randrange(2**32)))

settings.register_profile(
    "properties",
    max_examples=int(_EXAMPLES or 25),
    derandomize=_EXAMPLES is None,
    deadline=None,
    database=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.function_scoped_fixture,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)
settings.load_profile("properties")
if _EXAMPLES is not None:
    core.global_force_seed = _SEED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how the examples can be had again."""
    if _EXAMPLES is not None:
        terminalreporter.write_line(
            f"properties: SENTCOMPRESS_PROPERTY_EXAMPLES={_EXAMPLES} SENTCOMPRESS_PROPERTY_SEED={_SEED}"
        )
