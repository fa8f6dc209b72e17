"""Tiny random encoders and sentences of their vocabulary, made in the test that needs them."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.nn import Module

    from sentcompress.models.encoder import Encoder

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

    from sentcompress.models.encoder import TextSettings
    from sentcompress.models.layout import save_encoder
    from sentcompress.models.transformer_encoder import TransformerEncoder

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
    encoder = TransformerEncoder(transformer, tokenizer, normalize=normalize, text=TextSettings(max_length=64))
    save_encoder(encoder.eval(), folder)
    return folder


def two_layers(kind: str, outputs: int, **changes: Any) -> Encoder:
    """A random BERT, or an ALBERT, whose layers share their weights, of width 96, with a dense layer, to be traced."""
    import torch
    from transformers import AlbertConfig, AlbertModel, BertConfig, BertModel

    from sentcompress.models.encoder import Dense, TextSettings
    from sentcompress.models.transformer_encoder import TransformerEncoder

    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "vocab_size": 600,
        "hidden_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 192,
        "max_position_embeddings": 40,
        **changes,
    }
    model: Any = (
        AlbertModel(AlbertConfig(**sizes, embedding_size=32), add_pooling_layer=False)
        if kind == "albert"
        else BertModel(BertConfig(**sizes), add_pooling_layer=False)
    )
    tokenizer: Any = SimpleNamespace(pad_token_id=0)
    return TransformerEncoder(model, tokenizer, text=TextSettings(32), dense=[Dense(96, outputs)]).eval()


def load_model(folder: Path) -> Encoder:
    """The encoder in a folder."""
    from sentcompress.models.layout import load_encoder
    from sentcompress.models.sources import resolve

    return load_encoder(resolve(str(folder)))


def make_prompted(
    folder: Path, model: Path, prompts: Mapping[str, str] | None = None, *, default: str | None = None
) -> Path:
    """A copy of a model with prompts, by default one for queries.

    Args:
        default: the name of the default prompt.
    """
    shutil.copytree(model, folder)
    settings = {"prompts": {"query": "the "} if prompts is None else prompts, "default_prompt_name": default}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def make_plain(folder: Path, model: Path) -> Path:
    """A model as a bare checkpoint, without sentence-transformers' modules."""
    folder.mkdir()
    for path in model.iterdir():
        if path.is_file() and path.name not in ("modules.json", "sentence_bert_config.json"):
            (folder / path.name).write_bytes(path.read_bytes())
    return folder


def break_weights(folder: Path, value: float = float("nan"), token: str | None = None) -> Path:
    """Write a value that is not a number into a model folder's token table: one token's row, or all of them."""
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    tokens = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    rows = slice(None) if token is None else tokens[token]
    weights["embeddings.word_embeddings.weight"][rows] = value
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def tiny_transformer(kind: str, tokens: int = 30) -> Module:
    """A bare model of an architecture with random weights: four layers, width 16, 32 neurons."""
    import transformers

    classes = {
        "bert": "Bert",
        "roberta": "Roberta",
        "xlm-roberta": "XLMRoberta",
        "camembert": "Camembert",
        "electra": "Electra",
        "mpnet": "MPNet",
        "distilbert": "DistilBert",
        "albert": "Albert",
    }
    common = {"vocab_size": tokens, "max_position_embeddings": 40}
    if kind == "distilbert":
        shape = {"dim": 16, "n_heads": 2, "hidden_dim": 32, "n_layers": 4}
    else:
        shape = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "num_hidden_layers": 4}
        shape |= {"embedding_size": 8} if kind in ("electra", "albert") else {}
    config = getattr(transformers, f"{classes[kind]}Config")(**common, **shape)
    model: Module = getattr(transformers, f"{classes[kind]}Model")(config)
    return model.eval()


def make_roberta(folder: Path) -> Path:
    """A tiny RoBERTa, whose positions start behind its padding token, with a byte-level vocabulary."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaModel

    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*specials, *alphabet])}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<s>",
        cls_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        sep_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_max_length=64,
    )
    torch.manual_seed(3)
    config = RobertaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=66,
        pad_token_id=1,
        initializer_range=0.2,
    )
    folder.mkdir()
    RobertaModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 64, "do_lower_case": False}))
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 32, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def make_t5(folder: Path, kind: str = "t5", *, decoder: bool = False) -> Path:
    """A folder like Sentence-T5's, written by sentence-transformers: T5's encoder, Pooling, Dense, Normalize.

    Args:
        kind: the architecture: t5, mt5 or umt5.
        decoder: whether the checkpoint has the weights of the decoder too.
    """
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    words = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("\u2581", -5.0)]
    words += [(f"\u2581{word}", -3.0) for word in WORDS] + [(letter, -6.0) for letter in "abcdefghijklmnopqrstuvwxyz.,"]
    tokenizer = transformers.T5Tokenizer(vocab=words, extra_ids=0, model_max_length=64)
    torch.manual_seed(4)
    # 16 columns per head, so that the queries are wider than the states, as in the largest T5.
    config = getattr(transformers, {"t5": "T5Config", "mt5": "MT5Config", "umt5": "UMT5Config"}[kind])(
        vocab_size=len(words) + 3, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=4, initializer_factor=3.0
    )
    plain = folder / "plain"
    name = f"{kind.upper()}{'' if decoder else 'Encoder'}Model"
    getattr(transformers, name)(config).save_pretrained(plain)
    tokenizer.save_pretrained(plain)
    parts = [
        modules.Transformer(str(plain), max_seq_length=16),
        modules.Pooling(32, "mean"),
        modules.Dense(32, 24, bias=False, activation_function=torch.nn.Identity()),
        modules.Normalize(),
    ]
    written = folder / "model"
    SentenceTransformer(modules=parts, device="cpu").save(str(written), create_model_card=False)
    if decoder:
        (plain / "model.safetensors").replace(written / "model.safetensors")
        (plain / "config.json").replace(written / "config.json")
    return written
