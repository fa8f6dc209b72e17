"""A model that does not fit into memory is refused before it is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import make_sentences

from sentcompress.errors import InputError
from sentcompress.models import memory
from sentcompress.models.layout import load_encoder
from sentcompress.models.sources import locate
from sentcompress.stages import augment, compress, distill, teacher_embed
from sentcompress.store import WorkDirectory


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system without limits; tests write its files."""
    monkeypatch.setattr(memory, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "OWN_CGROUP", tmp_path / "own")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_a_system_that_tells_nothing_is_not_limited(system: Path, tiny_model: Path) -> None:
    assert memory.available_memory() is None
    memory.require_memory(locate(str(tiny_model)))


def test_the_memory_of_the_system(system: Path) -> None:
    write(system / "meminfo", "MemTotal:       900 kB\nMemFree: 1 kB\nMemAvailable:    500 kB\n")
    assert memory.available_memory() == 512_000


def test_the_limit_of_a_group_above_counts_without_the_page_cache(system: Path) -> None:
    write(system / "meminfo", "MemAvailable:    900 kB\n")
    write(system / "own", "0::/jobs/one\n")
    write(system / "cgroup/jobs/one/memory.max", "max\n")
    write(system / "cgroup/jobs/one/memory.current", "5000\n")
    assert memory.available_memory() == 921_600
    write(system / "cgroup/jobs/memory.max", "300000\n")
    write(system / "cgroup/jobs/memory.current", "200000\n")
    write(system / "cgroup/jobs/memory.stat", "anon 1\ninactive_file 50000\nactive_file 7\n")
    assert memory.available_memory() == 150_000


def test_the_limit_of_a_group_of_the_older_kind(system: Path) -> None:
    write(system / "own", "8:pids:/\n4:memory:/box\n0::/\n")
    write(system / "cgroup/memory/box/memory.limit_in_bytes", "100000\n")
    write(system / "cgroup/memory/box/memory.usage_in_bytes", "170000\n")
    write(system / "cgroup/memory/box/memory.stat", "inactive_file 1\ntotal_inactive_file 20000\n")
    assert memory.available_memory() == 0
    write(system / "cgroup/memory/box/memory.limit_in_bytes", "9223372036854771712\n")
    assert memory.available_memory() == 9223372036854771712 - 150_000


def test_weights_count_as_float32_however_they_are_stored(tiny_model: Path, tmp_path: Path) -> None:
    tensors = load_file(tiny_model / "model.safetensors")
    expected = 4 * sum(tensor.numel() for tensor in tensors.values())
    assert memory.loaded_bytes(tiny_model) == expected
    write(tmp_path / "config.json", '{"dtype": "float16"}')
    save_file({name: tensor.half() for name, tensor in tensors.items()}, tmp_path / "model.safetensors")
    assert memory.loaded_bytes(tmp_path) == expected
    (tmp_path / "model.safetensors").unlink()
    torch.save({name: tensor.half() for name, tensor in tensors.items()}, tmp_path / "pytorch_model.bin")
    assert expected <= memory.loaded_bytes(tmp_path) <= expected + 40_000


def test_compress_teacher_embed_and_distill_stop_before_they_load_it(
    system: Path, tiny_model: Path, tmp_path: Path
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(make_sentences(60)), encoding="utf-8")
    work = WorkDirectory(tmp_path / "work")
    augment.run(augment.Params(inputs=(str(lines),), wordnet=0, back_translate=0), work)
    embedding = teacher_embed.Params(teacher=str(tiny_model), device="cpu")
    teacher_embed.run(embedding, work)
    write(system / "meminfo", "MemAvailable:    20 kB\n")
    message = r"the weights of .*tiny-model need [0-9.]+ kB of memory as float32; 20\.5 kB are available"
    with pytest.raises(InputError, match=message):
        load_encoder(locate(str(tiny_model)))
    with pytest.raises(InputError, match=message):
        teacher_embed.run(teacher_embed.Params(teacher=str(tiny_model), device="cpu", name="again"), work)
    with pytest.raises(InputError, match=message):
        distill.run(distill.Params(method="lrn-kd", student="teacher:1"), work)
    with pytest.raises(InputError, match=message):
        compress.run(compress.Params(inputs=(str(lines),), teacher=str(tiny_model)), work)
    assert (work.names("students"), work.names("documents"), work.names("teacher-vectors")) == ([], [], ["main"])
