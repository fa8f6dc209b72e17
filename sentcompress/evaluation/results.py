"""The document that an evaluation leaves in its artifact: written once, shown again as long as it is fresh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentcompress.documents import finite, to_json
from sentcompress.store import Artifact, Build

FILE = "result.json"


def write_result(build: Build, result: Mapping[str, Any]) -> Artifact:
    """Finish an artifact of kind `evaluations`; the manifest's facts hold the same document.

    Figures that are not defined (NaN) become null.
    """
    document = finite(result)
    with build.write(FILE) as path:
        path.write_text(to_json(document) + "\n", encoding="utf-8")
    return build.finish(document)
