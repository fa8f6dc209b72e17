"""Where students start from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_models import load_model, make_tiny_model, tiny_transformer

from sentcompress.errors import InputError, UsageError
from sentcompress.models.encoder import Dense
from sentcompress.models.families import WITH_LAYERS
from sentcompress.models.layout import load_encoder, save_encoder
from sentcompress.models.shape import Shape, Size, layer_count, size_of
from sentcompress.models.sources import resolve
from sentcompress.models.students import InitialStudent, keep_last_layers
from sentcompress.models.transformer_encoder import TransformerEncoder

IDS = torch.tensor([[2, 7, 8, 9, 3]])
MASK = torch.ones_like(IDS)


def test_the_last_layers_of_the_teacher(tmp_path: Path) -> None:
    source = resolve(str(make_tiny_model(tmp_path / "teacher", layers=4)))
    teacher = load_encoder(source)
    student = InitialStudent("teacher:2", source, Shape(2)).load()
    assert student.config.num_hidden_layers == 2
    assert (student.pooling, student.normalize) == (teacher.pooling, True)
    for theirs, ours in zip(teacher.transformer.encoder.layer[2:], student.transformer.encoder.layer, strict=True):
        for one, two in zip(theirs.parameters(), ours.parameters(), strict=True):
            assert torch.equal(one, two)
    # By hand: embeddings, then the last two layers.
    with torch.inference_mode():
        states = teacher.transformer.embeddings(input_ids=IDS)
        for layer in teacher.transformer.encoder.layer[2:]:
            output = layer(states)
            states = output[0] if isinstance(output, tuple) else output
        torch.testing.assert_close(student.states(IDS, MASK), states)


def test_it_is_the_same_after_saving_and_loading(tmp_path: Path) -> None:
    source = resolve(str(make_tiny_model(tmp_path / "teacher", layers=3)))
    student = InitialStudent("teacher:1", source, Shape(1)).load()
    save_encoder(student, tmp_path / "student")
    again = load_model(tmp_path / "student")
    with torch.inference_mode():
        assert torch.equal(student(IDS, MASK), again(IDS, MASK))


@pytest.mark.parametrize("kind", WITH_LAYERS)
def test_every_architecture_runs_with_fewer_layers(kind: str) -> None:
    model = tiny_transformer(kind)
    before = sum(p.numel() for p in model.parameters())
    keep_last_layers(model, 2, "it")
    assert sum(p.numel() for p in model.parameters()) < before
    with torch.inference_mode():
        assert model(input_ids=IDS, attention_mask=MASK).last_hidden_state.shape == (1, 5, 16)
    again = type(model)(model.config)
    again.load_state_dict(model.state_dict())


def test_an_architecture_without_layers_of_its_own() -> None:
    with pytest.raises(InputError, match="'albert'") as caught:
        keep_last_layers(tiny_transformer("albert"), 2, "it")
    assert "bert, roberta" in str(caught.value.hint)


def test_a_table_that_cannot_be_factorised_is_told_before_the_layers_are_looked_at(tmp_path: Path) -> None:
    """More architectures have layers that can be taken; a hint that named those would lead to the next refusal."""
    folder = make_tiny_model(tmp_path / "teacher")
    albert = tiny_transformer("albert", tokens=100)
    albert.save_pretrained(folder)
    student = InitialStudent("teacher:2", resolve(str(folder)), Shape(2, token_dim=8))
    with pytest.raises(InputError, match="cannot be factorised: its architecture is 'albert'") as caught:
        student.load()
    assert caught.value.hint == "`token_dim` works with bert, roberta, xlm-roberta, electra"


@pytest.mark.parametrize(
    ("shape", "refusal"),
    [
        (Shape(feed_forward=8, start="sentences"), "the feed-forward networks of .* cannot be narrowed"),
        (Shape(2, feed_forward=8), "the layers of .* cannot be cut"),
    ],
)
def test_parts_that_cannot_be_cut_are_told_before_texts_are_read(tmp_path: Path, shape: Shape, refusal: str) -> None:
    folder = make_tiny_model(tmp_path / "model")
    tiny_transformer("albert", tokens=100).save_pretrained(folder)

    def texts() -> Iterator[list[str]]:
        pytest.fail("the texts were read")
        yield []

    student = InitialStudent("it", resolve(str(folder)), replace(shape, vocabulary=60))
    with pytest.raises(InputError, match=f"{refusal}: its architecture is 'albert'"):
        student.load(texts(), ["a text"])


def test_more_layers_than_there_are() -> None:
    with pytest.raises(InputError, match="it has 4 layers") as caught:
        keep_last_layers(tiny_transformer("bert"), 5, "it")
    assert caught.value.hint == "choose 1 to 4"


@pytest.mark.parametrize("name", ["teacher:0", "teacher:-1", "teacher:two", "teacher:", "teacher:1.5"])
def test_a_number_of_layers_that_is_none(name: str) -> None:
    with pytest.raises(UsageError):
        layer_count(name)


def test_other_names_are_not_layers() -> None:
    assert layer_count("teacher:12") == 12
    assert layer_count("tinybert") is None


def given(folder: Path) -> InitialStudent:
    return InitialStudent(str(folder), resolve(str(folder)))


def test_a_plain_checkpoint_is_mean_pooled_and_its_vectors_are_normalised(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "plain", normalize=False)
    (folder / "modules.json").unlink()
    student = given(folder)
    encoder = student.load()
    assert (encoder.pooling, len(encoder.dense), encoder.normalize) == (("mean",), 0, True)
    assert student.slug == "plain"


def test_a_dense_layer_of_its_own_stays_part_of_the_pooled_vector(tmp_path: Path) -> None:
    plain = load_model(make_tiny_model(tmp_path / "plain"))
    dense = [Dense(32, 12, activation="Tanh")]
    save_encoder(
        TransformerEncoder(plain.transformer, plain.tokenizer, dense=dense, text=plain.text), tmp_path / "dense"
    )
    assert given(tmp_path / "dense").load().dimension == 12


def test_slugs_are_names_of_artifacts(tmp_path: Path) -> None:
    source = resolve(str(make_tiny_model(tmp_path / "My Model")))
    assert InitialStudent("teacher:3", source, Shape(3)).slug == "teacher-3"
    assert given(tmp_path / "My Model").slug == "my-model"


BERT = {"hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072, "vocab_size": 30522}


@pytest.mark.parametrize(
    ("config", "shape", "millions"),
    [
        (BERT, Shape(), 109.5),
        (BERT | {"num_hidden_layers": 6}, Shape(), 67.0),
        (BERT | {"hidden_size": 312, "num_hidden_layers": 4, "intermediate_size": 1200}, Shape(), 14.35),
        # SimTDE's base student.
        (BERT, Shape(3, token_dim=384), 34.1),
        (BERT, Shape(2), 38.4),
        ({"dim": 768, "n_layers": 6, "hidden_dim": 3072, "vocab_size": 30522}, Shape(), 66.4),
    ],
)
def test_the_size_of_a_model_by_its_configuration(config: dict[str, int], shape: Shape, millions: float) -> None:
    found = size_of(config, shape)
    assert found.parameters / 1e6 == pytest.approx(millions, rel=0.025)
    assert found.width == config.get("hidden_size", 768)


def test_a_size_that_is_not_known() -> None:
    assert size_of({"hidden_size": 768, "vocab_size": 10}, Shape()) == Size(0, 768)
    assert size_of({}, Shape()) == Size(0, 0)


@pytest.mark.parametrize(
    "shape",
    [
        Shape(),
        Shape(2),
        Shape(2, token_dim=8),
        Shape(2, vocabulary=60),
        Shape(1, feed_forward=8),
        Shape(1, 8, passes=3),
        Shape(vocabulary=60, feed_forward=8),
    ],
)
def test_the_size_of_a_student_is_that_of_what_is_loaded(tmp_path: Path, shape: Shape) -> None:
    """All matrices but the positions, which are few in a model of a usual size, and the segments."""
    folder = make_tiny_model(tmp_path / "teacher", layers=3)
    student = InitialStudent("teacher", resolve(str(folder)), shape)
    encoder = student.load(texts=[["a man plays a guitar"] * 3])
    counted = {name: p for name, p in encoder.transformer.named_parameters() if p.dim() == 2}
    own = sum(p.numel() for name, p in counted.items() if "position" not in name and "token_type" not in name)
    assert student.size.parameters == own


@pytest.mark.parametrize("shape", [Shape(2), Shape(2, token_dim=8), Shape(1, 8, passes=2), Shape(2, feed_forward=8)])
def test_layers_that_start_at_random_and_embeddings_that_do_not(tmp_path: Path, shape: Shape) -> None:
    source = resolve(str(make_tiny_model(tmp_path / "teacher", layers=3)))
    plain = InitialStudent("teacher", source, shape).load().transformer.state_dict()
    torch.manual_seed(7)
    encoder = InitialStudent("teacher", source, replace(shape, start="random")).load()
    found = encoder.transformer.state_dict()
    assert list(found) == list(plain)
    own = [
        name for name in found if name.startswith("embeddings.") or "embeddings_project" in name or "mapping" in name
    ]
    assert own
    assert all(torch.equal(found[name], plain[name]) for name in own)
    matrices = [name for name in found if name not in own and found[name].dim() == 2]
    assert matrices
    assert not any(torch.equal(found[name], plain[name]) for name in matrices)
    # BERT's initialiser: a normal distribution, here of standard deviation 0.2, biases of zero and norms of one.
    weights = torch.cat([found[name].flatten() for name in matrices])
    assert weights.std() == pytest.approx(0.2, rel=0.1)
    assert all(bool((found[name] == 0).all()) for name in found if name not in own and name.endswith("bias"))
    torch.manual_seed(7)
    again = InitialStudent("teacher", source, replace(shape, start="random")).load()
    assert all(torch.equal(found[name], tensor) for name, tensor in again.transformer.state_dict().items())
    assert InitialStudent("teacher:2", source, replace(shape, start="random")).slug.endswith("-random")


@pytest.mark.parametrize("kind", WITH_LAYERS)
def test_a_checkpoint_of_every_architecture_can_start_anew(tmp_path: Path, kind: str) -> None:
    folder = make_tiny_model(tmp_path / "model")
    tiny_transformer(kind, tokens=100).save_pretrained(folder)
    source = resolve(str(folder))
    before = load_encoder(source).transformer.state_dict()
    student = InitialStudent(str(folder), source, Shape(start="random"))
    torch.manual_seed(3)
    encoder = student.load()
    found = encoder.transformer.state_dict()
    assert not [name for name in found if found[name].dim() == 2 and torch.equal(found[name], before[name])]
    torch.manual_seed(4)
    other = student.load().transformer.state_dict()
    assert not [name for name in found if found[name].dim() == 2 and torch.equal(found[name], other[name])]
    save_encoder(encoder, tmp_path / "saved")
    again = load_model(tmp_path / "saved")
    with torch.inference_mode():
        assert torch.equal(encoder(IDS, MASK), again(IDS, MASK))


def test_a_dense_layer_starts_anew_with_its_checkpoint(tmp_path: Path) -> None:
    plain = load_model(make_tiny_model(tmp_path / "plain"))
    whole = plain.with_dense([Dense(32, 12, activation="Tanh")], normalize=True)
    save_encoder(whole, tmp_path / "dense")
    [layer] = replace(given(tmp_path / "dense"), shape=Shape(start="random")).load().dense_layers
    assert layer.activation_name == "Tanh"
    assert not torch.equal(layer.linear.weight, whole.dense_layers[0].linear.weight)
