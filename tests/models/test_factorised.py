"""Factorised students: nothing is lost at full width, the start is the truncated SVD below it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    ElectraConfig,
    ElectraModel,
    RobertaConfig,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaModel,
)

from sentcompress.errors import InputError
from sentcompress.models.factorised import factorised

VOCABULARY, WIDTH, NARROW = 120, 32, 12
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "initializer_range": 0.3,
    "type_vocab_size": 1,
}


def teacher(kind: str) -> Any:
    torch.manual_seed(0)
    if kind == "bert":
        model: Any = BertModel(BertConfig(**{**SIZES, "type_vocab_size": 2}), add_pooling_layer=False)
    elif kind == "roberta":
        model = RobertaModel(RobertaConfig(**SIZES, pad_token_id=1), add_pooling_layer=False)
    elif kind == "xlm-roberta":
        model = XLMRobertaModel(XLMRobertaConfig(**SIZES, pad_token_id=1), add_pooling_layer=False)
    else:
        width = WIDTH if kind == "electra" else 16
        model = ElectraModel(ElectraConfig(**SIZES, embedding_size=width))
    for module in model.modules():  # as trained: LayerNorms are no unit maps
        if isinstance(module, torch.nn.LayerNorm):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.normal_(module.bias)
    return model.eval()


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(5, VOCABULARY, (4, 9), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[1, 6:] = mask[3, 3:] = 0
    return torch.where(mask.bool(), ids, 1), mask


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta", "electra", "narrow electra"])
def test_at_full_width_the_student_is_the_teacher(kind: str, tmp_path: Path) -> None:
    model, (ids, mask) = teacher(kind), batch()
    width = model.embeddings.word_embeddings.weight.shape[1]
    student = factorised(model, width, kind)
    assert type(student) is ElectraModel
    student.save_pretrained(tmp_path)
    again = ElectraModel.from_pretrained(tmp_path).eval()
    with torch.inference_mode():
        wanted = model(input_ids=ids, attention_mask=mask).last_hidden_state
        found = again(input_ids=ids, attention_mask=mask).last_hidden_state
    real = mask.bool()
    assert torch.allclose(found[real], wanted[real], atol=1e-4)


@pytest.mark.parametrize("kind", ["bert", "roberta", "narrow electra"])
def test_narrow_tables_lead_near_the_teacher_s_embeddings(kind: str) -> None:
    """The share of the embedding layer's output that is met grows with the width."""
    model, (ids, mask) = teacher(kind), batch()
    # A table of low rank with a little noise, as trained tables are.
    table = model.embeddings.word_embeddings.weight
    with torch.no_grad():
        left, right = torch.randn(VOCABULARY, 6), torch.randn(6, table.shape[1])
        table.copy_(left @ right / 2 + 0.02 * torch.randn_like(table))
        model.embeddings.position_embeddings.weight.mul_(0.05)
        model.embeddings.token_type_embeddings.weight.mul_(0.05)

    def error(width: int) -> float:
        student: Any = factorised(model, width, kind)
        with torch.inference_mode():
            wanted, found = (
                m(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states[0]
                for m in (model, student)
            )
        real = mask.bool()
        return float((found[real] - wanted[real]).square().mean() / wanted[real].var())

    errors = {width: error(width) for width in (2, 4, 8)}
    assert errors[2] > errors[4] > errors[8]
    assert errors[8] < 0.05


def test_the_table_is_the_truncated_svd() -> None:
    """Up to a rotation, the narrow table holds the best approximation of its rank of the centred table."""
    model = teacher("bert")
    words = model.embeddings.word_embeddings.weight.detach().double()
    centred = words - words.mean(dim=1, keepdim=True)
    student: Any = factorised(model, NARROW, "bert")
    narrow = student.embeddings.word_embeddings.weight.detach().double()
    left, values, right = torch.linalg.svd(centred, full_matrices=False)
    wanted = (left[:, :NARROW] * values[:NARROW]) @ right[:NARROW]
    assert torch.allclose(narrow @ narrow.T, wanted @ wanted.T, atol=1e-4)


def test_positions_that_electra_does_not_have_are_refused() -> None:
    relative = teacher("bert")
    relative.config.position_embedding_type = "relative_key"
    with pytest.raises(InputError, match="positions of type 'relative_key'"):
        factorised(relative, 1, NARROW, "the teacher")


def test_other_architectures_and_widths_are_refused() -> None:
    other = DistilBertModel(DistilBertConfig(vocab_size=50, dim=16, n_layers=1, n_heads=2, hidden_dim=16))
    with pytest.raises(InputError, match="distilbert") as caught:
        factorised(other, 8, "x")
    assert "bert, roberta, xlm-roberta, electra" in str(caught.value.hint)
    with pytest.raises(InputError, match="32 wide"):
        factorised(teacher("bert"), WIDTH + 1, "x")
