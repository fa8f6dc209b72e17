"""Refuses transformers of sentence-transformers that do not make token states of a text as it is.

Newer releases write into `sentence_bert_config.json` what a transformer computes of a text: token states, a vector or
scores, of the text itself or of a chat with it.
"""

from __future__ import annotations

from pathlib import Path

from sentcompress.errors import InputError
from sentcompress.json_documents import read_json
from sentcompress.models.model_files import is_static, listed_modules, transformer_folder
from sentcompress.models.text_settings import SETTINGS_FILES

TASK, INPUTS = "transformer_task", "modality_config"
# The method and its output; the latter is a name, or the names on the way to it.
TOKEN_STATES = (("forward", "last_hidden_state"), ("forward", ["last_hidden_state"]))
UNSUPPORTED = "such models are not supported"


def check_task(folder: Path) -> None:
    """Raise InputError if the transformer of a model folder computes something else than states of a text's tokens."""
    if not listed_modules(folder) or is_static(folder):
        return
    root = transformer_folder(folder)
    path = next((root / name for name in SETTINGS_FILES if (root / name).is_file()), None)
    settings = read_json(path) if path else {}
    if not isinstance(settings, dict):
        return  # reported by `read_text_settings`
    if (task := settings.get(TASK, "feature-extraction")) != "feature-extraction":
        raise InputError(f"{path}: {TASK} is {task!r}, so the model makes no vectors of texts", UNSUPPORTED)
    inputs = settings.get(INPUTS)
    if not isinstance(inputs, dict):
        return
    if "message" in inputs:
        raise InputError(
            f"{path}: {INPUTS} has `message`, so sentence-transformers puts every text into a chat template",
            UNSUPPORTED,
        )
    text = inputs.get("text")
    if not isinstance(text, dict) or (text.get("method"), text.get("method_output_name")) not in TOKEN_STATES:
        raise InputError(f"{path}: by its {INPUTS}, the model does not make token states of a text", UNSUPPORTED)
