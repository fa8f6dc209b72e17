"""The artifact store: named results of commands, written atomically, resumable, and checked for freshness.

    WORK/<kind>/<name>/            data files, request.json (written first), manifest.json (written last)
    WORK/<kind>/.<name>.partial/   the unfinished build
    WORK/<kind>/.<name>.lock       held by the process that builds it
    WORK/<kind>/.<name>.shards/    its shards, before they are merged (`store.shards`)

There are two hashes. The *fingerprint* covers the request: command, its version, parameters, digests of the inputs.
The *digest* covers the result: SHA-256 over the data files. An artifact is fresh if its fingerprint is the one that
its command would request now. Later artifacts record the digests of their inputs.

Where to look: `artifacts` is the work directory, made of `lookup`, which finds artifacts, and `build`, which makes one;
`request` is what is asked for, `manifests` what was made, `unfinished` what a killed build left, `atomic` and `locking`
what all of it stands on. Shards are in `shards` (making one), `shard_plan` (what all of them share) and `merging`.
"""

from sentcompress.store.artifacts import WorkDirectory
from sentcompress.store.atomic import MANIFEST, SCAFFOLD
from sentcompress.store.build import Build
from sentcompress.store.freshness import CHANGED, Freshness, change_of
from sentcompress.store.lineage import (
    METHOD_OF,
    ancestors,
    held_nothing_out,
    is_data,
    learnt_projection,
    line_of,
    made_of,
    measurements,
    students_of,
    taught_by,
    weight_format_of,
)
from sentcompress.store.lookup import is_being_written
from sentcompress.store.manifests import (
    LOG,
    Artifact,
    damaged,
    file_digest,
    file_inputs,
    installed_libraries,
    tree_digest,
)
from sentcompress.store.names import check_name, name_part
from sentcompress.store.request import KINDS, MODEL_FILES, REQUEST, Kind, Request, made_here
from sentcompress.store.unfinished import read_request

__all__ = [
    "CHANGED",
    "KINDS",
    "LOG",
    "MANIFEST",
    "METHOD_OF",
    "MODEL_FILES",
    "REQUEST",
    "SCAFFOLD",
    "Artifact",
    "Build",
    "Freshness",
    "Kind",
    "Request",
    "WorkDirectory",
    "ancestors",
    "change_of",
    "check_name",
    "damaged",
    "file_digest",
    "file_inputs",
    "held_nothing_out",
    "installed_libraries",
    "is_being_written",
    "is_data",
    "learnt_projection",
    "line_of",
    "made_here",
    "made_of",
    "measurements",
    "name_part",
    "read_request",
    "students_of",
    "taught_by",
    "tree_digest",
    "weight_format_of",
]
