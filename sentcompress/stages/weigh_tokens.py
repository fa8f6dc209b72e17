"""Down-weight frequent tokens and punctuation in mean pooling, without training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from sentcompress.commands.weigh_tokens import Params
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.errors import InputError
from sentcompress.models.catalog import find_model, request_on_sentences, save_made
from sentcompress.models.text_settings import TransformersTokenizer
from sentcompress.models.token_weights import sif_weights
from sentcompress.models.vocabulary import token_occurrences
from sentcompress.progress import LOGGED, Reporter
from sentcompress.store import Artifact, WorkDirectory

COMMAND = Params.command
# Number of tokens listed with the lowest weights.
NAMED = 12


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Write the model with token weights as an artifact of kind `students`.

    Raises:
        MissingArtifactError: if there are no sentences, or no student and no model was given.
        InputError: if the model cannot be loaded, already has token weights, does not use mean pooling, or its
            vocabulary has none of the tokens.
    """
    params.check()
    model = find_model(
        work, params.model, revision=params.revision, trust_remote_code=params.trust_remote_code, besides=COMMAND
    )
    sentences = work.get("sentences", params.sentences)
    request = request_on_sentences(params, f"{model.slug}-weighed", model, sentences)
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        encoder = model.load()
        if encoder.pooling != ("mean",) or encoder.token_weights is not None:
            how = "already has token weights" if encoder.token_weights is not None else "does not use mean pooling"
            raise InputError(f"{model.label} {how}", "choose a model with plain mean pooling with `model`")
        table = SentenceTable(sentences.path)
        with reporter.track("counting tokens", total=len(table)) as task:
            # A prompt would be counted with every text.
            with_prompt, encoder.text = encoder.text, replace(encoder.text, prompt="")
            counts = token_occurrences(encoder, table.stream(), task)
            encoder.text = with_prompt
        if not np.delete(counts, encoder.tokenizer.all_special_ids).any():
            raise InputError(
                f"{model.label} knows none of the tokens of {sentences.reference}",
                "choose another table with `sentences`",
            )
        weights = sif_weights(encoder.tokenizer, counts, params.smoothing, params.punctuation)
        encoder.token_weights = nn.Parameter(weights, requires_grad=False)
        facts = save_made(encoder, model, work, build, trust_remote_code=params.trust_remote_code)
        return build.finish(
            {
                "method": COMMAND,
                "model": model.label,
                **facts,
                "sentences": sentences.reference,
                "mean_weight": float((counts * weights.numpy()).sum() / counts.sum()),
                "lightest": _lightest(encoder.tokenizer, counts, weights),
            }
        )


def _lightest(tokenizer: TransformersTokenizer, counts: npt.NDArray[np.int64], weights: Tensor) -> list[str]:
    """The tokens of the corpus with the lowest weights; ties are ordered by descending frequency."""
    seen = np.flatnonzero(counts)
    order = np.lexsort((-counts[seen], weights.numpy()[seen]))[:NAMED]
    return tokenizer.convert_ids_to_tokens(seen[order].tolist())
