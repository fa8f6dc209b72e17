"""finetune: students that learn from triplets, with and without their teacher beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from distilling import dev_of_saved, made_once, make_work, write_dev
from interrupting import interrupted
from listening import Listener
from tiny_models import load_model, make_plain, make_tiny_model

from sentcompress.cli.call import Call
from sentcompress.cli.results import SHOW
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.methods.ibkd import IBKDFinetune
from sentcompress.models.shape import Shape, Size, size_of
from sentcompress.stages import augment, finetune, teacher_embed
from sentcompress.stages.finetune import Params
from sentcompress.store import METHOD_OF, WorkDirectory
from sentcompress.training.selection import Selection

SHORT: dict[str, Any] = {
    "lr": 1e-3,
    "epochs": 1,
    "batch_size": 8,
    "max_steps": 6,
    "dtype": "float32",
    "device": "cpu",
    "eval_every": 3,
}


@pytest.fixture
def work(tmp_path: Path, tiny_model: Path, sentences: list[str]) -> WorkDirectory:
    """Sentences with vectors, called main, and 60 triplets, called nli."""

    def make(work: WorkDirectory) -> None:
        make_work(work.path, tiny_model, sentences[:200])
        lines = ["sent0,sent1,hard_neg"]
        lines += [",".join(sentences[start : start + 3]) for start in range(0, 180, 3)]
        (tmp_path / "nli.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        augment.run(augment.Params(inputs=(str(tmp_path / "nli.csv"),), wordnet=0, back_translate=0, name="nli"), work)

    return made_once(tmp_path / "work", (tiny_model, "triplets"), make)


def params(tiny_model: Path, **asked: object) -> Params:
    return replace(Params(model=str(tiny_model), **SHORT), **asked)  # type: ignore[arg-type]


BERT = {"vocab_size": 30_522, "hidden_size": 768, "intermediate_size": 3072}
TINY = {"vocab_size": 30_522, "hidden_size": 312, "intermediate_size": 1200}


@pytest.mark.parametrize(
    ("config", "lr"),
    [
        ({**BERT, "num_hidden_layers": 12}, 5e-5),
        ({**BERT, "num_hidden_layers": 6}, 1e-5),
        ({**TINY, "num_hidden_layers": 4}, 5e-5),
        ({}, 5e-5),
    ],
)
def test_a_student_of_distilcse_is_tuned_at_the_rate_of_its_size(config: dict[str, Any], lr: float) -> None:
    """Section 4.2: 1e-5 for TinyBERT of 6 layers, 5e-5 for BERT-base and TinyBERT of 4 layers."""
    size = size_of(config, Shape()) if config else Size()
    assert Params().settings(size).lr == lr
    assert Params(lr=2e-5).settings(size).lr == 2e-5
    assert Params(objective="ibkd").settings(size).lr == 3e-5


def test_the_saved_student_is_the_one_that_was_scored(
    work: WorkDirectory, tiny_model: Path, sentences: list[str]
) -> None:
    dev = write_dev(work.path / "dev.tsv", sentences[:40])
    student = finetune.run(params(tiny_model, dev=dev, dim=8), work)
    assert student.reference.startswith("students/tiny-model-simcse-8-")
    facts = student.facts
    assert facts["dimension"] == 8
    assert facts["triplets"] == 60
    assert dev_of_saved(student, dev) == facts["dev"]
    saved = load_model(student.path / "model")
    assert saved.dimension == 8
    assert saved.normalize


def test_the_model_that_it_started_from_is_recorded_once_and_shown(
    work: WorkDirectory, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    student = finetune.run(params(tiny_model), work)
    again = finetune.run(params(tiny_model, model=student.name, name="again"), work)
    assert [key for key, value in again.facts.items() if value == student.reference] == [METHOD_OF]
    SHOW["finetune"](again, Call(params(tiny_model), work.path))
    assert f"started from          {student.reference}" in capsys.readouterr().out


def test_a_checkpoint_gets_the_pooling_that_is_asked_for(work: WorkDirectory, tmp_path: Path, tiny_model: Path) -> None:
    plain = make_plain(tmp_path / "plain", tiny_model)
    student = finetune.run(params(tiny_model, model=str(plain), pooling="cls-mlp"), work)
    saved = load_model(student.path / "model")
    assert saved.pooling == ("cls",)
    assert [layer.activation_name for layer in saved.dense_layers] == ["Tanh"]
    again = finetune.run(params(tiny_model, model=str(plain), pooling="cls-mlp", name="again"), work)
    assert again.facts["dev_before_training"] == student.facts["dev_before_training"]
    mean = finetune.run(params(tiny_model, model=str(plain)), work)
    assert load_model(mean.path / "model").pooling == ("mean",)
    with pytest.raises(InputError, match=r"`pooling` mean: .* has modules of its own"):
        finetune.run(params(tiny_model, pooling="mean"), work)


def test_random_batches_of_triplets_and_of_the_sentences_beside_them(work: WorkDirectory, tiny_model: Path) -> None:
    asked = params(tiny_model, batches="random", keep=1.0)
    student, again = finetune.run(asked, work), finetune.run(replace(asked, name="again"), work)
    assert student.parameters["batches"] == "random"
    weights = [(made.path / "model/model.safetensors").read_bytes() for made in (student, again)]
    assert weights[0] == weights[1]
    other = finetune.run(params(tiny_model, keep=1.0), work)
    assert other.facts["tokens_seen"] != student.facts["tokens_seen"]


def test_without_graded_pairs_held_out_triplets_choose(work: WorkDirectory, tiny_model: Path) -> None:
    student = finetune.run(params(tiny_model), work)
    assert "held-out anchors" in student.facts["dev_protocol"]
    assert student.facts["training_rows"] < 60
    assert student.facts["dev"] >= student.facts["dev_before_training"]


def vectors_of(model: Path, texts: Sequence[str]) -> torch.Tensor:
    """[N, D], of length one, each sentence by itself."""
    encoder = load_model(model).eval()
    with torch.inference_mode():
        found = [
            encoder(ids, torch.ones_like(ids)) for ids in map(torch.tensor, ([row] for row in encoder.tokenize(texts)))
        ]
    return torch.nn.functional.normalize(torch.cat(found), dim=1)


def test_a_kept_teacher_holds_the_student_back(
    work: WorkDirectory, tiny_model: Path, sentences: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a heavy distillation term the vectors stay near the teacher's; here the student starts as the teacher."""

    def keep_the_last(selection: Selection) -> None:
        selection.encoder.eval()
        selection.method.eval()

    monkeypatch.setattr(Selection, "restore", keep_the_last)
    numbers = dict(SHORT, lr=2e-3, max_steps=20, epochs=5, eval_every=20, dropout=0.0)
    dev = write_dev(work.path / "dev.tsv", sentences[:40])
    free = finetune.run(params(tiny_model, **numbers, dev=dev, name="free"), work)
    kept = finetune.run(params(tiny_model, **numbers, dev=dev, keep=200.0, name="kept"), work)
    assert kept.facts["teacher"]
    last = {a.name: json.loads((a.path / "log.jsonl").read_text().splitlines()[-1]) for a in (free, kept)}
    assert "keep" in last["kept"]
    assert "keep" not in last["free"]
    texts = sentences[100:160]
    teacher = vectors_of(tiny_model, texts)
    distance = {
        a.name: float((vectors_of(a.path / "model", texts) - teacher).square().sum(1).mean()) for a in (free, kept)
    }
    # As far as two sentences are from each other.
    apart = float((teacher - teacher.roll(1, dims=0)).square().sum(1).mean())
    assert 0 < distance["kept"] < 0.5 * distance["free"]
    assert distance["kept"] < 0.2 * apart


