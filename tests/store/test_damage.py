"""Artifacts whose manifest or files were changed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from building import KIND, asked, content, make
from listening import Listener

from sentcompress.errors import DamagedError
from sentcompress.store import MANIFEST, WorkDirectory
from sentcompress.store.manifests import sealed


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b"{}", b"\xff\xfe", b'{"kind": 1}'])
def test_a_damaged_manifest_is_said_passed_over_and_made_anew(work: WorkDirectory, damage: bytes) -> None:
    make(work, "good")
    broken = make(work, "broken")
    (broken.path / MANIFEST).write_bytes(damage)
    with pytest.raises(DamagedError, match="damaged") as raised:
        work.find(KIND, "broken")
    assert str(broken.path) in str(raised.value.hint)
    assert work.names(KIND) == ["good"]
    assert [name for name in ("good", "broken", "none", "../good") if work.has(KIND, name)] == ["good"]
    assert list(work.damaged(KIND)) == ["broken"]
    assert work.get(KIND).name == "good"
    hearing = Listener()
    assert content(make(work, "broken", reporter=hearing)) == {"one"}
    assert "it will be rebuilt" in hearing.heard[0]
    assert work.damaged(KIND) == {}


def test_an_artifact_that_lost_a_file_is_refused_and_made_anew(work: WorkDirectory) -> None:
    artifact = make(work)
    (artifact.path / "a.txt").unlink()
    with pytest.raises(DamagedError, match="txt is missing"):
        work.get(KIND)
    assert content(make(work)) == {"one"}
    (artifact.path / "a.txt").write_text("longer than it was")
    with pytest.raises(DamagedError, match=r"a\.txt has 18 bytes, expected 3"):
        work.get(KIND)
    hearing = Listener()
    assert content(make(work, reporter=hearing)) == {"one"}
    assert "damaged (a.txt has 18 bytes" in hearing.heard[0]


def test_damage_that_leaves_the_size_is_seen_when_contents_are_read(work: WorkDirectory) -> None:
    artifact = make(work)
    (artifact.path / "a.txt").write_text("eno")
    assert work.get(KIND).damage() is None
    assert work.get(KIND).damage(contents=True) == "a.txt was changed: its SHA-256 differs"
    with pytest.raises(DamagedError, match=r"a\.txt was changed") as raised:
        work.get(KIND).require_contents()
    assert raised.value.hint == f"run: sentcompress teacher-embed --work {work.path} --force"


def test_a_manifest_is_written_without_numbers_that_json_does_not_have(work: WorkDirectory) -> None:
    with work.build(asked()) as build, build.write("a.txt") as path:
        path.write_text("one")
    with work.build(asked()) as build:
        artifact = build.finish({"loss": float("nan"), "scores": [1.5, float("inf")]})
    assert artifact.facts == {"loss": None, "scores": [1.5, None]}
    assert work.get(KIND).facts == artifact.facts


def reseal(folder: Path, **changes: Any) -> None:
    """Change a manifest as somebody does who knows how it is sealed."""
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(sealed({**manifest, **changes})))


def test_any_changed_bit_of_a_manifest_is_seen(work: WorkDirectory) -> None:
    artifact = make(work)
    whole = (artifact.path / MANIFEST).read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        (artifact.path / MANIFEST).write_bytes(bytes(changed))
        try:
            read = work.find(KIND, "main")
        except DamagedError:
            continue
        # White space, and other ways to write the same text, mean the same.
        assert read is not None
        assert read.manifest == artifact.manifest, place


@pytest.mark.parametrize(
    "changes",
    [
        {"finished": "yesterday"},
        {"finished": "2026-01-01T00:00:00"},
        {"inputs": {"unknown/x": "1"}},
        {"inputs": {"file:\ud800": "1"}},
        {"inputs": {"file:/" + "x" * 300: "1"}},
        {"inputs": {"file:/a\0b": "1"}},
        {"files": {"a.txt": {"bytes": 10**400, "sha256": "0"}}},
        {"files": {"a.txt": {"bytes": -1, "sha256": "0"}}},
        {"files": {"x" * 300: {"bytes": 3, "sha256": "0"}}},
        {"files": {"a.txt": None}},
        {"files": {"a.txt": {"bytes": "3", "sha256": "0"}}},
        {"files": {"../a.txt": {"bytes": 3, "sha256": "0"}}},
        {"files": {"/a.txt": {"bytes": 3, "sha256": "0"}}},
        {"inputs": {"sentences/main": None}},
        {"libraries": {"torch": 2}},
        {"facts": []},
        {"name": 1},
        {"version": "1"},
    ],
)
def test_a_manifest_with_odd_values_costs_its_own_artifact_only(work: WorkDirectory, changes: dict[str, Any]) -> None:
    make(work, "good")
    reseal(make(work, "odd").path, **changes)
    assert work.names(KIND) == ["good"]
    assert list(work.damaged(KIND)) == ["odd"]
    assert content(make(work, "odd")) == {"one"}


def test_an_artifact_of_a_wrong_clock_is_the_oldest_and_not_the_newest_for_ever(work: WorkDirectory) -> None:
    reseal(make(work, "future").path, finished="2099-01-01T00:00:00+00:00")
    make(work, "first")
    make(work, "second")
    assert work.names(KIND) == ["future", "first", "second"]
    assert work.get(KIND, "future").from_the_future
    soon = datetime.now(UTC) + timedelta(minutes=5)  # another machine's clock may be that far ahead
    reseal(work.get(KIND, "first").path, finished=soon.isoformat())
    assert work.names(KIND) == ["future", "second", "first"]
