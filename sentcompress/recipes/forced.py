"""The record of a forced run of a recipe, so that the same command continues it after an interruption."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sentcompress.errors import InputError
from sentcompress.json_documents import read_json, to_json
from sentcompress.progress import Reporter
from sentcompress.recipes.plan import Step
from sentcompress.store import WorkDirectory
from sentcompress.store.atomic import written

FORCE = "--force"


@dataclass(frozen=True)
class ForcedRun:
    """A run of some stages, of which `force` reruns those with these numbers.

    Attributes:
        path: of the record, which exists from the beginning of the run to its end. It is named by the stages, their
            inputs and options: runs with others, also at the same time, have their own.
    """

    work: WorkDirectory
    path: Path
    numbers: Sequence[int]

    @classmethod
    def of(cls, work: WorkDirectory, steps: Sequence[Step]) -> ForcedRun:
        said = [[step.number, *(word for word in step.words if word != FORCE)] for step in steps]
        mark = hashlib.sha256(to_json(said).encode()).hexdigest()[:16]
        return cls(work, work.path / f".forced-{mark}.json", [step.number for step in steps if FORCE in step.words])

    def begin(self, reporter: Reporter) -> str:
        """Record that the run has begun. Without forced stages, remove the record of an earlier one instead.

        Returns:
            When it began, in UTC, if it was interrupted and is continued. Otherwise an empty text.

        Raises:
            InputError: if the work directory is a file.
        """
        if not self.numbers:
            self.end()
            return ""
        if since := self._since():
            reporter.note(
                f"continuing the forced run of {since[:16].replace('T', ' ')} UTC: stages rerun since then are skipped "
                f"(to start over, remove {self.path})"
            )
            return since
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        self.work.make_folder(self.work.path)
        with written(self.path) as unfinished:
            unfinished.write_text(to_json({"since": now, "stages": self.numbers}) + "\n", encoding="utf-8")
        return ""

    def end(self) -> None:
        """Remove the record."""
        with suppress(OSError):  # a read-only disk, on which results that are up to date can still be used
            self.path.unlink(missing_ok=True)

    def _since(self) -> str:
        try:
            said = read_json(self.path)
        except (InputError, OSError):
            return ""
        if not isinstance(said, dict) or said.get("stages") != self.numbers:
            return ""
        return str(said.get("since", ""))
