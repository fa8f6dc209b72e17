"""How a model folder says that its texts become tokens: the longest text, lower case, a prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sentcompress.documents import read_json
from sentcompress.errors import InputError
from sentcompress.models.model_files import DAMAGED, transformer_folder
from sentcompress.models.positions import readable_positions
from sentcompress.models.text import TextSettings

SETTINGS_FILES = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
# Tokenizers count in 32 bits, and those that know no limit say 1e30.
MOST_TOKENS = 2**31 - 1


def read_text_settings(folder: Path, transformer: Any, tokenizer: Any) -> TextSettings:
    """The settings of a model.

    Args:
        folder: of the whole model.
        transformer, tokenizer: of the model, loaded.

    Raises:
        InputError: if a setting is of another type, or no text can be read by them.
    """
    root = transformer_folder(folder)
    path = next((root / name for name in SETTINGS_FILES if (root / name).exists()), None)
    settings = _read_object(path) if path else {}
    lower_case = settings.get("do_lower_case")
    if not isinstance(lower_case, bool | None):
        raise InputError(f"{path}: do_lower_case must be true or false, not {lower_case!r}", DAMAGED)
    limit = settings.get("max_seq_length")
    if limit is not None and (type(limit) is not int or limit < 1):
        raise InputError(f"{path}: max_seq_length must be a whole number of at least 1, not {limit!r}", DAMAGED)
    return TextSettings(_limit(limit, transformer, tokenizer, root), bool(lower_case), default_prompt(folder))


def _limit(setting: int | None, transformer: Any, tokenizer: Any, root: Path) -> int:
    """As sentence-transformers: its own setting first, else what the tokenizer allows.

    But never more than the position table holds, where sentence-transformers lets RoBERTa's 514 rows count as 514
    tokens.
    """
    limit = setting or tokenizer.model_max_length
    if not isinstance(limit, int | float) or not limit >= 1:
        path = root / "tokenizer_config.json"
        raise InputError(f"{path}: model_max_length must be a number above 0, not {limit!r}", DAMAGED)
    positions = readable_positions(transformer)
    if positions is not None and positions < 1:
        raise InputError(f"{root / 'config.json'}: the model has no position for a token", DAMAGED)
    return int(min(limit, MOST_TOKENS, positions or MOST_TOKENS))


def default_prompt(folder: Path) -> str:
    """What is put before every text when the caller names no prompt.

    Raises:
        InputError: if the file that says so says something else.
    """
    path = folder / "config_sentence_transformers.json"
    config = _read_object(path) if path.exists() else {}
    name, prompts = config.get("default_prompt_name"), config.get("prompts") or {}
    if not isinstance(name, str | None) or not isinstance(prompts, dict):
        raise InputError(f"{path} does not name prompts and the default one", DAMAGED)
    prompt = prompts.get(name) if name else None
    if not isinstance(prompt, str | None):
        raise InputError(f"{path}: the prompt {name!r} is not a text", DAMAGED)
    return prompt or ""


def _read_object(path: Path) -> dict[str, Any]:
    found = read_json(path)
    if not isinstance(found, dict):
        raise InputError(f"{path} does not hold settings, but a {type(found).__name__}", DAMAGED)
    return found
