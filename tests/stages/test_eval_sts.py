"""eval-sts from files to the artifact, with tiny models and with the embedded teacher's published scores."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from listening import Listener
from scipy import stats
from tiny_models import load_model, make_tiny_model

from sentcompress.cli.main import _run
from sentcompress.errors import InputError, UsageError
from sentcompress.evaluation.metrics import ALIGNMENT, PEARSON, SPEARMAN, UNIFORMITY
from sentcompress.evaluation.score import MEAN, Score, read_scores, select, value_of
from sentcompress.models import sources
from sentcompress.stages.eval_sts import Params, run
from sentcompress.store import WorkDirectory


def write_pairs(path: Path, sentences: list[str], scores: list[float]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pairs = zip(scores, sentences, sentences[1:], strict=False)
    path.write_text("".join(f"{score}\t{first}\t{second}\n" for score, first, second in pairs), encoding="utf-8")
    return path


@pytest.fixture
def sts(tmp_path: Path, sentences: list[str]) -> Path:
    """A folder with a set of two subsets and a set of one."""
    generator = np.random.default_rng(0)
    for name, size in (("sts13/FNWN.test.tsv", 40), ("sts13/OnWN.test.tsv", 60), ("stsb/test.tsv", 80)):
        write_pairs(tmp_path / "sts" / name, sentences[: size + 1], generator.integers(0, 6, size=size).tolist())
    return tmp_path / "sts"


@pytest.fixture
def other_model(tmp_path: Path) -> Path:
    return make_tiny_model(tmp_path / "other-model", layers=1, seed=5)


def test_scores_equal_sentence_transformers_and_scipy(tmp_path: Path, sts: Path, tiny_model: Path) -> None:
    from sentence_transformers import SentenceTransformer

    facts = run(Params(sts=[sts], model=str(tiny_model), device="cpu"), WorkDirectory(tmp_path / "work")).facts
    model = SentenceTransformer(str(tiny_model), device="cpu")
    scores = read_scores(facts)
    assert scores[0].metric == SPEARMAN
    sets = {"STS13": ["sts13/FNWN.test.tsv", "sts13/OnWN.test.tsv"], "STS-B": ["stsb/test.tsv"]}
    for name, files in sets.items():
        rows = [line.split("\t") for file in files for line in (sts / file).read_text().splitlines()]
        first, second = (model.encode([row[side] for row in rows], normalize_embeddings=True) for side in (1, 2))
        expected = stats.spearmanr([float(row[0]) for row in rows], (first * second).sum(axis=1)).statistic
        (found,) = select(scores, SPEARMAN, name, part="")
        assert found.value == pytest.approx(100 * expected, abs=0.05)
        assert found.count == len(rows)
    assert [score.part for score in select(scores, SPEARMAN, "STS13")] == ["", "FNWN", "OnWN"]
    assert [score.part for score in select(scores, SPEARMAN, "STS-B")] == [""]
    mean = np.mean([round(value_of(scores, SPEARMAN, name), 2) for name in sets])
    assert value_of(scores, SPEARMAN, MEAN) == round(mean, 2)
    assert "aggregate all" in facts["protocol"]["statement"]


def test_a_revision_is_of_the_model_and_not_of_the_compared_one(
    tmp_path: Path, sts: Path, tiny_model: Path, other_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_download", lambda name, revision: tiny_model if revision else other_model)
    asked = Params(sts=[sts], model="owner/model", revision="v1", compare="owner/model", bootstrap=0, device="cpu")
    facts = run(asked, WorkDirectory(tmp_path / "work")).facts
    assert facts["model"]["digest"] == sources.resolve(str(tiny_model)).digest
    assert facts["compare"]["digest"] == sources.resolve(str(other_model)).digest


def test_result_file_holds_the_facts_and_is_shown_again(tmp_path: Path, sts: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    params = Params(sts=[sts], model=str(tiny_model), device="cpu")
    made = run(params, work)
    assert made.name == f"sts-{tiny_model.name}"
    assert json.loads((made.path / "result.json").read_text()) == made.facts
    assert run(params, work).manifest["finished"] == made.manifest["finished"]
    (sts / "stsb" / "test.tsv").open("a").write("3\tthe cat\tthe dog\n")
    again = run(params, work)
    assert again.manifest["finished"] > made.manifest["finished"]
    assert select(read_scores(again.facts), SPEARMAN, "STS-B")[0].count == 81


def test_compare_puts_both_side_by_side(tmp_path: Path, sts: Path, tiny_model: Path, other_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    facts = run(Params(sts=[sts], model=str(tiny_model), compare=str(other_model), device="cpu"), work).facts
    alone = run(Params(sts=[sts], model=str(other_model), device="cpu"), work).facts
    listener = Listener()
    params = Params(sts=[sts], model=str(other_model), compare=str(other_model), device="cpu", name="itself")
    run(params, work, listener)
    assert any(told.startswith(f"{other_model.name} is compared with itself; ") for told in listener.warnings)
    both = read_scores(facts)
    for single in read_scores(alone):
        beside = replace(single, role="compare")
        assert beside in both
        (ours,) = [score for score in both if score.role == "model" and score.place == single.place]
        assert ours.difference == pytest.approx(ours.value - single.value, abs=0.005)
        if single.metric in (SPEARMAN, PEARSON):
            kept = 100 * ours.value / single.value if single.value > 0 else math.nan
            assert ours.kept == pytest.approx(kept, nan_ok=True)
    assert facts["compare"]["label"] == other_model.name


def test_intervals_and_paired_differences(tmp_path: Path, sts: Path, tiny_model: Path, other_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    facts = run(Params(sts=[sts], model=str(tiny_model), compare=str(other_model), device="cpu"), work).facts
    scores = [score for score in read_scores(facts) if score.metric in (SPEARMAN, PEARSON)]
    for score in scores:
        assert score.interval is not None
        assert score.interval.low < score.value < score.interval.high
        if score.role == "model":
            assert score.difference is not None
            assert score.difference_interval is not None
            assert score.difference_interval.low < score.difference < score.difference_interval.high

    def width(data: str, found: list[Score]) -> float:
        (score,) = select(found, SPEARMAN, data, "", "model")
        assert score.interval is not None
        return score.interval.high - score.interval.low

    # a mean over sets varies less than a set of it
    assert width(MEAN, scores) < max(width(name, scores) for name in ("STS13", "STS-B"))
    again = run(
        Params(sts=[sts], model=str(tiny_model), compare=str(other_model), device="cpu", seed=1, name="b"), work
    ).facts
    assert width(MEAN, read_scores(again)) != width(MEAN, scores)
    without = run(
        Params(sts=[sts], model=str(tiny_model), compare=str(other_model), device="cpu", bootstrap=0, name="c"), work
    ).facts
    assert {(score.interval, score.difference_interval) for score in read_scores(without)} == {(None, None)}
    assert value_of(read_scores(without), SPEARMAN, "STS13") == value_of(scores, SPEARMAN, "STS13")


def test_alignment_and_uniformity_are_measured_on_the_benchmark(
    tmp_path: Path, sts: Path, tiny_model: Path, other_model: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    work = WorkDirectory(tmp_path / "work")
    facts = run(Params(sts=[sts], model=str(tiny_model), compare=str(other_model), device="cpu"), work).facts
    rows = [line.split("\t") for line in (sts / "stsb" / "test.tsv").read_text().splitlines()]
    for role, folder in (("model", tiny_model), ("compare", other_model)):
        model = SentenceTransformer(str(folder), device="cpu")
        first, second = (model.encode([row[side] for row in rows], normalize_embeddings=True) for side in (1, 2))
        apart = [np.square(a - b).sum() for a, b, row in zip(first, second, rows, strict=True) if float(row[0]) > 4]
        scores = read_scores(facts)
        assert value_of(scores, ALIGNMENT, "STS-B", role=role) == pytest.approx(np.mean(apart), abs=1e-4)
        assert [score.count for score in select(scores, ALIGNMENT, role=role)] == [len(apart)]
        assert [score.count for score in select(scores, UNIFORMITY, role=role)] == [len(rows)]
        every = np.concatenate([first, second]).astype(float)
        kernels = np.exp(-2 * np.square(every[:, None] - every).sum(axis=2))[np.triu_indices(len(every), 1)]
        uniformity = value_of(scores, UNIFORMITY, "STS-B", role=role)
        assert uniformity == pytest.approx(np.log(kernels.mean()), abs=1e-4)
    assert all(score.kept is None for score in select(scores, ALIGNMENT))
    elsewhere = run(Params(sts=[sts / "sts13"], model=str(tiny_model), device="cpu", name="other"), work).facts
    assert not select(read_scores(elsewhere), ALIGNMENT)


def test_vectors_from_a_file_stand_in_for_a_model(tmp_path: Path, sts: Path, tiny_model: Path) -> None:
    from sentence_transformers import SentenceTransformer

    rows = [line.split("\t") for path in sts.rglob("*.tsv") for line in path.read_text().splitlines()]
    texts = list(dict.fromkeys(text for row in rows for text in row[1:]))
    np.save(tmp_path / "v.npy", SentenceTransformer(str(tiny_model), device="cpu").encode(texts))
    (tmp_path / "v.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    params = Params(sts=[sts], model=str(tiny_model), compare=str(tmp_path / "v.npy"), device="cpu")
    facts = run(params, WorkDirectory(tmp_path / "work")).facts
    differences = [score.difference for score in select(read_scores(facts), SPEARMAN, role="model")]
    assert differences == pytest.approx([0] * len(differences), abs=0.05)
    (tmp_path / "v.txt").write_text("\n".join([*texts[:-1], "something else"]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="lacks 1 of"):
        run(params, WorkDirectory(tmp_path / "work"))


def test_sets_of_another_size_than_the_published_are_told(tmp_path: Path, sts: Path, tiny_model: Path) -> None:
    listener = Listener()
    run(Params(sts=[sts], model=str(tiny_model), device="cpu", bootstrap=0), WorkDirectory(tmp_path / "work"), listener)
    assert [warning[:32] for warning in listener.warnings] == [
        "STS13 has 100 pairs, but the pub",
        "STS-B has 80 pairs, but the publ",
    ]


def test_lines_that_cannot_be_read(tmp_path: Path, sts: Path, tiny_model: Path) -> None:
    (sts / "stsb" / "test.tsv").open("a").write("high\tthe cat\tthe dog\n")
    work, listener = WorkDirectory(tmp_path / "work"), Listener()
    with pytest.raises(InputError, match="line 81: the score 'high' is not a number"):
        run(Params(sts=[sts], model=str(tiny_model), device="cpu"), work)
    facts = run(Params(sts=[sts], model=str(tiny_model), device="cpu", skip_bad=True), work, listener).facts
    assert facts["dropped"]["STS-B"]["unreadable"] == 1
    assert "STS-B: skipped 1 unreadable line" in listener.warnings


def test_dev_split_has_its_own_name(tmp_path: Path, sts: Path, tiny_model: Path, sentences: list[str]) -> None:
    write_pairs(sts / "stsb" / "dev.tsv", sentences[:31], list(np.arange(30) % 6))
    made = run(Params(sts=[sts], model=str(tiny_model), split="dev", device="cpu"), WorkDirectory(tmp_path / "work"))
    assert made.name == f"sts-{tiny_model.name}-dev"
    assert {score.data for score in read_scores(made.facts)} == {"STS-B"}
    (other, listener) = (sts / "stsb" / "dev.tsv", Listener())
    named = run(Params(sts=[other], model=str(tiny_model), device="cpu"), WorkDirectory(tmp_path / "other"), listener)
    assert named.name == made.name
    assert named.facts["protocol"] == made.facts["protocol"], "a file that is named is read whatever its split"
    assert "split dev" in named.facts["protocol"]["statement"]
    assert not any("published test set" in warning for warning in listener.warnings)


def test_constant_scores_are_an_error_or_a_warning(
    tmp_path: Path, sts: Path, tiny_model: Path, sentences: list[str]
) -> None:
    work, listener = WorkDirectory(tmp_path / "work"), Listener()
    write_pairs(sts / "sts13" / "headlines.test.tsv", sentences[:11], [3.0] * 10)
    facts = run(Params(sts=[sts], model=str(tiny_model), device="cpu"), work, listener).facts
    (headlines,) = select(read_scores(facts), SPEARMAN, "STS13", "headlines")
    assert math.isnan(headlines.value)
    assert headlines.count == 10
    assert "the subset STS13 headlines has no score: all gold scores are 3" in listener.warnings
    with pytest.raises(InputError, match=r"STS13 has no score with .*: all gold scores are 3"):
        run(Params(sts=[sts], model=str(tiny_model), aggregate="mean", device="cpu", name="mean"), work)
    only = write_pairs(tmp_path / "one.tsv", sentences[:2], [3.0])
    with pytest.raises(InputError, match="needs at least two"):
        run(Params(sts=[only], model=str(tiny_model), device="cpu", name="one"), work)


def test_model_with_one_vector_for_everything_has_no_score(tmp_path: Path, sts: Path, tiny_model: Path) -> None:
    from sentcompress.models.encoder import Dense
    from sentcompress.models.layout import save_encoder
    from sentcompress.models.transformer_encoder import TransformerEncoder

    tiny = load_model(tiny_model)
    constant = Dense(tiny.pooled_dimension, 8)
    constant.linear.weight.data.zero_()
    constant.linear.bias.data.fill_(0.5)
    save_encoder(
        TransformerEncoder(tiny.transformer, tiny.tokenizer, dense=[constant], text=tiny.text), tmp_path / "constant"
    )
    with pytest.raises(InputError, match="STS13 has no score with constant: the model gives every pair the same"):
        run(Params(sts=[sts], model=str(tmp_path / "constant"), device="cpu"), WorkDirectory(tmp_path / "work"))


def test_empty_sides_are_counted(tmp_path: Path, sts: Path, tiny_model: Path) -> None:
    (sts / "stsb" / "test.tsv").open("a").write("3\t\tthe dog\n\tthe cat\tthe dog\n")
    listener = Listener()
    facts = run(
        Params(sts=[sts], model=str(tiny_model), device="cpu"), WorkDirectory(tmp_path / "work"), listener
    ).facts
    assert facts["dropped"]["STS-B"] == {"without_gold_score": 1, "with_empty_sentence": 1, "unreadable": 0}
    assert "STS-B: dropped 1 pair with an empty sentence" in listener.warnings


def test_all_faults_of_a_request_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        run(Params(sts=[], aggregate="al", split="tset", bootstrap=-1), WorkDirectory(tmp_path))
    faults = ("`sts`", "did you mean all?", "did you mean test?", "`bootstrap` must be at least 0")
    assert all(fault in caught.value.message for fault in faults)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["sts", "senteval"])
def test_embedded_teacher_has_its_published_scores(tmp_path: Path, shared_data: Path, layout: str) -> None:
    facts = run(Params(sts=[shared_data / layout], model="embedded", device="cpu"), WorkDirectory(tmp_path)).facts
    printed = {s.data: round(s.value, 2) for s in select(read_scores(facts), SPEARMAN, part="") if s.data != MEAN}
    assert printed == {"STS13": 80.60, "STS-B": 82.03}


def test_command_prints_a_table_or_one_json_document(
    tmp_path: Path, sts: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["eval-sts", "--sts", str(sts), "--model", str(tiny_model), "--work", str(tmp_path / "work")]
    assert _run(words) == 0
    table = capsys.readouterr().out
    words_there = ("STS13", "FNWN", "mean of the sets", "aggregate all", tiny_model.name, " to ", "uniformity")
    assert all(word in table for word in words_there)
    assert _run([*words, "--compare", str(tiny_model), "--name", "two", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)["facts"]
    kept = [score.kept for score in select(read_scores(document), SPEARMAN, role="model")]
    assert kept == pytest.approx([100] * len(kept))
    assert _run([*words, "--aggregate", "meen"]) == 2
    assert "did you mean mean" in capsys.readouterr().err


def test_intervals_that_are_not_defined_are_null_in_json_and_words_in_tables(
    tmp_path: Path, tiny_model: Path, sentences: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two pairs, every second draw takes one of them twice and has no correlation."""
    pairs = write_pairs(tmp_path / "two.tsv", sentences[:3], [1.0, 2.0])
    work = tmp_path / "work"
    words = ["eval-sts", "--sts", str(pairs), "--model", str(tiny_model), "--work", str(work), "-q"]
    assert _run([*words, "--compare", str(tiny_model)]) == 0
    shown = capsys.readouterr().out
    assert "nan" not in shown.lower()
    # Neither of the two scores has an interval, nor has their difference; and of a score of -100 nothing can be kept.
    score = read_scores(WorkDirectory(work).get("evaluations").facts)[0]
    assert shown.count("not defined") == (3 if score.value > 0 else 4)
    assert _run([*words, "--compare", str(tiny_model), "--json"]) == 0
    document = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["facts"]
    assert document["scores"][0]["interval"] == [None, None]
    assert _run([*words, "--bootstrap", "0", "--name", "without"]) == 0
    assert "not defined" not in capsys.readouterr().out
