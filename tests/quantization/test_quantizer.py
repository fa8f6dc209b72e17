"""The stored form of vectors: sizes, errors, the turn, and files that were damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from sentcompress.errors import InputError, SentcompressError
from sentcompress.quantization.codecs import CODECS, Binary, Float32, Int4, Int8, ProductCodes, Values
from sentcompress.quantization.fitting import FITS, balanced_order, centroids_for, fit_binary, fit_uniform
from sentcompress.quantization.quantizer import AXES, DOCUMENT, TENSORS, Quantizer
from sentcompress.store import file_digest

D, ROWS = 48, 3000


def made(rows: int = ROWS, seed: int = 0) -> Values:
    """Vectors of unit length around a mean, with variances that fall from one turned dimension to the next."""
    generator = np.random.default_rng(7)
    turn = np.linalg.qr(generator.normal(size=(D, D)))[0]
    spread = 0.9 ** np.arange(D)
    vectors = np.random.default_rng(seed).normal(size=(rows, D)) * spread @ turn + 0.3 * turn[5]
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def axes(dimension: int) -> Values:
    vectors = made()
    centred = vectors - vectors.mean(axis=0)
    return np.ascontiguousarray(np.linalg.svd(centred, full_matrices=False)[2][:dimension], dtype=np.float32)


def fitted(name: str, dimension: int, segments: int = 8) -> Quantizer:
    plain = Quantizer(axes(dimension), Float32(dimension))
    return Quantizer(plain.axes, FITS[name](plain.turn(made()), segments, 0))


EVERY = [("float32", 16, 64), ("float16", 16, 32), ("int8", 17, 17), ("int4", 17, 9), ("binary", 17, 3), ("pq", 16, 8)]


@pytest.mark.parametrize(("name", "dimension", "size"), EVERY)
def test_a_stored_vector_has_exactly_the_bytes_that_are_promised(name: str, dimension: int, size: int) -> None:
    quantizer = fitted(name, dimension)
    codes = quantizer.encode(made(7, 1))
    assert (quantizer.format, quantizer.bytes, codes.shape, codes.dtype) == (name, size, (7, size), np.uint8)
    assert quantizer.decode(codes).shape == (7, dimension)
    assert quantizer.decode(codes[:0]).shape == (0, dimension)
    assert {name for name, _, _ in EVERY} == set(CODECS)


@pytest.mark.parametrize(("name", "dimension", "size"), EVERY)
def test_a_vector_is_stored_alike_alone_and_among_others(name: str, dimension: int, size: int) -> None:
    """The ranges are the model's, not the batch's: one query must not become zeros."""
    quantizer = fitted(name, dimension)
    vectors = made(50, 1)
    together = quantizer.encode(vectors)
    alone = np.concatenate([quantizer.encode(vectors[row : row + 1]) for row in range(50)])
    # A matrix product of one row can differ in its last digit, and so move a value that lies on a border.
    if not isinstance(quantizer.codec, Float32):
        assert (together == alone).mean() > 0.99
    np.testing.assert_allclose(np.median(np.abs(quantizer.decode(together) - quantizer.decode(alone))), 0, atol=1e-6)


@pytest.mark.parametrize("kind", [Int8, Int4])
def test_the_error_of_a_cell_is_at_most_half_of_it(kind: type[Int8]) -> None:
    sample = made()
    codec = fit_uniform(kind, sample)
    values = np.clip(made(500, 3), codec.low, codec.low + 2**kind.bits * codec.step)
    error = np.abs(codec.decode(codec.encode(values)) - values)
    assert (error <= codec.step / 2 * (1 + 1e-4) + 1e-7).all()
    # Two quantiles hold the range, so hardly any value of other texts lies outside.
    assert (np.abs(values - made(500, 3)) > 0).mean() < 0.1


def test_a_dimension_that_does_not_vary_is_kept() -> None:
    sample = made()
    sample[:, 3] = 0.25
    for codec in (fit_uniform(Int8, sample), fit_uniform(Int4, sample), fit_binary(sample)):
        np.testing.assert_allclose(codec.decode(codec.encode(sample))[:, 3], 0.25, atol=1e-6)


def test_half_precision_loses_at_most_its_rounding() -> None:
    values = made()
    codec = CODECS["float16"](D)  # type: ignore[call-arg]
    error = np.abs(codec.decode(codec.encode(values)) - values)
    assert (error <= np.abs(values) * 2.0**-11 + 2.0**-25).all()


def test_the_two_values_of_a_bit_are_the_means_of_the_two_sides() -> None:
    sample = made()
    codec = fit_binary(sample)
    decoded = codec.decode(codec.encode(sample))
    np.testing.assert_allclose(decoded.mean(axis=0), sample.mean(axis=0), atol=1e-4)
    # No other two values have a smaller squared error with these thresholds.
    error = np.square(decoded - sample).sum()
    for shift in (-0.01, 0.01):
        other = Binary(codec.threshold, codec.below, codec.above + np.float32(shift))
        assert np.square(other.decode(other.encode(sample)) - sample).sum() > error


def test_a_side_of_a_bit_can_have_one_value() -> None:
    sample = np.array([[0, 4], [0, 4], [2, -2]], dtype=np.float32)
    codec = fit_binary(sample)
    np.testing.assert_allclose(codec.decode(codec.encode(sample)), sample, atol=1e-6)


def test_a_product_code_names_the_nearest_centroid() -> None:
    codec = FITS["pq"](made(), 8, 0)
    assert isinstance(codec, ProductCodes)
    values = made(20, 4)
    codes = codec.encode(values)
    for segment, mine in enumerate(codec.order.reshape(8, -1)):
        distances = np.square(values[:, None, mine] - codec.codebooks[segment]).sum(axis=2)
        chosen = distances[np.arange(20), codes[:, segment]]
        np.testing.assert_allclose(chosen, distances.min(axis=1), atol=1e-6)


def test_any_seed_can_be_given() -> None:
    codecs = [FITS["pq"](made(), 8, seed) for seed in (7, 2**31 + 7)]
    assert all(isinstance(codec, ProductCodes) for codec in codecs)
    np.testing.assert_array_equal(*(codec.codebooks for codec in codecs if isinstance(codec, ProductCodes)))


def test_segments_share_the_variance() -> None:
    variances = 0.8 ** np.arange(24.0)
    order = balanced_order(variances, 4)
    assert sorted(order) == list(range(24))
    products = np.log(variances[order.reshape(4, 6)]).sum(axis=1)
    in_a_row = np.log(variances.reshape(4, 6)).sum(axis=1)
    assert np.ptp(products) < np.ptp(in_a_row) / 10
    assert sorted(balanced_order(np.zeros(6), 3)) == list(range(6))


def test_codebooks_are_as_large_as_the_sample_can_train() -> None:
    assert [centroids_for(points) for points in (10_000, 2048, 2047, 128)] == [256, 256, 128, 16]
    with pytest.raises(InputError, match="127 texts are too few to fit pq, which needs 128"):
        centroids_for(127)


def test_the_turn_changes_no_cosine_and_every_prefix_is_the_best_one() -> None:
    vectors, others = made(200, 1), made(30, 2)
    exact = others @ vectors.T
    whole = fitted("float32", D)
    np.testing.assert_allclose(whole.scores(others, whole.encode(vectors)), exact, atol=1e-5)
    errors = []
    for dimension in (4, 8, 16, 32):
        short = fitted("float32", dimension)
        np.testing.assert_array_equal(short.axes, whole.axes[:dimension])
        turned = whole.turn(vectors)[:, :dimension]
        expected = turned / np.linalg.norm(turned, axis=1, keepdims=True)
        np.testing.assert_allclose(short.turn(vectors), expected, atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(short.turn(vectors), axis=1), 1, atol=1e-6)
        first = vectors[:, :dimension] / np.linalg.norm(vectors[:, :dimension], axis=1, keepdims=True)
        errors.append(np.abs(short.scores(others, short.encode(vectors)) - exact).mean())
        theirs = others[:, :dimension] / np.linalg.norm(others[:, :dimension], axis=1, keepdims=True)
        assert errors[-1] < np.abs(theirs @ first.T - exact).mean()
    assert errors == sorted(errors, reverse=True)


def test_decoded_vectors_have_length_one() -> None:
    vectors = made(40, 1)
    for name in CODECS:
        quantizer = fitted(name, 24)
        np.testing.assert_allclose(
            np.linalg.norm(quantizer.decode(quantizer.encode(7 * vectors)), axis=1), 1, atol=1e-6
        )
    assert not quantizer.turn(np.zeros((1, D), dtype=np.float32)).any()


def test_scores_of_blocks_are_those_of_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    quantizer = fitted("int8", 16)
    codes = quantizer.encode(made(100, 1))
    whole = quantizer.scores(made(5, 2), codes)
    monkeypatch.setattr("sentcompress.quantization.quantizer.BLOCK", 7 * 16)
    np.testing.assert_allclose(quantizer.scores(made(5, 2), codes), whole, atol=1e-6)


@pytest.mark.parametrize("name", ["float32", "float16", "int8", "int4", "pq"])
def test_the_codes_are_those_of_an_index_of_faiss(name: str) -> None:
    """So that they can be added to one as they are."""
    faiss = pytest.importorskip("faiss")
    codec, values = FITS[name](made(), 8, 0), made(300, 1)
    if isinstance(codec, ProductCodes):
        index = faiss.IndexPQ(D, 8, 8, faiss.METRIC_INNER_PRODUCT)
        faiss.copy_array_to_vector(codec.codebooks.ravel(), index.pq.centroids)
        values = values[:, codec.order]
    else:
        kinds = {"float32": None, "float16": "QT_fp16", "int8": "QT_8bit", "int4": "QT_4bit"}
        index = faiss.IndexFlatIP(D)
        if kinds[name]:
            index = faiss.IndexScalarQuantizer(D, getattr(faiss.ScalarQuantizer, kinds[name]))
        if isinstance(codec, Int8):
            trained = np.concatenate([codec.low, codec.step * (2**codec.bits - 1)])
            faiss.copy_array_to_vector(trained, index.sq.trained)
    index.is_trained = True
    codes = codec.encode(made(300, 1))
    decoded = index.sa_decode(codes)
    ours = codec.decode(codes)
    np.testing.assert_allclose(decoded, ours[:, codec.order] if isinstance(codec, ProductCodes) else ours, atol=1e-6)
    assert (index.sa_encode(np.ascontiguousarray(values)) == codes).mean() > 0.999


@pytest.mark.parametrize(("name", "dimension", "size"), EVERY)
def test_a_quantizer_that_was_saved_stores_the_same_bytes(name: str, dimension: int, size: int, tmp_path: Path) -> None:
    quantizer = fitted(name, dimension)
    quantizer.save(tmp_path / "vectors")
    assert sorted(path.name for path in (tmp_path / "vectors").iterdir()) == [DOCUMENT, TENSORS]
    read = Quantizer.load(tmp_path / "vectors")
    np.testing.assert_array_equal(read.encode(made(30, 1)), quantizer.encode(made(30, 1)))
    np.testing.assert_array_equal(
        read.decode(read.encode(made(30, 1))), quantizer.decode(quantizer.encode(made(30, 1)))
    )
    assert json.loads((tmp_path / "vectors" / DOCUMENT).read_text())["bytes"] == size


def change(folder: Path, **values: object) -> None:
    document = json.loads((folder / DOCUMENT).read_text()) | values
    (folder / DOCUMENT).write_text(json.dumps(document))


def replace(folder: Path, **tensors: np.ndarray) -> None:
    """Tensors changed by someone who also wrote their digest."""
    save_file({**load_file(folder / TENSORS), **tensors}, folder / TENSORS)
    change(folder, sha256=file_digest(folder / TENSORS))


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("int8", lambda f: change(f, version=2), "has version 2"),
        ("int8", lambda f: change(f, version=True), "no valid version"),
        ("int8", lambda f: change(f, format="int3"), "'int3' is not one of"),
        ("int8", lambda f: change(f, format="binary"), "damaged"),
        ("int8", lambda f: change(f, similarity="l2"), "compared by 'l2'"),
        ("int8", lambda f: change(f, bytes=3), "16 dimensions in 3 bytes"),
        ("int8", lambda f: change(f, dimension=3), "3 dimensions in 16 bytes"),
        ("int8", lambda f: (f / DOCUMENT).write_text("[1]"), "no valid version"),
        ("int8", lambda f: (f / DOCUMENT).write_text("{"), "not valid JSON"),
        ("int8", lambda f: (f / DOCUMENT).unlink(), "missing"),
        ("int8", lambda f: (f / TENSORS).unlink(), "No such file"),
        ("int8", lambda f: (f / TENSORS).write_bytes((f / TENSORS).read_bytes()[:-1]), "SHA-256 differs"),
        ("int8", lambda f: replace(f, low=np.full(16, np.nan, np.float32)), "NaN or infinity in low"),
        ("int8", lambda f: replace(f, low=np.zeros(15, np.float32)), "parameters of the shapes"),
        ("int8", lambda f: replace(f, low=np.zeros(16, np.float64)), "low is float64"),
        ("int8", lambda f: replace(f, step=np.full(16, -1, np.float32)), "a range is negative"),
        ("int8", lambda f: replace(f, more=np.zeros(16, np.float32)), "more"),
        ("int8", lambda f: replace(f, **{AXES: axes(16) * 2}), "not orthonormal"),
        ("int8", lambda f: replace(f, **{AXES: np.zeros(16, np.float32)}), "the axes have the shape"),
        ("pq", lambda f: replace(f, codebooks=np.zeros((8, 16), np.float32)), "codebooks have the shape"),
        ("pq", lambda f: replace(f, order=np.zeros(16, np.int32)), "does not name every dimension once"),
        ("pq", lambda f: replace(f, codebooks=np.zeros((7, 256, 2), np.float32)), "16 dimensions in 8 bytes"),
    ],
)
def test_a_damaged_quantizer_is_refused(name: str, damage: object, message: str, tmp_path: Path) -> None:
    fitted(name, 16).save(tmp_path)
    assert callable(damage)
    damage(tmp_path)
    with pytest.raises(InputError, match=message):
        Quantizer.load(tmp_path)


def test_parameters_that_are_not_numbers_are_not_written(tmp_path: Path) -> None:
    broken = Quantizer(axes(4), Int8(np.full(4, np.nan, np.float32), np.ones(4, np.float32)))
    with pytest.raises(SentcompressError, match="NaN or infinity in the tensor low"):
        broken.save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_vectors_and_codes_of_another_model_are_refused() -> None:
    quantizer = fitted("pq", 16)
    with pytest.raises(InputError, match=r"vectors of 48 dimensions, not of shape \(2, 5\)"):
        quantizer.encode(np.zeros((2, 5), dtype=np.float32))
    with pytest.raises(InputError, match="pq vectors have 8 bytes each"):
        quantizer.decode(np.zeros((2, 9), dtype=np.uint8))
    small = Quantizer(axes(16), FITS["pq"](made(500)[:, :16], 8, 0))
    with pytest.raises(InputError, match="names centroid 200, which the codebooks lack"):
        small.decode(np.full((1, 8), 200, dtype=np.uint8))
    with pytest.raises(InputError, match="NaN or infinity"):
        quantizer.turn(np.full((1, D), np.nan, dtype=np.float32))
