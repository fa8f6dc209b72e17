"""Vectors that are computed once: across runs, in any order, and not without end."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from listening import Listener
from tiny_models import make_sentences

from sentcompress.encoding import embedder_sources, vector_cache
from sentcompress.encoding.embedder_sources import ModelEmbedder, find_embedder
from sentcompress.encoding.vector_cache import VectorCache
from sentcompress.store import WorkDirectory
from sentcompress.store.locking import locked


class Model:
    """Counts what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.asked += texts
        return np.array([[len(text), sum(map(ord, text))] for text in texts], dtype=np.float32).reshape(-1, 2)


def test_every_text_is_computed_once_in_the_life_of_the_folder(tmp_path: Path) -> None:
    model = Model()
    first = VectorCache(tmp_path).encode(["b", "a", "b", "ccc"], model)
    assert model.asked == ["b", "a", "ccc"]
    np.testing.assert_array_equal(first, Model()(["b", "a", "b", "ccc"]))
    again = VectorCache(tmp_path)
    np.testing.assert_array_equal(again.encode(["ccc", "dd", "a"], model), Model()(["ccc", "dd", "a"]))
    assert model.asked == ["b", "a", "ccc", "dd"]
    assert len(VectorCache(tmp_path)) == 4
    np.testing.assert_array_equal(again.encode(["dd", "b"], model), Model()(["dd", "b"]))
    assert len(model.asked) == 4


def test_many_small_batches_are_not_many_open_files(tmp_path: Path) -> None:
    first = VectorCache(tmp_path)
    for number in range(30):
        first.encode([f"query {number}"], Model())
    many = [f"text {number}" for number in range(vector_cache.LEAST_MAPPED)]
    first.encode(many, Model())
    before = len(os.listdir("/dev/fd"))
    again, model = VectorCache(tmp_path), Model()
    assert len(os.listdir("/dev/fd")) - before <= 1  # of the large batch
    texts = [*many, *(f"query {number}" for number in range(30))]
    np.testing.assert_array_equal(again.encode(texts, model), Model()(texts))
    assert model.asked == []


def test_nothing_asked_for_has_the_model_s_width(tmp_path: Path) -> None:
    assert VectorCache(tmp_path).encode([], Model()).shape == (0, 2)


