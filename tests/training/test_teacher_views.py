"""What a method gets beside the student: here the prototypes of domains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from beir import write_jsonl
from distilling import add_sentences, run_hinted, supply_to
from listening import Listener
from tiny_models import load_model, make_tiny_model

from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.encoding.npy_files import NpyFiles
from sentcompress.errors import MissingArtifactError
from sentcompress.stages import augment, distill, teacher_embed
from sentcompress.store import WorkDirectory


def prepare(folder: Path, teacher: Path, sentences: list[str], genres: list[str]) -> WorkDirectory:
    file, work = folder / "told.jsonl", WorkDirectory(folder / "work")
    rows = [{"text": text, "genre": genres[number % len(genres)]} for number, text in enumerate(sentences)]
    write_jsonl(file, rows)
    augment.run(augment.Params(inputs=(str(file),), wordnet=0, back_translate=0, domain="genre"), work)
    teacher_embed.run(teacher_embed.Params(teacher=str(teacher), dtype="float32"), work)
    return work


def test_each_domain_has_the_mean_of_its_vectors(tmp_path: Path, tiny_model: Path, sentences: list[str]) -> None:
    work = prepare(tmp_path, tiny_model, sentences[:50], ["travel", "fiction", "travel"])
    table, vectors = SentenceTable(work.get("sentences").path), work.get("teacher-vectors")
    supplied = supply_to(load_model(tiny_model), vectors, "teacher", "domains", domains=table.domains())
    cached = NpyFiles(vectors.path).rows(np.arange(len(table)))
    fiction = np.array([name == "fiction" for name in table.domain_names(0)])
    assert 0 < fiction.sum() < len(table) / 2
    wanted = np.stack([cached[~fiction].mean(axis=0), cached[fiction].mean(axis=0)])
    np.testing.assert_allclose(supplied.shapes.tensors["prototypes"].numpy(), wanted, atol=1e-6)
    assert supplied.fields["domains"](np.arange(3)).tolist() == [0, 1, 0]


@pytest.mark.parametrize(("genres", "warned"), [(["travel", "fiction"], False), (["travel"], True)])
def test_one_domain_alone_is_told(
    tmp_path: Path, tiny_model: Path, sentences: list[str], genres: list[str], warned: bool
) -> None:
    work, listener = prepare(tmp_path, tiny_model, sentences[:50], genres), Listener()
    numbers: dict[str, Any] = {"max_steps": 1, "batch_size": 8, "dtype": "float32", "device": "cpu"}
    distill.run(distill.Params(method="metakd", student="teacher:1", **numbers), work, listener)
    assert any("has only one domain" in message for message in listener.warnings) == warned


@pytest.mark.parametrize(("student_layers", "cached"), [(2, [3, 6]), (8, [1, 2, 3, 4, 5, 6])])
def test_the_command_that_pkd_asks_for_is_the_one_it_needs(
    tmp_path: Path, sentences: list[str], student_layers: int, cached: list[int]
) -> None:
    """Copied from the hint, it caches layers of the same teacher, in the same work directory."""
    teacher = make_tiny_model(tmp_path / "teacher", layers=6)
    work = WorkDirectory(tmp_path / "my work")
    add_sentences(work, [sentences[:40]])
    teacher_embed.run(teacher_embed.Params(teacher=str(teacher), dtype="float32"), work)
    student = make_tiny_model(tmp_path / "student", layers=student_layers, seed=1)
    numbers: dict[str, Any] = {"max_steps": 1, "batch_size": 8, "dtype": "float32", "device": "cpu"}
    asked = distill.Params(method="pkd", student=str(student), **numbers)
    with pytest.raises(MissingArtifactError) as caught:
        distill.run(asked, work)
    run_hinted(caught.value)
    assert work.get("teacher-vectors").facts["layers"] == cached
    assert work.get("teacher-vectors").parameters["teacher"] == str(teacher)
    assert distill.run(asked, work).facts["steps"] == 1
