"""A reporter for tests that keeps what it is told."""

from collections.abc import Mapping

from sentcompress.progress import Reporter


class Listener(Reporter):
    """Keeps warnings and notes, both in order in `heard`, and metrics in `told`."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.notes: list[str] = []
        self.heard: list[str] = []
        self.told: list[dict[str, float | int | str | None]] = []

    def metrics(self, values: Mapping[str, float | int | str | None]) -> None:
        self.told.append(dict(values))

    def warn(self, message: str) -> None:
        self.warnings.append(message)
        self.heard.append(message)

    def note(self, message: str) -> None:
        self.notes.append(message)
        self.heard.append(message)
