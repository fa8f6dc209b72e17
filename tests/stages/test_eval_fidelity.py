"""eval-fidelity: a model against another one on plain sentences, and where the sentences come from."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distilling import make_work, write_dev
from listening import Listener
from search_documents import make_documents
from tiny_models import make_sentences, make_tiny_model

from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.evaluation.metrics import CORRELATION, NEIGHBOURS, SIMILARITIES
from sentcompress.evaluation.score import read_scores, value_of
from sentcompress.stages.eval_fidelity import Params, run
from sentcompress.store import WorkDirectory


@pytest.fixture
def text(tmp_path: Path, sentences: list[str]) -> Path:
    path = tmp_path / "lines" / "my.txt"
    path.parent.mkdir()
    path.write_text("\n".join([*sentences, "", *sentences[:20]]) + "\n", encoding="utf-8")
    return path


def test_a_model_is_the_same_as_itself(tmp_path: Path, text: Path, tiny_model: Path) -> None:
    params = Params(text=[text], model=str(tiny_model), compare=str(tiny_model), device="cpu")
    listener = Listener()
    made = run(params, WorkDirectory(tmp_path / "work"), listener)
    assert listener.warnings[0].startswith(f"{tiny_model.name} is compared with itself; ")
    facts = made.facts
    assert made.name == f"fidelity-{text.stem}-{tiny_model.name}"
    assert json.loads((made.path / "result.json").read_text()) == facts
    assert facts["sentences"] == 300  # the repeated ones counted once
    scores = read_scores(facts)
    assert [(score.metric, score.role) for score in scores[:2]] == [(NEIGHBOURS, "model"), (NEIGHBOURS, "compare")]
    assert {score.data for score in scores} == {text.name}
    assert [score.value for score in scores if score.metric != CORRELATION] == pytest.approx([100] * 6)
    correlations = [score.value for score in scores if score.metric == CORRELATION]
    assert correlations == [facts[role]["mean_absolute_correlation"] for role in ("model", "compare")]
    assert facts["cosine_to_compared"]["percentile_5"] == pytest.approx(1)
    assert facts["disagreements"] == []
    assert facts["verdict"]["level"] == "same"
    assert facts["model"] == facts["compare"]


def test_everything_about_two_models(tmp_path: Path, text: Path, tiny_model: Path, small_model: Path) -> None:
    from sentence_transformers import SentenceTransformer

    params = Params(
        text=[text.parent],
        model=str(small_model),
        compare=str(tiny_model),
        neighbours=5,
        pairwise=100,
        show=3,
        device="cpu",
    )
    facts = run(params, WorkDirectory(tmp_path / "work")).facts
    texts = list(dict.fromkeys(line for line in text.read_text().splitlines() if line))
    vectors = {
        role: SentenceTransformer(str(folder), device="cpu").encode(texts, normalize_embeddings=True).astype(float)
        for role, folder in (("model", small_model), ("compare", tiny_model))
    }
    nearest = {}
    for role, of in vectors.items():
        cosines = of @ of.T
        np.fill_diagonal(cosines, -2)
        nearest[role] = np.argsort(-cosines, axis=1)[:, :5]
        upper = cosines[np.triu_indices(300, 1)]
        assert facts[role]["anisotropy"] == pytest.approx(upper.mean(), abs=1e-4)
        shares = np.linalg.eigvalsh(np.cov(of.T))
        shares = shares[shares > 0] / shares.sum()
        assert facts[role]["effective_rank"] == pytest.approx(np.exp(-(shares * np.log(shares)).sum()), rel=1e-3)
        # the sample comes in an order of its own, which a covariance does not mind
        np.testing.assert_allclose(facts[role]["covariance"], np.cov(of[:, :16].T), atol=1e-5)
        assert facts[role]["tokens"]["truncated_share"] == 0
        assert facts[role]["tokens"]["unknown_share"] == 0
        assert sum(facts["histogram"][role]) == 100 * 99 / 2
    shared = [len(set(a) & set(b)) / 5 for a, b in zip(nearest["model"], nearest["compare"], strict=True)]
    assert read_scores(facts)[0].value == pytest.approx(100 * np.mean(shared), abs=1)
    assert facts["cosine_to_compared"] is None
    assert facts["cosine_is_to"].startswith("not comparable: 16 and 32 dimensions")
    assert len(facts["disagreements"]) == 3
    place = {sentence: number for number, sentence in enumerate(texts)}
    for pair in facts["disagreements"]:
        for role, of in vectors.items():
            cosine = of[place[pair["first"]]] @ of[place[pair["second"]]]
            assert pair[role] == pytest.approx(cosine, abs=1e-3)
    assert sum(bucket["sentences"] for bucket in facts["neighbours"]["by_length"]) == 300
    assert facts["unit_of_length"] == "tokens"


def test_long_and_foreign_text_is_counted(tmp_path: Path, tiny_model: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("\n".join([*make_sentences(18), " ".join(["dog"] * 80), "zebra xylophone cat"]), encoding="utf-8")
    facts = run(
        Params(text=[path], model=str(tiny_model), compare=str(tiny_model), neighbours=3, device="cpu"),
        WorkDirectory(tmp_path / "work"),
    ).facts
    assert facts["model"]["tokens"]["truncated_share"] == pytest.approx(1 / 20)
    assert facts["model"]["tokens"]["unknown_share"] > 0
    assert any("few" in caution for caution in facts["verdict"]["cautions"])


def test_a_sample_is_drawn_and_freshness_follows_the_files(tmp_path: Path, text: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    params = Params(text=[text], model=str(tiny_model), compare=str(tiny_model), sample=50, neighbours=3, device="cpu")
    made = run(params, work)
    assert made.facts["sentences"] == 50
    assert "50 sampled with seed 0" in made.facts["protocol"]["statement"]
    assert made.facts["protocol"]["statement"].endswith(" bootstrap samples of the sentences")
    assert run(params, work).manifest["finished"] == made.manifest["finished"]
    text.write_text("\n".join(make_sentences(60, seed=9)), encoding="utf-8")
    assert run(params, work).manifest["finished"] > made.manifest["finished"]


def test_vectors_from_files(tmp_path: Path, text: Path, sentences: list[str], tiny_model: Path) -> None:
    from sentence_transformers import SentenceTransformer

    vectors = SentenceTransformer(str(tiny_model), device="cpu").encode(sentences)
    np.save(tmp_path / "v.npy", vectors)
    (tmp_path / "v.txt").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    params = Params(text=[text], model=str(tmp_path / "v.npy"), compare=str(tiny_model), device="cpu")
    facts = run(params, WorkDirectory(tmp_path / "work")).facts
    assert read_scores(facts)[0].value > 99
    assert facts["model"]["tokens"] is None
    vectors[7] = 0
    np.save(tmp_path / "v.npy", vectors)
    listener = Listener()
    params = Params(text=[text], model=str(tmp_path / "v.npy"), compare=str(tmp_path / "v.npy"), device="cpu", show=0)
    facts = run(params, WorkDirectory(tmp_path / "other"), listener).facts
    assert (facts["sentences"], facts["unit_of_length"]) == (299, "words")
    assert listener.warnings[1:] == ["v.npy: zero vectors of 1 text; they are skipped"]


def test_a_collapsed_model_has_no_nan(tmp_path: Path, text: Path, sentences: list[str], tiny_model: Path) -> None:
    np.save(tmp_path / "same.npy", np.ones((300, 4), np.float32))
    (tmp_path / "same.txt").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    params = Params(text=[text], model=str(tmp_path / "same.npy"), compare=str(tiny_model), device="cpu")
    facts = run(params, WorkDirectory(tmp_path / "work")).facts
    assert math.isnan(value_of(read_scores(facts), SIMILARITIES))
    assert facts["model"]["effective_rank"] is None
    assert facts["model"]["mean_absolute_correlation"] is None
    assert facts["model"]["anisotropy"] == pytest.approx(1)
    assert facts["verdict"]["level"] == "poor"


def distil(work: WorkDirectory, *, dev: Path | None = None, name: str = "student") -> None:
    """A student of a step or two, 8 wide by HPD."""
    from sentcompress.stages import distill, fit_pca

    if not work.names("projections"):
        fit_pca.run(fit_pca.Params(dim=8), work)
    numbers: dict[str, Any] = {"epochs": 1, "batch_size": 64, "device": "cpu", "dtype": "float32", "max_steps": 2}
    distill.run(distill.Params(method="hpd", student="teacher:1", **numbers, dev=dev, name=name), work)


def test_sentences_that_the_training_held_out_and_the_projected_teacher(tmp_path: Path, tiny_model: Path) -> None:
    texts = make_sentences(600)
    work = make_work(tmp_path / "work", tiny_model, texts)
    distil(work)
    facts = run(Params(neighbours=3, device="cpu"), work).facts
    assert facts["compare"]["label"] == tiny_model.name  # the teacher of the work directory
    assert facts["sentences"] == 12  # 2% of 600
    assert "held out" in facts["protocol"]["statement"]
    assert not facts["seen_in_training"]
    assert facts["cosine_is_to"] == "the vectors projected by projections/pca-8"
    assert -1 <= facts["cosine_to_compared"]["mean"] <= 1
    # against another model there is no projection
    other = make_tiny_model(tmp_path / "other", layers=1, seed=3)
    elsewhere = run(Params(neighbours=3, compare=str(other), device="cpu", name="b"), work).facts
    assert elsewhere["cosine_to_compared"] is None
    make_documents(work, texts[:30], texts[30:50])
    for dev in (write_dev(tmp_path / "dev.tsv", texts[:30]), Path("documents/main")):
        distil(work, dev=dev, name=f"by-{dev.name}")
        seen = run(Params(neighbours=3, model=f"by-{dev.name}", sample=100, device="cpu"), work).facts
        assert seen["seen_in_training"]
        assert "held out" not in seen["protocol"]["statement"]
        assert any("trained on these sentences" in caution for caution in seen["verdict"]["cautions"])


def test_a_file_that_the_student_was_trained_on_is_not_unseen(tmp_path: Path, tiny_model: Path) -> None:
    from sentcompress.stages import augment, teacher_embed

    texts, work = make_sentences(300), WorkDirectory(tmp_path / "work")
    for name, part in (("own", texts[:250]), ("fresh", texts[250:])):
        (tmp_path / f"{name}.txt").write_text("\n".join(part) + "\n", encoding="utf-8")
    augment.run(augment.Params(inputs=(str(tmp_path / "own.txt"),), wordnet=0, back_translate=0), work)
    teacher_embed.run(teacher_embed.Params(teacher=str(tiny_model), device="cpu"), work)
    distil(work)
    for name, seen in (("own", True), ("fresh", False)):
        params = Params(text=[tmp_path / f"{name}.txt"], model="student", neighbours=3, device="cpu")
        assert run(params, work).facts["seen_in_training"] == seen


def test_what_cannot_be_compared(tmp_path: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    path = tmp_path / "few.txt"
    path.write_text("the cat\nthe dog\nthe cat\n", encoding="utf-8")
    with pytest.raises(InputError, match="2 usable sentences: 10 neighbours need at least 12"):
        run(Params(text=[path], model=str(tiny_model), compare=str(tiny_model), device="cpu"), work)
    with pytest.raises(InputError, match="no such file or folder"):
        run(Params(text=[tmp_path / "nothing.txt"], model=str(tiny_model), compare=str(tiny_model)), work)
    with pytest.raises(MissingArtifactError) as caught:
        run(Params(model=str(tiny_model), compare=str(tiny_model)), work)
    assert "`text`" in str(caught.value.hint)
    with pytest.raises(UsageError) as refused:
        run(Params(text=[path], sentences="main", sample=1, neighbours=0), work)
    faults = ("`sample` must be", "`neighbours` must be", "`text` and `sentences`")
    assert all(fault in refused.value.message for fault in faults)


def test_command_prints_a_verdict_or_one_json_document(
    tmp_path: Path, text: Path, tiny_model: Path, small_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sentcompress.cli.main import _run

    words = ["eval-fidelity", "--text", str(text), "--model", str(small_model), "--compare", str(tiny_model)]
    words += ["--work", str(tmp_path / "work")]
    assert _run(words) == 0
    shown = capsys.readouterr().out
    parts = (
        "nearest neighbours",
        "neighbours shared",
        "effective rank",
        "disagree most",
        "As a rule of thumb",
        "Caution:",
    )
    assert all(part in shown for part in parts)
    assert _run([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)["facts"]
    assert document["verdict"]["rules_of_thumb"]["close"] == 0.7
    assert len(document["model"]["covariance"]) == 16