def test_several_hard_negatives(
    work: WorkDirectory, tiny_model: Path, sentences: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The objective sees all of them, each with its own anchor."""
    table = work.get("sentences", "nli")
    rows = np.arange(60)
    lists = [[int(3 * row + 2), int((3 * row + 5) % 180)] for row in rows]
    columns = {"anchor": 3 * rows, "positive": 3 * rows + 1, "negatives": pa.array(lists, pa.list_(pa.int64()))}
    with work.build(replace_request(table, "mined")) as build:
        for path in table.path.glob("sentences-*.parquet"):
            with build.write(path.name) as target:
                target.write_bytes(path.read_bytes())
        with build.write("triplets.parquet") as target:
            pq.write_table(pa.table(columns), target)
        mined = build.finish(dict(table.facts))
    assert SentenceTable(mined.path).triplets().shape == (60, 4)
    objective, seen = IBKDFinetune.objective, []

    def noted(self: IBKDFinetune, **views: torch.Tensor) -> dict[str, torch.Tensor]:
        seen.append({name: view.detach() for name, view in views.items()})
        return objective(self, **views)

    monkeypatch.setattr(IBKDFinetune, "objective", noted)
    numbers = dict(SHORT, max_steps=1, dropout=0.0, batch_size=12)
    dev = write_dev(work.path / "dev.tsv", sentences[:40])
    student = finetune.run(params(tiny_model, sentences="mined", objective="ibkd", **numbers, dev=dev), work)
    assert student.reference.startswith("students/tiny-model-ibkd-")
    views = seen[0]
    assert len(views["anchor"]) == 12
    assert len(views["negatives"]) == len(views["negative_inputs"]) == 2 * 12
    # The first step sees the model as it was: each vector tells which sentence it is of.
    texts = [text for part in SentenceTable(mined.path).stream() for text in part]
    known = vectors_of(tiny_model, texts)
    near = {
        name: torch.nn.functional.normalize(views[name], dim=1) @ known.T
        for name in ("anchor", "positive", "negatives")
    }
    assert all(similar.max(dim=1).values.min() > 1 - 1e-5 for similar in near.values())
    found = {name: similar.argmax(dim=1).tolist() for name, similar in near.items()}
    assert all(anchor % 3 == 0 for anchor in found["anchor"])
    assert found["positive"] == [anchor + 1 for anchor in found["anchor"]]
    assert found["negatives"] == [row for anchor in found["anchor"] for row in lists[anchor // 3]]


def replace_request(table: object, name: str) -> object:
    from sentcompress.store import Request

    return Request("sentences", name, "mine-negatives", {"of": str(table)}, {})


@pytest.mark.parametrize("batches", ["by-length", "random"])
def test_an_interrupted_run_ends_with_the_same_weights(
    work: WorkDirectory, tiny_model: Path, sentences: list[str], batches: str
) -> None:
    from sentcompress.methods.simcse import SimCSE

    dev = write_dev(work.path / "dev.tsv", sentences[:40])
    asked = params(tiny_model, dev=dev, keep=0.5, checkpoint_seconds=0, dropout=0.1, batches=batches)
    whole = finetune.run(replace(asked, name="whole"), work)
    with interrupted(SimCSE, "objective", call=5):
        finetune.run(replace(asked, name="part"), work)
    part = finetune.run(replace(asked, name="part"), work)
    names = ("model.safetensors",)
    for name in names:
        assert (part.path / "model" / name).read_bytes() == (whole.path / "model" / name).read_bytes()
    logs = [[json.loads(line) for line in (made.path / "log.jsonl").read_text().splitlines()] for made in (whole, part)]
    one, two = ([(line["step"], line.get("contrastive"), line["dev"]) for line in log] for log in logs)
    assert one == two
    assert len(one) == 3


def test_what_is_missing_is_named(tmp_path: Path, tiny_model: Path, sentences: list[str]) -> None:
    bare = make_work(tmp_path / "bare", tiny_model, sentences[:20])
    with pytest.raises(MissingArtifactError, match="no triplets"):
        finetune.run(params(tiny_model), bare)
    with pytest.raises(MissingArtifactError, match="students"):
        finetune.run(replace(params(tiny_model), model=None), bare)


def test_all_faults_at_once(tmp_path: Path, tiny_model: Path) -> None:
    asked = params(tiny_model, objective="simsce", dev=tmp_path / "none.tsv")
    with pytest.raises(UsageError, match=r"2 errors[\s\S]*simcse[\s\S]*no such file"):
        finetune.run(asked, WorkDirectory(tmp_path / "work"))
    with pytest.raises(UsageError, match="no option"):
        finetune.run(params(tiny_model, options=("warmth=1",)), WorkDirectory(tmp_path / "work"))


def test_teacher_vectors_without_the_term_that_uses_them_are_refused(work: WorkDirectory, tiny_model: Path) -> None:
    with pytest.raises(UsageError, match="`teacher_vectors` is for the distillation term: give its weight with `keep`"):
        finetune.run(params(tiny_model, teacher_vectors="main"), work)
    kept = finetune.run(params(tiny_model, teacher_vectors="main", max_steps=1, options=("keep=0.5",)), work)
    assert "teacher-vectors/main" in kept.inputs
    assert "--teacher-vectors main" in kept.command_line()


def test_the_recorded_command_takes_a_model_of_teacher_vectors_for_a_model(
    work: WorkDirectory, tiny_model: Path
) -> None:
    """Read at another length, a teacher is recorded as its vectors."""
    short = teacher_embed.Params(teacher=str(tiny_model), sentences="main", max_length=20, name="short")
    teacher_embed.run(short, work)
    student = finetune.run(params(tiny_model, model="teacher-vectors/short", max_steps=1, name="tuned"), work)
    assert "teacher-vectors/short" in student.inputs
    assert "--model teacher-vectors/short" in student.command_line()
    assert "--teacher-vectors" not in student.command_line()


def test_a_head_may_start_from_the_principal_axes(work: WorkDirectory, tiny_model: Path, sentences: list[str]) -> None:
    """Before any step, the 8-d vectors are the PCA of the student's own on the sentences of the triplets."""
    from sklearn.decomposition import PCA

    dev = write_dev(work.path / "dev.tsv", sentences[:40])
    numbers = dict(SHORT, lr=1e-12, max_steps=1)
    asked = params(tiny_model, **numbers, dev=dev, dim=8, options=("dim_start=pca",), name="axes")
    student = load_model(finetune.run(asked, work).path / "model")
    before = load_model(tiny_model)
    texts = [text for part in SentenceTable(work.get("sentences", "nli").path).stream() for text in part]
    vectors, found = [], []
    with torch.inference_mode():
        for text in texts:
            ids = torch.tensor(before.tokenize([text]))
            vectors.append(before.embed(ids, torch.ones_like(ids))[0].numpy())
            found.append(student.embed(ids, torch.ones_like(ids))[0].numpy())
    wanted = PCA(8).fit_transform(np.array(vectors, dtype=np.float64))
    signs = np.sign((wanted * np.array(found)).sum(axis=0))
    assert np.allclose(np.array(found) * signs, wanted, atol=1e-4)


def test_a_head_that_is_wider_than_the_vectors_or_is_not_there(work: WorkDirectory, tiny_model: Path) -> None:
    with pytest.raises(UsageError, match="dim=33 exceeds the student's 32 dimensions"):
        finetune.run(params(tiny_model, dim=33), work)
    with pytest.raises(UsageError, match="dim is 0"):
        finetune.run(params(tiny_model, options=("dim_start=pca",)), work)


def test_a_student_is_not_replaced_by_what_is_made_of_it(work: WorkDirectory, tiny_model: Path) -> None:
    first = finetune.run(params(tiny_model, name="one"), work)
    with pytest.raises(UsageError, match="students/one cannot be its own input"):
        finetune.run(params(tiny_model, model="one", name="one"), work)
    assert work.get("students", "one").digest == first.digest


def test_a_seed_of_many_digits(work: WorkDirectory, tiny_model: Path) -> None:
    """Seeds are multiplied on the way to torch, which takes 64 bits."""
    numbers = dict(SHORT, max_steps=2, seed=2**63 - 1)
    assert finetune.run(params(tiny_model, **numbers), work).facts["steps"] == 2


def test_code_that_was_trusted_is_trusted_when_the_student_is_read_back(work: WorkDirectory, tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "own")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoModel": "modeling_own.OwnModel"}}))
    (folder / "modeling_own.py").write_text(
        "from transformers import BertModel\n\nclass OwnModel(BertModel):\n    pass\n"
    )
    asked = params(folder, max_steps=2)
    with pytest.raises(InputError, match="wants to run Python code"):
        finetune.run(asked, work)
    student = finetune.run(replace(asked, trust_remote_code=True), work)
    assert student.facts["steps"] == 2


def test_a_student_of_rounded_weights_stays_one(work: WorkDirectory, tiny_model: Path) -> None:
    rounded = replace(params(tiny_model, sentences="nli", weight_format="int4"), max_steps=1, name="rounded")
    finetune.run(rounded, work)
    listener = Listener()
    again = finetune.run(replace(params(tiny_model, sentences="nli"), model="rounded", max_steps=1), work, listener)
    assert again.parameters["weight_format"] == "int4"
    assert "rounded was trained with weights rounded to int4, and so is this one" in listener.notes
