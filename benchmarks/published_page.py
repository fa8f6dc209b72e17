"""How published.py's results are shown: benchmarks/results/published.md, and a table of two pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deployed_speed import BATCH
from peers import PEERS, SETS, SOURCE

from sentcompress.models.sources import EMBEDDED
from sentcompress.numeric import size
from sentcompress.plain_text import Code, markdown_table

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "docs" / "published-students.md", ROOT / "README.md")
PART = re.compile(r"(?<=<!-- generated: scores -->\n).*?(?=<!-- end -->)", re.DOTALL)
STS = ("STS-B test", "STS13")
COLLECTIONS = ("Quora", "msmarco_5k", "SciFact dev")
TEST_SETS = (*STS, *COLLECTIONS)
PRODUCTS = ("amazon-google", "abt-buy")
# The form that has all dimensions, under torch.
FLOAT32 = "float32"


def page(document: Mapping[str, Any]) -> str:
    """Markdown of everything."""
    models = document["models"]
    parts = [
        "# Published students",
        f"Scores of the published students and their teacher, all-MiniLM-L6-v2 (`{EMBEDDED}`). STS scores are Spearman "
        "x 100 (`--aggregate all`). Retrieval scores are nDCG@10 x 100 with exact search by cosine. In brackets: 95% "
        "bootstrap intervals. Percentages are of the teacher's score in float32. "
        "Command: `python benchmarks/published.py DATA --work WORK --text corpus`.",
        "## Scores in float32",
        markdown_table(("model", *TEST_SETS), [_score_row(name, row) for name, row in models.items()], 1),
        "## Deployed forms",
        "- `int8`: the int8 graph in onnxruntime\n"
        "- `128-d`: a last linear layer maps the vectors to their first 128 principal axes, which `fit-quantizer` "
        f"fitted to general text ({document['text']}); float32 vectors\n"
        "- `int8, 128 bytes`: the int8 graph, with document vectors in the format that `fit-quantizer --vector-bytes "
        "128` chose on the same text\n"
        "- `queries only`: the student encodes the queries, and the teacher encodes the documents",
        markdown_table(
            ("model", "form", *TEST_SETS),
            [row for name, of in models.items() for row in _form_rows(name, of)],
            2,
        ),
        "## Size",
        markdown_table(("model", "parameters", "dimensions", "weights", "int8 graph"), _size_rows(models), 1),
    ]
    if document.get("products"):
        parts += _product_parts(document["products"])
    if document.get("speed"):
        parts += _speed_parts(document["speed"])
    return "\n\n".join([*parts, *_peer_parts(models)]) + "\n"


def _score_row(name: str, row: Mapping[str, Any]) -> list[str]:
    scores = row["forms"][FLOAT32]
    return [name, *(_score(scores[title], interval=True, kept=name != EMBEDDED) for title in TEST_SETS)]


def _form_rows(name: str, row: Mapping[str, Any]) -> list[list[str]]:
    return [
        [name, form, *(_score(scores[title]) if title in scores else "" for title in TEST_SETS)]
        for form, scores in row["forms"].items()
    ]


def _score(entry: Mapping[str, Any], *, interval: bool = False, kept: bool = True) -> str:
    low, high = entry["interval"]
    between = f" ({low:.1f} to {high:.1f})" if interval else ""
    return f"{entry['value']:.2f}{between}" + (f", {entry['kept']:.1f}%" if kept else "")


def _size_rows(models: Mapping[str, Any]) -> list[list[str]]:
    return [
        [name, f"{of['parameters']:,}", str(of["dimension"]), size(of["weight_bytes"]), size(of["graph_bytes"])]
        for name, of in models.items()
    ]


def _product_parts(found: Mapping[str, Any]) -> list[str]:
    counts = {title: next(iter(found.values()))[title]["count"] for title in PRODUCTS}
    told = " and ".join(f"{count:,} of {title}" for title, count in counts.items())
    return [
        "## Product matching",
        "nDCG@10 x 100 with exact search by cosine, in float32. A product of one shop searches for the same product in "
        f"the catalogue of the other ({told}; all parts of the two sets). No text of these sets was trained on, and no "
        "student was chosen by them; some earlier students, from which the architectures were taken, had been scored "
        "on them.",
        markdown_table(
            ("model", *PRODUCTS),
            [
                [name, *(_score(of[title], interval=True, kept=name != EMBEDDED) for title in PRODUCTS)]
                for name, of in found.items()
            ],
            1,
        ),
    ]


def _speed_parts(found: Mapping[str, Any]) -> list[str]:
    return [
        "## Speed",
        f"Medians of {found['rounds']} rounds over {found['texts']:,} sentences of STS-B test. All models were "
        f"measured alternately in one process, on {found['threads']} threads of {found['machine']['processor']}, at a "
        f"load average of {found['load'][0]:.1f} to {found['load'][1]:.1f}. `torch` is `SentenceTransformer.encode` "
        f"in batches of {BATCH}.",
        markdown_table(
            ("model", "sentences/s", "times the teacher"),
            [[side, f"{of['sentences_per_second']:,.0f}", f"{of['times']:.1f}"] for side, of in found["rows"].items()],
            1,
        ),
    ]


def _peer_parts(models: Mapping[str, Any]) -> list[str]:
    own = [
        [name, f"{of['parameters'] / 1e6:.1f}M", *(f"{of['forms'][FLOAT32][one]['value']:.2f}" for one in SETS)]
        for name, of in models.items()
    ]
    quoted = [
        [peer.name, f"{peer.parameters / 1e6:.1f}M", *(f"{peer.scores[one]:.2f}" for one in SETS)] for peer in PEERS
    ]
    return [
        "## Published scores of other models",
        f"The `quoted` scores are from [MTEB's result files]({SOURCE}); the others were measured here. SciFact dev is "
        "the test split of MTEB and BEIR: the same 300 queries with 339 judgements.",
        markdown_table(
            ("model", "parameters", *SETS, "source"),
            [*([*row, "measured"] for row in own), *([*row, "quoted"] for row in quoted)],
            1,
        ),
    ]


def with_table(written: str, document: Mapping[str, Any]) -> str:
    """A page with its generated part up to date: of each model, its size, scores in float32, and speed."""
    speed = {f"{EMBEDDED}, torch": {"times": 1.0}, **document.get("speed", {}).get("rows", {})}
    rows = [
        [
            "all-MiniLM-L6-v2 (teacher)" if name == EMBEDDED else Code(name),
            size(of["weight_bytes"]),
            f"{of['parameters'] / 1e6:.2f}M",
            *(_score(of["forms"][FLOAT32][title], kept=name != EMBEDDED) for title in TEST_SETS),
            *(_times(speed.get(f"{name}, {runtime}")) for runtime in ("torch", "int8")),
        ]
        for name, of in sorted(document["models"].items(), key=lambda item: item[0] != EMBEDDED)
    ]
    parts = [markdown_table(("model", "weights", "parameters", *TEST_SETS, "speed", "speed as int8"), rows, 1)]
    if found := document.get("speed"):
        timed = f"{found['texts']:,} sentences of STS-B test, {found['threads']} threads"
        parts.append(f"Speed was measured on {timed} of {found['machine']['processor']}.")
    return PART.sub(lambda _: "\n\n".join(parts) + "\n", written)


def _times(found: Mapping[str, Any] | None) -> str:
    return f"{found['times']:.1f} x" if found else ""
