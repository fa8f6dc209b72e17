"""The students of the README, trained from all-MiniLM-L6-v2 on real text and scored beside it.

    python benchmarks/students.py ../shared/data --work work-real [--only hpd-128,ckd] [--measure-only]

On 300,000 short sentences (`earlier_corpus.py short`), the teacher's last three layers:

hpd-128        HPD to 128 dimensions
ckd            CKD, 384 dimensions
ckd-128        ckd after a second stage on 17,400 NLI triplets, to 128 dimensions, with a distillation term kept

On 279,000 texts, paragraphs and queries among them (`earlier_corpus.py mixed`), or on 607,000, short sentences and the
definitions of WordNet beside them (`earlier_corpus.py wide`), SimTDE's students of token width 128; all but the first
start from what the teacher does with sentences:

simtde-9m         the last 3 layers: 9.35 million parameters
simtde-9m-states  the same size; the last hidden states of every token are compared beside the sentence vectors
simtde-9m-wide    simtde-9m-states, trained on with the 607,000 texts
simtde-9m-nli     that after a second stage on 17,400 NLI triplets, a distillation term kept
simtde-9m-mean    the weights before and after that stage, averaged
simtde-5m         the last 2 layers with 768 neurons, the 24,000 most frequent tokens: 5.56 million; hidden states too
simtde-5m-more    simtde-5m, trained on in batches of which fewer are paragraphs
simtde-5m-wide    that, trained on with the 607,000 texts
simtde-5m-wider   that, for 2,400 steps more
simtde-5m-nli     that after the same second stage
simtde-5m-mean    the weights before and after that stage, averaged, 2 to 3
simtde-2m         the last layer with 256 neurons, the 12,000 most frequent tokens: 2.44 million
simtde-2m-deep    the same layer three times over, trained with the 607,000 texts
simtde-2m-nli     that after the same second stage
simtde-9m-own     simtde-9m-wide, distilled on with the documents of the three collections (their queries and
                  judgements are not read): what it gives to distil on the documents that will be searched

With a teacher that has gone through the triplets itself (`teacher-nli`): distilled on with its vectors of the 300,000
short sentences, then the second stage, then averaged with the weights before both:

simtde-9m-tuned-mean  from simtde-9m-wider, which is simtde-9m-wide after 2,600 steps more
simtde-2m-tuned-mean  from simtde-2m-deep, one part of it to three

With a teacher that has gone through them first, in rounds of two runs that are averaged, no triplets for the student:

simtde-9m-broad   the last 3 layers; 60,000 texts and the teacher as it was for a start; three rounds on a third of a
                  still broader text (`earlier_corpus.py broad`), a fourth on a sixth of it that is new, and on what
                  people write to each other (`earlier_corpus.py forum`), with the tuned teacher's step taken a quarter
                  further, its frequent tokens weighed less, and each text read twice
simtde-2m-short   the last layer three times over, 16,000 tokens of width 96, 256 neurons: 2.41 million; three rounds on
                  short texts (two thirds of `earlier_corpus.py wide --short 40`) and on what simtde-9m-broad ended with

None of the text is of an STS set, and but for simtde-9m-own's none of a retrieval collection. Each student is scored on
STS-B test and STS13, and with exact search on SciFact dev, msmarco_5k and Quora. What is fresh in the work directory is
skipped, so an interrupted run goes on where it stopped. Writes benchmarks/results/students.json and .md, and with
`--publish` each student itself, in float16, as a folder of sentcompress/published/.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from earlier_corpus import (
    as_simcse,
    gather_broad,
    gather_forum,
    gather_mixed,
    gather_short,
    gather_wide,
    shortened,
)
from proof import INDEXES, commands
from running import facts, machine, sentcompress

from sentcompress.evaluation.measures import MRR, NDCG, SPEARMAN
from sentcompress.evaluation.retrieval import EXACT
from sentcompress.evaluation.score import MEAN, read_scores, select, value_of
from sentcompress.models.catalog import find_model
from sentcompress.store import WorkDirectory

RESULTS = Path(__file__).parent / "results"
PUBLISHED = Path(__file__).parent.parent / "sentcompress" / "published"
SHORT = "--sentences short --teacher-vectors short --schedule cosine --dropout 0 --dtype bfloat16 --lr 5e-4 --dev {dev}"
# Sentences as squared distances of unit vectors, and a token term of about an eighth of that; `relation` is what
# keeps the order of neighbours. Batches of 4,096 tokens hold 18 paragraphs or 256 short sentences.
LONG = (
    "--set normalise=true --set reduction=sum --set relation=20 --max-length 256 --schedule cosine --dropout 0 "
    "--dtype bfloat16 --batch-size 256 --batch-tokens 4096"
)
MIXED = f"--token-dim 128 --sentences mixed --teacher-vectors mixed {LONG}"
# Such a start has brought the tokens where they belong, so that their term is left out.
STARTED = f"--start sentences --set alpha=0 --warmup-steps 100 --epochs 6 {MIXED}"
TOKENS = "--set token_weight=0.002"
# Summed over 384 dimensions, the states of a token are about 14 apart at first, and unit sentence vectors 0.3.
STATES = "--set states=0.1"
WIDE = f"--set alpha=0 --set states=0.05 --sentences wide --teacher-vectors wide {LONG}"
# A student that has begun already.
FURTHER = "--epochs 6 --eval-every 500"
TRIPLETS = (
    "--sentences nli --keep 1 --teacher-vectors wide --epochs 1 --batch-size 128 --max-length 256 --dropout 0 "
    "--dtype bfloat16 --eval-every 66"
)
SAMPLED = TRIPLETS.replace("--teacher-vectors wide", "--teacher-vectors sample")
# Short sentences again, and the vectors of a teacher that has gone through the triplets itself.
TUNED = f"--set alpha=0 --sentences short --teacher-vectors tuned {LONG}"
TUNED_TRIPLETS = TRIPLETS.replace("--teacher-vectors wide", "--teacher-vectors tuned")
# Runs in pairs, on a part each of a text in six parts, three rounds. At a constant rate it is the running mean that is
# kept: single weights carry what the last batches did to them.
PAIRED = (
    f"--set alpha=0 --sentences {{0}} --teacher-vectors {{0}} {LONG.replace('--batch-size 256', '--batch-size 128')} "
    "--warmup-steps 60"
)
BROAD = f"--lr 5e-4 --epochs 20 {PAIRED}"
BROAD_MEAN = f"--set states=0.05 --max-steps 900 --eval-every 450 --ema 0.995 {BROAD.replace('cosine', 'constant')}"
BROAD_LAST = f"--set states=0.05 --max-steps 1800 --eval-every 900 {BROAD}"
BROAD_FORUM = f"--set states=0.05 --max-steps 2400 --eval-every 600 {BROAD}"
SHORTENED = f"--lr 1e-3 --epochs 50 {PAIRED}"
SHORTENED_MEAN = f"--ema 0.998 {SHORTENED.replace('cosine', 'constant')}"
VECTORS = "--name {} --store float16 --dtype bfloat16"
SIMTDE = "distill --method simtde --student"
STUDENTS = {
    "hpd-128": f"distill --method hpd --student teacher:3 {SHORT} --epochs 2 --warmup-steps 300",
    "ckd": f"distill --method ckd --student teacher:3 {SHORT} --epochs 1 --warmup-steps 100 --eval-every 200",
    "ckd-128": (
        "finetune --model ckd --sentences nli --teacher-vectors short --dim 128 --keep 20 --lr 1e-4 --epochs 2 "
        "--batch-size 128 --dropout 0 --dtype bfloat16 --eval-every 40 --dev {dev}"
    ),
    "simtde-9m": (
        f"{SIMTDE} teacher:3 --lr 5e-4 --max-steps 4500 --warmup-steps 300 --epochs 2 --eval-every 500 {TOKENS} {MIXED}"
    ),
    "simtde-9m-states": f"{SIMTDE} teacher:3 --lr 5e-4 --max-steps 2500 --eval-every 250 {STATES} {STARTED}",
    "simtde-9m-wide": f"{SIMTDE} simtde-9m-states --lr 4e-4 --max-steps 2200 --warmup-steps 100 {FURTHER} {WIDE}",
    "simtde-9m-nli": f"finetune --model simtde-9m-wide --lr 5e-5 {TRIPLETS}",
    "simtde-9m-mean": "average simtde-9m-wide simtde-9m-nli",
    "simtde-9m-wider": (
        f"{SIMTDE} simtde-9m-wide --lr 3e-4 --max-steps 2600 --warmup-steps 100 --epochs 6 --eval-every 650 {WIDE}"
    ),
    "teacher-nli": f"finetune --model embedded --lr 3e-5 {TRIPLETS}",
    "simtde-9m-tuned": (
        f"{SIMTDE} simtde-9m-wider --lr 3e-4 --max-steps 800 --warmup-steps 60 --epochs 6 --eval-every 400 {TUNED}"
    ),
    "simtde-9m-tuned-nli": f"finetune --model simtde-9m-tuned --lr 5e-5 {TUNED_TRIPLETS}",
    "simtde-9m-tuned-mean": "average simtde-9m-wider simtde-9m-tuned-nli",
    "teacher-a": f"finetune --model embedded --lr 5e-5 {SAMPLED}",
    "teacher-b": f"finetune --model embedded --lr 5e-5 {SAMPLED.replace('--dropout 0', '--dropout 0.1 --seed 2')}",
    "teacher-tuned": "average teacher-a teacher-b",
    "simtde-9m-broad-start": (
        f"{SIMTDE} teacher:3 --token-dim 128 --start sentences {STATES} --max-steps 750 --eval-every 375 --ema 0.99 "
        f"{BROAD.format('sample').replace('cosine', 'constant')}"
    ),
    "simtde-9m-broad-1a": f"{SIMTDE} simtde-9m-broad-start --seed 1 {BROAD_MEAN.format('broad-1')}",
    "simtde-9m-broad-1b": f"{SIMTDE} simtde-9m-broad-start --seed 2 {BROAD_MEAN.format('broad-2')}",
    "simtde-9m-broad-1": "average simtde-9m-broad-1a simtde-9m-broad-1b",
    "simtde-9m-broad-2a": f"{SIMTDE} simtde-9m-broad-1 --seed 3 {BROAD_MEAN.format('broad-2')}",
    "simtde-9m-broad-2b": f"{SIMTDE} simtde-9m-broad-1 --seed 4 {BROAD_MEAN.format('broad-1')}",
    "simtde-9m-broad-2": "average simtde-9m-broad-2a simtde-9m-broad-2b",
    "simtde-9m-broad-3a": f"{SIMTDE} simtde-9m-broad-2 --seed 5 {BROAD_LAST.format('broad-1')}",
    "simtde-9m-broad-3b": f"{SIMTDE} simtde-9m-broad-2 --seed 6 {BROAD_LAST.format('broad-2')}",
    "simtde-9m-broad-3": "average simtde-9m-broad-3a simtde-9m-broad-3b",
    "teacher-further": "average teacher-tuned embedded --weights 1.25,-0.25",
    "teacher-weighed": "weigh-tokens --model teacher-further --sentences sample",
    "simtde-9m-broad-4a": f"{SIMTDE} simtde-9m-broad-3 --seed 9 {BROAD_FORUM.format('reread-1')}",
    "simtde-9m-broad-4b": f"{SIMTDE} simtde-9m-broad-3 --seed 10 {BROAD_FORUM.format('reread-2')}",
    "simtde-9m-broad": "average simtde-9m-broad-4a simtde-9m-broad-4b",
    "simtde-5m": (
        f"{SIMTDE} teacher:2 --vocabulary 24000 --feed-forward 768 --lr 5e-4 --max-steps 2200 --eval-every 200 "
        f"{STATES} {STARTED}"
    ),
    "simtde-5m-more": (
        f"{SIMTDE} simtde-5m --lr 4e-4 --max-steps 4000 --warmup-steps 100 {FURTHER} --set alpha=0 --set states=0.05 "
        f"--sentences mixed --teacher-vectors mixed {LONG.replace('--batch-size 256', '--batch-size 64')}"
    ),
    "simtde-5m-wide": f"{SIMTDE} simtde-5m-more --lr 3e-4 --max-steps 850 --warmup-steps 60 {FURTHER} {WIDE}",
    "simtde-5m-wider": (
        f"{SIMTDE} simtde-5m-wide --lr 3e-4 --max-steps 2400 --warmup-steps 60 --epochs 6 --eval-every 400 {WIDE}"
    ),
    "simtde-5m-nli": f"finetune --model simtde-5m-wider --lr 1e-4 {TRIPLETS}",
    "simtde-5m-mean": "average simtde-5m-wider simtde-5m-nli --weights 2,3",
    "simtde-2m": (
        f"{SIMTDE} teacher:1 --vocabulary 12000 --feed-forward 256 --lr 4e-4 --max-steps 5000 "
        f"--eval-every 250 {STARTED}"
    ),
    "simtde-2m-deep": (
        f"{SIMTDE} teacher:1 --token-dim 128 --vocabulary 12000 --feed-forward 256 --passes 3 --start sentences "
        f"--lr 1e-3 --max-steps 7000 --warmup-steps 100 {FURTHER} --set alpha=0 --sentences wide "
        f"--teacher-vectors wide {LONG}"
    ),
    "simtde-2m-nli": f"finetune --model simtde-2m-deep --lr 1e-4 {TRIPLETS}",
    "simtde-2m-tuned": (
        f"{SIMTDE} simtde-2m-deep --lr 8e-4 --max-steps 3400 --warmup-steps 100 --epochs 6 --eval-every 850 {TUNED}"
    ),
    "simtde-2m-tuned-nli": f"finetune --model simtde-2m-tuned --lr 1e-4 {TUNED_TRIPLETS}",
    "simtde-2m-tuned-mean": "average simtde-2m-deep simtde-2m-tuned-nli --weights 1,3",
    "simtde-2m-short-start": (
        f"{SIMTDE} teacher:1 --token-dim 96 --vocabulary 16000 --character-count 20 --feed-forward 256 --passes 3 "
        f"--start sentences --max-steps 1500 --eval-every 500 {SHORTENED_MEAN.format('short-1')}"
    ),
    "simtde-2m-short-1a": (
        f"{SIMTDE} simtde-2m-short-start --seed 1 --max-steps 3000 --eval-every 1000 {SHORTENED_MEAN.format('short-2')}"
    ),
    "simtde-2m-short-1b": (
        f"{SIMTDE} simtde-2m-short-start --seed 2 --max-steps 2000 --eval-every 1000 {SHORTENED_MEAN.format('forum-1')}"
    ),
    "simtde-2m-short-1": "average simtde-2m-short-1a simtde-2m-short-1b",
    "simtde-2m-short-2a": (
        f"{SIMTDE} simtde-2m-short-1 --seed 3 --max-steps 2800 --eval-every 1400 {SHORTENED_MEAN.format('short-1')}"
    ),
    "simtde-2m-short-2b": (
        f"{SIMTDE} simtde-2m-short-1 --seed 4 --max-steps 2600 --eval-every 1300 {SHORTENED_MEAN.format('forum-2')}"
    ),
    "simtde-2m-short-2": "average simtde-2m-short-2a simtde-2m-short-2b",
    "simtde-2m-short-3a": (
        f"{SIMTDE} simtde-2m-short-2 --seed 5 --max-steps 3600 --eval-every 1800 {SHORTENED.format('short-2')}"
    ),
    "simtde-2m-short-3b": (
        f"{SIMTDE} simtde-2m-short-2 --seed 6 --max-steps 3300 --eval-every 1650 {SHORTENED.format('forum-1')}"
    ),
    "simtde-2m-short": "average simtde-2m-short-3a simtde-2m-short-3b",
    "simtde-9m-own": (
        f"{SIMTDE} simtde-9m-wide --lr 3e-4 --epochs 1 --warmup-steps 60 --eval-every 200 --set alpha=0 "
        f"--set states=0.05 --sentences own --teacher-vectors own {LONG}"
    ),
}
# The teacher that reads each part, and how.
TUNED_TEACHERS = {
    "broad-1": "teacher-tuned",
    "broad-2": "teacher-tuned",
    "short-1": "teacher-tuned",
    "short-2": "teacher-further",
    "forum-1": "teacher-further",
    "forum-2": "teacher-further",
    "reread-1": "teacher-weighed --content-words 0.5",
    "reread-2": "teacher-weighed --content-words 0.5",
}
COLLECTIONS = ("SciFact dev", "msmarco_5k", "Quora")


def own_documents(data: Path) -> Iterator[str]:
    """The documents of the three collections, and nothing else of them."""
    for name in ("scifact", "msmarco_5k"):
        with (data / "retrieval" / name / "corpus.jsonl").open(encoding="utf-8") as lines:
            for document in map(json.loads, lines):
                yield " ".join(f"{document.get('title', '')} {document['text']}".split())
    with gzip.open(data / "quora" / "quora.tsv.gz", "rt", encoding="utf-8", newline="") as lines:
        # The second question of a pair is what is searched.
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        yield from (" ".join(row["question2"].split()) for row in rows)


def texts_of(name: str, data: Path) -> Iterable[str]:
    """The lines of a training file."""
    if name == "short":
        return gather_short(data, seed=0)
    if name == "mixed":
        return gather_mixed(data, seed=0)
    if name == "wide":
        return gather_wide(data, seed=0)
    if name == "sample":
        return gather_wide(data, seed=0)[:60_000]
    if name.startswith("broad-"):
        texts = gather_broad(data, seed=0)
        return texts[int(name.removeprefix("broad-")) - 1 :: 6]
    if name.startswith("short-"):
        short = shortened(gather_wide(data, seed=0), 40)
        return short[int(name.removeprefix("short-")) - 1 :: 3]
    if name.startswith(("forum-", "reread-")):
        part = int(name.rpartition("-")[2])
        return [*gather_forum(data, seed=0)[part - 1 :: 2], *gather_broad(data, seed=0)[part + 1 :: 12]]
    return filter(None, dict.fromkeys(own_documents(data)))


def gather(name: str, data: Path, work: Path) -> None:
    """The sentence table of a training file."""
    file = work / f"{name}.txt"
    if not file.exists():
        file.write_text("".join(f"{text}\n" for text in texts_of(name, data)), encoding="utf-8")
    sentcompress(f"augment {file} --wordnet 0 --back-translate 0 --name {name}", work)


def prepare(command: str, data: Path, work: Path) -> None:
    """What a student's command names: sentence tables, the teacher's vectors, the projection."""
    for name in ("short", "mixed", "wide", "own", "sample"):
        if f"--teacher-vectors {name}" in command:
            gather(name, data, work)
            sentcompress(f"teacher-embed --sentences {name} {VECTORS.format(name)}", work)
    for name, teacher in TUNED_TEACHERS.items():
        if f"--teacher-vectors {name}" in command:
            gather(name, data, work)
            sentcompress(f"teacher-embed --teacher {teacher} --sentences {name} {VECTORS.format(name)}", work)
    if "--teacher-vectors tuned" in command:
        gather("short", data, work)
        sentcompress(f"teacher-embed --teacher teacher-nli --sentences short {VECTORS.format('tuned')}", work)
    if "--sentences nli" in command:
        file = work / "triplets.csv"
        if not file.exists():
            triplets = data / "nli" / "triplets_allsplits_noSTS.train.tsv.gz"
            file.write_text(as_simcse(triplets), encoding="utf-8")
        sentcompress(f"augment {file} --wordnet 0 --back-translate 0 --name nli", work)
    if "--method hpd" in command:
        sentcompress("fit-pca --dim 128 --teacher-vectors short", work)


def measure(name: str, data: Path, work: Path) -> dict[str, Any]:
    """The results of a row: by the commands of proof.py, with exact search alone."""
    # Not `--compare teacher`: that is the model behind the newest vectors, and one of the teachers here was tuned.
    sts, *retrieval = (
        facts(words.replace(INDEXES, "flat").replace("--compare teacher", "--compare embedded"), work)
        for step in ("sts", "retrieval")
        for words in commands(step, name, data, work)
    )
    return {"sts": sts, **dict(zip(COLLECTIONS, retrieval, strict=True))}


def figures(name: str, found: dict[str, Any], role: str) -> dict[str, Any]:
    """One row of the table; `role` is "model", or "compare" for the teacher."""
    row: dict[str, Any] = {"model": name}
    sts = select(read_scores(found["sts"]), SPEARMAN, part="", role=role)
    row |= {score.data: score.value for score in sts if score.data != MEAN}
    searched = {key: read_scores(found[key]) for key in COLLECTIONS}
    row |= {f"{key} nDCG@10": value_of(of, NDCG, part=EXACT, role=role) for key, of in searched.items()}
    row["Quora MRR@10"] = value_of(searched["Quora"], MRR, part=EXACT, role=role)
    return row


def publish(model: Path, target: Path) -> None:
    """A student's model folder with its weights in float16, half the size; what loads it computes as before."""
    from safetensors.torch import load_file, save_file

    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(model, target)
    weights = load_file(model / "model.safetensors")
    halves = {name: value.half() if value.is_floating_point() else value for name, value in weights.items()}
    save_file(halves, target / "model.safetensors", metadata={"format": "pt"})


