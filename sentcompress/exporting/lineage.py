"""The command that made an artifact, as far as its manifest tells."""

from __future__ import annotations

import os
from pathlib import Path

from sentcompress.plain_text import shell_line
from sentcompress.store import KINDS, Artifact, is_data

# Parameters that say which of several things a command made; the recipe has the others.
TELLING = ("teacher", "revision", "dim", "method", "student", "preset")
LISTS = ("index", "runtimes")
# The option by which a command is told its files.
FILE_OPTIONS = {
    "eval-sts": "--sts",
    "eval-retrieval": "--pairs",
    "eval-transfer": "--tasks",
    "eval-fidelity": "--text",
    "bench": "--text",
    "distill": "--dev",
}
MANY_FILES = 3


def command_line(artifact: Artifact) -> str:
    """The command that made an artifact, as far as its manifest tells: options by name, files without their folders."""
    command = str(artifact.manifest["command"])
    words = ["sentcompress", command, *_data(command, artifact)]
    for name, value in artifact.parameters.items():
        if name in ("model", "compare"):
            words += [f"--{name}", _without_folders(_name_of(str(value)))]
        elif name == "model_documents":
            words += ["--documents", _without_folders(_name_of(str(value)))]
        elif name in LISTS and not isinstance(value, str):
            words += [f"--{name}", ",".join(map(str, value))]
        elif name in TELLING and value is not None:
            words += [f"--{name.replace('_', '-')}", _without_folders(str(value))]
    return shell_line(words)


def _data(command: str, artifact: Artifact) -> list[str]:
    """The options that name the files which were read; where there are many, the folder that holds them all."""
    asked = artifact.parameters
    if command == "eval-retrieval" and "protocol" in asked:
        split = ["--split", str(asked["split"])] if asked.get("split") else []
        return [f"--{asked['protocol']}", str(asked["data"]), *split]
    option = "--sts" if command == "bench" and asked.get("preset") else FILE_OPTIONS.get(command)
    files = sorted(Path(r.removeprefix("file:")) for r in artifact.inputs if r.startswith("file:") and is_data(r))
    if option is None:
        return []
    if command == "eval-transfer":
        # Each task has a folder; the option names the one that holds them.
        files = [Path(os.path.commonpath([file.parents[1] for file in files]))]
    elif len(files) > MANY_FILES:
        files = [Path(os.path.commonpath(files))]
    # A data set of the hub stands as `hub:owner/name:split`, with its configuration before the split if it has one.
    sets = [r.removeprefix("hub:").rpartition(":")[0] for r in sorted(artifact.inputs) if r.startswith("hub:")]
    return [word for name in (*(file.name for file in files), *sets) for word in (option, name)]


def _name_of(reference: str) -> str:
    """`students/x` -> `x`, `model:owner/x` -> `owner/x`."""
    kind, slash, name = reference.partition("/")
    return name if slash and kind in KINDS else reference.removeprefix("model:")


def _without_folders(name: str) -> str:
    """A folder by its own name; names of a hub as they are."""
    return Path(name).name if name.startswith("/") else name
