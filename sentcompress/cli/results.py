"""The output of commands that print a table or two about their artifact; each function returns the next command."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.evaluation.metrics import METRICS
from sentcompress.evaluation.registry import command_for
from sentcompress.exporting.verification_tables import cosines_of, router_rows, sts_table
from sentcompress.plain_text import shell_line, shell_word
from sentcompress.store import METHOD_OF, Artifact, WorkDirectory
from sentcompress.store.shards import Shards

TRAINING = (
    *("parameters", "dimension", "dev_before_training", "dev", "dev_protocol", "best_step", "steps", "stopped"),
    *("diagnosis", "compute_dtype", "sentences_per_second"),
)
DISTILL = ("teacher", "student", "method", *TRAINING)
FINETUNE = ("objective", "triplets", *TRAINING)
MINE_NEGATIVES = ("mined_from", "model", "queries", "corpus", "triplets", "negatives", "mean_positive_score")
SPLIT_DOCUMENTS = ("documents", "words", "passages", "titles", "queries")
SHARD = ("rows", "queries", "compute_dtype", "sentences_per_second")
TEACHER_EMBED = ("rows", "dimension", "teacher", "compute_dtype", "sentences_per_second")
TRAIN_TEACHER = ("started_from", "objective", "pooling", "triplets", *TRAINING)


def show_shard(artifact: Artifact, call: Call) -> str | None:
    """Show one shard of an artifact, and how many are finished; the next command if all are."""
    facts, of = artifact.facts, str(artifact.facts["of"])
    progress = Shards.of_part(artifact).progress()
    done = {"finished": f"{progress.done} of {progress.count} shards"} if progress else {}
    shown = {name: facts[name] for name in SHARD if name in facts}
    render.print_facts({"shard": facts["shard"], **shown, **done}, of)
    if progress is None or progress.done < progress.count:
        return None
    return f"sentcompress merge {shell_word(of)} --work {shell_word(call.work)}"


def _reading(artifact: Artifact, call: Call, command: str, option: str) -> str:
    """The command that reads the artifact; by default it reads the newest, so `option` names any other one."""
    kind, _, name = artifact.reference.partition("/")
    named = [] if WorkDirectory(call.work).names(kind)[-1:] == [name] else [option, name]
    return shell_line(["sentcompress", command, *named, "--work", str(call.work)])


def _augment(artifact: Artifact, call: Call) -> str:
    """Show the counts of the sentence table."""
    facts = artifact.facts
    skipped = {f"dropped: {why.replace('_', ' ')}": count for why, count in facts["skipped"].items()}
    made = {source: count for source, count in facts["by_source"].items() if source != "original"}
    by_source = {"original": facts["originals"], **made}
    render.print_facts({"sentences": facts["rows"], **by_source, "triplets": facts["triplets"], **skipped})
    return _reading(artifact, call, "teacher-embed", "--sentences")


def _average(artifact: Artifact, call: Call) -> str:
    """Show the models and their shares."""
    facts = artifact.facts
    parts = [f"{share:.0%} {model}" for share, model in zip(facts["shares"], facts["models"], strict=True)]
    shown = {"average of": ", ".join(parts), "parameters": facts["parameters"], "dimension": facts["dimension"]}
    render.print_facts(shown, artifact.reference)
    return command_for("fidelity", artifact.name, call.work)


def _distill(artifact: Artifact, call: Call) -> str:
    """Show the student and its training."""
    render.print_facts({key: artifact.facts[key] for key in DISTILL}, artifact.reference)
    return command_for("fidelity", artifact.name, call.work)


def _export(artifact: Artifact, call: Call) -> str:
    """Show the files, and how exactly they give the model's vectors."""
    facts = artifact.facts
    checked, sizes = facts["checked"], facts["bytes"]
    rows = []
    for name, one in facts["formats"].items():
        size = sum(sizes.get(file, 0) for file in one["files"])
        rows += [[title, size, *cosines] for title, *cosines in cosines_of(one["title"], checked[name])]
    rows += [[title, facts["router"]["bytes"], *cosines] for title, *cosines in router_rows(facts)]
    title = f"checked on {checked['folder']['texts']} sentences: cosine to the model's own vectors"
    render.print_table(["file", "bytes", "smallest", "mean"], rows, title)
    if int8 := facts.get("int8"):
        cosines = ", ".join(f"{name} {value:.4f}" for name, value in int8["mean_cosine"].items())
        render.print_facts({"int8 quantisation": f"{int8['quantisation']} (mean cosine: {cosines})"})
    if facts["sts"]:
        render.print_table(*sts_table(facts), "STS, Spearman x 100")
    return f"sentcompress encode lines.txt --model {shell_word(artifact.path)} -o vectors.npy"


def _finetune(artifact: Artifact, call: Call) -> str:
    """Show the model and its training."""
    shown = {"started from": artifact.facts[METHOD_OF], **{key: artifact.facts[key] for key in FINETUNE}}
    render.print_facts(shown, artifact.reference)
    return command_for("fidelity", artifact.name, call.work)


