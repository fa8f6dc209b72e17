"""What is written down about an artifact: its kind, the request for it, its manifest, its digests."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sentcompress.atomic import MANIFEST
from sentcompress.errors import DamagedError

# Holds timings, which differ between two runs that are otherwise equal; it is no part of the digest.
LOG = "log.jsonl"


@dataclass(frozen=True)
class Kind:
    """One kind of artifact: the command that makes it, and the version of what that command does.

    Raise the version when a stage changes what it computes; artifacts of older versions turn stale.
    """

    command: str
    version: int = 1
    arguments: str = ""

    @property
    def usage(self) -> str:
        """What to type."""
        return f"sentcompress {self.command} {self.arguments}".rstrip()


KINDS: Mapping[str, Kind] = {
    "sentences": Kind("augment", arguments="FILE"),
    "teacher-vectors": Kind("teacher-embed"),
    "projections": Kind("fit-pca"),
    "teachers": Kind("train-teacher"),
    "students": Kind("distill"),
    "evaluations": Kind("eval-sts", arguments="--sts FILE"),
    "exports": Kind("export"),
}

# What a manifest cannot do without, and how it is made.
FIELDS: Mapping[str, type] = {
    "kind": str,
    "name": str,
    "command": str,
    "version": int,
    "parameters": dict,
    "inputs": dict,
    "fingerprint": str,
    "digest": str,
    "files": dict,
    "facts": dict,
    "finished": str,
}
LIBRARIES = ("torch", "transformers", "sentence-transformers", "scikit-learn", "faiss-cpu", "numpy", "onnxruntime")


@dataclass(frozen=True)
class Request:
    """What a stage was asked to make.

    `inputs` maps a reference to a digest. A reference is `<kind>/<name>` of this work directory,
    `file:<absolute path>`, or `model:<name>`.
    """

    kind: str
    name: str
    command: str
    parameters: Mapping[str, Any]
    inputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def version(self) -> int:
        return KINDS[self.kind].version

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "command": self.command,
            "version": self.version,
            "parameters": dict(self.parameters),
            "inputs": dict(self.inputs),
        }

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the request without its name: the same work under two names is the same work."""
        asked = {key: value for key, value in self.as_dict().items() if key != "name"}
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Artifact:
    """A finished result: a folder and what its manifest says."""

    path: Path
    manifest: Mapping[str, Any]

    @property
    def reference(self) -> str:
        return f"{self.manifest['kind']}/{self.manifest['name']}"

    @property
    def name(self) -> str:
        return str(self.manifest["name"])

    @property
    def digest(self) -> str:
        return str(self.manifest["digest"])

    @property
    def fingerprint(self) -> str:
        return str(self.manifest["fingerprint"])

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.manifest["parameters"])

    @property
    def inputs(self) -> dict[str, str]:
        return dict(self.manifest["inputs"])

    @property
    def facts(self) -> dict[str, Any]:
        """What the stage found out and wrote down: rows, dimensions, scores."""
        return dict(self.manifest["facts"])

    def input_of_kind(self, kind: str) -> str | None:
        """The name of the artifact of `kind` that this one was made from."""
        names = [reference.split("/", 1)[1] for reference in self.inputs if reference.startswith(f"{kind}/")]
        return names[0] if names else None

    def missing_files(self) -> list[str]:
        """Files that the manifest names and the folder has no more."""
        return [name for name in self.manifest["files"] if not (self.path / name).is_file()]

    def changed_files(self) -> list[str]:
        """Files that are longer or shorter than they were made; contents are not read."""
        sizes = {name: self.path / name for name in self.manifest["files"] if (self.path / name).is_file()}
        return [name for name, path in sizes.items() if path.stat().st_size != self.manifest["files"][name]["bytes"]]


def read_artifact(folder: Path, target: Path) -> Artifact:
    """The artifact in `folder`, under the name of its place: a renamed or copied folder is a new name."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        faulty = [key for key, kind in FIELDS.items() if not isinstance(manifest[key], kind)]
        if faulty:
            raise ValueError(f"{faulty[0]} is not what it should be")
    except (ValueError, TypeError, KeyError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise DamagedError(
            f"{folder / MANIFEST} is damaged ({what})", f"delete {target} and run its stage again"
        ) from None
    return Artifact(folder, {**manifest, "kind": target.parent.name, "name": target.name})


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, as 64 hex digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def tree_digest(paths: Mapping[str, Path]) -> str:
    """One SHA-256 over several named files."""
    return combined_digest({name: file_digest(path) for name, path in paths.items()})


def installed_libraries() -> dict[str, str]:
    """Versions of the libraries that have a say in results, as far as they are installed."""
    versions = {}
    for library in LIBRARIES:
        try:
            versions[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def combined_digest(digests: Mapping[str, str]) -> str:
    """One digest over named ones."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()
