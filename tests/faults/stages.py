"""The commands that are run, as small as they can be, and the work directory that each starts from."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from beir import with_ids, write_beir
from distilling import write_dev
from tiny_models import make_sentences, make_tiny_model

TRAINING = (
    "--epochs 2 --batch-size 8 --max-steps 4 --eval-every 2 --lr 1e-2 --dtype float32 --device cpu "
    "--checkpoint-every 0 --dev dev.tsv"
).split()
DISTILL = ["distill", "--method", "hpd", "--student", "teacher:1", "--dim", "4", "--name", "s", *TRAINING]
RECIPE = """
title = "A short chain"

[inputs]
text = "sentences"

[[stage]]
command = "augment"
inputs = ["${text}"]
wordnet = 0
back-translate = 0
name = "lines"

[[stage]]
command = "teacher-embed"
teacher = "model"
sentences = "lines"
name = "lines"
dtype = "float32"

[[stage]]
command = "fit-pca"
dim = 2
teacher-vectors = "lines"
name = "lines"
"""


@dataclass(frozen=True)
class Reversal:
    """An augmentation in WordNet's place that needs no data and no process of its own: the words back to front."""

    source = "wordnet"
    summary = "words back to front"
    in_workers = False
    note = ""

    def describe(self) -> dict[str, str]:
        return {"words": "back to front"}

    def load(self) -> Reversal:
        return self

    def augment(self, texts: Sequence[str], first_row: int, copy: int) -> list[str]:
        return [" ".join([*reversed(text.split()), *["fresh"] * copy]) for text in texts]


@dataclass(frozen=True)
class Stage:
    """A command whose operations are to be disturbed.

    Attributes:
        words: the command without --work; relative paths are of the folder that it is run in.
        makes: `kind/name` of its artifact; "" when it writes elsewhere.
        needs: the artifacts, of those that `prepare` makes, that are there when it starts.
        before: a command that has made another artifact of the same name.
        force: the fault hits the command with --force, over a finished artifact.
        slow: takes seconds; only chosen by name.
    """

    name: str
    words: Sequence[str]
    makes: str = ""
    needs: Sequence[str] = ()
    before: Sequence[str] = ()
    force: bool = False
    slow: bool = False


VECTORS = ("sentences/main", "teacher-vectors/main")
PROJECTED = (*VECTORS, "projections/pca-4")
STUDENT = (*PROJECTED, "students/s")
MEASURED = (*STUDENT, "evaluations/sts-s")

# What is made once, in this order, for the others to start from.
BASE: Sequence[Sequence[str]] = (
    "augment lines.txt --wordnet 0 --back-translate 0 --name main".split(),
    "augment nli.csv --wordnet 0 --back-translate 0 --name nli".split(),
    "teacher-embed --teacher model --sentences main --name main --dtype float32".split(),
    "fit-pca --dim 4 --teacher-vectors main --name pca-4".split(),
    DISTILL,
    "eval-sts --sts sts.tsv --model s --compare model --bootstrap 0 --name sts-s".split(),
)
# One shard is all of it, so that it can be merged.
SHARDS = {
    "augment": "augment nli.csv --wordnet 2 --back-translate 0 --workers 1 --name a --shard 1/1".split(),
    "teacher-embed": [*BASE[2][:-3], "v", *BASE[2][-2:], "--shard", "1/1"],
    "mine-negatives": "mine-negatives --model model --sentences nli --negatives 2 --name m --shard 1/1".split(),
    "encode": "encode lines.txt --model model --dtype float32 -o box/out/vectors --shard 1/1".split(),
}
PLAIN = (
    Stage("split-documents", "split-documents documents.txt --name d".split(), "documents/d"),
    Stage("augment", "augment nli.csv --wordnet 2 --back-translate 0 --workers 1 --name a".split(), "sentences/a"),
    Stage("teacher-embed", [*BASE[2][:-3], "v", *BASE[2][-2:]], "teacher-vectors/v", ["sentences/main"]),
    Stage("fit-pca", "fit-pca --dim 3 --name p".split(), "projections/p", VECTORS),
    Stage("train-teacher", "train-teacher --model model --triplets nli.csv --name t".split() + TRAINING, "students/t"),
    Stage("distill", DISTILL, "students/s", PROJECTED),
    Stage(
        "finetune",
        ["finetune", "--model", "model", "--sentences", "nli", "--dim", "4", "--name", "f", *TRAINING],
        "students/f",
        ["sentences/nli"],
    ),
    Stage("whiten", "whiten --model model --dim 3 --name w".split(), "students/w", ["sentences/main"]),
    Stage("weigh-tokens", "weigh-tokens --model model --name wt".split(), "students/wt", ["sentences/main"]),
    Stage("average", "average model other --name avg".split(), "students/avg"),
    Stage(
        "mine-negatives",
        "mine-negatives --model model --sentences nli --negatives 2 --name mined".split(),
        "sentences/mined",
        ["sentences/nli"],
    ),
    Stage(
        "fit-quantizer",
        "fit-quantizer --model model --compare model --sentences main --vector-bytes 8 --store int4 --name q".split(),
        "quantizers/q",
        ["sentences/main"],
    ),
    Stage("select", "select s --by spearman_cosine --name best".split(), "students/best", MEASURED),
    Stage("eval-sts", "eval-sts --sts sts.tsv --model s --bootstrap 10 --name e".split(), "evaluations/e", STUDENT),
    Stage(
        "eval-retrieval",
        "eval-retrieval --collection beir --model model --compare other --index flat,hnsw "
        "--rounds 1 --depth 10 --name r".split(),
        "evaluations/r",
    ),
    Stage(
        "eval-transfer",
        "eval-transfer --tasks tasks --model model --folds 2 --bootstrap 0 --name x".split(),
        "evaluations/x",
    ),
    Stage(
        "eval-fidelity",
        "eval-fidelity --text lines.txt --model model --compare other --bootstrap 0 --name y".split(),
        "evaluations/y",
    ),
    Stage(
        "eval-search",
        "eval-search --collection beir --model model --compare other --bootstrap 0 --name f".split(),
        "evaluations/f",
    ),
    Stage(
        "bench",
        "bench --model model --compare none --text lines.txt --count 4 --single 2 --rounds 1 "
        "--runtimes float32 --no-memory --device cpu --name b".split(),
        "evaluations/b",
    ),
    Stage("export", "export --format folder --model s --name s".split(), "exports/s", MEASURED),
    Stage("export-onnx", "export --model s --name s".split(), "exports/s", MEASURED, slow=True),
    Stage("search", "search cat --collection beir --model model".split(), "indexes/beir-model"),
    Stage("encode", "encode lines.txt --model model --dtype float32 -o box/out/vectors.npy".split()),
    Stage("augment-shard", SHARDS["augment"]),
    Stage("teacher-embed-shard", SHARDS["teacher-embed"], "", ["sentences/main"]),
    Stage("mine-negatives-shard", SHARDS["mine-negatives"], "", ["sentences/nli"]),
    Stage("encode-shard", SHARDS["encode"]),
    Stage("merge-sentences", "merge sentences/a".split(), before=SHARDS["augment"]),
    Stage("merge-vectors", "merge teacher-vectors/v".split(), "", ["sentences/main"], before=SHARDS["teacher-embed"]),
    Stage("merge-mined", "merge sentences/m".split(), "", ["sentences/nli"], before=SHARDS["mine-negatives"]),
    Stage("merge-folder", "merge box/out/vectors".split(), before=SHARDS["encode"]),
    Stage("report", ["report"], "", MEASURED),
    Stage("run", "run chain.toml --input text=lines.txt".split(), "projections/lines"),
)
OTHER = {"fit-pca": "fit-pca --dim 2 --name p", "whiten": "whiten --model model --dim 2 --name w"}


