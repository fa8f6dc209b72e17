"""A model hub on 127.0.0.1: the few answers that `huggingface_hub.snapshot_download` asks for."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import huggingface_hub
import pytest
from huggingface_hub import constants

from sentcompress.models import sources

COMMIT = hashlib.sha1(b"the only commit").hexdigest()


@contextmanager
def serve_hub(models: Mapping[str, Path], data_sets: Sequence[str] = ()) -> Iterator[str]:
    """Serve folders under names such as `owner/model`; yields the address for HF_ENDPOINT.

    Args:
        data_sets: names of data sets that exist, without files.
    """
    files = {
        name: {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
        for name, folder in models.items()
    }

    files |= {f"datasets/{name}": {} for name in data_sets}

    class Handler(_Handler):
        repositories = files

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def fetching(models: Mapping[str, Path], cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process fetches models from such a hub, into a cache that it keeps until the end of the test."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve_hub(models) as endpoint:
        # Only files are served, not the answer to whether the hub is there.
        monkeypatch.setattr(sources, "ask_hub", lambda *_: None)
        fetch = partial(huggingface_hub.snapshot_download, endpoint=endpoint)
        monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
        yield


def asking(endpoint: str, home: Path) -> dict[str, str]:
    """The variables of a command that asks the hub at this address, and keeps what it gets in `home`."""
    variables = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"}
    # A proxy would be asked for 127.0.0.1 too.
    variables |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "OMP_NUM_THREADS": "1"}
    # On a busy machine, this hub can take longer to answer than the 10 seconds that are usual.
    variables |= {"HF_HUB_ETAG_TIMEOUT": "300", "HF_HUB_DOWNLOAD_TIMEOUT": "300"}
    variables.pop("HF_HUB_OFFLINE", None)
    return variables


class _Handler(BaseHTTPRequestHandler):
    repositories: Mapping[str, Mapping[str, Path]] = {}
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def _answer(self, *, body: bool) -> None:
        path = unquote(urlsplit(self.path).path).strip("/")
        if match := re.fullmatch(r"api/(?:models/|(?=datasets/))(.+?)(?:/(revision|tree)/[^/]+)?", path):
            self._describe(match[1], tree=match[2] == "tree", body=body)
        elif match := re.fullmatch(r"(.+?)/resolve/[^/]+/(.+)", path):
            self._file(match[1], match[2], body=body)
        else:
            self._missing("EntryNotFound", body)

    def _describe(self, name: str, *, tree: bool, body: bool) -> None:
        if name not in self.repositories:
            self._missing("RepoNotFound", body)
            return
        files = self.repositories[name]
        if tree:
            answer: Any = [
                {"type": "file", "path": path, "size": file.stat().st_size, "oid": _oid(file)}
                for path, file in files.items()
            ]
        else:
            siblings = [{"rfilename": path} for path in files]
            answer = {"id": name, "modelId": name, "sha": COMMIT, "private": False, "tags": [], "siblings": siblings}
        self._send(json.dumps(answer).encode(), {"Content-Type": "application/json"}, body)

    def _file(self, name: str, path: str, *, body: bool) -> None:
        if name not in self.repositories:
            self._missing("RepoNotFound", body)
        elif path not in self.repositories[name]:
            self._missing("EntryNotFound", body)
        else:
            file = self.repositories[name][path]
            headers = {"ETag": f'"{_oid(file)}"', "Content-Type": "application/octet-stream", "Accept-Ranges": "none"}
            self._send(file.read_bytes(), headers, body)

    def _missing(self, code: str, body: bool) -> None:
        headers = {"X-Error-Code": code, "X-Error-Message": "not found"}
        self._send(b'{"error": "not found"}', headers, body, status=404)

    def _send(self, content: bytes, headers: Mapping[str, str], body: bool, status: int = 200) -> None:
        self.send_response(status)
        for key, value in {**headers, "X-Repo-Commit": COMMIT, "Content-Length": str(len(content))}.items():
            self.send_header(key, value)
        self.end_headers()
        if body:
            self.wfile.write(content)


def _oid(file: Path) -> str:
    return hashlib.sha1(file.read_bytes()).hexdigest()