def test_vectors_that_are_not_finite_are_computed_again(tmp_path: Path) -> None:
    def broken(texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return np.where(np.array([[text == "bb"] for text in texts]), np.float32(np.nan), Model()(texts))

    VectorCache(tmp_path).encode(["known"], Model())
    cache, model = VectorCache(tmp_path), Model()
    assert np.isnan(cache.encode(["a", "bb", "known"], broken)).any(axis=1).tolist() == [False, True, False]
    np.testing.assert_array_equal(cache.encode(["a", "bb", "known"], model), Model()(["a", "bb", "known"]))
    assert model.asked == ["a", "bb"]


def test_a_batch_that_was_not_finished_is_computed_again(tmp_path: Path) -> None:
    VectorCache(tmp_path).encode(["a", "b"], Model())
    for path in tmp_path.glob("*.keys.npy"):
        path.unlink()
    model = Model()
    VectorCache(tmp_path).encode(["a", "b"], model)
    assert model.asked == ["a", "b"]


@pytest.mark.parametrize("kind", ["keys", "vectors"])
@pytest.mark.parametrize("damage", ["flipped", "cut", "empty"])
def test_damage_is_counted_removed_and_computed_again(tmp_path: Path, kind: str, damage: str) -> None:
    VectorCache(tmp_path).encode(["a", "bb"], Model())
    VectorCache(tmp_path).encode(["whole"], Model())
    path = sorted(tmp_path.glob(f"*.{kind}.npy"), key=lambda path: path.stat().st_size)[-1]
    content = bytearray(path.read_bytes())
    content[-1] ^= 0x80
    path.write_bytes({"flipped": bytes(content), "cut": bytes(content[:-8]), "empty": b""}[damage])
    cache, model = VectorCache(tmp_path), Model()
    assert cache.damaged == 1
    np.testing.assert_array_equal(cache.encode(["a", "bb", "whole"], model), Model()(["a", "bb", "whole"]))
    assert model.asked == ["a", "bb"]
    assert VectorCache(tmp_path).damaged == 0
    assert len(VectorCache(tmp_path)) == 3


def test_keys_without_vectors_are_removed(tmp_path: Path) -> None:
    VectorCache(tmp_path).encode(["a"], Model())
    next(tmp_path.glob("*.vectors.npy")).unlink()
    assert VectorCache(tmp_path).damaged == 1
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_what_a_killed_process_left_is_removed_unless_another_one_writes(tmp_path: Path) -> None:
    VectorCache(tmp_path).encode(["a"], Model())
    kept = {path.name for path in tmp_path.iterdir()}
    lonely = tmp_path / f"{'0' * 64}.vectors.npy"
    for leftover in (tmp_path / ".vectors.tmp", tmp_path / ".keys.tmp", lonely):
        leftover.write_bytes(b"half")
    with locked(tmp_path / ".lock", "another process"):
        VectorCache(tmp_path)
        assert lonely.exists()
    cache = VectorCache(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == kept
    assert cache.damaged == 0


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    names = (".vimrc.tmp", "a.keys.npy", "a.vectors.npy", "b.vectors.npy")
    for name in names:
        (tmp_path / name).write_bytes(b"precious")
    cache = VectorCache(tmp_path)
    cache.encode(["a"], Model())
    assert cache.damaged == 0
    assert all((tmp_path / name).read_bytes() == b"precious" for name in names)


def test_a_linked_folder_is_neither_read_nor_written(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    VectorCache(outside).encode(["a"], Model())
    before = sorted(path.name for path in outside.iterdir())
    (outside / ".keys.tmp").touch()
    (tmp_path / "link").symlink_to(outside)
    cache, model = VectorCache(tmp_path / "link"), Model()
    cache.encode(["a", "b"], model)
    assert model.asked == ["a", "b"]
    assert len(cache) == 2
    assert sorted(path.name for path in outside.iterdir()) == sorted([*before, ".keys.tmp"])


def test_without_the_right_to_write_vectors_are_computed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    VectorCache(tmp_path).encode(["a"], Model())
    for place, name in ((vector_cache, "save_array"), (vector_cache, "locked")):
        with monkeypatch.context() as patched:
            patched.setattr(place, name, refuse)
            cache, model = VectorCache(tmp_path), Model()
            np.testing.assert_array_equal(cache.encode(["a", "bb"], model), Model()(["a", "bb"]))
            assert model.asked == ["bb"]
    with monkeypatch.context() as patched:
        patched.setattr(os, "access", lambda *_: False)
        cache, model = VectorCache(tmp_path), Model()
        cache.encode(["a", "ccc"], model)
    assert model.asked == ["ccc"]
    assert len(VectorCache(tmp_path)) == 1


def test_on_a_full_disk_the_cache_is_given_up_with_one_warning(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(path: Path, array: npt.NDArray[np.generic]) -> None:
        path.write_bytes(bytes(array.nbytes // 2))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    work, texts, listener = WorkDirectory(tmp_path / "work"), make_sentences(30), Listener()
    source = find_embedder(work, str(tiny_model))
    embedder = source.open(device="cpu", reporter=listener)
    embedder.encode(texts[:10])
    (folder,) = (work.path / "cache").iterdir()
    before = sorted(folder.iterdir())
    with monkeypatch.context() as patched:
        patched.setattr(vector_cache, "save_array", fill)
        found = [embedder.encode(texts[start : start + 10]) for start in (10, 20)]
    again = source.open(device="cpu", reporter=listener)
    np.testing.assert_array_equal(found, [again.encode(texts[start : start + 10]) for start in (10, 20)])
    assert listener.warnings == [f"no more vectors are cached in {folder}: No space left on device"]
    assert set(before) < set(folder.iterdir()), "what is cached stays, and what was not finished is removed"
    assert not list(folder.glob("*.tmp"))


def test_a_cache_that_cannot_be_locked_is_given_up_with_one_warning(tmp_path: Path) -> None:
    VectorCache(tmp_path / "cache").encode(["a"], Model())
    (tmp_path / "cache" / ".keys.tmp").write_bytes(b"half")
    os.link(tmp_path / "cache" / ".lock", tmp_path / "backup")
    listener, model = Listener(), Model()
    cache = VectorCache(tmp_path / "cache", listener)
    for texts in (["a", "b"], ["c", "b"]):
        np.testing.assert_array_equal(cache.encode(texts, model), Model()(texts))
    assert model.asked == ["b", "c"]
    (told,) = listener.warnings
    assert told.startswith(f"no more vectors are cached in {tmp_path / 'cache'}: ")
    assert "has hard links" in told


def test_damage_is_told_where_the_model_is_opened(tmp_path: Path, tiny_model: Path) -> None:
    work, texts = WorkDirectory(tmp_path / "work"), make_sentences(5)
    source = find_embedder(work, str(tiny_model))
    wanted = source.open(device="cpu").encode(texts)
    (path,) = (work.path / "cache").rglob("*.vectors.npy")
    content = bytearray(path.read_bytes())
    content[-1] ^= 0x80  # a sign
    path.write_bytes(bytes(content))
    listener = Listener()
    np.testing.assert_array_equal(source.open(device="cpu", reporter=listener).encode(texts), wanted)
    assert listener.warnings == [f"1 damaged batches of tiny-model were removed from {work.path / 'cache'}"]


def test_a_full_memory_still_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_cache, "MOST", 3)
    model, cache = Model(), VectorCache(tmp_path)
    cache.encode(["a", "b"], model)
    np.testing.assert_array_equal(cache.encode(["c", "a", "d", "c"], model), Model()(["c", "a", "d", "c"]))
    assert len(VectorCache(tmp_path)) == 2
    cache.encode(["c"], model)
    assert model.asked == ["a", "b", "c", "d", "c"]


def test_a_model_is_asked_once_for_each_number_format_and_way_of_encoding(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    encode = ModelEmbedder.encode

    def counting(self: ModelEmbedder, texts: Sequence[str], *rest: object) -> object:
        asked.extend(texts)
        return encode(self, texts, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(ModelEmbedder, "encode", counting)
    work, texts = WorkDirectory(tmp_path / "work"), make_sentences(50)
    for dtype, version, known in (("float32", 1, 0), ("float32", 1, 50), ("bfloat16", 1, 0), ("float32", 2, 0)):
        monkeypatch.setattr(embedder_sources, "ENCODING", version)
        embedder = find_embedder(work, str(tiny_model)).open(device="cpu", dtype=dtype)
        asked.clear()
        streamed = np.concatenate(list(embedder.stream([texts[:20], texts[20:]])))
        assert len(asked) == len(texts) - known
        np.testing.assert_array_equal(streamed, embedder.encode(texts))
        assert embedder.described()["dtype"] == dtype
