"""Smaller vocabularies keep the words that are used, and lose no character."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import load_model
from tokenizers import Tokenizer

from sentcompress.errors import InputError
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import save_encoder
from sentcompress.models.vocabulary import token_occurrences, trim_vocabulary
from sentcompress.published import FOLDER

NAMES = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
TEXTS = ["the man plays the guitar", "a dog runs", "the cat sleeps near the river"]


def test_counts_are_of_every_occurrence(encoder: Encoder) -> None:
    counts = token_occurrences(encoder, [TEXTS[:2], TEXTS[2:]])
    ids = encoder.tokenizer.get_vocab()
    assert counts[ids["the"]] == 4
    assert counts[ids["dog"]] == 1
    assert counts[ids["[CLS]"]] == 3
    assert counts.sum() == sum(map(len, encoder.tokenize(TEXTS)))


def test_kept_words_keep_their_vectors_in_a_model_that_is_read_back(encoder: Encoder, tmp_path: Path) -> None:
    table = encoder.transformer.get_input_embeddings().weight.detach().clone()  # type: ignore[operator]
    old = encoder.tokenizer.get_vocab()
    before = encoder.tokenize(TEXTS)
    with torch.inference_mode():
        wanted = encoder(torch.tensor(before[:1]), torch.ones(1, len(before[0]), dtype=torch.long))
    # Enough for every word of the texts.
    trim_vocabulary(encoder, 24, token_occurrences(encoder, [TEXTS]), "tiny")
    save_encoder(encoder, tmp_path)
    saved = load_model(tmp_path)
    assert len(saved.tokenizer) == saved.config.vocab_size == 24
    new = saved.tokenizer.get_vocab()
    assert saved.tokenize(TEXTS) == [[new[token] for token in line] for line in tokens(before, old)]
    rows = saved.transformer.get_input_embeddings().weight.detach()  # type: ignore[operator]
    for token, place in new.items():
        assert torch.equal(rows[place], table[old[token]])
    ids = saved.tokenize(TEXTS[:1])
    with torch.inference_mode():
        found = saved(torch.tensor(ids), torch.ones(1, len(ids[0]), dtype=torch.long))
    assert torch.allclose(found, wanted, atol=1e-6)
    assert saved.tokenizer.pad_token_id == new["[PAD]"]


def tokens(ids: list[list[int]], vocabulary: dict[str, int]) -> list[list[str]]:
    names = {place: token for token, place in vocabulary.items()}
    return [[names[number] for number in line] for line in ids]


def test_what_is_hardly_used_goes_first_and_single_characters_stay(encoder: Encoder) -> None:
    trim_vocabulary(encoder, 12, token_occurrences(encoder, [TEXTS]), "tiny")
    left = set(encoder.tokenizer.get_vocab())
    assert {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##s", ".", ",", "the"} <= left
    assert "teacher" not in left


@pytest.fixture
def many_scripts(encoder: Encoder) -> Encoder:
    """A vocabulary that has characters of Greek and Japanese too."""
    strange = {"λ": 5.0, "##λ": 6.0, "河": 7.0, "##河": 8.0}
    encoder.tokenizer.add_tokens(list(strange))
    backend = json.loads(encoder.tokenizer.backend_tokenizer.to_str())
    special = [entry for entry in backend["added_tokens"] if entry["special"]]
    backend["model"]["vocab"] |= {e["content"]: e["id"] for e in backend["added_tokens"] if not e["special"]}
    backend["added_tokens"] = special
    encoder.tokenizer = type(encoder.tokenizer)(tokenizer_object=Tokenizer.from_str(json.dumps(backend)), **NAMES)
    encoder.transformer.resize_token_embeddings(len(encoder.tokenizer))  # type: ignore[operator]
    return encoder


def test_characters_that_are_hardly_seen_can_make_room_for_words(many_scripts: Encoder) -> None:
    counts = token_occurrences(many_scripts, [[*TEXTS, "the river λ"]])
    size = 60
    trim_vocabulary(many_scripts, size, counts, "tiny", character_count=1)
    left = set(many_scripts.tokenizer.get_vocab())
    assert len(left) == size
    assert {"λ", "##λ", "a", "##s", ".", ","} <= left  # both forms of what was seen in one, and all of ASCII
    assert not {"河", "##河"} & left
    assert many_scripts.tokenizer.tokenize("λ 河 the") == ["λ", "[UNK]", "the"]


def test_sizes_that_cannot_be_and_other_tokenizers_are_refused(encoder: Encoder) -> None:
    counts = np.zeros(len(encoder.tokenizer), np.int64)
    with pytest.raises(InputError, match="must be kept"):
        trim_vocabulary(encoder, 5, counts, "tiny")
    with pytest.raises(InputError, match="must be kept"):
        trim_vocabulary(encoder, 10_000, counts, "tiny")
    encoder.tokenizer = type("Slow", (), {"is_fast": False})()
    with pytest.raises(InputError, match="not a WordPiece"):
        trim_vocabulary(encoder, 12, counts, "tiny")


def test_frequent_tokens_of_english_come_before_those_that_the_corpus_hardly_has() -> None:
    encoder = load_model(FOLDER / "general-9m")
    english, old = set(load_model(FOLDER / "general-2m").tokenizer.get_vocab()), encoder.tokenizer.get_vocab()
    assert english < old.keys()
    known, barely = sorted(token for token in old.keys() - english if token.isascii() and token.isalpha())[:2]
    counts = np.zeros(len(old), np.int64)
    counts[old[known]], counts[old[barely]] = 3, 2
    trim_vocabulary(encoder, len(english) + 1, counts, "tiny", character_count=2)
    assert encoder.tokenizer.get_vocab().keys() == english | {known}
