"""One call of a command, as the functions that show its result see it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Call:
    """One call of a command: its options, and the work directory as it was named."""

    params: Any
    work: Path
