"""How text becomes tokens, apart from the tokenizer. Without torch, for readers of ONNX graphs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TextSettings:
    """How text becomes tokens: what `SentenceTransformer.encode` would do before the tokenizer."""

    max_length: int
    lower_case: bool = False
    prompt: str = ""

    def prepare(self, text: str) -> str:
        text = self.prompt + text
        return text.lower() if self.lower_case else text
