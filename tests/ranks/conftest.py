"""A teacher for the commands in ranks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_models import make_tiny_model


@pytest.fixture(scope="session")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny random sentence encoder, named `teacher`."""
    return make_tiny_model(tmp_path_factory.mktemp("teacher") / "teacher")