HEADER = """# Measured students

Students of all-MiniLM-L6-v2. STS: Spearman x 100, aggregate `all`; retrieval: x 100, exact search; in brackets: percent
of the teacher's score. `python benchmarks/students.py` trains and measures them; docs/students.md says how they differ.

"""


def table(rows: list[dict[str, Any]], parameters: dict[str, int]) -> str:
    """Markdown; students carry the share of the teacher's score that they keep."""
    teacher, scored = rows[0], [key for key in rows[0] if key != "model"]
    lines = [f"| model | parameters | {' | '.join(scored)} |", "|---|---:|" + "---:|" * len(scored)]
    for row in rows:
        kept = ["" if row is teacher else f" ({100 * row[key] / teacher[key]:.1f}%)" for key in scored]
        cells = [f"{row[key]:.2f}{share}" for key, share in zip(scored, kept, strict=True)]
        lines.append(f"| {row['model']} | {parameters[row['model']]:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("work-real"))
    parser.add_argument(
        "--only", default=",".join(STUDENTS), help="students with commas between them; rows of others stay as they are"
    )
    parser.add_argument("--measure-only", action="store_true", help="take the students as they are")
    parser.add_argument("--publish", action="store_true", help="keep the students themselves beside the results")
    options = parser.parse_args()
    data, work = options.data, options.work
    work.mkdir(parents=True, exist_ok=True)
    trained, measured = {}, {}
    for name in options.only.split(","):
        if not options.measure_only:
            command = STUDENTS[name].format(dev=data / "sts" / "stsb" / "dev.tsv")
            prepare(command, data, work)
            sentcompress(f"{command} --name {name}", work)
        trained[name] = json.loads((work / "students" / name / "manifest.json").read_text(encoding="utf-8"))
        measured[name] = measure(name, data, work)
        if options.publish:
            publish(work / "students" / name / "model", PUBLISHED / name)
    results = RESULTS / "students.json"
    before = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {"training": {}, "rows": []}
    training, scores = before["training"], {row["model"]: row for row in before["rows"]}
    for name, manifest in trained.items():
        training[name] = {key: manifest[key] for key in ("parameters", "facts")}
        scores[name] = figures(name, measured[name], "model")
    known = [name for name in STUDENTS if name in training]
    rows = [figures("teacher", next(iter(measured.values())), "compare"), *(scores[name] for name in known)]
    document = {"machine": machine(), "training": {name: training[name] for name in known}, "rows": rows}
    parameters = {name: training[name]["facts"]["parameters"] for name in known}
    parameters["teacher"] = find_model(WorkDirectory(work), "embedded").load().count_parameters()
    RESULTS.mkdir(exist_ok=True)
    # A teacher that was trained here is named by its folder; where that lies is nobody's business.
    results.write_text(json.dumps(document, indent=1).replace(f"{work.resolve()}/", "") + "\n", encoding="utf-8")
    (RESULTS / "students.md").write_text(HEADER + table(rows, parameters), encoding="utf-8")
    print(table(rows, parameters))


if __name__ == "__main__":
    main()
