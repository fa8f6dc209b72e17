"""The data that the option `dev` names: graded pairs, a retrieval collection, or the held-out queries of documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sentcompress.commands.training import StudentTrainingOptions, TrainingOptions
from sentcompress.corpora.dev_collection import dev_collection, sample_of
from sentcompress.corpora.sts import read_dev
from sentcompress.errors import UsageError
from sentcompress.models.token_batches import Tokenize
from sentcompress.progress import Reporter
from sentcompress.quantities import counted
from sentcompress.store import WorkDirectory, file_inputs
from sentcompress.training.dev import Dev, sts_dev
from sentcompress.training.retrieval_dev import retrieval_dev
from sentcompress.training.search_dev import DocumentsDev, documents_dev


def dev_digests(path: Path) -> dict[str, str]:
    """The files of graded pairs or of a collection, with their digests, as inputs of a request.

    Raises:
        InputError: if it is a folder, but not a collection with a dev split.
    """
    return file_inputs(dev_collection(path).files if path.is_dir() else (path,))


@dataclass(frozen=True)
class GivenDev:
    """The data that the option `dev` names.

    Attributes:
        inputs: digests by reference, for a request.
    """

    path: Path
    inputs: Mapping[str, str]
    documents: DocumentsDev | None
    device: str

    def open(self, reporter: Reporter) -> Callable[[Tokenize, int], Dev]:
        """Read graded pairs or documents. A collection, which can be large, is read when the result is called.

        What is dropped is reported.

        Returns:
            A function from a tokenizer and its padding token to the dev score.

        Raises:
            InputError: if it cannot be used.
        """
        if self.documents is not None:
            return self.documents.open(self.device, reporter)
        if self.path.is_dir():
            data = dev_collection(self.path)

            def read(tokenize: Tokenize, pad: int) -> Dev:
                sample = sample_of(data)
                for warning in sample.warnings:
                    reporter.warn(warning)
                return retrieval_dev(sample, tokenize, pad)

            return read
        pairs = read_dev(self.path)
        for dropped, why in ((pairs.dropped, "without a score"), (pairs.empty, "with an empty sentence")):
            if dropped:
                reporter.warn(f"{self.path}: dropped {counted(dropped, 'pair')} {why}")
        return lambda tokenize, pad: sts_dev(pairs.first, pairs.second, pairs.scores, tokenize, pad)


def find_dev(params: TrainingOptions, work: WorkDirectory, teacher: str | None) -> GivenDev | None:
    """The data that the option `dev` names; None if it is not given.

    Args:
        teacher: see `search_dev.documents_dev`.

    Raises:
        MissingArtifactError, InputError: if it cannot be used.
        UsageError: for `keep_index` or `dev_passages` without documents.
    """
    documents = documents_dev(params.dev, params, work, teacher) if params.dev is not None else None
    if documents is None and isinstance(params, StudentTrainingOptions):
        if params.keep_index:
            raise UsageError("`keep_index` needs `dev` documents/NAME: the teacher encodes its passages")
        if params.dev_passages is not None:
            raise UsageError("`dev_passages` needs `dev` documents/NAME, whose passages are searched")
    if params.dev is None:
        return None
    inputs = documents.inputs if documents else dev_digests(params.dev)
    return GivenDev(params.dev, inputs, documents, params.device)
