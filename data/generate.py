"""Writes the sample corpora: nli.jsonl, sts/dev.tsv, sts/test.tsv and quora.tsv.

    python data/generate.py                    # over the committed files
    python data/generate.py --output folder    # somewhere else

The same seed gives the same bytes on every Python and machine.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from generator.nli import build_nli
from generator.quora import build_quora
from generator.scenes import Library
from generator.sts import build_sts

SEED = 20240229
DEV_PAIRS = 360
TEST_PAIRS = 720


def write_jsonl(path: Path, rows: Iterable[dict[str, str]]) -> None:
    """One JSON object a line."""
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


def write_tsv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Plain TSV: the sentences hold no tabs and no double quotes, so that nothing needs quoting."""
    lines = ["\t".join(map(str, row)) for row in (header, *rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def generate(output: Path, seed: int = SEED) -> None:
    """Builds all four files under `output`."""
    library = Library()
    nli = build_nli(library, seed)
    taken = {sentence for premise, hypothesis, _ in nli for sentence in (premise, hypothesis)}
    dev = build_sts(library, seed, "dev", DEV_PAIRS, taken)
    taken |= {sentence for pair in dev for sentence in pair[1:]}
    test = build_sts(library, seed, "test", TEST_PAIRS, taken)
    output.mkdir(parents=True, exist_ok=True)
    keys = ("sentence1", "sentence2", "gold_label")
    write_jsonl(output / "nli.jsonl", (dict(zip(keys, line, strict=True)) for line in nli))
    write_tsv(output / "sts" / "dev.tsv", ("score", "sentence1", "sentence2"), dev)
    write_tsv(output / "sts" / "test.tsv", ("score", "sentence1", "sentence2"), test)
    header = ("id", "qid1", "qid2", "question1", "question2", "is_duplicate")
    write_tsv(output / "quora.tsv", header, build_quora(library, seed))


def main() -> None:
    """The command line."""
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="Write the sample corpora of sentcompress.")
    parser.add_argument("--output", type=Path, default=here, help="folder to write to")
    parser.add_argument("--seed", type=int, default=SEED, help="another seed gives other sentences")
    arguments = parser.parse_args()
    generate(arguments.output, arguments.seed)


if __name__ == "__main__":
    main()
