"""Everything that is measured of the students of a work directory, beside the embedded teacher, and the report of it.

    python benchmarks/proof.py DATA --work work-real [--students NAME,NAME] [--only sts,bench]

Runs the commands that a user would run, on real data: STS-B and STS13; SciFact dev, msmarco_5k and Quora with every
kind of index; amazon-google and abt-buy; MR, SUBJ, TREC and MRPC; fidelity on sentences that no student was trained
on; speed, size and memory with SimTDE's protocol beside; then the report. What is fresh in the work directory is
skipped, so an interrupted run goes on where it stopped, and a finished one only writes the report anew. Copies the
report's Markdown and its pictures to benchmarks/results/proof.
"""

from __future__ import annotations

import argparse
import gzip
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from running import RESULTS, sentcompress

from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.store import WorkDirectory

ROOT = Path(__file__).resolve().parent.parent
PROOF = RESULTS / "proof"
INDEXES = "flat,ivf,ivfpq,pq,hnsw,sq8,fp16,binary"
TASKS = ("MR", "SUBJ", "TREC", "MRPC")
STEPS = ("export", "sts", "retrieval", "entities", "transfer", "fidelity", "bench", "simtde")
SENTENCES = 10_000
# Long enough to say something, short enough for every model to read whole.
WORDS = range(5, 41)


def commands(step: str, model: str, data: Path, text: Path) -> Iterator[str]:
    """The commands of a step for one student, as a user would type them; the work directory is added later."""
    compared = f"--model {model} --compare teacher"
    retrieval = f"eval-retrieval {compared} --index {INDEXES}"
    if step == "export":
        yield f"export --model {model}"
    elif step == "sts":
        yield f"eval-sts --sts {data / 'sts'} {compared}"
    elif step == "retrieval":
        yield f"{retrieval} --collection {data / 'retrieval' / 'scifact'} --split dev"
        yield f"{retrieval} --collection {data / 'retrieval' / 'msmarco_5k'}"
        yield f"{retrieval} --pairs {data / 'quora' / 'quora.tsv.gz'}"
    elif step == "entities":
        for name in ("amazon-google", "abt-buy"):
            yield f"eval-retrieval {compared} --index flat --entities {data / 'er' / name}"
    elif step == "transfer":
        yield f"eval-transfer --tasks {data / 'transfer'} --only {','.join(TASKS)} {compared}"
    elif step == "fidelity":
        yield f"eval-fidelity --text {text} {compared}"
    elif step == "bench":
        yield f"bench --text {text} --model {model} --compare teacher"
    elif step == "simtde":
        yield f"bench --preset simtde --sts {data / 'sts' / 'stsb' / 'test.tsv'} --model {model} --compare teacher"


def unseen_sentences(data: Path, work: WorkDirectory, target: Path) -> None:
    """Sentences of the encyclopedia that are in no sentence table of the work directory, drawn with a seed."""
    if target.exists():
        return
    seen: set[str] = set()
    for name in work.names("sentences"):
        for texts in SentenceTable(work.get("sentences", name).path).stream():
            seen.update(texts)
    with gzip.open(data / "corpus" / "wikipedia_en_sample.txt.gz", "rt", encoding="utf-8") as lines:
        found = {line.strip() for line in lines if len(line.split()) in WORDS} - seen
    chosen = random.Random(0).sample(sorted(found), min(SENTENCES, len(found)))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(chosen) + "\n", encoding="utf-8")


def measure(students: Sequence[str], steps: Sequence[str], data: Path, text: Path, work: Path) -> None:
    """All steps for all students; a step is finished for all of them before the next begins."""
    for step in steps:
        if step == "export":
            # So that the teacher takes part in onnxruntime too.
            sentcompress("export --model teacher", work)
        for model in students:
            for words in commands(step, model, data, text):
                sentcompress(words, work)


def collect(work: Path, target: Path) -> None:
    """The report and its pictures, where the repository keeps them."""
    document = sentcompress("report", work)
    if target.exists():
        shutil.rmtree(target)
    target.mkdir(parents=True)
    page = Path(document["paths"]["report"])
    for picture in (Path(figure["png"]) for figure in document["figures"]):
        shutil.copy(picture, target / picture.name)
    # A model from outside is named by its folder: where that lies is nobody's business.
    text = page.with_suffix(".md").read_text(encoding="utf-8").replace(f" --work {work}", "")
    (target / "report.md").write_text(text.replace(f"{ROOT}/", ""), encoding="utf-8")
    print(f"results in {target}; the page is {page}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("work-real"))
    parser.add_argument("--students", help="names with commas between them; by default all of the work directory")
    parser.add_argument("--only", default=",".join(STEPS), help=f"steps, of {','.join(STEPS)}; none for the report")
    options = parser.parse_args()
    students = options.students.split(",") if options.students else WorkDirectory(options.work).names("students")
    if not students:
        parser.error(f"no students in {options.work}; train some first (benchmarks/students.py)")
    steps = [] if options.only == "none" else options.only.split(",")
    if unknown := set(steps) - set(STEPS):
        parser.error(f"unknown steps: {', '.join(sorted(unknown))}")
    text = options.work / "proof" / "unseen.txt"
    unseen_sentences(options.data, WorkDirectory(options.work), text)
    measure(students, steps, options.data, text, options.work)
    collect(options.work, PROOF)


if __name__ == "__main__":
    main()
