"""What a method is handed, beside the same computed of each sentence by itself, without padding and without a batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from distilling import make_work, supply_to
from number_words import tokenize
from tiny_models import load_model, make_sentences, make_tiny_model, tiny_transformer
from torch import Tensor

from sentcompress.models.encoder import Dense, Encoder
from sentcompress.models.text_settings import TextSettings
from sentcompress.models.transformer_encoder import TransformerEncoder
from sentcompress.models.vocabulary import token_occurrences, trim_vocabulary
from sentcompress.progress import SILENT
from sentcompress.stages import teacher_embed
from sentcompress.store import Request, WorkDirectory
from sentcompress.training.batches import Batch, collate_triplets
from sentcompress.training.token_cache import build_token_cache
from sentcompress.training.views import (
    DistillationViews,
    TeacherInLoop,
    TripletViews,
    concatenated,
    matched_layers,
    spread_layers,
)

# Of four lengths, none of them in order: padding and sorting would both be seen.
SENTENCES = [[7, 12, 9], [4, 21, 5, 28, 11, 6, 17], [13, 8], [25, 5, 19, 23, 10]]
# Position numbers of RoBERTa begin after the one of its padding.
FIRST_POSITION = {"bert": 0, "roberta": 2}
PAD = {"bert": 0, "roberta": 1}


def make_encoder(
    kind: str = "bert", seed: int = 0, pooling: Sequence[str] = ("mean",), dense: Sequence[Dense] = ()
) -> Encoder:
    """Four layers, 16 wide, in float64; random weights that are large enough for every layer to matter."""
    torch.manual_seed(seed)
    transformer = tiny_transformer(kind)
    for parameter in transformer.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    text = TextSettings(max_length=40)
    return TransformerEncoder(transformer, None, pooling=pooling, dense=dense, text=text).double().eval()


def padded(sentences: Sequence[Sequence[int]], pad: int = 0, **fields: Tensor) -> Batch:
    longest = max(map(len, sentences)) + 2
    ids = torch.tensor([[*row, *[pad] * (longest - len(row))] for row in sentences])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in sentences])
    return Batch.of(ids, mask, fields, len(sentences))


@torch.no_grad()
def states_alone(encoder: Encoder, sentence: Sequence[int]) -> list[Tensor]:
    """[T, H] of the embedding layer and of every layer, of a sentence that is all there is."""
    output = encoder.transformer(input_ids=torch.tensor([list(sentence)]), output_hidden_states=True)
    return [state[0] for state in output.hidden_states]


@torch.no_grad()
def embedding_layer(encoder: Encoder, sentence: Sequence[int]) -> Tensor:
    """[T, H] of BERT or RoBERTa, from its tables."""
    tables, first = encoder.transformer.embeddings, FIRST_POSITION[encoder.config.model_type]
    words, places = tables.word_embeddings.weight, tables.position_embeddings.weight
    total = words[list(sentence)] + places[first : first + len(sentence)] + tables.token_type_embeddings.weight[0]
    centred = total - total.mean(dim=1, keepdim=True)
    spread = (centred.square().mean(dim=1, keepdim=True) + encoder.config.layer_norm_eps).sqrt()
    return centred / spread * tables.LayerNorm.weight + tables.LayerNorm.bias


def close(found: Tensor, wanted: Sequence[Tensor] | Tensor) -> None:
    expected = wanted if isinstance(wanted, Tensor) else torch.stack(list(wanted))
    torch.testing.assert_close(found.detach(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("layer", [0, 1, 3, 4, -1, -2])
def test_inputs_are_the_means_of_the_layer_that_was_asked_for(layer: int) -> None:
    encoder = make_encoder()
    found = DistillationViews(encoder, frozenset({"teacher", "inputs"}), input_layer=layer)(padded(SENTENCES))
    close(found["inputs"], [states_alone(encoder, row)[layer].mean(dim=0) for row in SENTENCES])
    close(found["student"], [states_alone(encoder, row)[-1].mean(dim=0) for row in SENTENCES])
    assert found["inputs"].requires_grad  # the embedding table learns from it


def test_inputs_of_layer_0_come_from_the_tables() -> None:
    encoder = make_encoder()
    found = DistillationViews(encoder, frozenset({"inputs"}))(padded(SENTENCES))
    close(found["inputs"], [embedding_layer(encoder, row).mean(dim=0) for row in SENTENCES])


def test_fields_of_the_rows_go_with_the_student_s_vectors() -> None:
    encoder, teacher, domains = make_encoder(), torch.randn(4, 7), torch.tensor([0, 2, 1, 0])
    found = DistillationViews(encoder, frozenset({"teacher", "domains"}))(
        padded(SENTENCES, teacher=teacher, domains=domains)
    )
    assert sorted(found) == ["domains", "student", "teacher"]
    close(found["student"], [states_alone(encoder, row)[-1].mean(dim=0) for row in SENTENCES])
    assert torch.equal(found["teacher"], teacher)
    assert torch.equal(found["domains"], domains)


def test_matched_layers_are_pooled_as_the_student_is() -> None:
    """The first token and the mean, one after the other; a Dense layer after the pooling plays no part."""
    torch.manual_seed(1)
    encoder = make_encoder(pooling=("cls", "mean"), dense=[Dense(32, 6)])
    needs = frozenset({"teacher", "teacher-layers"})
    found = DistillationViews(encoder, needs, layers=(1, 4))(padded(SENTENCES, teacher_layers=torch.randn(4, 2, 9)))
    assert found["student_layers"].shape == (4, 2, 32)
    for place, layer in enumerate((1, 4)):
        states = [states_alone(encoder, row)[layer] for row in SENTENCES]
        close(found["student_layers"][:, place], [torch.cat([one[0], one.mean(dim=0)]) for one in states])
    assert found["student"].shape == (4, 6)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_tokens_are_the_real_ones_of_the_student_and_of_the_teacher(kind: str) -> None:
    student, teacher = make_encoder(kind), make_encoder(kind, seed=1)
    views = DistillationViews(student, frozenset({"teacher", "tokens"}), teacher=TeacherInLoop(teacher))
    found = views(padded(SENTENCES, PAD[kind]))
    close(found["student_tokens"], torch.cat([embedding_layer(student, row) for row in SENTENCES]))
    close(found["teacher_tokens"], torch.cat([embedding_layer(teacher, row) for row in SENTENCES]))
    assert found["student_tokens"].requires_grad
    assert not found["teacher_tokens"].requires_grad


def test_tokens_of_a_narrow_table_are_those_after_its_projection() -> None:
    student, teacher = make_encoder("electra"), make_encoder("electra", seed=1)
    views = DistillationViews(student, frozenset({"tokens"}), teacher=TeacherInLoop(teacher))
    found = views(padded(SENTENCES))
    for name, encoder in (("student_tokens", student), ("teacher_tokens", teacher)):
        assert encoder.config.embedding_size == 8
        close(found[name], torch.cat([states_alone(encoder, row)[0] for row in SENTENCES]))


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_states_are_those_of_the_layers_that_are_matched(kind: str) -> None:
    student, teacher = make_encoder(kind), make_encoder(kind, seed=1)
    views = DistillationViews(
        student,
        frozenset({"teacher", "states"}),
        layers=(0, 2, 4),
        teacher_layers=(0, 1, 3),
        teacher=TeacherInLoop(teacher),
    )
    found = views(padded(SENTENCES, PAD[kind]))
    for name, encoder, layers in (("student_states", student, (0, 2, 4)), ("teacher_states", teacher, (0, 1, 3))):
        assert found[name].shape == (sum(map(len, SENTENCES)), 3, 16)
        for place, layer in enumerate(layers):
            close(found[name][:, place], torch.cat([states_alone(encoder, row)[layer] for row in SENTENCES]))
    assert not found["teacher_states"].requires_grad


def test_last_states_are_those_that_are_pooled_whatever_the_depth() -> None:
    student, teacher = make_encoder("electra"), make_encoder("bert", seed=1)
    views = DistillationViews(student, frozenset({"teacher", "last-states"}), teacher=TeacherInLoop(teacher))
    found = views(padded(SENTENCES))
    close(found["student_last"], torch.cat([states_alone(student, row)[-1] for row in SENTENCES]))
    close(found["teacher_last"], torch.cat([states_alone(teacher, row)[-1] for row in SENTENCES]))
    assert found["student_last"].requires_grad
    assert not found["teacher_last"].requires_grad
    assert found.keys() == {"student", "student_last", "teacher_last"}


def test_the_teacher_is_given_its_own_numbers_of_the_tokens() -> None:
    """RoBERTa counts positions by what is padding: that has another number too."""
    student, teacher = make_encoder("bert"), make_encoder("roberta", seed=1)
    theirs = torch.tensor([1, 0, *torch.arange(29, 1, -1).tolist()])  # padding is 0 here and 1 there
    beside = TeacherInLoop(teacher, theirs)
    views = DistillationViews(
        student, frozenset({"tokens", "states"}), layers=(4,), teacher_layers=(2,), teacher=beside
    )
    found, rows = views(padded(SENTENCES)), [theirs[row].tolist() for row in SENTENCES]
    assert rows != SENTENCES
    close(found["student_tokens"], torch.cat([embedding_layer(student, row) for row in SENTENCES]))
    close(found["teacher_tokens"], torch.cat([embedding_layer(teacher, row) for row in rows]))
    close(found["teacher_states"][:, 0], torch.cat([states_alone(teacher, row)[2] for row in rows]))


def test_a_teacher_beside_the_student_is_never_trained() -> None:
    teacher = make_encoder(seed=1).train()
    beside = TeacherInLoop(teacher, torch.arange(30)).to(torch.device("cpu"))
    assert not any(module.training for module in beside.encoder.modules())
    assert not any(parameter.requires_grad for parameter in beside.encoder.parameters())


def test_layers_are_matched_from_the_last_one_down() -> None:
    assert matched_layers(6, 6) == (1, 2, 3, 4, 5, 6)
    assert matched_layers(6, 3) == (2, 4, 6)
    assert matched_layers(12, 6) == (2, 4, 6, 8, 10, 12)
    assert matched_layers(4, 1) == (4,)
    assert matched_layers(4, 3) == (1, 3, 4)


def test_layers_are_spread_over_the_teacher_s_depth() -> None:
    assert spread_layers(6, 6) == (0, 1, 2, 3, 4, 5, 6)
    assert spread_layers(6, 12) == (0, 2, 4, 6, 8, 10, 12)
    assert spread_layers(3, 12) == (0, 4, 8, 12)
    assert spread_layers(2, 1) == (0, 0, 1)


def test_views_of_several_batches_are_joined_row_by_row() -> None:
    encoder = make_encoder()
    views = DistillationViews(encoder, frozenset({"tokens"}), teacher=TeacherInLoop(make_encoder(seed=1)))
    joined = concatenated([views(padded(SENTENCES[:3])), views(padded(SENTENCES[3:]))])
    whole = views(padded(SENTENCES))
    assert joined.keys() == whole.keys() == {"student", "student_tokens", "teacher_tokens"}
    for name, rows in whole.items():
        close(joined[name], rows.detach())


class Numbers:
    """A sentence table of token numbers, of lengths that go up and down."""

    file_rows = (24,)
    rows = tuple([5 + (7 * row + place) % 24 for place in range(2 + (5 * row) % 9)] for row in range(24))

    def texts(self, file: int) -> list[str]:
        return [" ".join(map(str, row)) for row in self.rows]


def batch_of_triplets(folder: Path, triplets: np.ndarray, kept: Batch | None = None) -> Batch:
    with WorkDirectory(folder).build(Request("students", "one", "finetune", {})) as build:
        cache = build_token_cache(build, "tokens", Numbers(), tokenize, SILENT)
        return collate_triplets(triplets, cache, 0, kept)


@pytest.mark.parametrize("hard_negatives", [1, 3])
@pytest.mark.parametrize("layer", [0, -2])
def test_every_text_of_a_triplet_is_in_its_place(tmp_path: Path, hard_negatives: int, layer: int) -> None:
    encoder = make_encoder()
    width = 2 + hard_negatives
    triplets = np.random.default_rng(0).permutation(24)[: 4 * width].reshape(4, width)
    teacher = torch.randn(4, 16)
    batch = batch_of_triplets(tmp_path, triplets, padded(SENTENCES, teacher=teacher))
    found = TripletViews(encoder, frozenset({"triplets", "inputs"}), input_layer=layer)(batch)

    def alone(rows: np.ndarray, of: int) -> list[Tensor]:
        return [states_alone(encoder, Numbers.rows[row])[of].mean(dim=0) for row in rows]

    # All hard negatives of the first anchor, then all of the second, ...
    texts = {"anchor": triplets[:, 0], "positive": triplets[:, 1], "negatives": triplets[:, 2:].reshape(-1)}
    inputs = {"anchor": "inputs", "positive": "positive_inputs", "negatives": "negative_inputs"}
    for name, rows in texts.items():
        close(found[name], alone(rows, -1))
        close(found[inputs[name]], alone(rows, layer))
    close(found["student"], [states_alone(encoder, row)[-1].mean(dim=0) for row in SENTENCES])
    assert torch.equal(found["teacher"], teacher)


def test_triplets_alone_have_no_more_views_than_they_need(tmp_path: Path) -> None:
    encoder, triplets = make_encoder(), np.arange(9).reshape(3, 3)
    found = TripletViews(encoder, frozenset({"triplets"}))(batch_of_triplets(tmp_path, triplets))
    assert sorted(found) == ["anchor", "negatives", "positive"]
    for name, column in (("anchor", 0), ("positive", 1), ("negatives", 2)):
        close(found[name], [states_alone(encoder, Numbers.rows[row])[-1].mean(dim=0) for row in triplets[:, column]])


def test_every_layer_of_the_student_is_matched_with_the_teachers_last(tmp_path: Path) -> None:
    texts = make_sentences(10)
    folder = make_tiny_model(tmp_path / "teacher", layers=5)
    work = make_work(tmp_path / "work", folder, texts)
    teacher = load_model(folder).eval()
    student = load_model(make_tiny_model(tmp_path / "student", layers=2, seed=3)).eval()
    supplied = supply_to(student, work.get("teacher-vectors"), "teacher", "last-layers")
    assert (supplied.shapes.layers, supplied.shapes.teacher_hidden) == (2, 32)
    rows = student.tokenize(texts[:3])
    found = supplied.views(padded(rows))
    for place in range(2):
        for name, encoder, layer in (("student_states", student, 1 + place), ("teacher_states", teacher, 4 + place)):
            wanted = torch.cat([states_alone(encoder, row)[layer] for row in rows])
            torch.testing.assert_close(found[name][:, place], wanted, atol=1e-5, rtol=1e-4)


def test_what_is_supplied_belongs_to_the_sentences(tmp_path: Path) -> None:
    """Layers that are cached, a teacher with other numbers for the same tokens: by the texts it is all the same."""
    texts = make_sentences(30)
    folder = make_tiny_model(tmp_path / "teacher", layers=4)
    work = make_work(tmp_path / "work", folder, texts)
    vectors = teacher_embed.run(
        teacher_embed.Params(teacher=str(folder), dtype="float32", layers=(1, 3), name="two"), work
    )
    teacher = load_model(folder).eval()
    student = load_model(make_tiny_model(tmp_path / "student", layers=4, seed=3)).eval()
    trim_vocabulary(student, 50, token_occurrences(student, [texts]), "student")
    supplied = supply_to(student, vectors, "teacher", "teacher-layers", "tokens")
    assert (supplied.shapes.layers, supplied.shapes.teacher_hidden) == (2, 32)
    rows = np.array([17, 3, 22])
    chosen = [texts[row] for row in rows]
    own = student.tokenize(chosen)
    batch = padded(own, 0, **{name: field(rows) for name, field in supplied.fields.items()})
    found = supplied.views(batch)
    # Words that the student has lost are unknown to it, and so to the teacher beside it.
    known = student.tokenizer.get_vocab()
    theirs = [
        teacher.tokenize([" ".join(word if word in known else "[UNK]" for word in text.split())])[0] for text in chosen
    ]
    assert theirs != own
    wanted = torch.cat([embedding_layer(teacher, row) for row in theirs])
    torch.testing.assert_close(found["teacher_tokens"], wanted)
    assert supplied.views.layers == (2, 4)
    for place, (layer, of_teacher) in enumerate(zip((2, 4), (1, 3), strict=True)):
        mine = torch.stack([states_alone(student, row)[layer].mean(dim=0) for row in own])
        torch.testing.assert_close(found["student_layers"][:, place].detach(), mine)
        rest = torch.stack([states_alone(teacher, row)[of_teacher].mean(dim=0) for row in teacher.tokenize(chosen)])
        torch.testing.assert_close(found["teacher_layers"][:, place], rest, rtol=1e-4, atol=1e-4)
