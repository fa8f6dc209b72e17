"""The model card, README.md of an exported folder: usage, evaluation results, verification and lineage."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from sentcompress.errors import InputError
from sentcompress.evaluation.results import TEST, Evaluation
from sentcompress.evaluation.score import MEAN, MODEL, Score
from sentcompress.exporting.card_usage import router_usage, usage
from sentcompress.exporting.stored_vectors import stored_vectors
from sentcompress.exporting.verification_tables import cosines_of, router_rows, sts_table
from sentcompress.models.encoder import Encoder
from sentcompress.models.names import is_of_work
from sentcompress.models.shape import STATIC_STUDENT, told_sizes
from sentcompress.models.text_settings import MOST_TOKENS
from sentcompress.models.weight_formats import INT4
from sentcompress.plain_text import Code, markdown, markdown_command, markdown_table, printable, shell_line
from sentcompress.quantities import counted
from sentcompress.store import MODEL_FILES, Artifact, made_here, made_of, name_part

# Students that `distill` cuts from the teacher.
LAYERS = re.compile(r"teacher:(\d+)")
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
# For metadata that only the author knows.
NO_LICENSE = "# license: not stated; add one, for example apache-2.0"
NO_LANGUAGE = "# language: not stated; add it, for example en"
BEFORE_EXPORT = (
    "The model was scored before its export. The section on verification compares the vectors of each file with those "
    "of the model."
)
CHOSEN_BY = "The checkpoint or the model was selected on this data, so the figure tends to be too high."
LONGEST_NOTES = 1 << 20
TAGS = ("sentence-transformers", "sentence-similarity", "feature-extraction", "sentcompress")


@dataclass(frozen=True)
class Card:
    """The content of a model card.

    Attributes:
        name: name of the export.
        facts: facts of the export: sizes, parameters, verification.
        lineage: the artifacts that the model was made from, most recent first; then those of a teacher made here.
        teacher: label of the teacher, if known.
        base: label of the model from outside that the teacher is, or was itself made from.
        measured: evaluations of the model in the work directory.
        license: the license's identifier on the hub, if the author states it.
        languages: codes of the languages, if the author states them.
        notes: what the author adds, in Markdown: training data, licences, limits.
    """

    name: str
    encoder: Encoder
    facts: Mapping[str, Any]
    lineage: Sequence[Artifact]
    teacher: str | None
    base: str | None
    measured: Sequence[Evaluation]
    license: str | None = None
    languages: Sequence[str] = ()
    notes: str = ""

    def render(self) -> str:
        """The README.md as text, a deterministic function of the attributes."""
        parts = [
            *self._front_matter(),
            f"# {markdown(self.name)}",
            self._summary(),
            *usage(self.encoder, self.facts),
            *router_usage(self.facts),
            *(stored_vectors(self.facts["vectors"]) if self.facts.get("vectors") else ()),
            *self._measured(),
            *([self.notes] if self.notes else []),
            *self._check(),
            *self._lineage(),
        ]
        return "\n\n".join(parts) + "\n"

    def _front_matter(self) -> Iterator[str]:
        lines = ["---", f"license: {_quoted(self.license)}" if self.license else NO_LICENSE]
        lines += ["language:", *(f"- {_quoted(one)}" for one in self.languages)] if self.languages else [NO_LANGUAGE]
        lines += ["library_name: sentence-transformers", "pipeline_tag: sentence-similarity", "tags:"]
        lines += [f"- {tag}" for tag in (*TAGS, *(["onnx"] if "onnx" in self.facts["formats"] else []))]
        if self.base and HUB_NAME.fullmatch(self.base):
            lines += ["base_model:", f"- {_quoted(self.base)}"]
        results = [(of, score) for of in self.measured if not self._chosen_by(of) for score in _results(of)]
        if results:
            lines += ["model-index:", f"- name: {_quoted(self.name)}", "  results:"]
        for found, score in results:
            lines += [
                "  - task:",
                f"      type: {found.kind.task}",
                "    dataset:",
                f"      name: {_quoted(score.data)}",
                f"      type: {_quoted(name_part(score.data) or 'unnamed')}",
                *([f"      split: {_quoted(found.split)}"] if found.split != TEST else []),
                "    metrics:",
                f"    - type: {score.metric}",
                f"      name: {_quoted(score.of.title)}",
                f"      value: {round(score.value, score.of.decimals)}",
            ]
        yield "\n".join([*lines, "---"])

    def _summary(self) -> str:
        encoder, facts = self.encoder, self.facts
        teacher, base = (_without_folders(label or "") for label in (self.teacher, self.base))
        origin = f" {markdown(_origin(teacher, self.lineage))}." if teacher else ""
        if self.base != self.teacher and base and teacher:
            origin += f" {markdown(teacher)} was made from {markdown(base)}."
        weighted = "" if self.encoder.token_weights is None else ", with token weights"
        rows = [
            ("embedding dimensions", facts["dimension"]),
            ("parameters", f"{facts['parameters']:,}"),
            (
                "weights",
                facts.get("weights", "float32") + ("; computed in float32" * (facts.get("weights") == "float16")),
            ),
            *([("int8 graph", "weights stored in 4 bits")] if facts.get("weight_format") == INT4 else []),
            (
                "architecture",
                f"{encoder.architecture}, {counted(encoder.depth, 'layer')}, hidden size {encoder.hidden_size}",
            ),
            ("pooling", " + ".join(self.encoder.pooling) + weighted),
            ("dense layers", ", ".join(_dense(self.encoder)) or "none"),
            ("normalised", "yes" if self.encoder.normalize else "only in the ONNX graphs"),
            ("maximum length", _tokens(self.encoder.text.max_length)),
            *_prompts(self.encoder),
            ("similarity", "cosine"),
        ]
        return f"A sentence encoder made with `sentcompress`.{origin}\n\n" + markdown_table(("", ""), rows)

    def _measured(self) -> Iterator[str]:
        if not self.measured:
            return
        yield "## Evaluation"
        yield BEFORE_EXPORT
        for found in self.measured:
            columns, rows = found.table()
            yield f"{markdown(', '.join(filter(None, (found.kind.title, found.told))))}:"
            yield markdown_table(columns, rows)
            if isinstance(verdict := found.facts.get("verdict"), Mapping):
                yield markdown(str(verdict.get("text")))
            yield markdown(f"Protocol: {found.statement}.")
            if self._chosen_by(found):
                yield CHOSEN_BY
            yield markdown_command(_command(found.artifact))

    def _chosen_by(self, found: Evaluation) -> bool:
        """Whether the model or its checkpoint was chosen with the data of an evaluation, or by the evaluation itself.

        In a collection with splits, only dev can have been used for this; of held-out queries, all parts but test.
        """
        inputs = [one for made in self.lineage if made.manifest["kind"] == "students" for one in made.inputs.items()]
        if found.artifact.digest in {digest for _, digest in inputs}:
            return True
        if part := found.facts["protocol"].get("part"):
            return bool(part != TEST)
        files = {digest for reference, digest in inputs if reference.startswith("file:")}
        split = found.facts.get("dataset", {}).get("split")
        return bool(found.data) and split != TEST and found.data <= files

    def _check(self) -> Iterator[str]:
        checked = self.facts["checked"]
        yield "## Verification at export"
        sizes = [(Code(name), f"{size:,}") for name, size in self.facts["bytes"].items()]
        yield markdown_table(("file", "bytes"), sizes)
        yield (
            f"Minimum and mean cosine to the model's own vectors on {checked['folder']['texts']} sentences, including "
            "one of a single word and one longer than the maximum length:"
        )
        rows = [row for name, one in self.facts["formats"].items() for row in cosines_of(one["title"], checked[name])]
        rows += router_rows(self.facts)
        yield markdown_table(("", "minimum", "mean"), rows)
        if self.facts.get("sts"):
            yield "STS of the other formats, Spearman x 100:"
            yield markdown_table(*sts_table(self.facts))

    def _lineage(self) -> Iterator[str]:
        if not self.lineage:
            return
        yield "## Lineage"
        yield "The artifacts that this model was made from, most recent first. Digests are SHA-256 over the files."
        yield markdown_table(
            ("artifact", "made by", "digest"),
            [(Code(a.reference), Code(_command(a)), Code(a.digest[:16])) for a in self.lineage],
        )
        listed = {artifact.reference for artifact in self.lineage}
        outside = {
            (reference, digest)
            for artifact in self.lineage
            for reference, digest in artifact.inputs.items()
            if reference.startswith((MODEL_FILES, "file:")) and made_here(reference) not in listed
        }
        if outside:
            rows = [(Code(_outside(r)), Code(d[:16])) for r, d in sorted(outside)]
            yield markdown_table(("external input", "digest"), rows)
        for artifact in self.lineage:
            recipe = artifact.facts.get("recipe")
            if isinstance(recipe, Mapping) and recipe:
                method = markdown(str(artifact.facts.get("method")))
                yield f"Hyperparameters of {markdown(Code(artifact.reference))} ({method}):"
                yield markdown_table(("setting", "value", "source"), [_setting(*item) for item in recipe.items()])


def read_notes(path: Path) -> str:
    """The author's part of the card, as it is, without the empty lines around it.

    Raises:
        InputError: if it is not UTF-8 text, or larger than LONGEST_NOTES bytes.
    """
    if path.stat().st_size > LONGEST_NOTES:
        raise InputError(f"{path} is larger than {LONGEST_NOTES:,} bytes", "`notes` is a part of the model card")
    try:
        return path.read_text(encoding="utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start + 1})", "`notes` is a Markdown file") from None


def _results(evaluation: Evaluation) -> Iterator[Score]:
    """The scores for the hub's metadata: the main metric of each data set, of the model by itself."""
    for score in evaluation.headlines() if evaluation.kind.task and not evaluation.documents else ():
        main = score.metric == evaluation.scores[0].metric and score.role == MODEL and score.data != MEAN
        if main and math.isfinite(score.value):
            yield score


