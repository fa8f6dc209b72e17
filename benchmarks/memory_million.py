"""Peak memory of `augment` and `teacher-embed` on a million short sentences, with a tiny random teacher.

    python benchmarks/memory_million.py [--sentences 1000000]

Each command runs as a process of its own; its peak resident memory comes from the kernel's count for that process
(and its workers, the largest of them). The limit is 1.5 GB. Writes benchmarks/results/memory_million.json.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sentcompress.process_memory import peak_of

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "memory_million.json"
LIMIT = 1.5e9
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]


def write_sentences(path: Path, count: int) -> None:
    """Distinct sentences of 5 to 12 words; the words come from a vocabulary of 20,000."""
    generator = random.Random(0)
    words = ["".join(generator.choices(SYLLABLES, k=generator.randint(1, 4))) for _ in range(20_000)]
    with path.open("w", encoding="utf-8") as stream:
        for number in range(count):
            chosen = generator.choices(words, k=generator.randint(4, 11))
            stream.write(f"{' '.join(chosen)} {number}\n")


def write_teacher(folder: Path) -> None:
    """A tiny random model, in a process of its own so that this one's memory stays small."""
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import conftest; "
        "conftest.make_tiny_model(Path(sys.argv[2]))"
    )
    subprocess.run([sys.executable, "-c", code, str(ROOT / "tests"), str(folder)], check=True, cwd=ROOT)


def measure(words: list[str]) -> dict[str, Any]:
    """Run one command; its peak resident memory in bytes and its seconds."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "sentcompress", *words], cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{words[0]} failed")
    seconds = round(time.perf_counter() - started, 1)
    return {"command": " ".join(words[:1]), "peak_bytes": peak_of(usage), "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=1_000_000)
    count = parser.parse_args().sentences
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_sentences(folder / "lines.txt", count)
        write_teacher(folder / "teacher")
        work = ["--work", str(folder / "work"), "--quiet"]
        found = [
            measure(["augment", str(folder / "lines.txt"), "--wordnet", "0", "--back-translate", "0", *work]),
            measure(["teacher-embed", "--teacher", str(folder / "teacher"), *work]),
        ]
        manifest = json.loads((folder / "work" / "teacher-vectors" / "main" / "manifest.json").read_text())
    document = {"sentences": count, "rows": manifest["facts"]["rows"], "limit_bytes": int(LIMIT), "commands": found}
    RESULT.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(document, indent=1))
    if any(line["peak_bytes"] >= LIMIT for line in found):
        raise SystemExit("over the limit")


if __name__ == "__main__":
    main()
