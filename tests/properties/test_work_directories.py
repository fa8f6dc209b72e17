"""Damaged and forged documents of a work directory: what they say is refused, and costs their own artifact only."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import report_works as works
from hypothesis import example, given
from hypothesis import strategies as st
from properties.contract import kept
from properties.mutations import EXTREMES, mutated

from sentcompress.reporting.evidence import gather
from sentcompress.stages import status
from sentcompress.store import LOG, MANIFEST, REQUEST, WorkDirectory
from sentcompress.store.manifests import sealed

KIND, NAME = "students", "small"
odd_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(EXTREMES),
    st.just([]),
    st.just({}),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.sampled_from(("name", "label", "reference", "x")), st.none() | st.text(max_size=3), max_size=2),
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two students, measured."""
    work = WorkDirectory(tmp_path_factory.mktemp("template") / "work")
    for name in (NAME, "other"):
        student = works.student(work, name)
        works.sts(work, student)
        works.retrieval(work, student)
    return work.path


@pytest.fixture
def copy(template: Path, tmp_path: Path) -> WorkDirectory:
    return WorkDirectory(tmp_path / "copy")


def anew(template: Path, work: WorkDirectory) -> Path:
    """A whole copy of the template; the folder of the artifact that gets a fault."""
    shutil.rmtree(work.path, ignore_errors=True)
    shutil.copytree(template, work.path)
    return work.path / KIND / NAME


def look(work: WorkDirectory) -> dict[str, str]:
    """The state of every artifact, all files read."""
    rows = kept(lambda: status.run(status.Params(verify=True), work))
    assert isinstance(rows, list)
    return {f"{row['kind']}/{row['name']}": row["state"] for row in rows}


def others_are_as_before(states: dict[str, str]) -> bool:
    return all(states[f"{kind}"] == "fresh" for kind in states if "other" in kind)


@given(st.sampled_from((MANIFEST, LOG, "weights.txt")), mutated(b'{"a": 1, "b": [1, 2], "c": "text"}\n' * 3, b","))
@example(MANIFEST, b"[" * 100_000)
@example(MANIFEST, b"\xff\xfe{}")
@example(LOG, b"\xff")
def test_a_replaced_document(template: Path, copy: WorkDirectory, name: str, content: bytes) -> None:
    folder = anew(template, copy)
    (folder / name).write_bytes(content)
    states = look(copy)
    assert states[f"{KIND}/{NAME}"] == "damaged"
    assert others_are_as_before(states)
    kept(lambda: copy.get(KIND, NAME), NAME)
    evidence = gather(copy)
    assert "other" in [student.name for student in evidence.students]
    assert f"{KIND}/{NAME}" in evidence.left_out


@given(st.data())
def test_flipped_bytes_of_a_manifest(template: Path, copy: WorkDirectory, data: st.DataObject) -> None:
    folder = anew(template, copy)
    content = bytearray((folder / MANIFEST).read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    (folder / MANIFEST).write_bytes(bytes(content))
    states = look(copy)
    assert others_are_as_before(states)
    kept(lambda: copy.get(KIND, NAME), NAME)
    assert "other" in [student.name for student in gather(copy).students]


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value of a document."""
    if path:
        yield path
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in inner:
        yield from places(value, (*path, key))


@given(st.data())
def test_forged_manifests(template: Path, copy: WorkDirectory, data: st.DataObject) -> None:
    """Somebody who knows how a manifest is sealed may have it say anything."""
    anew(template, copy)
    kind, name = data.draw(
        st.sampled_from((("students", NAME), *(("evaluations", one) for one in evaluations(template))))
    )
    path = copy.path / kind / name / MANIFEST
    manifest = json.loads(path.read_text())
    for _ in range(data.draw(st.integers(1, 2))):
        *above, last = data.draw(st.sampled_from(list(places(manifest))))
        parent = manifest
        for key in above:
            parent = parent[key]
        if data.draw(st.booleans()) and isinstance(parent, dict):
            del parent[last]
        else:
            parent[last] = data.draw(odd_values)
    path.write_text(json.dumps(sealed(manifest)))
    assert others_are_as_before({key: state for key, state in look(copy).items() if key != f"{kind}/{name}"})
    kept(lambda: copy.get(kind, name), name)


def evaluations(template: Path) -> list[str]:
    return sorted(path.name for path in (template / "evaluations").iterdir() if not path.name.startswith("."))


@given(mutated(b'{"command": "distill", "fingerprint": "f", "forced": true}', b","))
@example(b"[" * 100_000)
def test_requests_of_unfinished_builds(template: Path, copy: WorkDirectory, content: bytes) -> None:
    anew(template, copy)
    partial = copy.path / KIND / ".new.partial"
    partial.mkdir()
    (partial / REQUEST).write_bytes(content)
    states = look(copy)
    assert states[f"{KIND}/new"] == "partial"
    assert states[f"{KIND}/{NAME}"] == "fresh"
    assert works.student(copy, "new").name == "new"
    assert copy.unfinished(KIND) == []
