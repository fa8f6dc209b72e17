"""Where vectors and tokens are kept, on a device that is not there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from listening import Listener

from sentcompress.encoding.npy_files import VECTORS_PATTERN, NpyFiles
from sentcompress.models.token_batches import TokenRows
from sentcompress.quantities import told_bytes
from sentcompress.training import residence
from sentcompress.training.data import vector_field
from sentcompress.training.residence import Residence, rows_of

# A device of tensors without values, in the place of a GPU.
GPU, CPU = torch.device("meta"), torch.device("cpu")
ROWS = np.array([6, 0, 3, 3, 5])


@pytest.fixture(params=["float32", "float16"])
def files(tmp_path: Path, request: pytest.FixtureRequest) -> NpyFiles:
    """Seven vectors of 10 dimensions in two files."""
    vectors = np.random.default_rng(0).normal(size=(7, 10)).astype(request.param)
    for number, part in enumerate((vectors[:4], vectors[4:])):
        np.save(tmp_path / VECTORS_PATTERN.format(number), part)
    return NpyFiles(tmp_path)


def place(monkeypatch: pytest.MonkeyPatch, device: int | None, here: int | None) -> tuple[Residence, Listener]:
    """With these bytes free on the device and on the machine."""
    monkeypatch.setattr(residence, "free_on_device", lambda device_: device)
    monkeypatch.setattr(residence, "available_memory", lambda: here)
    monkeypatch.setattr(residence, "PIECE", 3)
    listener = Listener()
    return Residence(GPU, listener), listener


def test_vectors_that_fit_are_on_the_device(monkeypatch: pytest.MonkeyPatch, files: NpyFiles) -> None:
    found, listener = place(monkeypatch, 2 * files.nbytes, 0)
    taken = found.vectors(files, "teacher vectors")(ROWS)
    assert (taken.device, taken.dtype, taken.shape) == (GPU, torch.float32, (5, 10))
    found.tell()
    assert listener.notes == [
        f"teacher vectors ({told_bytes(files.nbytes)}) on the device ({told_bytes(2 * files.nbytes)} free)"
    ]
    found.tell()
    assert len(listener.notes) == 1


@pytest.mark.parametrize("ranks", [1, 2])
def test_others_are_in_memory_or_stay_on_the_disk(monkeypatch: pytest.MonkeyPatch, files: NpyFiles, ranks: int) -> None:
    """All processes of a machine read their own."""
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(ranks))
    wanted = vector_field(files)(ROWS)
    for here, told in ((2 * ranks * files.nbytes, "in CPU memory"), (2 * ranks * files.nbytes - 2, "on the disk")):
        found, listener = place(monkeypatch, 2 * files.nbytes - 1, here)
        taken = found.vectors(files, "teacher vectors")(ROWS)
        assert taken.dtype == torch.float32
        assert torch.equal(taken, wanted)
        found.tell()
        assert told in listener.notes[0]


def test_rows_of_a_table_are_those_of_its_file(files: NpyFiles) -> None:
    table = torch.from_numpy(np.concatenate([np.array(piece) for piece in files.pieces(3)]))
    assert table.element_size() * table.numel() == files.nbytes
    assert torch.equal(rows_of(table)(ROWS), vector_field(files)(ROWS))


def test_on_a_cpu_everything_stays_mapped(files: NpyFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Residence, "_loaded", None)
    listener = Listener()
    found, tokens = Residence(CPU, listener), TokenRows.of([[1, 2], [3]])
    assert torch.equal(found.vectors(files, "teacher vectors")(ROWS), vector_field(files)(ROWS))
    assert found.tokens(tokens) is tokens
    found.tell()
    assert listener.notes == []


@pytest.mark.parametrize(("here", "told"), [(10_000, "in CPU memory"), (None, "on the disk"), (15, "on the disk")])
def test_tokens_are_in_memory_if_they_fit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, here: int | None, told: str
) -> None:
    np.save(tmp_path / "flat.npy", np.array([5, 6, 7], dtype=np.int32))
    flat = np.asarray(np.load(tmp_path / "flat.npy", mmap_mode="r"))
    found, listener = place(monkeypatch, 10_000, here)
    tokens = found.tokens(TokenRows.joined(flat, np.array([2, 1], dtype=np.int32)))
    assert [tokens[row].tolist() for row in range(2)] == [[5, 6], [7]]
    assert np.shares_memory(tokens.flat, flat) == (told == "on the disk")
    found.tell()
    assert told in listener.notes[0]
