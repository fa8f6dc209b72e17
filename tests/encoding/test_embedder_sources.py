"""Where vectors come from: names that keep evaluations of different vectors apart."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from listening import Listener
from tiny_models import make_prompted

from sentcompress.encoding import evaluation_in_ranks
from sentcompress.encoding.embedder_sources import find_embedder
from sentcompress.errors import InputError
from sentcompress.store import WorkDirectory


def test_files_of_vectors_that_are_called_alike_have_different_slugs(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    slugs = []
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "vectors.npy", np.ones((1, 3), dtype=np.float32))
        (tmp_path / name / "vectors.txt").write_text("one\n")
        slugs.append(find_embedder(work, str(tmp_path / name / "vectors.npy")).slug)
    assert slugs == ["ours-vectors.npy", "theirs-vectors.npy"]


def test_a_file_of_vectors_has_no_revision(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"`revision` v1: vectors\.npy is not a model of the hub"):
        find_embedder(WorkDirectory(tmp_path / "work"), "vectors.npy", revision="v1")


def test_a_rank_whose_model_differs_from_that_of_rank_0_is_refused(tmp_path: Path, tiny_model: Path) -> None:
    """Each machine reads its own copy, unless the model is on a file system that they share."""
    folder = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    model = find_embedder(WorkDirectory(tmp_path / "work"), str(folder)).model
    assert model is not None
    assert evaluation_in_ranks._opened(model, "cpu", "float32").dimension == 32
    settings = json.loads((folder / "sentence_bert_config.json").read_text(encoding="utf-8"))
    settings["max_seq_length"] = 5
    (folder / "sentence_bert_config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(InputError, match="are not those that rank 0 reads"):
        evaluation_in_ranks._opened(model, "cpu", "float32")


def test_named_prompts_are_told_to_be_unused(tmp_path: Path, tiny_model: Path) -> None:
    told, work = Listener(), WorkDirectory(tmp_path / "work")
    for model in (tiny_model, make_prompted(tmp_path / "prompted", tiny_model)):
        find_embedder(work, str(model)).open(device="cpu", reporter=told)
    assert len(told.warnings) == 1
    assert told.warnings[0].startswith("prompted has named prompts that are not used (query)")
