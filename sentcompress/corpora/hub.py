"""Data sets on the Hugging Face hub, streamed: rows are downloaded as they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentcompress.corpora.column_names import with_known_names
from sentcompress.corpora.document import Document
from sentcompress.corpora.document_files import documents_of_rows
from sentcompress.corpora.readers import ReadOptions, records_of
from sentcompress.corpora.records import SPLIT, Record
from sentcompress.corpora.text_files import BadRecords
from sentcompress.errors import InputError, path_hint, reason_of
from sentcompress.extras import check_installed, require
from sentcompress.hub import GATED, ask_hub, limit_waiting, network_errors

CHOICES = "check the path; without a network, give a folder, or a file: jsonl, csv, tsv, parquet or text"


@dataclass(frozen=True)
class HubInput:
    """One split of a data set at one revision."""

    name: str
    config: str | None
    digest: str
    options: ReadOptions

    @property
    def reference(self) -> str:
        config = f":{self.config}" if self.config else ""
        return f"hub:{self.name}{config}:{self.options.split}"

    @property
    def origin(self) -> str:
        return self.reference

    def records(self, bad: BadRecords) -> Iterator[Record]:
        return records_of(self.reference, self.rows(), self.options, bad)

    def documents(self, bad: BadRecords) -> Iterator[Document]:
        """All documents, in order."""
        return documents_of_rows(self.reference, self.rows(), self.options, bad)

    def rows(self) -> Iterator[tuple[int, Mapping[str, object]]]:
        """All rows with their numbers (from 1); labels are given by name.

        Raises:
            InputError: no such configuration or split, or the hub cannot be reached.
        """
        data = _load(self.name, self.config, self.digest, self.options.split)
        names = _label_names(data)
        try:
            labelled = ({column: _label(value, names.get(column)) for column, value in row.items()} for row in data)
            for number, row in with_known_names(enumerate(labelled, 1), self.options.named):
                # A column `split` would be read as in AllNLI.tsv; here the split is already chosen.
                yield number, {column: value for column, value in row.items() if column != SPLIT}
        except network_errors() as error:
            raise _unreachable(self.name, error) from None


def hub_input(name: str, config: str | None, revision: str | None, options: ReadOptions) -> HubInput:
    """The data set of that name; its digest is the commit of the revision.

    Raises:
        InputError: if it does not exist or is gated, or the hub cannot be reached.
    """
    from huggingface_hub import errors

    try:
        found = ask_hub("dataset", name, revision)
    except errors.RevisionNotFoundError:
        raise InputError(f"the data set {name} has no revision {revision!r}", "check `revision`") from None
    except errors.GatedRepoError:
        raise InputError(f"the data set {name} is gated on the hub", GATED) from None
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        raise InputError(
            f"no file or folder {name} here, and no data set of that name on the hub", path_hint(Path(name), CHOICES)
        ) from None
    except errors.OfflineModeIsEnabled:
        raise InputError(
            f"no file or folder {name} here, and the hub is disabled (offline)", path_hint(Path(name), CHOICES)
        ) from None
    except network_errors() as error:
        raise _unreachable(name, error) from None
    check_installed("datasets")
    return HubInput(name, config, str(found.sha), options)


def _load(name: str, config: str | None, revision: str, split: str) -> Any:
    load_dataset = require("datasets").load_dataset
    limit_waiting()
    try:
        return load_dataset(name, config, split=split, revision=revision, streaming=True)
    except (ValueError, RuntimeError) as error:
        # A configuration or split that is missing or unknown: the library's message lists the existing ones.
        reason = " ".join(str(error).split())
        raise InputError(f"the data set {name} cannot be read: {reason}", "use `config` and `split`") from None
    except network_errors() as error:
        raise _unreachable(name, error) from None


def _label_names(data: Any) -> dict[str, list[str]]:
    features = getattr(data, "features", None) or {}
    return {column: list(feature.names) for column, feature in features.items() if hasattr(feature, "names")}


def _label(value: object, names: list[str] | None) -> object:
    if names and isinstance(value, int):
        return names[value] if 0 <= value < len(names) else None
    return value


def _unreachable(name: str, error: Exception) -> InputError:
    missing = f"no file or folder {name} here, and the hub cannot be reached to look for a data set of that name"
    return InputError(f"{missing} ({reason_of(error)})", path_hint(Path(name), CHOICES))
