"""The kinds of artifacts, and requests for artifacts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sentcompress.commands import find_command, version_of
from sentcompress.commands.options import Options, asked, keys_of
from sentcompress.commands.spelling import words

REQUEST = "request.json"
TEACHER_VECTORS, EVALUATIONS = "teacher-vectors", "evaluations"
# What an input begins with that is the files of a model.
MODEL_FILES = "model:"


@dataclass(frozen=True)
class Kind:
    """A kind of artifact, with the command that usually makes it."""

    command: str
    arguments: str = ""

    @property
    def usage(self) -> str:
        """The command line that makes such an artifact."""
        return f"sentcompress {self.command} {self.arguments}".rstrip()


KINDS: Mapping[str, Kind] = {
    "documents": Kind("split-documents", arguments="INPUT"),
    "sentences": Kind("augment", arguments="FILE"),
    TEACHER_VECTORS: Kind("teacher-embed"),
    "projections": Kind("fit-pca"),
    "students": Kind("distill"),
    "quantizers": Kind("fit-quantizer"),
    EVALUATIONS: Kind("eval-sts", arguments="--sts FILE"),
    "exports": Kind("export"),
    "indexes": Kind("search", arguments="--collection FILE"),
}


@dataclass(frozen=True)
class Request:
    """A request for an artifact.

    Attributes:
        parameters: everything that the result depends on, except the inputs.
        inputs: digests by reference: `<kind>/<name>` in this work directory, `file:<absolute path>` or `model:<place>`.
            The place of a model of this work directory is `students/<name>` or `exports/<name>`, because the work
            directory can be moved; the digest is that of the model's files, not of the artifact.
        line: the words of the command after `sentcompress`. Running it again finds the result fresh.
    """

    kind: str
    name: str
    command: str
    parameters: Mapping[str, Any]
    inputs: Mapping[str, str] = field(default_factory=dict)
    line: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        params: Options,
        name: str,
        inputs: Mapping[str, str],
        resolved: Mapping[str, Any] | None = None,
        **chosen: Any,
    ) -> Request:
        """Make the request of a command.

        Args:
            params: its options.
            resolved: parameters that the stage determined; see `commands.options.asked`.
            chosen: options that the stage chose, for the printed command. Options that name an artifact are taken from
                the inputs.
        """
        kind = find_command(params.command).makes
        assert kind is not None, f"{params.command} makes no artifact"
        named = {key.field: _only(inputs, key.opt.names) for key in keys_of(type(params)).values()}
        left = {field: found for field, found in named.items() if found and getattr(params, field) is None}
        line = words(params, **{"name": name, **left, **chosen})
        return cls(kind, name, params.command, asked(params, **(resolved or {})), inputs, tuple(line))

    @property
    def version(self) -> int:
        return version_of(self.command)

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
        """SHA-256 of the request without its name."""
        asked = {key: value for key, value in self.as_dict().items() if key != "name"}
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def made_here(reference: str) -> str | None:
    """`students/<name>` or `exports/<name>` if an input is the files of a model of the work directory, else None."""
    place = reference.removeprefix(MODEL_FILES)
    return place if place != reference and place.startswith(("students/", "exports/")) else None


def _only(inputs: Mapping[str, str], kind: str | None) -> str | None:
    """The name of the only input of a kind; None if there is none or more than one."""
    names = [reference.partition("/")[2] for reference in inputs if reference.partition("/")[0] == kind]
    return names[0] if len(names) == 1 else None
