"""The checks after a fault: the same bytes as in an uninterrupted run, and errors that a user can act on."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from sentcompress.encoding.vector_cache import KEYS, VECTORS, VectorCache
from sentcompress.errors import SentcompressError
from sentcompress.evaluation.metrics import METRICS
from sentcompress.store import LOG, MANIFEST, REQUEST, Artifact, WorkDirectory
from sentcompress.store.manifests import combined_digest

# Times, speeds and memory: all that may differ between two runs, by their keys in any JSON; the seal of a manifest
# covers them (a reader checks it). A request says whether --force made it, and every other trial recovers without.
MEASURED = re.compile(
    r"(.*_)?seconds|finished|sentences_per_second.*|.*milliseconds.*|times_faster|peak_memory_bytes|best_batch_tokens"
    r"|seal|forced"
)
# Scores whose values are times, speeds or memory.
TIMED_METRICS = {name for name, metric in METRICS.items() if metric.gain == "faster" or "memory" in name}
# Files whose digests a manifest cannot repeat, since they hold such figures; and the stages whose whole result does.
TIMED_FILES = (LOG, "result.json", "README.md")
DATES = re.compile(rb"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?( UTC)?|\d+(\.\d+)? ?(s|seconds|minutes|ms)\b")

STUCK = "stuck"
LEFT_OVER = "left over: "
Tree = dict[str, bytes | None]


def read_tree(box: Path) -> Tree:
    """Everything in the box, without the times: permissions and bytes of files, None for folders.

    Lock files stay by design; the cache is apart.
    """
    tree: Tree = {}
    for path in sorted(box.rglob("*")):
        name = path.relative_to(box).as_posix()
        if not path.name.endswith(".lock") and not f"{name}/".startswith("work/cache/"):
            tree[name] = None if path.is_dir() else f"{path.stat().st_mode:o} ".encode() + _masked(path)
    return tree


def differences(tree: Tree, expected: Tree) -> list[str]:
    """How a tree differs from what it should be."""
    found = [f"is missing: {name}" for name in expected if name not in tree]
    found += [f"{LEFT_OVER}{name}" for name in tree if name not in expected]
    return found + [f"differs: {name}" for name in tree if name in expected and tree[name] != expected[name]]


def faults_of_artifact(box: Path, makes: str) -> tuple[Artifact | None, list[str]]:
    """The artifact as a reader finds it, and the faults found; having no artifact is not a fault."""
    if not makes:
        return None, []
    try:
        artifact = WorkDirectory(box / "work").find(*makes.split("/"))
    except SentcompressError as error:
        return None, [f"a reader is told: {error.message}"]
    if artifact is None:
        return None, []
    files = {name: artifact.path / name for name in artifact.manifest["files"]}
    digests = {name: _digest(path) if path.is_file() else "" for name, path in files.items()}
    wrong = [name for name, digest in digests.items() if digest != artifact.manifest["files"][name]["sha256"]]
    lasting = {name: digest for name, digest in digests.items() if Path(name).name != LOG}
    found = [f"a reader finds a damaged {name}" for name in wrong]
    if not wrong and combined_digest(lasting) != artifact.digest:
        found.append("a reader finds a digest that is not the files'")
    return artifact, found


def faults_of_message(code: int | None, stderr: str, error: str) -> list[str]:
    """Faults in the outcome of a run that was not killed; `error` is the injected errno, such as ENOSPC."""
    if code is None:
        return [STUCK]
    if "Traceback" in stderr or "Exception ignored" in stderr:
        return [f"a traceback: {stderr.strip().splitlines()[-1]}"]
    if code == 0:
        return []
    lines = stderr.strip().splitlines()
    errors = [line for line in lines if line.startswith("error:")]
    if not errors:
        return [f"exit code {code} without an error"]
    if any("defect" in line for line in lines):
        return [f"called a defect: {errors[-1]}"]
    if ("disk is full" in errors[-1]) != (error == "ENOSPC"):
        return [f"{error} is reported as: {errors[-1]}"]
    return [] if any(line.startswith("help:") for line in lines) else [f"no help: {errors[-1]}"]


def read_cache(box: Path) -> tuple[dict[tuple[str, str], bytes], list[str]]:
    """The vectors in work/cache by folder and text, and the files there that are nothing.

    As the next command finds them: opening a memory removes what is damaged or half written.
    """
    vectors: dict[tuple[str, str], bytes] = {}
    odd = []
    for folder in sorted((box / "work" / "cache").glob("*")):
        VectorCache(folder)
        known = {path for path in folder.iterdir() if path.name != ".lock"}
        for path in sorted(folder.glob(f"*{KEYS}")):
            beside = path.with_name(path.name.removesuffix(KEYS) + VECTORS)
            rows = zip(np.load(path), np.load(beside), strict=True)
            vectors |= {(folder.name, key.tobytes().hex()): row.tobytes() for key, row in rows}
            known -= {path, beside}
        odd += [f"{LEFT_OVER}{path.relative_to(box).as_posix()}" for path in sorted(known)]
    return vectors, odd


def differences_of_cache(box: Path, expected: dict[tuple[str, str], bytes]) -> list[str]:
    """What is wrong with the cache: it may hold less than after an unbroken run, but nothing else."""
    try:
        vectors, odd = read_cache(box)
    except (OSError, ValueError, EOFError) as error:
        return [f"the cache is damaged: {error}"]
    return odd + [f"the cache has another vector in {key[0]}" for key in vectors if vectors[key] != expected.get(key)]


def _masked(path: Path) -> bytes:
    try:
        return _without_times(path)
    except (ValueError, TypeError, KeyError):
        return path.read_bytes()  # damaged, and so different from what is expected


def _without_times(path: Path) -> bytes:
    if path.name == LOG:
        return b"\n".join(json.dumps(_lasting(json.loads(line))).encode() for line in path.open("rb"))
    if path.name == MANIFEST:
        return _masked_manifest(json.loads(path.read_bytes()))
    if path.name in ("result.json", REQUEST):
        return json.dumps(_lasting(json.loads(path.read_bytes()))).encode()
    if path.suffix in (".html", ".md"):
        return DATES.sub(b"", path.read_bytes())
    return path.read_bytes()


def _masked_manifest(manifest: dict[str, Any]) -> bytes:
    timed = [name for name in manifest["files"] if Path(name).name in TIMED_FILES]
    for name in timed:
        manifest["files"][name] = {}
    if any(Path(name).name != LOG for name in timed):
        manifest["digest"] = ""
    return json.dumps(_lasting(manifest)).encode()


def _lasting(value: Any) -> Any:
    """The value without the figures that differ from run to run; of a score of one of them, what it is of."""
    if isinstance(value, dict):
        if value.get("metric") in TIMED_METRICS:
            return {key: value[key] for key in ("model", "role", "data", "part", "metric") if key in value}
        return {key: _lasting(inner) for key, inner in value.items() if not MEASURED.fullmatch(key)}
    return [_lasting(inner) for inner in value] if isinstance(value, list) else value


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
