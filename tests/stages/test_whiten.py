"""whiten against the formula in NumPy, on every kind of last layer, and what it says about what it cannot do."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from distilling import add_sentences, make_work
from tiny_models import break_weights, load_model

from sentcompress.cli.main import _run
from sentcompress.errors import InputError, MissingArtifactError, SentcompressError, UsageError
from sentcompress.models import layout
from sentcompress.models.encoder import Dense, Encoder
from sentcompress.models.layout import save_encoder
from sentcompress.models.sources import resolve
from sentcompress.models.transformer_encoder import TransformerEncoder
from sentcompress.stages import export, status
from sentcompress.stages import whiten as stage
from sentcompress.stages.whiten import Params, run
from sentcompress.store import Artifact, WorkDirectory, ancestors

Floats = npt.NDArray[np.float64]


def embedded(encoder: Encoder, texts: Sequence[str], *, final: bool) -> Floats:
    """The deployed vectors, or those before normalisation."""
    tokens = [torch.tensor(ids) for ids in encoder.tokenize(texts)]
    ids = torch.nn.utils.rnn.pad_sequence(tokens, batch_first=True)
    with torch.inference_mode():
        return (encoder if final else encoder.embed)(ids, (ids > 0).long()).double().numpy()  # type: ignore[no-any-return]


def formula(vectors: Floats, dim: int, wanted: Floats) -> Floats:
    """Su et al.: (x - mean) W with W = U diag(s^-1/2) from the SVD of the covariance; then length one."""
    u, s, _ = np.linalg.svd(np.cov(vectors, rowvar=False))
    short = (wanted - vectors.mean(axis=0)) @ (u[:, :dim] / np.sqrt(s[:dim]))
    return np.asarray(short / np.linalg.norm(short, axis=1, keepdims=True))


def cosines(vectors: Floats) -> Floats:
    """All pairs; the signs of the axes are free, cosines are not."""
    return np.asarray(vectors @ vectors.T)


def with_dense(model: Path, folder: Path, dense: Sequence[tuple[int, str, bool]]) -> Path:
    """The model with Dense layers of these widths, activations and biases."""
    encoder = load_model(model)
    torch.manual_seed(1)
    width, layers = encoder.dimension, []
    for out, activation, bias in dense:
        layers.append(Dense(width, out, activation=activation, bias=bias))
        width = out
    changed = TransformerEncoder(
        encoder.transformer, encoder.tokenizer, dense=layers, normalize=True, text=encoder.text
    )
    save_encoder(changed.eval(), folder)
    return folder


@pytest.fixture
def work(tmp_path: Path, sentences: list[str]) -> WorkDirectory:
    work = WorkDirectory(tmp_path / "work")
    add_sentences(work, [sentences[:120], sentences[120:]])
    return work


def whiten(work: WorkDirectory, model: Path | str, **params: Any) -> tuple[Artifact, Encoder]:
    artifact = run(Params(model=str(model), **params), work)
    return artifact, load_model(artifact.path / "model")


@pytest.mark.parametrize(
    ("dense", "layers"),
    [
        ([], [("Identity", 32, 8)]),
        ([(24, "Identity", True)], [("Identity", 32, 8)]),
        ([(24, "Identity", False)], [("Identity", 32, 8)]),
        ([(24, "Tanh", True)], [("Tanh", 32, 24), ("Identity", 24, 8)]),
        ([(24, "Tanh", True), (20, "Identity", True)], [("Tanh", 32, 24), ("Identity", 24, 8)]),
    ],
    ids=["none", "linear", "no bias", "tanh", "tanh, linear"],
)
def test_the_model_gives_the_whitened_vectors(
    work: WorkDirectory,
    tiny_model: Path,
    sentences: list[str],
    tmp_path: Path,
    dense: list[tuple[int, str, bool]],
    layers: list[tuple[str, int, int]],
) -> None:
    model = with_dense(tiny_model, tmp_path / "model", dense)
    artifact, encoder = whiten(work, model, dim=8)
    raw = embedded(load_model(model), sentences, final=False)
    assert not np.allclose(np.linalg.norm(raw, axis=1), 1, atol=0.1)  # not those after the normalisation
    found = embedded(encoder, sentences, final=True)
    np.testing.assert_allclose(cosines(found), cosines(formula(raw, 8, raw)), atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    shapes = [(d.activation_name, d.linear.in_features, d.linear.out_features) for d in encoder.dense]  # type: ignore[union-attr]
    assert shapes == layers
    variances = np.linalg.eigvalsh(np.cov(raw, rowvar=False))[::-1]
    assert artifact.facts["explained_variance"] == pytest.approx(variances[:8].sum() / variances.sum(), rel=1e-4)
    assert artifact.facts["check_min_cosine"] > 0.9999
    assert (artifact.facts["dimension"], artifact.facts["method"]) == (8, "whiten")
    assert artifact.name == "model-whiten-8"


def test_before_the_normalisation_the_covariance_is_the_identity(
    work: WorkDirectory, tiny_model: Path, sentences: list[str]
) -> None:
    _, encoder = whiten(work, tiny_model, dim=12)
    vectors = embedded(encoder, sentences, final=False)
    np.testing.assert_allclose(np.cov(vectors, rowvar=False), np.eye(12), atol=1e-4)
    np.testing.assert_allclose(vectors.mean(axis=0), 0, atol=1e-4)


def test_a_sample_is_drawn_with_the_seed(work: WorkDirectory, tiny_model: Path, sentences: list[str]) -> None:
    rows = np.random.default_rng(3).choice(len(sentences), size=60, replace=False)
    raw = embedded(load_model(tiny_model), sentences, final=False)
    artifact, encoder = whiten(work, tiny_model, dim=5, sample=60, seed=3)
    expected = formula(raw[rows], 5, raw)
    np.testing.assert_allclose(cosines(embedded(encoder, sentences, final=True)), cosines(expected), atol=1e-4)
    assert artifact.facts["sample"] == 60
    assert whiten(work, tiny_model, dim=5, sample=60, seed=4, name="other")[0].digest != artifact.digest


def test_fresh_ones_are_skipped_and_all_of_a_small_table_is_taken(work: WorkDirectory, tiny_model: Path) -> None:
    first, _ = whiten(work, tiny_model, dim=4)
    again, _ = whiten(work, tiny_model, dim=4)
    assert again.manifest["finished"] == first.manifest["finished"]
    assert first.facts["sample"] == 300
    assert first.inputs == {
        "sentences/main": work.get("sentences", "main").digest,
        f"model:{tiny_model.resolve()}": resolve(str(tiny_model)).digest,
    }


def test_more_dimensions_than_the_vectors_span_are_refused(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    # LayerNorm leaves a plane: the mean of its outputs is fixed, so 32 wide vectors span 31 dimensions.
    with pytest.raises(InputError, match="span 31 dimensions") as raised:
        whiten(work, tiny_model, dim=32)
    assert raised.value.hint == "use `dim` 31 or less"
    _, encoder = whiten(work, tiny_model, dim=31)
    assert encoder.dimension == 31
    wide = with_dense(tiny_model, tmp_path / "wide", [(6, "Identity", True), (20, "Identity", True)])
    with pytest.raises(InputError, match="span 6 dimensions"):
        whiten(work, wide, dim=12)
    assert work.unfinished("students") == []


def test_what_cannot_be_is_refused(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="33 dimensions are more than the model's 32"):
        whiten(work, tiny_model, dim=33)
    with pytest.raises(InputError, match="20 dimensions cannot be fitted on 10 sentences"):
        whiten(work, tiny_model, dim=20, sample=10)
    with pytest.raises(UsageError, match="2 errors"):
        whiten(work, tiny_model, dim=0, sample=1)
    with pytest.raises(MissingArtifactError, match="no sentences") as raised:
        whiten(WorkDirectory(tmp_path / "empty"), tiny_model)
    assert "sentcompress augment" in str(raised.value.hint)
    with pytest.raises(MissingArtifactError, match="no students") as raised:
        run(Params(), work)
    assert "or name a model, such as `model` general-9m" in str(raised.value.hint)
    assert work.names("students") == []


def test_a_model_without_finite_vectors_is_refused(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    broken = break_weights(shutil.copytree(tiny_model, tmp_path / "broken"))
    with pytest.raises(SentcompressError):
        whiten(work, broken, dim=4)
    assert work.names("students") == []
    assert work.unfinished("students") == []


def test_a_saved_model_that_gives_no_numbers_fails_its_check(
    work: WorkDirectory, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_back(*given: Any, **named: Any) -> Encoder:
        saved = layout.read_back(*given, **named)
        with torch.no_grad():
            saved.dense[-1].linear.bias[0] = torch.nan  # type: ignore[union-attr, operator, index]
        return saved

    monkeypatch.setattr(stage, "read_back", read_back)
    with pytest.raises(SentcompressError, match="not defined to the whitened vectors"):
        whiten(work, tiny_model, dim=4)
    assert work.names("students") == []


def test_a_student_is_whitened_on_what_it_was_trained_on_and_exported_with_its_lineage(
    tmp_path: Path, tiny_model: Path, sentences: list[str]
) -> None:
    work = make_work(tmp_path / "work", tiny_model, sentences)
    assert _run(["whiten", "--dim", "16", "--model", "teacher", "--name", "first", "--work", str(work.path), "-q"]) == 0
    add_sentences(work, [sentences[:50]], "newer")
    with pytest.raises(MissingArtifactError, match=r"all students in .* were made by whiten itself") as raised:
        run(Params(dim=8), work)
    assert "`model` first" in str(raised.value.hint)
    artifact = run(Params(model="first", dim=8), work)  # on its own sentences, not the newest
    assert artifact.facts["sentences"] == "sentences/main"
    assert artifact.name == "first-whiten-8"
    assert artifact.facts["teacher"] == tiny_model.name
    found = {made.reference for made in ancestors(work, artifact.reference, artifact.digest)}
    assert found == {"students/first-whiten-8", "students/first", "sentences/main"}
    exported = export.run(export.Params(formats=("folder",)), work)
    card = (exported.path / "README.md").read_text(encoding="utf-8")
    assert f"made from {tiny_model.name} with whiten, then whiten" in card
    assert "sentcompress whiten --model first --dim 8 --sentences main" in card
    assert "32 to 8 (Identity)" in card
    rows = {(row["kind"], row["name"]): row for row in status.run(status.Params(), work)}
    row = rows["students", "first-whiten-8"]
    assert row["state"] == "fresh"
    assert row["facts"]["dimension"] == 8


def test_the_command_shows_what_was_kept(
    work: WorkDirectory, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["whiten", "--dim", "8", "--model", str(tiny_model), "--name", "short", "--work", str(work.path)]
    assert _run(words) == 0
    captured = capsys.readouterr()
    assert "8 of 32 dimensions" in captured.out
    assert f"sentcompress eval-fidelity --text FILE --model short --work {work.path}" in captured.err
