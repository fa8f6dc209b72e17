"""Whitening as part of a model: the linear map goes into the last Dense layer, or into one of its own."""

from __future__ import annotations

import torch
from torch import Tensor

from sentcompress.models.encoder import Dense, Encoder
from sentcompress.models.principal_axes import PrincipalAxes


def whitened(encoder: Encoder, axes: PrincipalAxes) -> Encoder:
    """A model whose vectors are those of `encoder` before its normalisation, whitened and then normalised.

    Where the last Dense layer is linear, both maps become one: W (A x + a - mean) = (W A) x + W (a - mean). After an
    activation (SimCSE's Tanh), or where there is no Dense layer, the whitening is a layer of its own. The transformer
    is shared with `encoder`.

    Raises:
        InputError: if the vectors span fewer dimensions than there are axes.
    """
    weight = torch.from_numpy(axes.whitening())
    shift = -torch.from_numpy(axes.mean)
    layers = encoder.dense_layers
    if layers and layers[-1].activation_name == "Identity":
        linear = layers.pop().linear
        own = torch.zeros(linear.out_features) if linear.bias is None else linear.bias.detach()
        bias, weight = weight @ (own.double() + shift), weight @ linear.weight.detach().double()
    else:
        bias = weight @ shift
    return encoder.with_dense([*layers, _dense(weight, bias)], normalize=True).eval()


def _dense(weight: Tensor, bias: Tensor) -> Dense:
    layer = Dense(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        layer.linear.weight.copy_(weight)
        layer.linear.bias.copy_(bias)
    return layer
