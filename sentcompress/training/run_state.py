"""The progress of a training run, for checkpoints and for the record."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Progress:
    """The progress of a run, saved in checkpoints together with weights and optimizer.

    Attributes:
        rate: the learning rate of the last step.
        unscored: whether the last step is still to be scored, because a signal came before its score was complete.
    """

    step: int = 0
    rate: float = 0.0
    unscored: bool = False
    sentences: int = 0
    tokens: int = 0
    seconds: float = 0.0
    scoring_seconds: float = 0.0
    dev_scores: int = 0
    best_score: float | None = None
    best_step: int | None = None
    best_sentences: int = 0
    start_score: float | None = None
    last_score: float | None = None
    mean_cosine: float | None = None
    effective_rank: float | None = None
    wrong: str = ""
    warning: str = ""
    vanished: str = ""
    dtype: str = ""
    dtype_reason: str = ""
    stopped: str = ""
    log_bytes: int = 0

    @property
    def all_seconds(self) -> float:
        """The seconds of all steps and dev scores."""
        return self.seconds + self.scoring_seconds
