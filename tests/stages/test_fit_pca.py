"""fit-pca against an independent PCA by singular values, and what it says about vectors it cannot use."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sentcompress.cli.main import _run
from sentcompress.errors import InputError, MissingArtifactError, SentcompressError, UsageError
from sentcompress.models import principal_axes
from sentcompress.models.principal_axes import FILE, Projection
from sentcompress.stages import fit_pca
from sentcompress.stages.fit_pca import Params, run
from sentcompress.store import Artifact, Request, WorkDirectory

Floats = npt.NDArray[np.float64]
ROWS, DIMENSION = 1200, 24


@pytest.fixture(params=["in one", "by sums"])
def each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """scikit-learn for samples that fit into memory, covariance sums for those that do not."""
    monkeypatch.setattr(fit_pca, "PIECE", 101)
    if request.param == "by sums":
        monkeypatch.setattr(principal_axes, "MEMORY_LIMIT_BYTES", 1)
    return str(request.param)


def made_vectors(rows: int = ROWS, dimension: int = DIMENSION, seed: int = 0) -> Floats:
    """Normalised vectors with a mean far from zero and variances that fall."""
    generator = np.random.default_rng(seed)
    scales = 0.85 ** np.arange(dimension)
    mixed = generator.normal(size=(rows, dimension)) * scales @ generator.normal(size=(dimension, dimension))
    shifted = mixed + 3 * generator.normal(size=dimension)
    return np.asarray(shifted / np.linalg.norm(shifted, axis=1, keepdims=True))


def keep(work: WorkDirectory, vectors: npt.NDArray[Any], dtype: str = "float32", files: int = 3) -> Artifact:
    """An artifact of teacher vectors, as teacher-embed leaves it."""
    request = Request("teacher-vectors", "main", "teacher-embed", {"seed": float(vectors.flat[0]), "dtype": dtype})
    with work.build(request, force=True) as build:
        for number, file in enumerate(np.array_split(vectors, files)):
            with build.write(f"vectors-{number:05d}.npy") as path, path.open("wb") as stream:
                np.save(stream, file.astype(dtype))
        return build.finish({"teacher": "some teacher", "rows": len(vectors), "dimension": vectors.shape[1]})


def reference(vectors: Floats, dim: int) -> tuple[Floats, Floats, Floats, float]:
    """Mean, axes [dim, D], variances [dim] and total variance, from the singular values of the centred matrix."""
    mean = vectors.mean(axis=0)
    _, singular, axes = np.linalg.svd(vectors - mean, full_matrices=False)
    variances = singular**2 / (len(vectors) - 1)
    return mean, axes[:dim], variances[:dim], float(variances.sum())


def fitted(work: WorkDirectory, **params: Any) -> tuple[Artifact, Projection]:
    artifact = run(Params(**params), work)
    return artifact, Projection.load(artifact.path)


def test_it_is_the_pca_of_the_centred_vectors(work: WorkDirectory, each_way: str) -> None:
    vectors = made_vectors()
    source = keep(work, vectors)
    artifact, projection = fitted(work, dim=7)
    mean, axes, variances, total = reference(vectors.astype(np.float32).astype(np.float64), 7)
    np.testing.assert_allclose(projection.mean, mean, atol=1e-6)
    np.testing.assert_allclose(np.abs((projection.weight * axes).sum(axis=1)), 1.0, atol=1e-6)
    np.testing.assert_allclose(projection.explained_variance_ratio, variances / total, rtol=1e-5)
    np.testing.assert_allclose(projection.bias, -projection.weight @ projection.mean, atol=1e-7)
    facts = artifact.facts
    assert artifact.name == "pca-7"
    assert artifact.inputs == {source.reference: source.digest}
    assert facts["total_variance"] == pytest.approx(total, rel=1e-6)
    assert facts["explained_variance"] == pytest.approx(variances.sum() / total, rel=1e-5)
    assert facts["explained_variance_ratio"] == pytest.approx(variances / total, rel=1e-5)
    assert (facts["dimension"], facts["teacher_dimension"], facts["sample"]) == (7, DIMENSION, ROWS)
    assert facts["teacher"] == "some teacher"


def test_what_it_gives_is_centred_and_uncorrelated(work: WorkDirectory, each_way: str) -> None:
    vectors = made_vectors()
    keep(work, vectors)
    _, projection = fitted(work, dim=6)
    short = projection.apply(vectors.astype(np.float32)).astype(np.float64)
    np.testing.assert_allclose(short.mean(axis=0), 0.0, atol=1e-6)
    covariance = np.cov(short, rowvar=False)
    np.testing.assert_allclose(covariance - np.diag(np.diag(covariance)), 0.0, atol=1e-7)
    assert (np.diff(np.diag(covariance)) < 0).all()


def test_whitening_gives_the_identity_as_covariance(work: WorkDirectory, each_way: str) -> None:
    vectors = made_vectors()
    keep(work, vectors)
    artifact, projection = fitted(work, dim=9, whiten=True)
    short = projection.apply(vectors.astype(np.float32)).astype(np.float64)
    np.testing.assert_allclose(np.cov(short, rowvar=False), np.eye(9), atol=2e-5)
    np.testing.assert_allclose(short.mean(axis=0), 0.0, atol=2e-5)
    _, _, variances, total = reference(vectors, 9)
    np.testing.assert_allclose(projection.explained_variance_ratio, variances / total, rtol=1e-4)
    assert artifact.name == "whiten-9"
    assert artifact.facts["whitened"] is True


def test_both_ways_give_the_same_numbers_and_signs(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(work, made_vectors() + 100)  # a mean that dwarfs the variance
    _, in_one = fitted(work, dim=12, name="in-one")
    monkeypatch.setattr(principal_axes, "MEMORY_LIMIT_BYTES", 1)
    monkeypatch.setattr(fit_pca, "PIECE", 7)  # fewer than dimensions: a piece alone could not be fitted
    _, by_sums = fitted(work, dim=12, name="by-sums")
    np.testing.assert_allclose(by_sums.weight, in_one.weight, atol=1e-5)
    np.testing.assert_allclose(by_sums.mean, in_one.mean, rtol=1e-6)
    np.testing.assert_allclose(by_sums.explained_variance_ratio, in_one.explained_variance_ratio, rtol=1e-5)


def test_a_sample_is_drawn_with_the_seed_without_repetition(work: WorkDirectory, each_way: str) -> None:
    vectors = made_vectors()
    keep(work, vectors)
    rows = np.random.default_rng(5).choice(ROWS, size=300, replace=False)
    assert len(set(rows)) == 300
    artifact, projection = fitted(work, dim=4, sample=300, seed=5)
    mean, axes, _, _ = reference(vectors[rows], 4)
    np.testing.assert_allclose(projection.mean, mean, atol=1e-6)
    np.testing.assert_allclose(np.abs((projection.weight * axes).sum(axis=1)), 1.0, atol=1e-5)
    other = run(Params(dim=4, sample=300, seed=6, name="other"), work)
    assert other.digest != artifact.digest
    assert run(Params(dim=4, sample=300, seed=5), work).digest == artifact.digest


def test_float16_vectors_are_fitted_in_full_precision(work: WorkDirectory, each_way: str) -> None:
    vectors = made_vectors()
    keep(work, vectors, dtype="float16")
    _, projection = fitted(work, dim=5)
    _, axes, _, _ = reference(vectors.astype(np.float16).astype(np.float64), 5)
    np.testing.assert_allclose(np.abs((projection.weight * axes).sum(axis=1)), 1.0, atol=1e-6)


def test_all_dimensions_may_be_kept(work: WorkDirectory, each_way: str) -> None:
    keep(work, made_vectors())
    artifact, projection = fitted(work, dim=DIMENSION)
    assert artifact.facts["explained_variance"] == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(projection.weight @ projection.weight.T, np.eye(DIMENSION), atol=1e-5)


def test_it_is_skipped_when_fresh_and_redone_when_the_vectors_change(work: WorkDirectory) -> None:
    keep(work, made_vectors())
    first = run(Params(dim=3), work)
    assert run(Params(dim=3), work).manifest["finished"] == first.manifest["finished"]
    assert run(Params(dim=3, force=True), work).manifest["finished"] > first.manifest["finished"]
    keep(work, made_vectors(seed=1))
    assert run(Params(dim=3), work).digest != first.digest
    assert run(Params(dim=3, whiten=True), work).name == "whiten-3"
    assert run(Params(dim=3, name="mine"), work).name == "mine"


def test_faults_of_the_request_are_told_together(work: WorkDirectory) -> None:
    with pytest.raises(UsageError, match="2 errors") as raised:
        run(Params(dim=0, sample=1), work)
    assert "`dim` must be at least 1" in raised.value.message
    assert "`sample` must be at least 2" in raised.value.message


def test_without_vectors_it_names_the_stage(work: WorkDirectory) -> None:
    with pytest.raises(MissingArtifactError) as raised:
        run(Params(), work)
    assert "sentcompress teacher-embed" in str(raised.value.hint)


def test_more_dimensions_than_the_teacher_s_are_refused(work: WorkDirectory) -> None:
    keep(work, made_vectors())
    with pytest.raises(InputError, match="25 dimensions are more than the teacher's 24") as raised:
        run(Params(dim=25), work)
    assert raised.value.hint == "use `dim` 24 or less"
    assert not (work.path / "projections").exists()


def test_more_dimensions_than_sentences_are_refused(work: WorkDirectory) -> None:
    keep(work, made_vectors(rows=10))
    with pytest.raises(InputError, match="cannot be fitted on 10 sentences"):
        run(Params(dim=11), work)
    with pytest.raises(InputError, match="cannot be fitted on 5 sentences") as raised:
        run(Params(dim=9, sample=5), work)
    assert raised.value.hint == "use a smaller `dim`, or add sentences, or raise `sample`"
    assert run(Params(dim=9), work).facts["sample"] == 10


@pytest.mark.parametrize("nonsense", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_no_vector_is_named_and_nothing_is_left(
    work: WorkDirectory, each_way: str, nonsense: float
) -> None:
    vectors = made_vectors()
    vectors[777, 3] = nonsense
    keep(work, vectors)
    with pytest.raises(InputError, match="row 777 contains NaN") as raised:
        run(Params(dim=3), work)
    again = work.get("teacher-vectors").command_line()
    assert raised.value.hint == f"run: {again} --force --dtype float32 --store float32"
    assert work.names("projections") == []
    assert work.unfinished("projections") == []


def test_vectors_that_are_all_the_same_are_refused(work: WorkDirectory, each_way: str) -> None:
    keep(work, np.tile(made_vectors(rows=1), (50, 1)))
    with pytest.raises(InputError, match="all 50 vectors of the sample are the same"):
        run(Params(dim=3), work)


@pytest.mark.parametrize("whiten", [False, True])
def test_one_sentence_has_no_variance(work: WorkDirectory, each_way: str, whiten: bool) -> None:
    keep(work, made_vectors(rows=1), files=1)
    with pytest.raises(InputError, match="1 sentence has no variance"):
        run(Params(dim=1, whiten=whiten), work)
    assert work.names("projections") == []
    assert work.unfinished("projections") == []


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_axes_of_vectors_that_are_not_numbers_are_refused(each_way: str, value: float) -> None:
    """Whoever asks for them: scikit-learn would end in an error of its own, sums in NaN."""
    vectors = made_vectors(rows=50)
    vectors[40, 3] = value
    with pytest.raises(InputError, match="vectors with NaN or infinity"):
        principal_axes.principal_axes([vectors[:30], vectors[30:]], vectors.shape, 3)


def test_a_projection_that_float32_cannot_hold_is_not_written(work: WorkDirectory, each_way: str) -> None:
    tiny = made_vectors() * 1e-42
    keep(work, tiny)
    with pytest.raises(SentcompressError, match="the projection has NaN or infinity in the tensor weight"):
        run(Params(dim=3, whiten=True), work)
    assert work.names("projections") == []


def test_whitening_more_dimensions_than_the_vectors_span_is_refused(work: WorkDirectory, each_way: str) -> None:
    flat = made_vectors(dimension=5) @ np.random.default_rng(1).normal(size=(5, DIMENSION))
    keep(work, flat)
    with pytest.raises(InputError, match="span 5 dimensions") as raised:
        run(Params(dim=8, whiten=True), work)
    assert raised.value.hint == "use `dim` 5 or less"
    assert run(Params(dim=8), work).facts["explained_variance"] == pytest.approx(1.0)


def test_the_command_draws_a_chart_and_names_the_next_one(
    work: WorkDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(work, made_vectors())
    assert _run(["fit-pca", "--dim", "8", "--work", str(work.path)]) == 0
    captured = capsys.readouterr()
    assert "explained variance by dimension" in captured.out
    assert "█" in captured.out
    assert "8 of 24 dimensions" in captured.out
    assert f"sentcompress distill --method hpd --projection pca-8 --work {work.path}" in captured.err


def test_the_file_is_what_the_artifact_holds(work: WorkDirectory) -> None:
    keep(work, made_vectors())
    assert list(run(Params(dim=3), work).manifest["files"]) == [FILE]
