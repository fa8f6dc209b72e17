"""Text settings of a model besides its tokenizer: maximum length, lower-casing, prompt.

Does not import torch, for processes that run ONNX graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sentcompress.errors import InputError
from sentcompress.json_documents import read_json
from sentcompress.models.model_files import DAMAGED, transformer_folder

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SETTINGS_FILES = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
# Tokenizers use 32-bit lengths; transformers writes 1e30 for no limit.
MOST_TOKENS = 2**31 - 1


class TransformersTokenizer(Protocol):
    """The members of a transformers tokenizer that are used here.

    Attributes:
        backend_tokenizer: only a fast tokenizer (`is_fast`) has one.
    """

    pad_token: str | None
    pad_token_id: int | None
    unk_token: str | None
    unk_token_id: int | None
    all_special_ids: list[int]
    model_max_length: int
    truncation_side: str
    is_fast: bool
    backend_tokenizer: Tokenizer
    init_kwargs: dict[str, Any]

    def __call__(self, texts: list[str], **how: Any) -> Mapping[str, list[list[int]]]: ...

    def __len__(self) -> int: ...

    def get_vocab(self) -> dict[str, int]: ...

    def num_special_tokens_to_add(self, pair: bool = False) -> int: ...

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]: ...

    def convert_tokens_to_string(self, tokens: list[str]) -> str: ...

    def save_pretrained(self, save_directory: Path) -> object: ...


@dataclass(frozen=True)
class TextSettings:
    """What `SentenceTransformer.encode` does to a text before tokenization, and the maximum length in tokens."""

    max_length: int
    lower_case: bool = False
    prompt: str = ""

    def prepare(self, text: str) -> str:
        text = self.prompt + text
        return text.lower() if self.lower_case else text


def token_ids(tokenizer: TransformersTokenizer, texts: Sequence[str], **how: Any) -> list[list[int]]:
    """The token ids of prepared texts from a transformers tokenizer, without padding.

    Raises:
        InputError: if the tokenizer fails.
    """
    try:
        encoded = tokenizer(list(texts), padding=False, return_attention_mask=False, return_token_type_ids=False, **how)
    except Exception as error:
        # tokenizers has no error class of its own: a vocabulary without the unknown token raises a bare Exception.
        if type(error) is not Exception:
            raise
        raise InputError(
            f"the tokenizer cannot read a text: {error}", "copy or download the model's tokenizer.json again"
        ) from error
    return encoded["input_ids"]


def read_text_settings(folder: Path, tokenizer: TransformersTokenizer, positions: int | None) -> TextSettings:
    """The text settings of a model.

    Args:
        folder: the folder of the model.
        tokenizer: the model's tokenizer.
        positions: number of tokens in the position table; None if there is no limit.

    Raises:
        InputError: if a setting has the wrong type or an impossible value.
    """
    root = transformer_folder(folder)
    path = next((root / name for name in SETTINGS_FILES if (root / name).exists()), None)
    settings = _read_object(path) if path else {}
    lower_case = settings.get("do_lower_case")
    if not isinstance(lower_case, bool | None):
        raise InputError(f"{path}: do_lower_case must be true or false, not {lower_case!r}", DAMAGED)
    limit = settings.get("max_seq_length")
    if limit is not None and (type(limit) is not int or limit < 1):
        raise InputError(f"{path}: max_seq_length must be a positive integer, not {limit!r}", DAMAGED)
    return TextSettings(_limit(limit, tokenizer, positions, root), bool(lower_case), default_prompt(folder))


def _limit(setting: int | None, tokenizer: TransformersTokenizer, positions: int | None, root: Path) -> int:
    """The maximum length, as in sentence-transformers: the model's setting, otherwise the tokenizer's limit.

    It is capped at the tokens in the position table; sentence-transformers counts RoBERTa's 514 rows as 514 tokens.
    """
    limit = setting or tokenizer.model_max_length
    if not isinstance(limit, int | float) or not limit >= 1:
        path = root / "tokenizer_config.json"
        raise InputError(f"{path}: model_max_length must be a number above 0, not {limit!r}", DAMAGED)
    if positions is not None and positions < 1:
        raise InputError(f"{root / 'config.json'}: the position table has no room for a token", DAMAGED)
    return int(min(limit, MOST_TOKENS, positions or MOST_TOKENS))


def default_prompt(folder: Path) -> str:
    """The default prompt, which precedes every text.

    Raises:
        InputError: if the prompts are not in the form of sentence-transformers.
    """
    path = folder / "config_sentence_transformers.json"
    config = _read_object(path) if path.exists() else {}
    name, prompts = config.get("default_prompt_name"), config.get("prompts") or {}
    if not isinstance(name, str | None) or not isinstance(prompts, dict):
        raise InputError(f"{path}: prompts must be an object, default_prompt_name a string", DAMAGED)
    prompt = prompts.get(name) if name else None
    if not isinstance(prompt, str | None):
        raise InputError(f"{path}: the prompt {name!r} is not a string", DAMAGED)
    return prompt or ""


def _read_object(path: Path) -> dict[str, Any]:
    found = read_json(path)
    if not isinstance(found, dict):
        raise InputError(f"{path} holds a {type(found).__name__}, not an object with settings", DAMAGED)
    return found
