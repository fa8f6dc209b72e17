"""Checks whether models and data sets are in the hub's cache, or on a reachable hub. Nothing is downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from sentcompress.errors import InputError
from sentcompress.extras import check_installed
from sentcompress.hub import GATED, answer_of, ask_hub, network_errors
from sentcompress.models.sources import EMBEDDED_LABEL, PATTERNS, embedded_instead

WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
OFFLINE_HINT = "fetch it where there is a network, or name a folder with --set STAGE.OPTION=FOLDER"


class HubLookup:
    """Asks the hub once for each name; once it cannot be reached, it is not asked again."""

    def __init__(self) -> None:
        self._unreachable = ""

    def check_model(self, name: str, revision: str | None, hint: str = OFFLINE_HINT) -> None:
        """Check that a model can be loaded.

        Raises:
            InputError: if it is neither in the cache nor on the hub; it has the hint.
        """
        if not _is_cached(name, revision):
            hint = embedded_instead() if name == EMBEDDED_LABEL else hint
            self._ask("model", name, revision, hint)

    def check_data_set(self, name: str, revision: str | None) -> None:
        """Check that a data set can be read; its rows are streamed, so the cache is no help.

        Raises:
            InputError: if it is not on the hub, or the hub cannot be reached.
        """
        check_installed("datasets")
        hint = "without a network, give a file: jsonl, csv, tsv, parquet or text"
        self._ask("dataset", name, revision, hint)

    def _ask(self, kind: Literal["model", "dataset"], name: str, revision: str | None, hint: str) -> None:
        from huggingface_hub import errors

        known = f"needs the {'model' if kind == 'model' else 'data set'} {name}"
        try:
            if not self._unreachable:
                ask_hub(kind, name, revision)
        except errors.RevisionNotFoundError:
            raise InputError(f"{known}, which has no revision {revision!r} on the hub", "check `revision`") from None
        except errors.GatedRepoError:
            raise InputError(f"{known}, which is gated on the hub", GATED) from None
        except (errors.RepositoryNotFoundError, errors.HFValidationError):
            raise InputError(f"{known}, which the hub does not have", hint) from None
        except errors.OfflineModeIsEnabled:
            self._unreachable = "the hub is disabled (offline)"
        except network_errors() as error:
            answer = answer_of(error)
            why = f"the hub cannot be reached ({type(error).__name__})"
            self._unreachable = f"the hub answers {answer}" if answer else why
        if self._unreachable:
            cache = "it is not in the hub's cache, and " if kind == "model" else ""
            raise InputError(f"{known}: {cache}{self._unreachable}", hint)


def _is_cached(name: str, revision: str | None) -> bool:
    """Whether a model with its weights is in the hub's cache."""
    from huggingface_hub import errors, snapshot_download

    try:
        # Only these files are ever fetched; without the patterns, the library looks for all files of the repository.
        files = list(PATTERNS)
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=files, local_files_only=True))
    except (errors.LocalEntryNotFoundError, errors.HFValidationError):
        return False
    return any(path.is_file() for pattern in WEIGHTS for path in folder.rglob(pattern))