def _fit_pca(artifact: Artifact, call: Call) -> str:
    """Show the explained variance."""
    facts = artifact.facts
    render.print_chart(facts["explained_variance_ratio"], "explained variance by dimension")
    kept = f"{facts['dimension']} of {facts['teacher_dimension']} dimensions"
    render.print_facts({"kept": kept, "explained variance": f"{facts['explained_variance']:.2%}"})
    return f"sentcompress distill --method hpd --projection {shell_word(artifact.name)} --work {shell_word(call.work)}"


def _fit_quantizer(artifact: Artifact, call: Call) -> str:
    """Show everything that was tried, and the first dimensions of the rotated vectors."""
    facts = artifact.facts
    rows = [[row[name] for name in ("format", "dimension", "bytes", "fidelity")] for row in facts["tried"]]
    render.print_table(("format", "dimensions", "bytes", "search fidelity"), rows, "formats that fit")
    prefixes = [[row["dimension"], row["float32"], row["stored"]] for row in facts["prefixes"]]
    render.print_table(("dimensions", "float32", f"as {facts['format']}"), prefixes, "fidelity by dimensions")
    chosen = {"format": facts["format"], "dimensions": facts["dimension"], "bytes": facts["bytes"]}
    fidelity = {"search fidelity": facts["fidelity"], "search fidelity of float32": facts["fidelity_of_float32"]}
    render.print_facts({**chosen, **fidelity}, artifact.reference)
    model = facts["model"]["reference"].partition(":")[2] or facts["model"]["reference"]
    return (
        f"sentcompress export --model {shell_word(model)} --quantizer {shell_word(artifact.name)} "
        f"--work {shell_word(call.work)}"
    )


def _mine_negatives(artifact: Artifact, call: Call) -> str:
    """Show the number of mined negatives and their similarity."""
    facts = artifact.facts
    shown = {key: facts[key] for key in (*MINE_NEGATIVES, "mean_negative_score")}
    shown["positives among candidates"] = f"{facts['positives_among_candidates']:.1%}"
    shown["candidates dropped"] = f"{facts['share_dropped']:.1%}"
    render.print_facts(shown, artifact.reference)
    return f"sentcompress finetune --sentences {shell_word(artifact.name)} --work {shell_word(call.work)}"


def _split_documents(artifact: Artifact, call: Call) -> str:
    """Show the counts of texts by kind, and what is held out."""
    facts = artifact.facts
    skipped = {f"dropped: {why.replace('_', ' ')}": count for why, count in facts["skipped"].items()}
    parts = ", ".join(f"{count} {part}" for part, count in facts["parts"].items())
    held = f"{facts['held_out_documents']} {facts['held_out_by']}s, {facts['held_out_queries']} queries ({parts})"
    shown = {key: facts[key] for key in SPLIT_DOCUMENTS}
    render.print_facts({**shown, "held out": held, "held-out corpus": facts["corpus"], **skipped}, artifact.reference)
    return f"sentcompress augment {shell_word(artifact.reference)} --work {shell_word(call.work)}"


def _select(artifact: Artifact, call: Call) -> str:
    """Show the ranking."""
    facts = artifact.facts
    of = METRICS[facts["by"]]
    rows = [[str(place), one["model"], of.show(one["value"])] for place, one in enumerate(facts["ranking"], 1)]
    render.print_table(["rank", "model", of.title], rows, f"{artifact.reference}: {facts['models'][0]}")
    return f"sentcompress export --model {shell_word(artifact.name)} --work {shell_word(call.work)}"


def _teacher_embed(artifact: Artifact, call: Call) -> str:
    """Show what was encoded, and the throughput."""
    render.print_facts({key: artifact.facts[key] for key in TEACHER_EMBED})
    return _reading(artifact, call, "distill", "--teacher-vectors")


def _train_teacher(artifact: Artifact, call: Call) -> str:
    """Show the teacher and its training."""
    render.print_facts({key: artifact.facts[key] for key in TRAIN_TEACHER}, artifact.reference)
    return f"sentcompress teacher-embed --teacher {shell_word(artifact.name)} --work {shell_word(call.work)}"


def _weigh_tokens(artifact: Artifact, call: Call) -> str:
    """Show the mean weight and the tokens with the lowest weights."""
    facts = artifact.facts
    shown = {"mean weight": f"{facts['mean_weight']:.3f}", "lowest weights": " ".join(facts["lightest"])}
    render.print_facts(shown, artifact.reference)
    return command_for("fidelity", artifact.name, call.work)


def _whiten(artifact: Artifact, call: Call) -> str:
    """Show the explained variance."""
    facts = artifact.facts
    kept = f"{facts['dimension']} of {facts['model_dimension']} dimensions"
    shown = {"kept": kept, "explained variance": f"{facts['explained_variance']:.2%}", "sample": facts["sample"]}
    render.print_facts(shown, artifact.reference)
    return command_for("fidelity", artifact.name, call.work)


SHOW: Mapping[str, Callable[[Artifact, Call], str]] = {
    "augment": _augment,
    "average": _average,
    "distill": _distill,
    "export": _export,
    "finetune": _finetune,
    "fit-pca": _fit_pca,
    "fit-quantizer": _fit_quantizer,
    "mine-negatives": _mine_negatives,
    "split-documents": _split_documents,
    "select": _select,
    "teacher-embed": _teacher_embed,
    "train-teacher": _train_teacher,
    "weigh-tokens": _weigh_tokens,
    "whiten": _whiten,
}