def all_stages() -> list[Stage]:
    """Every command over an empty place, and those that make an artifact over an older one as well."""
    found = list(PLAIN)
    for stage in PLAIN:
        if stage.makes and not stage.slow and stage.name != "run":
            found.append(Stage(f"{stage.name}+force", stage.words, stage.makes, stage.needs, stage.words, force=True))
        if stage.name in OTHER:
            before = OTHER[stage.name].split()
            words = [*stage.words, "--force"]
            found.append(Stage(f"{stage.name}+other", words, stage.makes, stage.needs, before))
    return found


def write_inputs(folder: Path) -> None:
    """Models, sentences, graded pairs, triplets, a collection, a task and a recipe: a dozen of each."""
    texts = make_sentences(40, seed=1)
    for name, seed in (("model", 0), ("other", 1)):
        make_tiny_model(folder / name, layers=1, width=8, seed=seed)
    (folder / "lines.txt").write_text("\n".join(texts[:28]) + "\n", encoding="utf-8")
    numbered = (f"{texts[number % 20]} {number}" for number in range(110))
    (folder / "documents.txt").write_text("\n".join(numbered) + "\n", encoding="utf-8")
    triplets = [",".join(texts[start : start + 3]) for start in range(0, 36, 3)]
    (folder / "nli.csv").write_text("\n".join(["sent0,sent1,hard_neg", *triplets]) + "\n", encoding="utf-8")
    write_dev(folder / "dev.tsv", texts[20:30])
    write_dev(folder / "sts.tsv", texts[28:40])
    task = folder / "tasks" / "MR" / "all.tsv"
    task.parent.mkdir(parents=True)
    task.write_text("".join(f"{row % 2}\t{text}\n" for row, text in enumerate(texts[:12])), encoding="utf-8")
    judged = [(f"q{row}", f"c{2 * row}", 1) for row in range(4)]
    write_beir(folder / "beir", with_ids(texts[:12], "c"), with_ids(texts[12:16], "q"), test=judged)
    (folder / "chain.toml").write_text(RECIPE, encoding="utf-8")


def lay_out(stage: Stage, made: Path, box: Path, run: Callable[[Sequence[str]], None]) -> None:
    """Fill the empty box with what `stage` starts from; `made` is a work directory with all that BASE makes."""
    work = box / "work"
    (box / "out").mkdir(parents=True)
    work.mkdir()
    for reference in stage.needs:
        shutil.copytree(made / reference, work / reference)
    if stage.before:
        run(stage.before)
