"""Fixtures that many tests share: tiny random models, sentences, the real data when it is there."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

WORDS = """
    the a man woman child dog cat horse bird car road river city house tree market guitar song game ball book
    teacher doctor farmer plays rides reads sings walks runs eats sleeps buys sells paints in on near under with
    red green small large old young quiet loud happy sad fresh is are not two three many people street garden
""".split()


def make_sentences(count: int, seed: int = 0) -> list[str]:
    """Distinct sentences of 3 to 20 words from a small vocabulary."""
    generator = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found[" ".join(generator.choice(WORDS) for _ in range(generator.randint(3, 20)))] = None
    return list(found)


def make_tiny_model(folder: Path, *, layers: int = 2, width: int = 32, seed: int = 0, normalize: bool = True) -> Path:
    """A sentence-transformers folder with a random BERT of `layers` layers and a word-level vocabulary."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    from sentcompress.models.encoder import Encoder, TextSettings
    from sentcompress.models.layout import save_encoder

    folder.mkdir(parents=True, exist_ok=True)
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##s", ".", ","]
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(tokens) + "\n", encoding="utf-8")
    tokenizer = BertTokenizerFast(str(vocabulary), model_max_length=64)
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(tokens),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=2 * width,
        max_position_embeddings=64,
        # larger than usual, so that random vectors of different sentences differ
        initializer_range=0.2,
    )
    transformer = BertModel(config, add_pooling_layer=False)
    encoder = Encoder(transformer, tokenizer, normalize=normalize, text=TextSettings(max_length=64))
    save_encoder(encoder.eval(), folder)
    return folder


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny random sentence encoder: 2 layers, 32 wide, at most 64 tokens."""
    return make_tiny_model(tmp_path_factory.mktemp("tiny") / "tiny-model")


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    """300 distinct sentences that the tiny model's vocabulary covers."""
    return make_sentences(300)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real data sets beside the checkout (or where SENTCOMPRESS_SHARED_DATA says); skips when absent."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SENTCOMPRESS_SHARED_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no real data sets at {folder}")
    return folder
