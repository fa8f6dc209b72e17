"""The hub is waited for as long as when its library fetches files, and not forever."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from hub import fetching
from huggingface_hub import constants, errors

from sentcompress import hub
from sentcompress.corpora.hub import HubInput, hub_input
from sentcompress.corpora.readers import ReadOptions
from sentcompress.errors import InputError
from sentcompress.models.sources import FetchError, locate
from sentcompress.recipes import hub_lookup
from sentcompress.recipes.hub_lookup import HubLookup


def test_a_slow_hub_is_waited_for_as_when_files_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage waits longer than the 10 seconds that are the hub's default, and the user can ask for more."""
    pytest.importorskip("datasets")
    waited: list[float] = []

    def answer(_: Any, name: str, *, timeout: float | None = None, **__: Any) -> SimpleNamespace:
        waited.append(-1 if timeout is None else timeout)
        return SimpleNamespace(sha="abc")

    for question in ("model_info", "dataset_info"):
        monkeypatch.setattr(huggingface_hub.HfApi, question, answer)
    for asked in (constants.DEFAULT_ETAG_TIMEOUT, 300):
        monkeypatch.setattr(constants, "HF_HUB_ETAG_TIMEOUT", asked)
        HubLookup().check_model("owner/in-no-cache", None)
        HubLookup().check_data_set("owner/graded", None)
        hub_input("owner/nli", None, None, ReadOptions())
    assert waited == [60, 60, 60, 300, 300, 300]


@pytest.fixture
def stalled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A hub that takes connections and answers none; after a minute it closes them, so that no test waits forever."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        end = Timer(60, server.close)
        end.start()
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        for proxy in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(proxy, "127.0.0.1")
        huggingface_hub.close_session()  # its client was made for the proxies of before
        yield
        end.cancel()
    huggingface_hub.close_session()


def test_a_hub_that_never_answers_is_given_up(stalled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datasets")
    monkeypatch.setattr(hub, "TIMEOUT", 0.2)
    with pytest.raises(InputError, match=r"the hub cannot be reached .*timed out"):
        hub_input("owner/nli", None, None, ReadOptions())
    with pytest.raises(InputError, match=r"the hub cannot be reached \(ReadTimeout\)"):
        HubLookup().check_data_set("owner/nli", None)


def test_nor_is_a_model_waited_for_forever(stalled: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "TIMEOUT", 0.2)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    started = time.monotonic()
    with pytest.raises(FetchError, match="no connection, and it is not in the hub's cache"):
        locate("owner/model")
    assert time.monotonic() - started < 40, "it was given up by the server"


def test_nor_are_the_files_of_a_data_set(stalled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library lists them without a timeout, and tries six times."""
    datasets = pytest.importorskip("datasets")

    def load(name: str, *_: object, **__: object) -> list[Any]:
        return list(huggingface_hub.HfApi().list_repo_tree(name, repo_type="dataset"))

    monkeypatch.setattr(hub, "TIMEOUT", 0.2)
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)
    monkeypatch.setattr(datasets, "load_dataset", load)
    data = HubInput("owner/nli", None, "abc", ReadOptions())
    with pytest.raises(InputError, match=r"the hub cannot be reached .*timed out"):
        next(data.rows())


def test_a_model_that_was_fetched_is_found_in_the_cache(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repositories have files that no model needs, and that are not fetched."""
    folder = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    (folder / "README.md").write_text("A model.\n", encoding="utf-8")
    with fetching({"owner/model": folder}, tmp_path / "cache", monkeypatch):
        assert not (locate("owner/model").path / "README.md").exists()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    HubLookup().check_model("owner/model", None)
    with pytest.raises(InputError, match="not in the hub's cache"):
        HubLookup().check_model("owner/another", None)


def test_what_the_hub_answers_is_told_when_a_recipe_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datasets")
    response: Any = SimpleNamespace(status_code=401, reason_phrase="Unauthorized", headers={}, request=None)

    def refuse(*_: object) -> None:
        raise errors.HfHubHTTPError("refused", response=response)

    monkeypatch.setattr(hub_lookup, "ask_hub", refuse)
    with pytest.raises(InputError, match="needs the data set owner/graded: the hub answers 401 Unauthorized"):
        HubLookup().check_data_set("owner/graded", None)