def _origin(teacher: str, lineage: Sequence[Artifact]) -> str:
    """The teacher, the methods that led to the model, first to last, and what the first one started from."""
    chain = list(_chain(lineage))
    methods = [str(a.facts.get("objective") or a.facts["method"]) for a in chain if a.facts.get("method")]
    made = f" with {', then '.join(reversed(methods))}" if methods else ""
    student = next((str(a.facts["student"]) for a in reversed(chain) if a.facts.get("student")), None)
    if made and student:
        return f"Its teacher is {teacher}; it was made{made}, starting from {_start(student)}{_cut(chain)}"
    return f"It was made from {teacher}{made}"


def _start(student: str) -> str:
    """A student of `distill` in words that need no knowledge of its names."""
    if layers := LAYERS.fullmatch(student):
        return "the teacher's last layer" if layers[1] == "1" else f"the teacher's last {layers[1]} layers"
    return "the teacher's token vectors" if student == STATIC_STUDENT else student


def _cut(chain: Sequence[Artifact]) -> str:
    """What `distill` made smaller, in words; empty if nothing."""
    sizes = told_sizes({name: size for a in reversed(chain) for name, size in a.facts.items() if size is not None})
    return f", cut to {' and '.join(sizes)}" if sizes else ""


def _chain(lineage: Sequence[Artifact]) -> Iterator[Artifact]:
    """The model and the one that each was made from, back to the first; selections, which are copies, are left out."""
    made = {artifact.reference: artifact for artifact in lineage}
    current = lineage[0] if lineage else None
    while current is not None:
        of = [reference for reference in made_of(current) if is_of_work(reference)]
        if current.manifest["command"] != "select":
            yield current
        made.pop(current.reference, None)
        current = next((made[reference] for reference in of if reference in made), None)


