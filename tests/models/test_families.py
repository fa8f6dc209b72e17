"""The table of architectures beside the models themselves; and tokens that can be read, and not one more."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from tiny_models import WORDS, load_model, make_roberta, make_sentences, tiny_transformer
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertModel,
    CamembertModel,
    DistilBertConfig,
    DistilBertModel,
    ElectraConfig,
    ElectraModel,
    GPT2Config,
    GPT2Model,
    MPNetConfig,
    MPNetModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5EncoderModel,
    XLMConfig,
    XLMModel,
    XLMRobertaModel,
    XLNetConfig,
    XLNetModel,
)

from sentcompress.errors import InputError
from sentcompress.exporting.verification import encoder_vectors
from sentcompress.models.families import FACTORISABLE, FAMILIES, key_biases, readable_positions, table_projection
from sentcompress.models.shape import Shape
from sentcompress.models.sources import resolve
from sentcompress.models.students import InitialStudent
from sentcompress.models.text_settings import TextSettings
from sentcompress.models.transformer_encoder import TransformerEncoder
from sentcompress.stages import augment, teacher_embed
from sentcompress.store import WorkDirectory

ROWS = 20
SIZES = {"vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
PLACES: dict[str, Any] = {"max_position_embeddings": ROWS}
ROBERTA = RobertaConfig(**SIZES, **PLACES, pad_token_id=1)
MODELS = {
    "bert": lambda: BertModel(BertConfig(**SIZES, **PLACES)),
    "electra": lambda: ElectraModel(ElectraConfig(**SIZES, **PLACES, embedding_size=4)),
    "distilbert": lambda: DistilBertModel(
        DistilBertConfig(vocab_size=30, dim=8, hidden_dim=8, n_layers=1, n_heads=2, **PLACES)
    ),
    "roberta": lambda: RobertaModel(ROBERTA),
    "xlm-roberta": lambda: XLMRobertaModel(ROBERTA),
    "camembert": lambda: CamembertModel(ROBERTA),
    "mpnet": lambda: MPNetModel(MPNetConfig(**SIZES, **PLACES)),
}


@pytest.mark.parametrize("kind", FAMILIES)
def test_no_vector_depends_on_the_biases_of_keys_and_they_are_not_trained(kind: str) -> None:
    torch.manual_seed(0)
    encoder = TransformerEncoder(tiny_transformer(kind).double(), None, text=TextSettings(max_length=40))
    ids = torch.randint(3, 30, (4, 9))
    mask = torch.ones_like(ids)
    mask[0, 5:] = 0
    before = encoder(ids, mask)
    biases = key_biases(encoder.transformer)
    assert len(biases) == (1 if kind == "albert" else 4)  # ALBERT repeats one layer
    assert {id(bias) for bias in biases} == {id(p) for p in encoder.parameters() if not p.requires_grad}
    with torch.no_grad():
        for bias in biases:
            bias.normal_()
    assert torch.allclose(encoder(ids, mask), before, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_path_and_setting_of_a_row_is_in_the_model(kind: str) -> None:
    family, model = FAMILIES[kind], tiny_transformer(kind)
    layers = model.get_submodule(family.layers or "encoder.albert_layer_groups.0.albert_layers")
    assert getattr(model.config, family.layer_count) == 4
    assert getattr(model.config, family.neurons) >= 32
    for path in family.layer.paths():
        assert isinstance(layers[0].get_submodule(path), torch.nn.Linear | torch.nn.LayerNorm), path
    width = model.embeddings.word_embeddings.weight.shape[1]
    project = table_projection(model)
    assert (project.in_features, project.out_features) == (8, 16) if project else width == 16
    assert (project is not None) == (kind in ("electra", "albert"))


def test_layers_that_are_electra_s_have_the_same_parts() -> None:
    names = [dict(tiny_transformer(kind).encoder.layer[0].named_modules()).keys() for kind in FACTORISABLE]
    assert all(one == names[0] for one in names)


@pytest.mark.parametrize("kind", MODELS)
def test_so_many_tokens_can_be_read_and_no_more(kind: str) -> None:
    model = MODELS[kind]().eval()
    count = readable_positions(model)
    assert count is not None
    ids = torch.full((1, count + 1), 5)
    with torch.inference_mode():
        assert model(input_ids=ids[:, :count]).last_hidden_state.isfinite().all()
        with pytest.raises((IndexError, RuntimeError, ValueError)):
            model(input_ids=ids)


@pytest.mark.parametrize(
    "make",
    [
        *MODELS.values(),
        lambda: XLMModel(XLMConfig(vocab_size=30, emb_dim=8, n_layers=1, n_heads=2, **PLACES)),
        lambda: GPT2Model(GPT2Config(vocab_size=30, n_embd=8, n_layer=1, n_head=2, n_positions=ROWS)),
    ],
)
def test_token_embeddings_are_the_first_states(make: Callable[[], Any]) -> None:
    untyped: Any = lambda texts, **how: {"input_ids": [[4] for _ in texts]}  # noqa: E731
    encoder = TransformerEncoder(make().eval(), untyped, text=TextSettings(max_length=ROWS))
    ids = torch.randint(4, 30, (2, 5))
    with torch.inference_mode():
        first = encoder.hidden_states(ids, torch.ones_like(ids), every_layer=True)[0]
        torch.testing.assert_close(encoder.token_embeddings(ids), first)


def typed_model(folder: Path, kind: str) -> Path:
    """A plain checkpoint of an architecture with token types, and a tokenizer of words that gives them."""
    words = ["[PAD]", "[UNK]", "[SEP]", "[CLS]", *WORDS]
    inner = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    template, marks = "$A:0 [SEP]:0 [CLS]:2" if kind == "xlnet" else "[CLS] $A [SEP]", [("[SEP]", 2), ("[CLS]", 3)]
    inner.post_processor = processors.TemplateProcessing(single=template, special_tokens=marks)
    named = {"pad_token": "[PAD]", "unk_token": "[UNK]", "sep_token": "[SEP]", "cls_token": "[CLS]"}
    PreTrainedTokenizerFast(tokenizer_object=inner, **named, model_max_length=ROWS).save_pretrained(folder)
    torch.manual_seed(0)
    model: Any = (
        XLNetModel(XLNetConfig(vocab_size=len(words), d_model=8, n_layer=1, n_head=2, d_inner=8, initializer_range=1.0))
        if kind == "xlnet"
        else XLMModel(XLMConfig(vocab_size=len(words), emb_dim=8, n_layers=1, n_heads=2, pad_index=0, **PLACES))
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ["xlm", "xlnet"])
def test_token_types_are_given_as_sentence_transformers_gives_them(kind: str, tmp_path: Path) -> None:
    """Both models compute other states without types; XLNet's [CLS] has the type 2."""
    folder, texts = typed_model(tmp_path, kind), make_sentences(4)
    expected = SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode(texts)
    encoder = load_model(folder)
    assert encoder.max_positions == (None if kind == "xlnet" else ROWS)
    np.testing.assert_allclose(encoder_vectors(encoder, texts), expected, atol=1e-5)


