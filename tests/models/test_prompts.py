"""Named prompts: which of them precedes a text, as in sentence-transformers."""

from __future__ import annotations

from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer
from tiny_models import make_prompted

from sentcompress.errors import InputError
from sentcompress.models.prompts import ROLES, Prompts, read_prompts

# Those of models on the hub, and what may come: only a default prompt, and names that are not found.
SETTINGS = [
    ({}, None),
    ({"query": "the "}, None),
    ({"query": "the ", "document": ""}, None),
    ({"query": "the ", "document": "a ", "clustering": "two "}, None),
    ({"query": "the ", "document": "a "}, "document"),
    ({"query": "the ", "passage": "a "}, None),
    ({"corpus": "a "}, None),
    ({"default": "two "}, "default"),
    ({"query": "the "}, "query"),
]


@pytest.mark.parametrize(("prompts", "default"), SETTINGS)
def test_the_prompts_of_roles_are_those_of_sentence_transformers(
    prompts: dict[str, str], default: str | None, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_prompted(tmp_path / "prompted", tiny_model, prompts, default=default)
    model, used = SentenceTransformer(str(folder), device="cpu", local_files_only=True), list[str]()
    preprocess = model.preprocess
    monkeypatch.setattr(
        model, "preprocess", lambda texts, prompt, **how: used.append(prompt or "") or preprocess(texts, **how)
    )
    for encode in (model.encode, model.encode_query, model.encode_document):
        encode(["dog"])
    found = read_prompts(folder)
    assert [found.default, *map(found.of_role, ROLES)] == used


def test_a_prompt_by_its_name() -> None:
    prompts = Prompts("", {"query": "q: ", "clustering": "c: "})
    assert [prompts.of_name(name, "m") for name in ("query", "clustering", "document")] == ["q: ", "c: ", ""]
    with pytest.raises(InputError, match="m has no prompt passage") as raised:
        prompts.of_name("passage", "m")
    assert raised.value.hint == "its prompts: query, document, clustering"


def test_prompts_that_replace_the_default_one() -> None:
    found = Prompts("d: ", {"query": "q: ", "document": "d: "})
    assert found.of_roles(ROLES, "m") == {"query": "q: "}
    assert found.of_roles({"document"}, "m") == {}
    assert found.differ_by_role
    assert Prompts("d: ", {"default": "d: "}).of_roles(ROLES, "m") == {"query": "", "document": ""}
    assert not Prompts("", {"passage": "p: "}).differ_by_role


def test_a_prompt_that_is_not_pooled_is_refused() -> None:
    prompts = Prompts("", {"query": "q: "}, pooled=False)
    with pytest.raises(InputError, match="m leaves the tokens of a prompt out of its pooling"):
        prompts.of_roles(ROLES, "m")
    assert prompts.of_roles({"document"}, "m") == {}


@pytest.mark.parametrize(
    ("prompts", "told"),
    [({}, 0), ({"document": "", "passage": "p: "}, 0), ({"passage": "p: "}, 1), ({"query": "q: ", "corpus": "c: "}, 1)],
)
def test_a_prompt_of_documents_that_is_not_found_is_told(prompts: dict[str, str], told: int) -> None:
    assert len(list(Prompts("", prompts).told_not_found("m"))) == told


@pytest.mark.parametrize(
    ("prompt", "prompts", "told"),
    [
        ("", {}, ""),
        ("", {"query": "", "document": ""}, ""),
        ("a ", {"default": "a ", "query": ""}, ""),
        ("", {"query": "q: "}, "m has named prompts that are not used (query): every text is encoded without a prompt"),
        ("a ", {"default": "a ", "query": "q: "}, "(query): every text is encoded with its default prompt,"),
        ("", {f"p{number}": f"{number}: " for number in range(6)}, "(p0, p1, p2, p3, and 2 more): every"),
    ],
)
def test_named_prompts_are_told_to_be_unused(prompt: str, prompts: dict[str, str], told: str) -> None:
    found = Prompts(prompt, prompts).told_unused("m")
    assert told in found
    assert bool(told) == bool(found)
    assert ("with its encode_query" in found) == ("query" in prompts and bool(told))
    assert found.endswith("name this prompt as default_prompt_name in config_sentence_transformers.json") == bool(told)
    assert Prompts(prompt, prompts).told_unused("m", "do that").endswith("; do that") == bool(told)
