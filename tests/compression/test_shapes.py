"""Which shapes fit a budget, and that the computed size is that of the exported graph."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from sentcompress.compression.graph_size import TransformerSize, counted_bytes, graph_overhead
from sentcompress.compression.shapes import _size_of_published, fitting, own_shape, smallest
from sentcompress.models.model_files import read_config
from sentcompress.models.shape import Shape
from sentcompress.models.sources import resolve
from sentcompress.models.students import InitialStudent
from sentcompress.models.weight_formats import BITS
from sentcompress.published import FOLDER, PUBLISHED

MINILM = TransformerSize(layers=6, width=384, neurons=1536, tokens=30522, positions=512, vector=384)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "compress.md"


def test_the_sizes_are_those_of_graphs_that_were_exported() -> None:
    assert MINILM.graph_bytes() == pytest.approx(22_829_488, rel=0.002)
    published = MINILM.graph_bytes(layers=4, token_dim=192, tokens=25_000, neurons=640)
    assert published == pytest.approx(PUBLISHED["general-9m"].graph_bytes, rel=0.002)
    narrow = MINILM.graph_bytes(layers=2, token_dim=64, tokens=15_500, neurons=384)
    assert narrow == pytest.approx(2_896_796, rel=0.002)
    # Students in 4 bits nearly fill the budget.
    for size, exported in (
        (MINILM.graph_bytes(weight_format="int4"), 13_382_413),
        (MINILM.graph_bytes(tokens=15_000, weight_format="int4"), 9_936_529),
        (MINILM.graph_bytes(2, 64, 15_500, 384, "int4"), 1_729_542),
        (_size_of_published("general-9m").graph_bytes(weight_format="int4"), 5_581_072),
        (_size_of_published("general-9m").graph_bytes(tokens=10_500, neurons=96, weight_format="int4"), 2_987_406),
        (_size_of_published("general-5m").graph_bytes(tokens=19_500, weight_format="int4"), 2_985_234),
        (_size_of_published("general-2m").graph_bytes(weight_format="int4"), 1_467_678),
    ):
        assert exported <= size <= 1.02 * exported


@pytest.mark.parametrize("most", [3_000_000, 6_000_000, 10_000_000, 15_000_000])
def test_what_is_tried_fits_and_uses_the_budget(most: int) -> None:
    shapes = fitting(MINILM, most, with_published=False, count=4)
    assert shapes
    assert all(0.6 * most <= shape.bytes <= most for shape in shapes)
    assert len({shape.student for shape in shapes}) == len(shapes)
    work = [shape.multiplications for shape in shapes]
    assert work == sorted(work, reverse=True), "the deepest first, where sizes are about equal"


def test_a_published_student_comes_first_where_speed_is_preferred_and_the_teacher_is_its_own() -> None:
    first = fitting(MINILM, 10_000_000, with_published=True, count=2, fast=True)[0]
    assert (first.student, first.published, first.weight_format) == ("general-9m", True, "int8")
    assert not any(s.published for s in fitting(MINILM, 10_000_000, with_published=False, count=9))


@pytest.mark.parametrize("most", [3_000_000, 8_000_000, 25_000_000])
@pytest.mark.parametrize("published", [True, False])
def test_where_speed_is_preferred_nothing_computes_more_than_half_of_the_teacher(most: int, published: bool) -> None:
    shapes = fitting(MINILM, most, with_published=published, count=9, fast=True)
    assert shapes
    assert all(2 * shape.multiplications <= MINILM.multiplications() for shape in shapes)
    assert len({shape.weight_format for shape in shapes}) == 1


@pytest.mark.parametrize(
    ("most", "published", "tokens", "neurons", "weight_format"),
    [
        (22_000_000, True, 28_000, None, "int8"),
        (16_000_000, True, 12_500, None, "int8"),
        (10_000_000, True, 15_000, None, "int4"),
        (8_500_000, False, 8_000, None, "int4"),
        # Without published students, a narrower teacher comes first.
        (8_000_000, False, 12_000, 1024, "int4"),
        (6_500_000, False, 8_500, 768, "int4"),
        (8_000_000, True, None, None, "int4"),
    ],
)
def test_the_teacher_with_a_smaller_vocabulary_comes_first_if_that_is_large_enough(
    most: int, published: bool, tokens: int | None, neurons: int | None, weight_format: str
) -> None:
    first, *others = fitting(MINILM, most, with_published=published, count=4)
    assert first.whole == (tokens is not None)
    assert all(not shape.whole for shape in others)
    assert {shape.weight_format for shape in (first, *others)} == {weight_format}
    if tokens:
        narrowed = {} if neurons is None else {"feed-forward": neurons, "start": "sentences"}
        assert first.student == "teacher:6"
        assert first.options == {"vocabulary": tokens, "character-count": 2, **narrowed}
        assert most - 500 * 384 <= first.bytes <= most
        units = "" if neurons is None else f", feed-forward layers of {neurons} units"
        bits = ", weights of 4 bits" if weight_format == "int4" else ""
        assert first.described == f"all of the teacher's layers, a vocabulary of {tokens:,} tokens{units}{bits}"
        assert "teacher:6" not in {shape.student for shape in others}
    else:
        assert first.student == "general-9m"


def test_the_whole_teacher_with_weights_of_four_bits_keeps_its_vocabulary_where_it_fits() -> None:
    first = fitting(MINILM, 14_000_000, with_published=True, count=1)[0]
    assert (first.student, first.options, first.weight_format) == ("teacher:6", {}, "int4")
    # The same of a teacher whose vocabulary cannot be cut, such as a multilingual one.
    first = fitting(replace(MINILM, can_trim=False), 14_000_000, with_published=False, count=1)[0]
    assert (first.student, first.options, first.weight_format) == ("teacher:6", {}, "int4")


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        # Only rare tokens are left out of the next larger one.
        (4_000_000, [("general-9m", 10_500, None)]),
        (2_200_000, [("general-5m", 8_500, None)]),
        (1_400_000, [("general-2m", 14_000, None)]),
        # It would lose neurons too: a smaller one that would not is tried beside it.
        (3_000_000, [("general-9m", 8_500, 192), ("general-5m", 19_500, None)]),
        (2_000_000, [("general-5m", 9_000, 512), ("general-2m", None, None)]),
        (6_000_000, [("general-9m", None, None)]),
        (900_000, []),
    ],
)
def test_published_students_are_cut_to_the_budget(
    most: int, expected: list[tuple[str, int | None, int | None]]
) -> None:
    shapes = [shape for shape in fitting(MINILM, most, with_published=True, count=9) if shape.published]
    found = [(one.student, one.options.get("vocabulary"), one.options.get("feed-forward")) for one in shapes]
    assert found == expected
    assert all(shape.bytes <= most for shape in shapes)
    for shape in shapes:
        narrowed = {"start": "sentences"} if shape.options.get("feed-forward") else {}
        assert {**shape.options, **narrowed} == shape.options, "a narrow network starts from the documents"


def row_of_the_page(most: int) -> int:
    """The row of the table of candidates in docs/compress.md that applies to all-MiniLM-L6-v2; 0 if nothing fits."""
    if own_shape(MINILM, "embedded").bytes <= most:
        return 1
    first = next(iter(fitting(MINILM, most, with_published=True, count=1)), None)
    if first is None:
        return 0
    if first.whole:
        return 2 if first.weight_format == "int8" else 3
    return 5 if first.published else 6


def test_the_smallest_limits_in_the_documentation_are_those_of_the_code() -> None:
    limits = re.findall(r"^\| (\d) \|.*\| from ([\d.]+)MB", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    rows = [int(row) for row, _ in limits]
    assert rows == [1, 2, 3, 5, 6]
    for row, following, (_, limit) in zip(rows, [*rows[1:], 0], limits, strict=True):
        most = round(float(limit) * 1e6)
        assert (row_of_the_page(most), row_of_the_page(most - 100_000)) == (row, following), limit


def test_the_limits_that_keep_a_vocabulary_are_those_of_the_code() -> None:
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    found = re.search(
        r"whole vocabulary\*\* of all-MiniLM-L6-v2 \(([\d,]+) tokens\), allow ([\d.]+)MB\. With `--prefer speed`, "
        r"([\d.]+)MB keep that of `general-9m` \(([\d,]+) tokens\)",
        page,
    )
    assert found is not None
    assert found[1] == f"{MINILM.tokens:,}"
    assert found[4] == f"{read_config(FOLDER / 'general-9m')['vocab_size']:,}"
    for limit, fast in ((found[2], False), (found[3], True)):
        most = round(float(limit) * 1e6)
        kept, cut = (
            fitting(MINILM, size, with_published=True, count=1, fast=fast)[0] for size in (most, most - 100_000)
        )
        assert "vocabulary" not in kept.options
        assert "vocabulary" in cut.options


def test_weights_whose_rows_are_no_whole_blocks_stay_in_int8() -> None:
    """As of TinyBERT, whose hidden states have 312 values."""
    tiny = TransformerSize(layers=4, width=312, neurons=1200, tokens=30522, positions=512, vector=312)
    for most in (3_000_000, 6_000_000, 12_000_000):
        shapes = fitting(tiny, most, with_published=False, count=4)
        assert {shape.weight_format for shape in shapes} == {"int8"}
    assert tiny.graph_bytes(weight_format="int4") > 0.99 * tiny.graph_bytes()


def test_the_work_of_a_shape_is_that_of_the_layers_it_applies() -> None:
    """general-9m has four of the six layers, narrowed; general-2m one narrow layer that is applied three times."""
    whole, small = (fitting(MINILM, most, with_published=True, count=1)[0] for most in (6_000_000, 1_600_000))
    assert (whole.student, small.student) == ("general-9m", "general-2m")
    assert whole.multiplications == 4 * (4 * 384**2 + 2 * 384 * 640)
    assert small.multiplications == 3 * (4 * 384**2 + 2 * 384 * 256)
    cut = fitting(MINILM, 3_000_000, with_published=True, count=1)[0]
    assert cut.multiplications == 4 * (4 * 384**2 + 2 * 384 * 192)


def test_the_graph_of_a_cut_student_is_as_large_as_computed() -> None:
    """Its parameters are counted, because making the graph takes long: 4.625 bits for a weight of a matrix, else 32."""
    [shape, _] = [one for one in fitting(MINILM, 3_000_000, with_published=True, count=9) if one.published]
    cut = Shape(vocabulary=8_500, character_count=2, feed_forward=192)
    student = InitialStudent(shape.student, resolve(str(FOLDER / shape.student)), cut)
    weights = student.load([["a text of the documents"]]).transformer.named_parameters()
    size = sum(tensor.numel() * (BITS / 8 if tensor.dim() == 2 else 4) for _, tensor in weights)
    assert size == pytest.approx(shape.bytes - graph_overhead(384, 192, "int4", layers=4), rel=0.002)


def test_fewer_neurons_are_whole_blocks_of_weights() -> None:
    narrow = replace(MINILM, neurons=640)
    assert [narrow.neurons_left(share) for share in (1, 2 / 3, 1 / 3, 1 / 6, 0.01)] == [None, 416, 224, 96, 6]


@pytest.mark.parametrize(("width", "expected"), [(384, {64, 128}), (1024, {160, 352})])
def test_narrow_token_tables_are_whole_blocks_of_weights(width: int, expected: set[int]) -> None:
    """Otherwise, they would be stored in 8 bits: a third and a sixth of 1,024 are 341 and 171."""
    wide = TransformerSize(layers=24, width=width, neurons=4 * width, tokens=30522, positions=512, vector=width)
    tried = {
        shape.options.get("token-dim")
        for most in range(2_000_000, 100_000_000, 500_000)
        for shape in fitting(wide, most, with_published=False, count=9)
    }
    assert tried - {None} == expected


def test_the_large_vocabulary_of_a_multilingual_teacher_can_be_cut_to_a_small_one() -> None:
    """As of LaBSE. A quarter of its 501,153 tokens would not fit into 10 MB with a single layer."""
    labse = TransformerSize(layers=12, width=768, neurons=3072, tokens=501_153, positions=512, vector=768)
    shapes = fitting(labse, 10_000_000, with_published=False, count=4)
    assert len(shapes) == 4
    assert {shape.options["vocabulary"] for shape in shapes} == {8000, 16_000}
    least = smallest(labse)
    assert least is not None
    assert least.options["vocabulary"] == 8000


def test_nothing_is_tried_that_does_not_fit_into_one_onnx_file() -> None:
    """As of multilingual-e5-large, whose 559 million float32 weights take 2.2 GB."""
    large = TransformerSize(24, 1024, 4096, tokens=250_002, positions=514, vector=1024, can_trim=False)
    assert large.parameters() == pytest.approx(559_000_000, rel=0.005)
    assert not own_shape(large, "large").is_exportable
    shapes = fitting(large, 600_000_000, with_published=False, count=4)
    assert shapes[0].student == "teacher:19"
    assert all(shape.is_exportable for shape in shapes)
    assert own_shape(MINILM, "embedded").is_exportable


def test_weights_that_a_configuration_does_not_tell_are_counted() -> None:
    import torch
    from transformers import BertConfig, BertModel, ModernBertConfig, ModernBertModel

    with torch.device("meta"):
        sizes = {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6}
        usual = BertModel(BertConfig(**sizes), add_pooling_layer=False)
        gated = ModernBertModel(ModernBertConfig())
    assert counted_bytes((one.shape for one in usual.parameters()), MINILM) == pytest.approx(
        MINILM.graph_bytes(), rel=0.001
    )
    size = TransformerSize.of(gated.config.to_dict(), 768)
    assert size is not None
    # Its feed-forward networks have three matrices, and it has 149 million parameters.
    counted = replace(size, counted=counted_bytes((one.shape for one in gated.parameters()), size))
    assert counted.graph_bytes() < 140_000_000
    assert 149_000_000 < own_shape(counted, "gated").bytes < 154_000_000


def test_a_dense_layer_is_part_of_the_graph() -> None:
    assert replace(MINILM, vector=128).graph_bytes() - MINILM.graph_bytes() == 384 * 128


def test_a_budget_that_nothing_fits() -> None:
    least = smallest(MINILM)
    assert least is not None
    assert fitting(MINILM, least.bytes - 1, with_published=True, count=4) == []
    assert fitting(MINILM, least.bytes, with_published=True, count=4) == [least]
    two = replace(MINILM, layers=2)
    narrow = smallest(two, fast=True)
    assert narrow is not None
    assert 2 * narrow.multiplications <= two.multiplications()
    assert smallest(replace(MINILM, layers=1, neurons=384), fast=True) is None, "attention is two thirds of it"


def test_without_a_narrow_token_table_no_shape_has_one() -> None:
    shapes = fitting(replace(MINILM, can_factorise=False), 10_000_000, with_published=False, count=9)
    assert shapes
    assert not any("token-dim" in shape.options for shape in shapes)


def test_the_teacher_itself() -> None:
    own = own_shape(MINILM, "embedded")
    assert own.untrained
    assert own.bytes == MINILM.graph_bytes()


@pytest.mark.parametrize("most", [4_000_000, 10_000_000, 20_000_000])
def test_what_cannot_be_trimmed_or_cut_is_not(most: int) -> None:
    shapes = fitting(replace(MINILM, can_trim=False), most, with_published=False, count=9)
    assert shapes
    assert not any("vocabulary" in shape.options for shape in shapes)
    fixed = replace(MINILM, can_cut=False)
    assert fitting(fixed, most, with_published=False, count=9) == []
    assert smallest(fixed) is None


def test_layers_that_share_weights_and_narrow_tables_are_counted_once() -> None:
    sizes = {"num_hidden_layers": 6, "hidden_size": 768, "intermediate_size": 3072, "vocab_size": 30_000}
    albert = TransformerSize.of(
        {**sizes, "max_position_embeddings": 512, "embedding_size": 128, "num_hidden_groups": 1, "inner_group_num": 1},
        768,
    )
    assert albert is not None
    # paraphrase-albert-small-v2 has 11.7 million parameters, of which its pooler, 0.6 million, is not used.
    assert albert.graph_bytes() == pytest.approx(11_100_000, rel=0.03)
    electra = TransformerSize.of({**sizes, "max_position_embeddings": 512, "embedding_size": 128}, 768)
    assert electra is not None
    assert electra.graph_bytes(layers=3) - electra.graph_bytes(layers=2) == pytest.approx(7_110_000, rel=0.01)
    assert electra.graph_bytes(layers=1) < 12_500_000
