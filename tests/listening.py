"""A reporter for tests that keeps what it is told."""

from sentcompress.progress import SilentReporter


class Listener(SilentReporter):
    """Keeps warnings and notes."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.notes: list[str] = []

    def warn(self, message: str) -> None:
        self.warnings.append(message)

    def note(self, message: str) -> None:
        self.notes.append(message)
