"""How far do students reproduce their teacher's search results on each family of sources, without any judged set?

    python benchmarks/general_corpus.py DATA corpus
    python benchmarks/sources.py corpus/held-out --work work --model student-a --model student-b

For decisions in training: nothing here is reported as a result, so nothing that is reported decides. Each file of the
folder is cut by `split-documents` once, at most PASSAGES passages and QUERIES made queries are searched by
`eval-search`, and the teacher's vectors are kept in the work directory, so that another student costs its own vectors
only. A student that was trained without a family (`augment --share FILE=0`) shows in the row of that family how far it
falls on a source it never saw. Writes OUT.json and OUT.md (by default in the work directory): search fidelity to the
teacher for each family, then the mean and the worst of all.
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from running import sentcompress

from sentcompress.evaluation.metrics import SEARCH_FIDELITY
from sentcompress.evaluation.score import MODEL, read_scores, select

PASSAGES, QUERIES = 600, 200
# Of each file, so many documents are asked about; the others are searched beside them.
HELD_OUT = 0.4
ENDING = ".jsonl.gz"

Found = dict[str, dict[str, dict[str, Any]]]


def families(folder: Path) -> list[str]:
    """The families that the folder has a file of."""
    return sorted(path.name.removesuffix(ENDING) for path in folder.glob(f"*{ENDING}"))


def split(file: Path, family: str, work: Path) -> str:
    """The name of the held-out collection of a family; made once."""
    name = f"source-{family}"
    options = f"--held-out {HELD_OUT} --corpus-passages {PASSAGES} --queries-per-passage 0 --name {name}"
    sentcompress(f"split-documents {shlex.quote(str(file))} {options}", work)
    return name


def searched(documents: str, model: str, compare: str, work: Path, name: str = "") -> dict[str, Any]:
    """Search fidelity of a model, with its interval; `name`: of the result, where models share the folder's name."""
    models = f"--model {shlex.quote(model)} --compare {shlex.quote(compare)}"
    size = f"--part all --max-queries {QUERIES} --max-passages {PASSAGES}"
    named = f" --name {shlex.quote(name)}" if name else ""
    result = sentcompress(f"eval-search --documents {documents} {models} {size}{named}", work)
    score = select(read_scores(result["facts"]), SEARCH_FIDELITY, part="", role=MODEL)[0]
    return {"fidelity": score.value, "interval": score.interval, "queries": score.count}


def markdown(found: Found) -> str:
    """A row for each family, and the mean and the worst of the families that all models have."""
    models = list(dict.fromkeys(model for of in found.values() for model in of))
    values = {model: {family: of[model]["fidelity"] for family, of in found.items() if model in of} for model in models}
    rows = [[family, *(_shown(values[model].get(family)) for model in models)] for family in found]
    shared = [family for family in found if all(family in values[model] for model in models)]
    worst = {model: min(shared, key=values[model].__getitem__) for model in models if shared}
    if shared:
        means = [sum(values[model][family] for family in shared) / len(shared) for model in models]
        rows.append([f"**mean of {len(shared)}**", *map(_shown, means)])
        rows.append(["**worst**", *(f"{_shown(values[one][worst[one]])} ({worst[one]})" for one in models)])
    return (
        "\n".join(f"| {' | '.join(row)} |" for row in [_head(models), ["---", *["---:"] * len(models)], *rows]) + "\n"
    )


def _head(models: Sequence[str]) -> list[str]:
    """A folder is shown by its own name."""
    return ["family", *(Path(model).name for model in models)]


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def merged(before: Found, family: str, scores: Mapping[str, dict[str, Any]]) -> None:
    """Put a family's scores beside those of models that were measured before."""
    before.setdefault(family, {}).update(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help=f"held-out documents, FAMILY{ENDING}")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--model", action="append", required=True, help="can be repeated")
    parser.add_argument("--compare", default="embedded", help="the teacher")
    parser.add_argument("--only", help="families, separated by commas; default: all")
    parser.add_argument("--out", type=Path, help="path of the two files without an ending")
    options = parser.parse_args()
    out = options.out or options.work / "sources"
    file = out.with_suffix(".json")
    found: Found = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    for family in options.only.split(",") if options.only else families(options.folder):
        documents = split(options.folder / f"{family}{ENDING}", family, options.work)
        scores = {model: searched(documents, model, options.compare, options.work) for model in options.model}
        merged(found, family, scores)
        out.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        out.with_suffix(".md").write_text(markdown(found), encoding="utf-8")
    print(markdown(found))


if __name__ == "__main__":
    main()
