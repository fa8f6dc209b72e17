"""Where vectors come from: names that keep evaluations of different vectors apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sentcompress.encoding.embedder_sources import find_embedder
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
