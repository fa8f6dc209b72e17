"""Decides whether artifacts are up to date: the only rule of staleness."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sentcompress.commands import version_of
from sentcompress.errors import DamagedError
from sentcompress.store.artifacts import WorkDirectory
from sentcompress.store.manifests import Artifact, file_digest
from sentcompress.store.request import MODEL_FILES, made_here

# Inputs that are no artifacts. Standard input and data sets of a hub cannot be looked at again.
OUTSIDE = ("file:", MODEL_FILES, "stdin:", "hub:")
GONE, CHANGED, DAMAGED = "gone", "changed", "damaged"


def change_of(work: WorkDirectory, reference: str, digest: str | None) -> str:
    """How an artifact with this digest has changed: GONE, CHANGED, DAMAGED, or empty if it has not."""
    try:
        found = work.at(reference)
    except DamagedError:
        return DAMAGED
    if found is None:
        return GONE
    return CHANGED if found.digest != digest else ""


class Freshness:
    """Tells what is wrong with an artifact; looks at every file, model and artifact once.

    Args:
        model_digest: gives the digest that the files of a model have now, None where that cannot be told.
        verify: compare the SHA-256 of every file.
    """

    def __init__(
        self, work: WorkDirectory, model_digest: Callable[[str], str | None] = lambda name: None, verify: bool = False
    ) -> None:
        self._work = work
        self._model_digest = model_digest
        self._verify = verify
        self._digests: dict[str, str | None] = {}
        self._judged: dict[str, tuple[str, str]] = {}

    def state(self, artifact: Artifact) -> tuple[str, str]:
        """Its state, and why it is not fresh."""
        if artifact.reference not in self._judged:
            self._judged[artifact.reference] = ("fresh", "")  # an end for references that go in a circle
            try:
                self._judged[artifact.reference] = self._judge(artifact)
            except PermissionError as error:
                self._judged[artifact.reference] = ("unknown", f"no permission to read {error.filename}")
        return self._judged[artifact.reference]

    def _judge(self, artifact: Artifact) -> tuple[str, str]:
        if damage := artifact.damage(contents=self._verify):
            return "damaged", damage
        made_by, now = artifact.manifest["version"], version_of(str(artifact.manifest["command"]))
        if made_by != now:
            return "stale", f"made by version {made_by} of {artifact.manifest['command']}, now {now}"
        unreadable = ""
        for reference, digest in artifact.inputs.items():
            try:
                if fault := self._change_of_input(reference, digest):
                    return "stale", fault
            except PermissionError as error:
                unreadable = f"no permission to read {error.filename}"  # another input may still turn out to be stale
        # Only then inputs that are stale themselves: the nearest change explains most.
        for reference in artifact.inputs:
            # The model of an export stays the same while new scores make its card stale.
            student = here if (here := made_here(reference)) and here.startswith("students/") else None
            own = student or (None if reference.startswith(OUTSIDE) else reference)
            found = self._work.at(own) if own else None
            if found and (state := self.state(found)[0]) not in ("fresh", "unknown"):
                return "stale", f"{own} is {state}"
        return ("unknown", unreadable) if unreadable else ("fresh", "")

    def _change_of_input(self, reference: str, digest: str) -> str:
        if (own := made_here(reference)) and (lost := change_of(self._work, own, None)) != CHANGED:
            return f"{own} is {lost}"
        if reference.startswith(OUTSIDE):
            now = self._digest_outside(reference)
            return f"{reference.split(':', 1)[1]} has changed" if now not in (None, digest) else ""
        change = change_of(self._work, reference, digest)
        return f"{reference} has changed" if change == CHANGED else f"{reference} is {change}" if change else ""

    def _digest_outside(self, reference: str) -> str | None:
        """The digest that a file or a model has now; None where that cannot be told (gone, on a hub, from a pipe)."""
        if reference not in self._digests:
            kind, name = reference.split(":", 1)
            digest = None
            if kind == "file" and Path(name).is_file():
                digest = file_digest(Path(name))
            elif kind == "model":
                digest = self._model_digest(name)
            self._digests[reference] = digest
        return self._digests[reference]
