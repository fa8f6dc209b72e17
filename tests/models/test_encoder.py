"""The encoder's tokens of texts that are far longer than it reads."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from static_encoder import make_static_encoder
from tiny_models import load_model, tiny_transformer

from benchmarks.host_waits import HostWaits
from sentcompress.models import encoder as module
from sentcompress.models.encoder import Dense, Encoder
from sentcompress.models.layout import save_encoder
from sentcompress.models.text_settings import TextSettings
from sentcompress.models.transformer_encoder import TransformerEncoder


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("long", [50, 200, 700])
def test_a_long_text_has_the_tokens_of_its_beginning(
    tiny_model: Path, sentences: list[str], monkeypatch: pytest.MonkeyPatch, side: str, long: int
) -> None:
    encoder = load_model(tiny_model)
    encoder.tokenizer.truncation_side = side
    texts = [" ".join(sentences), "x" * 1000 + " " + sentences[0], " " * 1000 + sentences[0], "short", "." * 900]
    expected = encoder.tokenize(texts)
    monkeypatch.setattr(module, "_LONG_TEXT", long)
    monkeypatch.setattr(module, "_MARGIN", 8)
    assert encoder.tokenize(texts) == expected


def test_megabytes_of_text_are_tokenized_soon(tiny_model: Path) -> None:
    encoder = load_model(tiny_model)
    started = time.process_time()
    [found] = encoder.tokenize(["word salad " * 1_400_000])
    assert len(found) == encoder.text.max_length
    assert time.process_time() - started < 5


def test_an_encoder_without_layers_has_states_all_the_same() -> None:
    encoder = make_static_encoder(["a", "b", "c"], width=4)
    ids, mask = torch.tensor([[1, 3], [2, 0]]), torch.tensor([[1, 1], [1, 0]])
    assert (encoder.depth, encoder.max_positions, encoder.table_size, encoder.dimension) == (0, None, 4, 4)
    assert torch.equal(encoder.token_embeddings(ids), encoder.embedding(ids))
    vectors, states = encoder.embed_with_states(ids, mask)
    assert len(states) == 1
    torch.testing.assert_close(
        vectors, torch.stack([encoder.embedding(ids[0]).mean(dim=0), encoder.embedding(ids[1, :1])[0]])
    )
    narrow = encoder.with_dense([Dense(4, 2)], normalize=True)
    assert (narrow.dimension, narrow.embedding) == (2, encoder.embedding)
    torch.testing.assert_close(narrow(ids, mask).norm(dim=1), torch.ones(2))


def test_an_encoder_without_a_folder_layout_is_not_saved(tmp_path: Path) -> None:
    class Other(Encoder):
        """An encoder of somebody else."""

        body = architecture = hidden_size = table_size = hidden_states = None  # type: ignore[assignment]

    with pytest.raises(TypeError, match="Other cannot be saved"):
        save_encoder(Other(None, text=TextSettings(8)), tmp_path / "model")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("kind", ["bert", "roberta", "electra", "distilbert", "albert", "mpnet"])
def test_padding_is_masked_as_transformers_masks_it(kind: str) -> None:
    """Fused and plain attention get masks of their own forms, which ask no tensor for a value; MPNet's does not."""
    torch.manual_seed(0)
    transformer = tiny_transformer(kind)
    for parameter in transformer.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    encoder = TransformerEncoder(transformer, None, text=TextSettings(max_length=40)).eval()
    ids, mask = torch.tensor([[7, 12, 9, 4], [5, 8, 1, 1]]), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    real = mask.bool()
    with torch.no_grad():
        for attention in (nullcontext(), encoder.plain_attention()):
            with attention:
                wanted = transformer(input_ids=ids, attention_mask=mask).last_hidden_state[real]
                with HostWaits() as waits:
                    found = encoder.states(ids, mask)
            assert torch.equal(found[real], wanted)
            assert (waits.counts == {}) == (kind != "mpnet")
        alone = transformer(input_ids=ids[:1], attention_mask=mask[:1]).last_hidden_state
        assert torch.equal(encoder.states(ids[:1], mask[:1], padded=False), alone)
