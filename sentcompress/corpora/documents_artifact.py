"""The files of an artifact of kind `documents`, which split-documents writes, and its name in place of a file.

- TRAIN: a JSON object a line with `text`, `kind` (one of KINDS) and `document`.
- CORPUS: `_id`, `title`, `text`: passages of held-out documents and a sample of training passages.
- QUERIES: `_id`, `text`, `kind` (one of QUERY_KINDS), `document`, `part`: queries about the held-out documents. Those
  of DEV choose checkpoints, models and quantizers; those of TEST only measure.
"""

from __future__ import annotations

import os

from sentcompress.models import prompts
from sentcompress.store import Artifact, WorkDirectory

KIND = "documents"
TRAIN, CORPUS, QUERIES = "train.jsonl", "held-out/corpus.jsonl", "held-out/queries.jsonl"
PASSAGE, TITLE, QUERY = KINDS = ("passage", "title", "query")
SPAN, KEYWORDS, RARE, LOG = "span", "keywords", "rare", "log"
QUERY_KINDS = (SPAN, KEYWORDS, RARE, TITLE, LOG)
DEV, TEST = PARTS = ("dev", "test")
# How the texts of TRAIN are used in a search: titles are queries in QUERIES, too.
ROLES = {PASSAGE: prompts.DOCUMENT, TITLE: prompts.QUERY, QUERY: prompts.QUERY}


def names_documents(name: str) -> bool:
    """Whether a name has the form `documents/NAME`."""
    kind, slash, own = name.partition("/")
    return bool(slash and own and kind == KIND)


def find_documents(work: WorkDirectory, name: str) -> Artifact | None:
    """The artifact that `documents/NAME` means; None for any other name, or if it is only a file or folder here.

    An artifact comes before a file of that path; write `./documents/NAME` for the file.

    Raises:
        MissingArtifactError: if there is neither such an artifact nor such a file.
        DamagedError: if it cannot be read.
    """
    if not names_documents(name):
        return None
    own = name.partition("/")[2]
    if os.path.exists(name) and ("/" in own or work.find(KIND, own) is None):
        return None
    return work.get(KIND, own)
