"""Text settings of a model besides its tokenizer: maximum length, lower-casing, prompt.

Does not import torch, for processes that run ONNX graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from sentcompress.errors import InputError
from sentcompress.models.model_files import DAMAGED, transformer_folder
from sentcompress.models.prompts import COSINE, ROLES, Prompts, read_object, read_prompts, read_similarity

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SETTINGS_FILES = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
# Settings that sentence-transformers passes on to the tokenizer, to each of its calls, and to the configuration; some
# have an older name too. Those for calls are by modality.
TO_CALLS, TEXT_CALLS = "processing_kwargs", ("common", "text")
PASSED_ON = ("tokenizer_args", "processor_kwargs", TO_CALLS, "config_args", "config_kwargs")
# Of these, what changes no vector, or is refused elsewhere.
WITHOUT_EFFECT = (
    *("use_fast", "padding", "padding_side", "pad_to_multiple_of", "return_tensors", "verbose"),
    *("attn_implementation", "torch_dtype", "dtype", "use_cache", "trust_remote_code", "revision", "code_revision"),
)
# Tokenizers use 32-bit lengths; transformers writes 1e30 for no limit.
MOST_TOKENS = 2**31 - 1
# A class that overrides one of these does more with a text than its backend does.
ENCODING_METHODS = ("__call__", "_encode_plus", "_convert_encoding")
# A fast tokenizer keeps the maximum length in its backend, where a call in another thread would change it.
_one_call = Lock()


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
    """What `SentenceTransformer.encode` does to a text before tokenization, and the maximum length in tokens.

    Attributes:
        prompt: precedes every text.
        prompts: named prompts, which sentence-transformers puts before a text on request, as `encode_query` does;
            `prepare` puts none of them there.
        similarity: sentence-transformers' similarity function, for vectors that are not normalised; only copied to
            the folders that are written.
        pools_prompt: whether the tokens of a prompt are pooled.
    """

    max_length: int
    lower_case: bool = False
    prompt: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)
    similarity: str = COSINE
    pools_prompt: bool = True

    def trained(self) -> TextSettings:
        """The settings of a model trained with these: of the prompts, only the default one was used in its training.

        It is also that of ROLES: otherwise, `encode_query` and `encode_document` would use none.
        """
        prompts = dict.fromkeys(("default", *ROLES), self.prompt) if self.prompt else {}
        return replace(self, prompts=prompts, similarity=COSINE, pools_prompt=True)

    @property
    def unused_prompts(self) -> dict[str, str]:
        """The named prompts that `prepare` does not put before a text."""
        return Prompts(self.prompt, self.prompts).beside_default

    def prompts_document(self, *, similarity: str) -> dict[str, Any]:
        """The content of `prompts.PROMPTS_FILE`."""
        prompts, name = dict(self.prompts), None
        if self.prompt:
            name = next((name for name, prompt in prompts.items() if prompt == self.prompt), "default")
            prompts[name] = self.prompt
        return {"prompts": prompts, "default_prompt_name": name, "similarity_fn_name": similarity}

    def prepare(self, text: str) -> str:
        text = self.prompt + text
        return text.lower() if self.lower_case else text


def token_ids(
    tokenizer: TransformersTokenizer, texts: Sequence[str], *, max_length: int | None = None
) -> list[list[int]]:
    """The token ids of prepared texts from a transformers tokenizer, without padding.

    Args:
        max_length: longer texts are truncated; None: no text is.

    Raises:
        InputError: if the tokenizer fails.
    """
    # verbose=False: no warnings about texts beyond the tokenizer's own limit.
    how: dict[str, Any] = {"truncation": max_length is not None, "max_length": max_length, "verbose": False}
    how |= {"padding": False, "return_attention_mask": False, "return_token_type_ids": False}
    # The first call sets the truncation of the backend, which then encodes the rest without computing offsets.
    first = 1 if _only_calls_backend(tokenizer) else len(texts)
    try:
        with _one_call:
            ids = tokenizer(list(texts[:first]), **how)["input_ids"]
            if rest := list(texts[first:]):
                ids += [encoding.ids for encoding in tokenizer.backend_tokenizer.encode_batch_fast(rest)]
    except Exception as error:
        # tokenizers has no error class of its own: a vocabulary without the unknown token raises a bare Exception.
        if type(error) is not Exception:
            raise
        raise InputError(
            f"the tokenizer cannot read a text: {error}", "copy or download the model's tokenizer.json again"
        ) from error
    return ids


def token_types(tokenizer: TransformersTokenizer, text: str) -> dict[int, int] | None:
    """Token id -> token type, of the tokens of a short text; None if the tokenizer gives no types.

    All words of a text have the same type. XLNet's [CLS] has another one.
    """
    with _one_call:
        found = tokenizer([text], padding=False, verbose=False)
    types = found.get("token_type_ids")
    return dict(zip(found["input_ids"][0], types[0], strict=True)) if types else None


def _only_calls_backend(tokenizer: TransformersTokenizer) -> bool:
    """Whether a tokenizer's ids are those of its backend."""
    from transformers import PreTrainedTokenizerFast

    kind = type(tokenizer)
    return issubclass(kind, PreTrainedTokenizerFast) and all(
        getattr(kind, name) is getattr(PreTrainedTokenizerFast, name) for name in ENCODING_METHODS
    )


def read_text_settings(folder: Path, tokenizer: TransformersTokenizer, positions: int | None) -> TextSettings:
    """The text settings of a model.

    Args:
        folder: the folder of the model.
        tokenizer: the model's tokenizer.
        positions: number of tokens in the position table; None if there is no limit.

    Raises:
        InputError: if a setting has the wrong type or an impossible value, or changes how texts are read and is not
            supported.
    """
    root = transformer_folder(folder)
    path = next((root / name for name in SETTINGS_FILES if (root / name).exists()), None)
    settings = read_object(path) if path else {}
    if passed := _passed_on(settings):
        raise InputError(
            f"{path} changes how texts are read, by settings that are not supported: {', '.join(passed)}",
            "such models are not supported; a maximum length can be given as max_seq_length",
        )
    lower_case = settings.get("do_lower_case")
    if not isinstance(lower_case, bool | None):
        raise InputError(f"{path}: do_lower_case must be true or false, not {lower_case!r}", DAMAGED)
    limit = settings.get("max_seq_length")
    if limit is not None and (type(limit) is not int or limit < 1):
        raise InputError(f"{path}: max_seq_length must be a positive integer, not {limit!r}", DAMAGED)
    prompts = read_prompts(folder)
    return TextSettings(
        _limit(limit, tokenizer, positions, root),
        bool(lower_case),
        prompts.default,
        prompts.named,
        read_similarity(folder),
        prompts.pooled,
    )


def _passed_on(settings: Mapping[str, Any]) -> list[str]:
    """The settings that sentence-transformers passes on to transformers and that can change a vector."""
    found = []
    for name in PASSED_ON:
        given = settings.get(name)
        groups = [(name, given)]
        if name == TO_CALLS and isinstance(given, dict):
            groups = [(f"{name}.{kind}", given.get(kind)) for kind in TEXT_CALLS]
        for group, values in groups:
            own = values if isinstance(values, dict) else {"": values} if values else {}
            found += [f"{group}.{key}".rstrip(".") for key in own if key not in WITHOUT_EFFECT]
    return found


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
