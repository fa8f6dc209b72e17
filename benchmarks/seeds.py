"""How much do a student's scores differ between trainings that differ in their seed only?

    python benchmarks/seeds.py DATA corpus/held-out --work work-quality --sources work-sources
        --model work/students/general-9m/model --model work/students/general-9m-seed-1/model

The models are folders: the published training and its repetitions, as `recipes/general-9m.toml` makes them with
`--set 9.seed=1 --set 9.name=general-9m-seed-1`. Each is scored in float32 on what published.py reports, and on
the families of sources.py. What is fresh in the work directories is skipped, so an interrupted run resumes. Writes
benchmarks/results/seeds.json and .md.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from compress_documents import quora_collection
from published import AS_IT_IS, command_lines, scores_of
from running import facts, write_results
from sources import ENDING, families, searched, split

from sentcompress.models.sources import EMBEDDED

Figures = dict[str, float]


def label(model: Path) -> str:
    """The name of the student whose folder this is."""
    return model.parent.name if model.name == "model" else model.name


def reported(model: Path, data: Path, quora: Path, work: Path) -> Figures:
    """The score of each reported test set."""
    form = replace(AS_IT_IS, model=shlex.quote(str(model)))
    found: Figures = {}
    for title, words in command_lines(form, label(model), data, quora, work / "vectors"):
        found |= {name: entry["value"] for name, entry in scores_of(title, facts(words, work)).items()}
    return found


def decided(model: Path, held: Path, work: Path) -> Figures:
    """Search fidelity on the held-out documents of each family."""
    found: Figures = {}
    for family in families(held):
        documents = split(held / f"{family}{ENDING}", family, work)
        name = f"search fidelity, {family}"
        called = f"{documents}-{label(model)}"
        found[name] = float(searched(documents, str(model), EMBEDDED, work, called)["fidelity"])
    return found


def table(found: Mapping[str, Figures]) -> str:
    """A row for each figure that all models have: the values, their range and standard deviation."""
    models = list(found)
    head = ["", *models, "largest - smallest", "standard deviation"]
    rows = [head, ["---", *["---:"] * (len(head) - 1)]]
    for figure in [one for one in found[models[0]] if all(one in of for of in found.values())]:
        values = [found[model][figure] for model in models]
        spread = (max(values) - min(values), statistics.stdev(values)) if len(values) > 1 else (0.0, 0.0)
        rows.append([figure, *(f"{value:.2f}" for value in (*values, *spread))])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def page(found: Mapping[str, Figures]) -> str:
    """The results."""
    return (
        "# Spread over seeds\n\n"
        f"{len(found)} trainings that differ in their seed only. STS-B, STS13: Spearman x 100; Quora, msmarco\\_5k, "
        "SciFact: nDCG@10 x 100; the others: search fidelity to the teacher on held-out documents of a family "
        "(`sources.py`), of which law was not trained on. The standard deviation is that of a sample.\n"
        "Command: `python benchmarks/seeds.py DATA HELD-OUT --work WORK --sources WORK --model FOLDER ...`.\n\n"
        + table(found)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with sts, quora and retrieval")
    parser.add_argument("held", type=Path, help=f"held-out documents, FAMILY{ENDING}")
    parser.add_argument("--work", type=Path, default=Path("work-quality"))
    parser.add_argument("--sources", type=Path, default=Path("work-sources"))
    parser.add_argument("--model", type=Path, action="append", required=True, help="a folder; can be repeated")
    asked = parser.parse_args()
    quora = quora_collection(asked.data, asked.work / "quora")
    found: dict[str, Figures] = {}
    for model in asked.model:
        of_sources = decided(model, asked.held, asked.sources)
        found[label(model)] = {**reported(model, asked.data, quora, asked.work), **of_sources}
        write_results("seeds", found, page(found))
    print(page(found))


if __name__ == "__main__":
    main()
