"""What is told of a model before its vectors are computed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from listening import Listener
from tiny_models import make_plain, make_sentences

from sentcompress.models.cautions import told_guess
from sentcompress.models.sources import resolve
from sentcompress.stages import augment, encode, eval_fidelity, teacher_embed
from sentcompress.store import WorkDirectory

GUESSED = "plain does not say how it is pooled (it has no modules.json): the mean of its token states is used"


@pytest.fixture
def texts(work: WorkDirectory, tmp_path: Path) -> Path:
    """Sentences, which are also in the table of the work directory."""
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"{line}\n" for line in make_sentences(150)), encoding="utf-8")
    augment.run(augment.Params(inputs=(str(path),), wordnet=0, back_translate=0), work)
    return path


def test_a_guessed_pooling_is_told(work: WorkDirectory, texts: Path, tiny_model: Path, tmp_path: Path) -> None:
    plain, told = make_plain(tmp_path / "plain", tiny_model), Listener()
    teacher_embed.run(teacher_embed.Params(teacher=str(plain), dtype="float32"), work, told)
    encode.run(encode.Params(lines=str(texts), output=tmp_path / "a.npy", model=str(plain)), work, told)
    params = eval_fidelity.Params(text=(texts,), model=str(plain), compare=str(tiny_model), bootstrap=0)
    eval_fidelity.run(params, work, told)
    assert [warning.startswith(GUESSED) for warning in told.warnings].count(True) == 3
    told = Listener()
    asked = teacher_embed.Params(teacher=str(plain), dtype="float32", pooling="cls", name="cls")
    teacher_embed.run(asked, work, told)
    assert told.warnings == []


def test_a_pooling_that_files_or_the_name_choose_is_not_guessed(tiny_model: Path, tmp_path: Path) -> None:
    assert told_guess(resolve(str(tiny_model)), "it", "auto") == ""
    plain = make_plain(tmp_path / "plain", tiny_model)
    assert told_guess(resolve(str(plain)), "it", "auto") != ""
    shutil.move(plain, tmp_path / "simcse")
    assert told_guess(resolve(str(tmp_path / "simcse")), "it", "auto") == ""
