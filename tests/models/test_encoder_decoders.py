"""Sentence-T5: the encoder of an encoder-decoder as a sentence encoder."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scipy.stats import spearmanr
from tiny_models import load_model, make_sentences, make_t5

from sentcompress.encoding.engine import EncodeEngine
from sentcompress.errors import InputError
from sentcompress.evaluation.metrics import SPEARMAN
from sentcompress.evaluation.score import read_scores, value_of
from sentcompress.models.averaging import average
from sentcompress.models.families import ENCODERS
from sentcompress.models.layout import save_encoder
from sentcompress.models.shape import RANDOM, Shape
from sentcompress.models.sources import resolve
from sentcompress.models.students import InitialStudent
from sentcompress.stages import augment, eval_sts, teacher_embed
from sentcompress.store import WorkDirectory

# Also longer than its 16 tokens, with unknown characters, and empty.
TEXTS = [*make_sentences(20), "the cat " * 20, "\u4f60\u597d", ""]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_t5(tmp_path_factory.mktemp("t5"))


def theirs(folder: Path) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    return np.asarray(model.encode(TEXTS, show_progress_bar=False))


def ours(folder: Path) -> np.ndarray:
    return EncodeEngine(load_model(folder), device="cpu", dtype="float32").encode(TEXTS)


def test_the_vectors_are_those_of_sentence_transformers(folder: Path) -> None:
    names = load_file(folder / "model.safetensors")
    assert not any(name.startswith("decoder") for name in names)
    vectors = ours(folder)
    np.testing.assert_allclose(vectors, theirs(folder), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors.shape == (len(TEXTS), 24)
    # The vectors of different sentences differ, so that the comparison above says something.
    assert (vectors[:20] @ vectors[:20].T)[np.triu_indices(20, 1)].max() < 0.999


@pytest.mark.parametrize("kind", ENCODERS)
def test_a_checkpoint_with_a_decoder_is_read_without_it(kind: str, tmp_path: Path) -> None:
    folder = make_t5(tmp_path, kind, decoder=True)
    assert any(name.startswith("decoder") for name in load_file(folder / "model.safetensors"))
    encoder = load_model(folder)
    assert encoder.architecture == kind
    assert not any("decoder" in name for name, _ in encoder.named_parameters())
    np.testing.assert_allclose(ours(folder), theirs(folder), atol=1e-5)


def test_its_states_are_those_of_the_embedding_and_of_every_layer(folder: Path) -> None:
    encoder = load_model(folder)
    ids = torch.tensor(encoder.tokenize(["the cat runs"]))
    with torch.no_grad():
        states = encoder.hidden_states(ids, torch.ones_like(ids), every_layer=True)
        assert len(states) == encoder.depth + 1 == 3
        torch.testing.assert_close(encoder.token_embeddings(ids), states[0])
        torch.testing.assert_close(states[-1], encoder.states(ids, torch.ones_like(ids)))


def test_it_is_written_as_it_was_read(folder: Path, tmp_path: Path) -> None:
    save_encoder(load_model(folder), tmp_path)
    np.testing.assert_allclose(ours(tmp_path), ours(folder), atol=1e-6)
    np.testing.assert_allclose(theirs(tmp_path), ours(folder), atol=1e-5)


def test_it_is_scored_and_embeds_as_a_teacher(folder: Path, tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS[:20]) + "\n")
    augment.run(augment.Params(inputs=(str(tmp_path / "texts.txt"),), wordnet=0, back_translate=0), work)
    vectors = teacher_embed.run(teacher_embed.Params(teacher=str(folder), dtype="float32", device="cpu"), work)
    np.testing.assert_allclose(np.load(vectors.path / "vectors-00000.npy"), theirs(folder)[:20], atol=1e-5)
    (tmp_path / "sts.tsv").write_text("".join(f"{n % 5}\t{TEXTS[n]}\t{TEXTS[n + 1]}\n" for n in range(19)))
    params = eval_sts.Params(sts=(str(tmp_path / "sts.tsv"),), model=str(folder), device="cpu", bootstrap=0)
    cosines = (theirs(folder)[:19] * theirs(folder)[1:20]).sum(axis=1)
    expected = 100 * spearmanr(cosines, [n % 5 for n in range(19)]).statistic
    assert value_of(read_scores(eval_sts.run(params, work).facts), SPEARMAN) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (Shape(1), "the layers of .* cannot be cut: its architecture is 't5'"),
        (Shape(1, token_dim=8), "the token table of .* cannot be factorised: its architecture is 't5'"),
        (Shape(vocabulary=20), "the vocabulary of .* cannot be trimmed"),
        (Shape(1, feed_forward=8), "the layers of .* cannot be cut: its architecture is 't5'"),
    ],
)
def test_a_student_cannot_be_cut_from_it(folder: Path, shape: Shape, message: str) -> None:
    student = InitialStudent("teacher:1", resolve(str(folder)), shape)
    with pytest.raises(InputError, match=message):
        student.load([TEXTS])


def test_it_can_be_a_student_that_starts_anew(folder: Path) -> None:
    torch.manual_seed(0)
    student = InitialStudent("t5", resolve(str(folder)), Shape(start=RANDOM)).load()
    ids = torch.tensor(student.tokenize(["the cat runs"]))
    known = load_model(folder)
    with torch.no_grad():
        fresh, old = (one(ids, torch.ones_like(ids)) for one in (student, known))
    assert not torch.allclose(fresh, old, atol=0.1)
    table = student.transformer.get_input_embeddings().weight
    assert table is student.transformer.encoder.embed_tokens.weight


def test_an_average_counts_its_token_table_once(folder: Path) -> None:
    """Two modules share the table."""
    one, other = load_model(folder), load_model(folder)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(torch.randn_like(parameter))
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    expected = [0.75 * mine.detach() + 0.25 * theirs.detach() for mine, theirs in pairs]
    average([one, other], ["one", "other"], [0.75, 0.25])
    for found, wanted in zip(one.parameters(), expected, strict=True):
        torch.testing.assert_close(found.detach(), wanted)


def test_weights_of_another_architecture_are_refused(folder: Path, tiny_model: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_model, tmp_path / "model")
    shutil.copy(folder / "config.json", tmp_path / "model")
    with pytest.raises(InputError, match=r"lack \d+ tensors of its architecture"):
        load_model(tmp_path / "model")
