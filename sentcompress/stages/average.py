"""Average the weights of several models: recovers most of what a later training lost, and keeps most of what it gained.

Negative shares extrapolate: 1.5 of a fine-tuned model and -0.5 of the model before fine-tuning apply 1.5 times the
change made by fine-tuning (task arithmetic, Ilharco et al. 2023, https://arxiv.org/abs/2212.04089).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sentcompress.commands.average import Params
from sentcompress.models.averaging import average
from sentcompress.models.catalog import NamedModel, find_model, save_made, typed_name
from sentcompress.models.encoder import Encoder
from sentcompress.numeric import at_least
from sentcompress.progress import LOGGED, Reporter
from sentcompress.store import METHOD_OF, Artifact, Request, WorkDirectory

COMMAND = Params.command
# Below this cosine of the weights, models hardly share an initialisation: 0.9999 after a long second training, 0.98
# for two methods from the same layers, 0.08 for different initialisations.
APART = 0.9


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Write the averaged model as an artifact of kind `students`.

    Raises:
        InputError: if a model cannot be found or loaded, or the models differ in more than their weights.
        SentcompressError: if the average contains NaN or infinity; nothing is written in that case.
    """
    params.check()
    models = [find_model(work, name, trust_remote_code=params.trust_remote_code) for name in params.inputs]
    with work.build(_request(params, models), force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        encoders = _loaded(models)
        cosine = average(encoders, [model.label for model in models], params.shares())
        if any(encoder.text.prompts != encoders[0].text.prompts for encoder in encoders):
            encoders[0].text = encoders[0].text.trained()
        facts = save_made(encoders[0], models[0], work, build, trust_remote_code=params.trust_remote_code)
        if not at_least(cosine, APART):
            reporter.warn(
                f"the weights of these models have a cosine of only {cosine:.2f}: averaging models that were not "
                "trained from the same initialisation is rarely useful"
            )
        return build.finish(
            {
                "method": COMMAND,
                METHOD_OF: models[0].reference,
                "models": [model.label for model in models],
                "shares": params.shares(),
                **facts,
                "weights_cosine": cosine,
            }
        )


def _loaded(models: Sequence[NamedModel]) -> list[Encoder]:
    """The encoder of each model; copies are loaded once, such as a student whose training kept its start."""
    keys = [(model.source.digest, model.pooling, model.max_length, model.normalize) for model in models]
    encoders = {key: model.load() for key, model in dict(zip(keys, models, strict=True)).items()}
    return [encoders[key] for key in keys]


def _request(params: Params, models: list[NamedModel]) -> Request:
    resolved: dict[str, Any] = {"models": [model.reference for model in models], "shares": params.shares()}
    name = params.name or f"{models[0].slug}-average"
    typed = tuple(map(typed_name, params.inputs, models))
    params = replace(params, inputs=typed)
    return Request.of(params, name, {model.reference: model.digest for model in models}, resolved)
