"""The metrics: names, units and directions. Metric names are defined only here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sentcompress.numeric import amount, figure, size

SPEARMAN, PEARSON = "spearman_cosine", "pearson_cosine"
ALIGNMENT, UNIFORMITY = "alignment", "uniformity"
MRR, NDCG, FIRST_RELEVANT = "mrr_at_10", "ndcg_at_10", "accuracy_at_1"
RECALLS = (1, 10, 100, 1000)
OVERLAP, INDEX_LOSS = "overlap_at_10", "index_loss"
INDEX_BYTES, BYTES_PER_DOCUMENT, BUILD_SECONDS = "index_bytes", "bytes_per_document", "build_seconds"
SEARCH_TIME = "milliseconds_per_1000_queries"
SEARCH_P50, SEARCH_P95 = "milliseconds_p50", "milliseconds_p95"
ACCURACY, F1 = "accuracy", "f1"
NEIGHBOURS, NEAREST, SIMILARITIES = "neighbours_shared", "nearest_found", "spearman_of_similarities"
SEARCH_FIDELITY, RESULTS_SHARED, FIRST_FOUND = "search_fidelity", "results_shared", "first_result_found"
CORRELATION = "mean_absolute_correlation"
PARAMETERS, WEIGHT_BYTES, VECTOR_BYTES = "parameters", "weight_bytes", "vector_bytes"
SPEED, SPEED_SINGLE = "sentences_per_second", "sentences_per_second_batch_1"
LATENCY_P50, LATENCY_P95, LATENCY_P99 = (f"latency_p{of}_milliseconds" for of in (50, 95, 99))
PASS_SECONDS = "pass_seconds"
DISK_BYTES = "disk_bytes"
PEAK_MEMORY, MODEL_MEMORY, DEVICE_MEMORY = "peak_memory_bytes", "model_memory_bytes", "device_memory_bytes"

BYTES = "bytes"


def recall_at(cutoff: int) -> str:
    """The name of the metric Recall@k for a cut-off of RECALLS."""
    return f"recall_at_{cutoff}"


@dataclass(frozen=True)
class Metric:
    """How to print and compare the values of a metric.

    Attributes:
        label: the printed name.
        unit: printed after the label.
        scale: the perfect score, for scores; 1 for everything else.
        decimals: decimals printed.
        gain: the word for an improvement: smaller or faster; empty for scores, which are compared in percent.
        relative: measures the agreement with the compared model, so it means nothing without knowing that one.
    """

    label: str
    unit: str = ""
    scale: int = 1
    decimals: int = 2
    higher_is_better: bool = True
    gain: str = ""
    relative: bool = False

    @property
    def title(self) -> str:
        """Label and unit: `nDCG@10 x 100`, `latency p50 (ms)`."""
        if self.scale > 1:
            return f"{self.label} x {self.scale}"
        # Sizes are printed with their unit: `69.7 MB`.
        return f"{self.label} ({self.unit})" if self.unit not in ("", BYTES) else self.label

    def show(self, value: float) -> str:
        """A value as text; NaN is "not defined"."""
        if self.unit == BYTES:
            return size(value)
        return amount(value) if self.decimals == 0 else figure(value, f",.{self.decimals}f")


def _score(label: str) -> Metric:
    return Metric(label, scale=100)


def _agreement(label: str) -> Metric:
    return Metric(label, scale=100, relative=True)


def _bytes(label: str) -> Metric:
    return Metric(label, BYTES, decimals=0, higher_is_better=False, gain="smaller")


def _time(label: str, unit: str, decimals: int = 2) -> Metric:
    return Metric(label, unit, decimals=decimals, higher_is_better=False, gain="faster")


METRICS: Mapping[str, Metric] = {
    # Named as in sentence-transformers and mteb.
    SPEARMAN: _score("Spearman"),
    PEARSON: _score("Pearson"),
    ALIGNMENT: Metric("alignment", decimals=3, higher_is_better=False),
    UNIFORMITY: Metric("uniformity", decimals=3, higher_is_better=False),
    MRR: _score("MRR@10"),
    NDCG: _score("nDCG@10"),
    FIRST_RELEVANT: _score("Accuracy@1"),
    **{recall_at(cutoff): _score(f"Recall@{cutoff}") for cutoff in RECALLS},
    OVERLAP: _score("overlap@10 with exact search"),
    INDEX_LOSS: Metric("loss of the index", scale=100, higher_is_better=False),
    INDEX_BYTES: _bytes("index size"),
    BYTES_PER_DOCUMENT: _bytes("index size per document"),
    BUILD_SECONDS: _time("building the index", "s"),
    SEARCH_TIME: _time("search", "ms per 1,000 queries", 1),
    SEARCH_P50: _time("search, p50", "ms", 3),
    SEARCH_P95: _time("search, p95", "ms", 3),
    ACCURACY: _score("accuracy"),
    F1: _score("F1"),
    NEIGHBOURS: _agreement("nearest neighbours shared"),
    NEAREST: _agreement("nearest neighbour found"),
    SIMILARITIES: _agreement("Spearman of similarities"),
    SEARCH_FIDELITY: _agreement("search fidelity"),
    RESULTS_SHARED: _agreement("results shared"),
    FIRST_FOUND: _agreement("first result found"),
    CORRELATION: Metric("mean |correlation| of dimensions", decimals=3, higher_is_better=False),
    PARAMETERS: Metric("parameters", decimals=0, higher_is_better=False, gain="smaller"),
    WEIGHT_BYTES: _bytes("weights"),
    VECTOR_BYTES: _bytes("vector, float32"),
    SPEED: Metric("encoding", "sentences/s", decimals=1, gain="faster"),
    SPEED_SINGLE: Metric("encoding, batch size 1", "sentences/s", decimals=1, gain="faster"),
    LATENCY_P50: _time("latency p50", "ms"),
    LATENCY_P95: _time("latency p95", "ms"),
    LATENCY_P99: _time("latency p99", "ms"),
    PASS_SECONDS: _time("one pass, batch size 1", "s", 1),
    DISK_BYTES: _bytes("on disk"),
    PEAK_MEMORY: _bytes("peak memory"),
    MODEL_MEMORY: _bytes("peak memory for the model"),
    DEVICE_MEMORY: _bytes("peak memory of the GPU"),
}