def test_a_model_without_a_table_is_read_by_its_configuration() -> None:
    config = T5Config(vocab_size=30, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    assert readable_positions(T5EncoderModel(config)) is None


@pytest.fixture
def roberta(tmp_path: Path) -> Path:
    """66 rows for 64 tokens; neither its tokenizer nor its settings say so."""
    folder = make_roberta(tmp_path / "roberta")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "model_max_length": 10**30}))
    (folder / "sentence_bert_config.json").unlink()
    return folder


LONG = " ".join(["words"] * 60)


def test_a_long_text_is_cut_to_what_roberta_reads(roberta: Path) -> None:
    encoder = load_model(roberta)
    assert encoder.text.max_length == 64
    ids = torch.tensor(encoder.tokenize([LONG]))
    assert ids.shape == (1, 64)
    assert encoder.embed(ids, torch.ones_like(ids)).isfinite().all()
    for narrow in (None, 8):
        student = InitialStudent("teacher:1", resolve(str(roberta)), Shape(1, token_dim=narrow)).load()
        assert student.text.max_length == 64
        assert student.embed(ids, torch.ones_like(ids)).isfinite().all()


def test_a_setting_beyond_the_table_is_cut_to_it(roberta: Path) -> None:
    (roberta / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 66, "do_lower_case": False}))
    assert load_model(roberta).text.max_length == 64
    (roberta / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 30, "do_lower_case": False}))
    assert load_model(roberta).text.max_length == 30


def test_teacher_embed_refuses_more(roberta: Path, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text(f"{LONG}\nA short one.\n")
    work = WorkDirectory(tmp_path / "work")
    augment.run(augment.Params(inputs=(str(tmp_path / "long.txt"),), wordnet=0, back_translate=0), work)
    asked = {"teacher": str(roberta), "dtype": "float32"}
    with pytest.raises(InputError, match="reads at most 64 tokens, not 65"):
        teacher_embed.run(teacher_embed.Params(**asked, max_length=65), work)
    assert teacher_embed.run(teacher_embed.Params(**asked, max_length=64), work).facts["dimension"] == 32
