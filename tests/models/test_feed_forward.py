"""Layers with fewer neurons in their feed-forward networks."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import load_model, make_sentences, make_tiny_model, tiny_transformer

from sentcompress.errors import InputError
from sentcompress.models.families import FAMILIES, WITH_LAYERS
from sentcompress.models.feed_forward import Activity, measure_activity, narrow_feed_forward
from sentcompress.models.layout import load_encoder, save_encoder
from sentcompress.models.shape import Shape
from sentcompress.models.sources import resolve
from sentcompress.models.students import InitialStudent

IDS = torch.tensor([[2, 7, 8, 9, 3]])
MASK = torch.ones_like(IDS)


def layers_of(model: torch.nn.Module, kind: str) -> torch.nn.ModuleList:
    layers = model.get_submodule(str(FAMILIES[kind].layers))
    assert isinstance(layers, torch.nn.ModuleList)
    return layers


def states(model: torch.nn.Module) -> torch.Tensor:
    with torch.inference_mode():
        found: torch.Tensor = model(input_ids=IDS, attention_mask=MASK).last_hidden_state
    return found


@pytest.mark.parametrize("kind", WITH_LAYERS)
def test_the_rest_of_the_network_is_as_it_was(kind: str) -> None:
    torch.manual_seed(1)
    model = tiny_transformer(kind)
    silenced, whole = copy.deepcopy(model), states(model)
    family = FAMILIES[kind]
    first, second = family.layer.feed_forward_in, family.layer.feed_forward_out
    # By hand: the neurons that read and write least are silenced in the wide network.
    for layer in layers_of(silenced, kind):
        reads, writes = layer.get_submodule(first), layer.get_submodule(second)
        weight = [float(reads.weight.detach()[n].norm() * writes.weight.detach()[:, n].norm()) for n in range(32)]  # type: ignore[index]
        lightest = sorted(range(32), key=lambda n: weight[n])[:20]
        writes.weight.data[:, lightest] = 0  # type: ignore[index, union-attr]
    narrow_feed_forward(model, layers_of(model, kind), 12, "it")
    torch.testing.assert_close(states(model), states(silenced))
    assert not torch.allclose(states(model), whole)
    assert getattr(model.config, family.neurons) == 12
    again = type(model)(model.config)
    again.load_state_dict(model.state_dict())
    assert torch.equal(states(again.eval()), states(model))


def test_all_neurons_are_the_same_network() -> None:
    model = tiny_transformer("bert")
    before = states(model)
    narrow_feed_forward(model, layers_of(model, "bert"), 32, "it")
    assert torch.equal(states(model), before)


def test_more_neurons_than_there_are_and_another_architecture() -> None:
    with pytest.raises(InputError, match="has 32 neurons in a layer"):
        narrow_feed_forward(tiny_transformer("bert"), layers_of(tiny_transformer("bert"), "bert"), 33, "it")
    with pytest.raises(InputError, match="'albert'") as caught:
        narrow_feed_forward(tiny_transformer("albert"), torch.nn.ModuleList(), 4, "it")
    assert "bert, roberta" in str(caught.value.hint)


def test_a_narrow_factorised_student_is_saved_and_read_back(tmp_path: Path) -> None:
    source = resolve(str(make_tiny_model(tmp_path / "teacher", layers=3)))
    width = load_encoder(source).config.intermediate_size
    student = InitialStudent("teacher:2", source, Shape(2, token_dim=4, feed_forward=5))
    assert student.slug == "teacher-2-e4-f5"
    encoder = student.load()
    assert encoder.config.intermediate_size == 5 < width
    save_encoder(encoder, tmp_path / "student")
    again = load_model(tmp_path / "student")
    with torch.inference_mode():
        assert torch.equal(encoder(IDS, MASK), again(IDS, MASK))


def test_neurons_that_stay_make_up_for_the_others(tmp_path: Path) -> None:
    """By least squares on the activations themselves, in place of their moments."""
    encoder = load_model(make_tiny_model(tmp_path / "teacher", layers=3))
    texts = make_sentences(80)
    layers = layers_of(encoder.transformer, "bert")
    rows = encoder.tokenize(texts)
    with torch.inference_mode():
        entering = [
            encoder.transformer(input_ids=torch.tensor([row]), output_hidden_states=True).hidden_states for row in rows
        ]
    wanted, found = [], []
    activity = measure_activity(encoder, layers, texts, "it")
    active = []
    for place, layer in enumerate(layers):
        after: list[torch.Tensor] = []
        hook = layer.get_submodule("output.dense").register_forward_pre_hook(
            lambda _, given, to=after: to.append(given[0])
        )  # type: ignore[misc]
        with torch.inference_mode():
            for states in entering:
                layer(states[place])
        hook.remove()
        active.append(torch.cat([one.reshape(-1, one.shape[-1]) for one in after]).double())
        torch.testing.assert_close(activity[place].mean, active[place].mean(0), atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(activity[place].covariance, active[place].T.cov(correction=0), atol=1e-5, rtol=1e-3)
        writes = layer.get_submodule("output.dense")
        wanted.append(active[place] @ writes.weight.detach().double().T + writes.bias.detach().double())  # type: ignore[union-attr, operator]
    narrow_feed_forward(encoder.transformer, layers, 40, "it", activity)
    for place, layer in enumerate(layers):
        reads, writes = layer.get_submodule("intermediate.dense"), layer.get_submodule("output.dense")
        assert reads.weight.shape[0] == writes.weight.shape[1] == 40  # type: ignore[union-attr, index]
        states = torch.cat([one[place][0] for one in entering])
        with torch.inference_mode():
            attended = torch.cat([layer.attention(one[place])[0][0] for one in entering])  # type: ignore[operator]
            narrow = layer.intermediate(attended).double()  # type: ignore[operator]
            found.append(narrow @ writes.weight.double().T + writes.bias.double())  # type: ignore[union-attr, operator]
        assert len(states) == len(found[place])
        design = torch.cat([narrow, torch.ones(len(narrow), 1)], dim=1)
        best = design @ torch.linalg.lstsq(design, wanted[place]).solution
        error, least = (found[place] - wanted[place]).square().sum(), (best - wanted[place]).square().sum()
        spread = (wanted[place] - wanted[place].mean(0)).square().sum()
        # The ridge keeps it a little above the least.
        assert least <= error < least + 0.02 * spread
        assert error < 0.5 * spread


def test_the_neuron_is_removed_that_the_others_replace_best() -> None:
    """Of all 32, by a least-squares fit on samples without each; two with the largest outputs are nearly the same."""
    torch.manual_seed(0)
    model = tiny_transformer("bert")
    layer = layers_of(model, "bert")[0]
    reads, writes = layer.get_submodule("intermediate.dense"), layer.get_submodule("output.dense")
    reads.bias.data = torch.arange(32.0)  # which neurons stay
    outputs = torch.randn(4000, 32, dtype=torch.float64) + 1
    outputs[:, 6] = 3 * outputs[:, 5] + 0.01 * outputs[:, 6]
    weight, bias = writes.weight.detach().double(), writes.bias.detach().double()
    wanted = outputs @ weight.T + bias  # type: ignore[operator]
    errors, fits = [], []
    for removed in range(32):
        others = outputs[:, [place for place in range(32) if place != removed]]
        design = torch.cat([others, torch.ones(4000, 1, dtype=torch.float64)], dim=1)
        fits.append(torch.linalg.lstsq(design, wanted).solution)
        errors.append(float((design @ fits[-1] - wanted).square().sum()))
    best = int(np.argmin(errors))
    assert best in (5, 6)
    narrow_feed_forward(model, [layer], 31, "it", [Activity(outputs.mean(0), outputs.T.cov(correction=0))])
    assert reads.bias.tolist() == [place for place in range(32) if place != best]
    found = torch.cat([writes.weight.T, writes.bias[None]]).double()  # type: ignore[operator, index, list-item]
    torch.testing.assert_close(found, fits[best], atol=2e-3, rtol=2e-2)