def _command(artifact: Artifact) -> str:
    """The command that made it, without local folders."""
    line = artifact.manifest["line"] or [artifact.manifest["command"]]
    return shell_line(["sentcompress", *map(_without_folders, line)])


def _without_folders(word: str) -> str:
    """A word, or the last part of an absolute path."""
    return PurePath(word).name if word.startswith("/") else word


def _prompts(encoder: Encoder) -> Iterator[tuple[str, Code]]:
    text = encoder.text
    if text.prompt:
        yield "prompt of every text", Code(json.dumps(text.prompt, ensure_ascii=False))
    for name, prompt in text.unused_prompts.items():
        yield f"prompt {name}", Code(json.dumps(prompt, ensure_ascii=False))


def _tokens(limit: int) -> str:
    return "no limit" if limit == MOST_TOKENS else f"{limit} tokens"


def _dense(encoder: Encoder) -> Iterator[str]:
    for layer in encoder.dense:
        linear: Any = layer.linear
        yield f"{linear.in_features} to {linear.out_features} ({layer.activation_name})"


def _setting(name: str, entry: Any) -> tuple[str, str, str]:
    if isinstance(entry, Mapping):
        value = entry.get("value")
        return name, "-" if value is None else str(value), str(entry.get("source", ""))
    return name, str(entry), ""


def _outside(reference: str) -> str:
    """The name of an external model or file, without local folders."""
    kind, _, name = reference.partition(":")
    return f"{kind} {name.rsplit('/', 1)[-1] if kind == 'file' or name.startswith('/') else name}"


def _quoted(text: str) -> str:
    """A YAML scalar; JSON strings with Python escapes are valid YAML."""
    return printable(json.dumps(text, ensure_ascii=False))
