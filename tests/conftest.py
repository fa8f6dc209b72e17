"""Fixtures that many tests share: tiny random models, sentences, the real data when it is there."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import warm
from hypothesis import HealthCheck, settings
from tiny_models import load_model, make_sentences, make_tiny_model

from sentcompress.store import WorkDirectory

if TYPE_CHECKING:
    from sentcompress.models.encoder import Encoder

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# On a busy machine one example can take longer than the fifth of a second that is allowed by default.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
# A shell that runs the tests in the background has them ignore Ctrl-C, and every command that they start as well.
signal.signal(signal.SIGINT, signal.default_int_handler)
# What is imported and collected stays: to look for garbage in it takes a third of the time of collecting the tests.
gc.disable()
# Folders whose tests come first, in this order.
FIRST = ("faults", "store", "ranks", "recipes", "stages")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Under xdist, long files first: at the end, one process would run such a file while the others idle.

    `store` forks hundreds of times, which is cheap as long as the process is small.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: (*FIRST, item.path.parent.name).index(item.path.parent.name))


@pytest.fixture(scope="session", autouse=True)
def no_fsync() -> Iterator[None]:
    """A process that crashes loses nothing it wrote, and waiting for the disk takes up to half of a test's time.

    What has to be synced before a power cut, and in which order, is tested under the shim of the fault harness.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", not_synced)
        yield


def not_synced(descriptor: int) -> None:
    """Fails where `os.fsync` would: if it is not an open file."""
    os.fstat(descriptor)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny random sentence encoder: 2 layers, 32 wide, at most 64 tokens."""
    return make_tiny_model(tmp_path_factory.mktemp("tiny") / "tiny-model")


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another one, of 1 layer, 16 wide."""
    return make_tiny_model(tmp_path_factory.mktemp("small") / "small-model", layers=1, width=16, seed=5)


@pytest.fixture
def encoder(tiny_model: Path) -> Encoder:
    """The same, loaded for one test."""
    return load_model(tiny_model)


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    """An empty work directory, which does not exist yet; some modules have a filled one in its place."""
    return WorkDirectory(tmp_path / "work")


@pytest.fixture(scope="session")
def commands() -> Iterator[warm.Commands]:
    """Runs commands in processes of their own that need not load torch and transformers."""
    with warm.started() as found:
        yield found


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    """300 distinct sentences that the tiny model's vocabulary covers."""
    return make_sentences(300)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real data sets beside the checkout (or where SENTCOMPRESS_SHARED_DATA says); skips when absent."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SENTCOMPRESS_SHARED_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no real data sets at {folder}")
    return folder


@pytest.fixture
def figures_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """For reports whose words and numbers alone are looked at: to draw takes a second for each report."""
    from sentcompress.stages import report

    monkeypatch.setattr(report, "_draw", lambda chart: (f"<svg>{chart.name}</svg>", chart.name.encode()))
