"""An augmentation without data: each text again and again, in worker processes and slowly if asked for."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Doubling:
    """Says a text twice in its first copy, three times in the second; takes `seconds` for each piece of the table."""

    source: str = "wordnet"
    summary: str = "each sentence twice"
    in_workers: bool = False
    note: str = ""
    seconds: float = 0.0

    def describe(self) -> dict[str, Any]:
        return {}

    def load(self) -> Doubling:
        return self

    def augment(self, texts: list[str], first_row: int, copy: int) -> list[str]:
        time.sleep(self.seconds)
        return [" ".join([text] * (copy + 1)) for text in texts]
