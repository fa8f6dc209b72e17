"""The prompts of a model, and which of them sentence-transformers puts before a text.

Does not import torch, so that a request can be made before a model is loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sentcompress.errors import InputError
from sentcompress.json_documents import read_json
from sentcompress.models.model_files import DAMAGED, listed_modules

PROMPTS_FILE = "config_sentence_transformers.json"
# The roles of texts in a search. `encode_query` and `encode_document` use the prompt of the same name.
QUERY, DOCUMENT = ROLES = ("query", "document")
# What texts of a role are called.
OF_ROLE = {QUERY: "queries", DOCUMENT: "documents"}
# `encode_document` also asks for these, but never finds them: sentence-transformers gives every model an empty prompt
# `document`.
NOT_FOUND = ("passage", "corpus")
COSINE = "cosine"
SIMILARITIES = (COSINE, "dot", "euclidean", "manhattan")
# Named prompts that a message lists.
MOST_PROMPTS = 4


@dataclass(frozen=True)
class Prompts:
    """The prompts of a model.

    Attributes:
        default: the default prompt, for texts without a role or a name of a prompt; empty if there is none.
        named: all prompts by name.
        pooled: whether the tokens of a prompt are pooled.
    """

    default: str = ""
    named: Mapping[str, str] = field(default_factory=dict)
    pooled: bool = True

    def of_role(self, role: str) -> str:
        """The prompt of `encode_query` or `encode_document`.

        Without a prompt of that name it is empty: in sentence-transformers, the default prompt is not used instead.
        """
        return self.named.get(role, "")

    def of_name(self, name: str, label: str) -> str:
        """The prompt of that name, as `encode(prompt_name=...)` finds it; every model has those of ROLES.

        Args:
            label: the model's name in the error.

        Raises:
            InputError: if there is none.
        """
        known = {**dict.fromkeys(ROLES, ""), **self.named}
        if name not in known:
            raise InputError(f"{label} has no prompt {name}", f"its prompts: {', '.join(known)}")
        return known[name]

    def override(self, prompt: str, label: str) -> str | None:
        """A prompt that replaces the default prompt; None if it is the same.

        Args:
            label: the model's name in the error.

        Raises:
            InputError: if there is a prompt, and the model leaves prompts out of the pooling.
        """
        if prompt == self.default:
            return None
        if prompt and not self.pooled:
            raise InputError(
                f"{label} leaves the tokens of a prompt out of its pooling (include_prompt), which is not supported",
                f"to use it without the prompt {prompt!r}, remove that from {PROMPTS_FILE} in a copy of the model",
            )
        return prompt

    @property
    def differ_by_role(self) -> bool:
        """Whether a text with a role gets another prompt than a text without one."""
        return any(self.of_role(role) != self.default for role in ROLES)

    def of_roles(self, roles: Collection[str], label: str) -> dict[str, str]:
        """Role -> its prompt, for those of the roles for which that is not the default prompt.

        Raises:
            InputError: see `override`.
        """
        found = {role: self.override(self.of_role(role), label) for role in ROLES if role in roles}
        return {role: prompt for role, prompt in found.items() if prompt is not None}

    @property
    def beside_default(self) -> dict[str, str]:
        """The prompts by name, without empty ones and the default prompt."""
        return {name: prompt for name, prompt in self.named.items() if prompt not in ("", self.default)}

    def told_unused(self, label: str, instead: str = "") -> str:
        """A warning that the named prompts of the model `label` are not used; empty if it has none.

        Args:
            instead: how to use one.
        """
        names = list(self.beside_default)
        if not names:
            return ""
        more = [f"and {len(names) - MOST_PROMPTS} more"] if len(names) > MOST_PROMPTS else []
        used = "with its default prompt" if self.default else "without a prompt"
        instead = instead or (
            "to put one of the prompts before every text, copy the model and name this prompt as default_prompt_name "
            f"in {PROMPTS_FILE}"
        )
        others = "its encode_query, encode_document and prompt_name" if self.differ_by_role else "its prompt_name"
        return (
            f"{label} has named prompts that are not used ({', '.join([*names[:MOST_PROMPTS], *more])}): every text is "
            f"encoded {used}, as by encode of sentence-transformers; with {others}, vectors and scores are different; "
            f"{instead}"
        )

    def told_not_found(self, label: str) -> Iterator[str]:
        """A warning if the model has a prompt for documents under a name that sentence-transformers does not find."""
        given = [name for name in NOT_FOUND if self.named.get(name)]
        if given and DOCUMENT not in self.named:
            yield (
                f"the prompt {given[0]} of {label} is not used: encode_document of sentence-transformers takes only a "
                f"prompt called {DOCUMENT}; to use it, rename it in {PROMPTS_FILE} in a copy of the model"
            )


def told_prompt(prompt: str | None) -> str:
    """How texts are encoded, in words; None: as the model does without being asked."""
    if prompt is None:
        return "with the default prompt, if any"
    return f"with the prompt {prompt!r}" if prompt else "without a prompt"


def read_prompts(folder: Path) -> Prompts:
    """The prompts of the model in a folder.

    Raises:
        InputError: if they are not in the form of sentence-transformers.
    """
    path = folder / PROMPTS_FILE
    config = _config(path)
    name, found = config.get("default_prompt_name"), config.get("prompts") or {}
    if not isinstance(name, str | None) or not isinstance(found, dict):
        raise InputError(f"{path}: prompts must be an object, default_prompt_name a string", DAMAGED)
    prompts = {key: "" if prompt is None else prompt for key, prompt in found.items()}
    for key, prompt in prompts.items():
        if not isinstance(prompt, str):
            raise InputError(f"{path}: the prompt {key!r} is not a string", DAMAGED)
    poolings = (module.path / "config.json" for module in listed_modules(folder) if module.kind == "Pooling")
    pooled = all(read_object(path).get("include_prompt") is not False for path in poolings)
    return Prompts(prompts.get(name or "", ""), prompts, pooled)


def read_similarity(folder: Path) -> str:
    """The similarity function that sentence-transformers uses for the model in a folder.

    Raises:
        InputError: if it is unknown.
    """
    path = folder / PROMPTS_FILE
    similarity = _config(path).get("similarity_fn_name") or COSINE
    if similarity not in SIMILARITIES:
        raise InputError(f"{path}: unknown similarity_fn_name {similarity!r}", f"known: {', '.join(SIMILARITIES)}")
    return str(similarity)


def read_object(path: Path) -> dict[str, Any]:
    """The settings in a JSON file.

    Raises:
        InputError: if it holds no object.
    """
    found = read_json(path)
    if not isinstance(found, dict):
        raise InputError(f"{path} holds a {type(found).__name__}, not an object with settings", DAMAGED)
    return found


def _config(path: Path) -> dict[str, Any]:
    return read_object(path) if path.exists() else {}
