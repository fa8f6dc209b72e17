"""How text becomes tokens, apart from the tokenizer. Without torch, for readers of ONNX graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sentcompress.errors import InputError


@dataclass(frozen=True)
class TextSettings:
    """How text becomes tokens: what `SentenceTransformer.encode` would do before the tokenizer."""

    max_length: int
    lower_case: bool = False
    prompt: str = ""

    def prepare(self, text: str) -> str:
        text = self.prompt + text
        return text.lower() if self.lower_case else text


def token_ids(tokenizer: Any, texts: Sequence[str], **how: Any) -> list[list[int]]:
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
        raise InputError(f"the tokenizer cannot read a text: {error}", "is its tokenizer.json damaged?") from error
    return encoded["input_ids"]  # type: ignore[no-any-return]
