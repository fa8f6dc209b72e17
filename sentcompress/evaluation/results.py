"""The document that an evaluation leaves in its artifact: written once, shown again as long as it is fresh."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sentcompress.artifacts import Artifact, Build

FILE = "result.json"


def write_result(build: Build, result: Mapping[str, Any]) -> Artifact:
    """Finish an artifact of kind `evaluations`; the manifest's facts hold the same document."""
    with build.write(FILE) as path:
        # A number that is none would make the document invalid JSON for every other reader.
        path.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return build.finish(result)
