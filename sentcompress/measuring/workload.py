"""The sentences that a benchmark encodes: the user's own, or those of a published protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.corpora.sts import STS_B, read_sts
from sentcompress.corpora.text_files import BadRecords
from sentcompress.corpora.text_sample import sample_texts, texts_of_files
from sentcompress.errors import InputError
from sentcompress.store import Artifact, file_inputs

# SimTDE's speed protocol: every pair of STS-B's test split, both sentences one at a time, the mean of three passes.
SIMTDE_PAIRS = 1379
SIMTDE_ROUNDS = 3


@dataclass(frozen=True)
class Workload:
    """Sentences to encode.

    Attributes:
        batched: distinct sentences to encode in batches.
        single: sentences to encode one at a time.
        inputs: the inputs to record in a request: digest by reference.
        pairs: number of sentence pairs of a preset; None without a preset.
    """

    batched: Sequence[str]
    single: Sequence[str]
    inputs: Mapping[str, str]
    pairs: int | None = None


def of_file(path: Path, count: int, single: int, seed: int) -> Workload:
    """Distinct sentences of a file of lines or a table, sampled with the seed.

    Raises:
        InputError: if the file cannot be read, or has no text.
    """
    drawn = sample_texts(texts_of_files([path], BadRecords()), count, seed).texts
    if not drawn:
        raise InputError(f"{path} has no line with text", "write one sentence per line")
    return Workload(drawn, drawn[:single], file_inputs([path]))


def of_table(sentences: Artifact, count: int, single: int, seed: int) -> Workload:
    """Rows of a sentence table, sampled with the seed."""
    drawn = sample_texts(SentenceTable(sentences.path).sentences(), count, seed).texts
    return Workload(drawn, drawn[:single], {sentences.reference: sentences.digest})


def of_simtde(paths: Sequence[Path], count: int, seed: int) -> Workload:
    """SimTDE's workload: the sentences of STS-B's test pairs in order, including repeated ones.

    Raises:
        InputError: if there is no STS-B among the sets in `paths`.
    """
    # A single file counts as STS-B, whatever its name is.
    named = len(paths) == 1 and paths[0].is_file()
    sets = [found for found in read_sts(paths, "test") if named or found.name == STS_B]
    if not sets:
        raise InputError(f"no {STS_B} test pairs in {', '.join(map(str, paths))}", "name its test file with `sts`")
    subsets = sets[0].subsets
    both = [text for subset in subsets for pair in zip(subset.first, subset.second, strict=True) for text in pair]
    inputs = file_inputs(path for subset in subsets for path in subset.files)
    return Workload(sample_texts(both, count, seed).texts, both, inputs, len(sets[0]))
