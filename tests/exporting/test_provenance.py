"""What a card knows of a model's teacher, and of the model that the teacher was made from."""

from __future__ import annotations

from pathlib import Path

from tiny_models import make_sentences, make_tiny_model

from sentcompress.exporting.provenance import base_of, teacher_of
from sentcompress.models.catalog import find_model
from sentcompress.stages import augment, average, distill, teacher_embed
from sentcompress.store import WorkDirectory, ancestors


def test_the_base_of_a_teacher_made_here_is_the_model_from_outside(tmp_path: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    (tmp_path / "own.txt").write_text("\n".join(make_sentences(60)) + "\n", encoding="utf-8")
    augment.run(augment.Params(inputs=(str(tmp_path / "own.txt"),), wordnet=0, back_translate=0), work)
    outside = make_tiny_model(tmp_path / "outside", seed=5)
    average.run(average.Params(inputs=(str(outside), str(tiny_model)), name="big"), work)
    teacher_embed.run(teacher_embed.Params(teacher="big", device="cpu"), work)
    for student, name in (("teacher:1", "small"), ("small", "again")):
        params = distill.Params(
            method="mse", student=student, max_steps=2, epochs=1, device="cpu", dtype="float32", name=name
        )
        distill.run(params, work)
    for name in ("small", "again"):
        model = find_model(work, name)
        lineage = ancestors(work, model.reference, model.digest)
        assert (teacher_of(model, lineage), base_of(work, model, lineage)) == ("big", "outside")
    big = find_model(work, "big")
    assert base_of(work, big, ancestors(work, big.reference, big.digest)) == "outside"
