"""Whether a model's weights fit into memory, from the sizes of its files, before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path

from sentcompress.errors import InputError
from sentcompress.json_documents import parse_json
from sentcompress.models.model_files import listed_modules, read_config, weight_files
from sentcompress.models.sources import ModelSource
from sentcompress.quantities import told_bytes

FLOAT32 = 4
# Bytes of a number in a checkpoint that is not safetensors, by the name in its configuration.
NUMBER_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8}
MEMORY = Path("/proc/meminfo")
CGROUPS, OWN_CGROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def require_memory(source: ModelSource) -> None:
    """Raise InputError if the weights of a model, loaded as float32, need more memory than is available.

    Nothing is checked where the system does not tell how much is available.
    """
    needed, available = loaded_bytes(source.path), available_memory()
    if available is not None and needed > available:
        raise InputError(
            f"the weights of {source.label} need {told_bytes(needed)} of memory as float32; "
            f"{told_bytes(available)} are available",
            "use a smaller model, a machine or container with more memory, or end other programs",
        )


def loaded_bytes(folder: Path) -> int:
    """Bytes of all weights of a model folder, loaded as float32.

    Raises:
        InputError: if the folder is damaged.
    """
    folders = [module.path for module in listed_modules(folder)] or [folder]
    stored = NUMBER_BYTES.get(_stored_as(folders[0]), FLOAT32)
    total = 0
    for path in (path for one in folders for path in weight_files(one)):
        numbers = _numbers(path) if path.suffix == ".safetensors" else None
        total += FLOAT32 * (path.stat().st_size // stored if numbers is None else numbers)
    return total


def available_memory() -> int | None:
    """Bytes that can be had without swapping, within the limits of the control group; None if unknown."""
    found = [*_of_system(), *_of_groups()]
    return max(0, min(found)) if found else None


def _stored_as(folder: Path) -> str:
    # A static model needs no configuration.
    config = read_config(folder) if (folder / "config.json").is_file() else {}
    return str(config.get("dtype") or config.get("torch_dtype"))


def _numbers(path: Path) -> int | None:
    """How many numbers a safetensors file holds, by its header; None if it is damaged, which loading it reports."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if length > size:
            return None
        raw = stream.read(length)
    try:
        header = parse_json(raw, str(path))
        total = sum(prod(one["shape"]) for name, one in header.items() if name != "__metadata__")
    except (InputError, KeyError, TypeError, AttributeError):
        return None
    return total if isinstance(total, int) and 0 <= total <= size else None


def _of_system() -> Iterator[int]:
    for line in _read(MEMORY).splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable" and rest.split()[:1] and rest.split()[0].isdecimal():
            yield 1024 * int(rest.split()[0])


def _of_groups() -> Iterator[int]:
    """What is left below the limit of the process's control group, and of each group above it."""
    for line in _read(OWN_CGROUP).splitlines():
        _, controllers, inside = (*line.split(":", 2), "", "")[:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        root = CGROUPS / "memory" if controllers else CGROUPS
        limit, used, cache = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            if controllers
            else ("memory.max", "memory.current", "inactive_file")
        )
        own = Path(inside.strip().lstrip("/"))
        for group in (own, *own.parents):
            most, now = _read(root / group / limit).strip(), _read(root / group / used).strip()
            if most.isdecimal() and now.isdecimal():
                # The page cache counts as used but can be dropped.
                yield int(most) - int(now) + _statistic(root / group / "memory.stat", cache)


def _statistic(path: Path, name: str) -> int:
    found = (line.split() for line in _read(path).splitlines())
    return next((int(one[1]) for one in found if len(one) == 2 and one[0] == name and one[1].isdecimal()), 0)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
