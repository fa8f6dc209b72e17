"""The model card with hostile names in everything that it tells."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import report_works
from markdown_it import MarkdownIt
from tiny_models import load_model

from sentcompress.evaluation.metrics import ACCURACY, NDCG, NEIGHBOURS, SPEARMAN
from sentcompress.evaluation.results import Evaluation, read_evaluation
from sentcompress.evaluation.score import Interval, Recorder
from sentcompress.exporting.card import Card
from sentcompress.exporting.card_usage import OF_BATCH, PROMPTED, UNPROMPTED
from sentcompress.models.encoder import Encoder
from sentcompress.models.text_settings import MOST_TOKENS
from sentcompress.store import METHOD_OF, Artifact, Request, WorkDirectory, measurements

COSINES = {"texts": 3, "min_cosine": 1.0, "mean_cosine": 1.0}
EVIL = "<img src=x onerror=alert(1)>|`a`\n\n# [head](javascript:x)\n---\n\x1b[2J*b*"


def evaluation(work: WorkDirectory, of: Artifact) -> Evaluation:
    """A similarity evaluation of hostile names; Spearman 81.234, and an interval."""
    model = {"label": EVIL, "reference": of.reference, "digest": of.digest}
    recorder = Recorder({"model": of.reference, "compare": "model:t"})
    intervals = {"model": Interval(80.0, 82.5)}
    recorder.add(EVIL, SPEARMAN, {"model": 81.234, "compare": 90.0}, count=1379, intervals=intervals)
    other = {"label": f"t {EVIL}", "reference": "model:t"}
    facts = report_works.document("sts", {"model": model, "compare": other}, recorder)
    return read_evaluation(report_works.make(work, "evaluations", "e", "eval-sts", facts, model=EVIL))


@pytest.fixture
def card(tmp_path: Path, tiny_model: Path) -> str:
    work = WorkDirectory(tmp_path / "work")
    recipe = {EVIL: {"value": EVIL, "source": EVIL}}
    facts = {"method": EVIL, "student": EVIL, "teacher": EVIL, "recipe": recipe}
    inputs = {f"file:/data/{EVIL}": "1" * 64, f"model:{EVIL}": "2" * 64}
    name = EVIL.split("\n")[0]
    student = report_works.make(work, "students", name, "distill", facts, inputs, method=EVIL, student=EVIL)
    facts_of_export: dict[str, Any] = {
        "dimension": 32,
        "parameters": 10,
        "bytes": {EVIL: 3},
        "checked": {"folder": COSINES, "onnx": COSINES},
        "formats": {"folder": {"title": "the folder", "files": []}, "onnx": {"title": EVIL, "files": [EVIL]}},
        "sts": [{"set": EVIL, "pairs": 3, "onnx": 1.0}],
    }
    measured = [evaluation(work, student)]
    encoder = load_model(tiny_model)
    encoder.text = replace(encoder.text, prompt=EVIL, prompts={EVIL: f"{EVIL} "})
    return Card(name, encoder, facts_of_export, [student], EVIL, EVIL, measured).render()


def body(card: str) -> str:
    return MarkdownIt("commonmark").enable("table").render(card.split("\n---\n", 1)[1])


def test_no_name_is_html_or_markup(card: str) -> None:
    html = body(card)
    assert "<img" not in html
    assert "<a " not in html
    assert "<em>" not in html
    assert "onerror" in html  # it is shown
    assert "\x1b" not in card
    heads = [line for line in html.splitlines() if line.startswith("<h")]
    assert [head[:3] for head in heads] == ["<h1"] + ["<h2"] * (len(heads) - 1)


def test_tables_keep_their_cells(card: str) -> None:
    tables = body(card).split("<table>")[1:]
    assert tables
    for table in tables:
        rows = table.split("</table>")[0].split("<tr>")[1:]
        assert len({row.count("<td") + row.count("<th") - row.count("<thead") for row in rows}) == 1


def test_the_front_matter_is_yaml_that_gives_the_names_back(card: str) -> None:
    yaml = pytest.importorskip("yaml")
    front = yaml.safe_load(card[4:].split("\n---\n")[0])
    (result,) = front["model-index"][0]["results"]
    assert result["dataset"]["name"] == EVIL
    assert re.fullmatch(r"[\w.-]+", result["dataset"]["type"])
    assert result["task"] == {"type": "semantic-similarity"}
    assert result["metrics"] == [{"type": SPEARMAN, "name": "Spearman x 100", "value": 81.23}]
    assert front["model-index"][0]["name"] == EVIL.split("\n")[0]


def test_the_hub_reads_the_front_matter(card: str) -> None:
    hub = pytest.importorskip("huggingface_hub")
    data = hub.ModelCard(card).data
    assert data.license is None
    assert data.language is None
    (result,) = data.eval_results
    assert (result.task_type, result.metric_type, result.metric_value) == ("semantic-similarity", SPEARMAN, 81.23)


def test_what_nobody_said_is_not_invented(card: str) -> None:
    front = card.split("\n---\n")[0]
    assert "# license: not stated" in front
    assert "# language: not stated" in front


def test_who_cuts_vectors_for_inner_products_is_told_to_normalise_them(card: str) -> None:
    assert "truncate_dim" in card
    assert "normalize_embeddings=True" in card


def card_of_graphs(encoder: Encoder, **facts: Any) -> str:
    """The card of a model with its graphs, and without a lineage or evaluations."""
    titles = {"folder": "the folder", "onnx": "float32 graph", "int8": "int8 graph"}
    formats = {name: {"title": title, "files": []} for name, title in titles.items()}
    checked = dict.fromkeys(titles, COSINES)
    made = {"dimension": 32, "parameters": 10, "bytes": {}, "formats": formats, "checked": checked}
    return Card("small", encoder, {**made, **facts}, [], None, None, []).render()


def test_prompts_are_on_the_card_with_how_to_use_them(encoder: Encoder) -> None:
    assert "prompt" not in card_of_graphs(encoder)
    prompts = {"default": "text: ", "query": "query: ", "document": ""}
    encoder.text = replace(encoder.text, prompt="text: ", prompts=prompts)
    card = card_of_graphs(encoder)
    assert '| prompt of every text | `"text: "` |\n| prompt query | `"query: "` |\n| similarity' in card
    assert "`encode_query` and `encode_document` put those of queries and documents before the text" in card
    assert PROMPTED in card
    encoder.text = replace(encoder.text, pools_prompt=False)
    assert UNPROMPTED in card_of_graphs(encoder)


def test_what_the_code_without_pytorch_needs_is_on_the_card(encoder: Encoder) -> None:
    card = card_of_graphs(encoder)
    told, code = card.split("Without PyTorch: ")[1].split("```")[:2]
    imported = set(re.findall(r"^(?:import|from) (\w+)", code, flags=re.MULTILINE))
    packages = imported - {"numpy"}  # onnxruntime installs it
    assert set(re.findall(r"pip install ([\w ]+)`", told)[0].split()) == packages
    assert "Run it in this folder" in told


def test_a_model_without_a_maximum_length(encoder: Encoder) -> None:
    encoder.text = replace(encoder.text, max_length=MOST_TOKENS)
    assert "| maximum length | no limit |" in card_of_graphs(encoder)


@pytest.mark.parametrize(
    ("facts", "varies"),
    [({}, True), ({"int8": {"quantisation": "dynamic"}}, True), ({"int8": {"quantisation": "static"}}, False)],
)
def test_the_card_says_if_a_vector_depends_on_its_batch(encoder: Encoder, facts: dict[str, Any], varies: bool) -> None:
    assert (OF_BATCH in card_of_graphs(encoder, **facts)) == varies


def test_results_of_every_kind_stand_on_the_card_under_their_own_task(tmp_path: Path, tiny_model: Path) -> None:
    yaml = pytest.importorskip("yaml")
    work = report_works.full_work(tmp_path / "work")
    student = work.get("students", "small")
    measured = [read_evaluation(artifact) for artifact in measurements(work, student.reference, student.digest)]
    facts: dict[str, Any] = {"dimension": 32, "parameters": 10, "bytes": {}, "checked": {"folder": COSINES}}
    facts["formats"] = {"folder": {"title": "the folder", "files": []}}
    shown = Card("small", load_model(tiny_model), facts, [student], None, None, measured).render()
    front = yaml.safe_load(shown[4:].split("\n---\n")[0])
    found = {
        (r["task"]["type"], r["dataset"]["type"], r["metrics"][0]["type"]) for r in front["model-index"][0]["results"]
    }
    assert found == {
        ("semantic-similarity", "STS-B", SPEARMAN),
        ("semantic-similarity", "STS13", SPEARMAN),
        ("information-retrieval", "scifact-dev", NDCG),
        ("text-classification", "MR", ACCURACY),
        ("text-classification", "TREC", ACCURACY),
        ("sentence-similarity", "mine.txt", NEIGHBOURS),
    }
    for part in ("small keeps 70%", "10 nearest", "Fidelity on your own sentences", "Speed, size and memory", "98.8%"):
        assert part in shown.replace("\\", "")


def test_the_card_follows_the_chosen_model_back_and_names_no_local_folder(tmp_path: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    request = Request("documents", "docs", "split-documents", {}, {}, ("split-documents", "/a/b/c.txt"))
    with work.build(request) as build:
        documents = build.finish({})
    inputs = {documents.reference: documents.digest}
    facts = {"method": "simtde", "student": "teacher:2", "token_dim": None, "vocabulary": 9000, "feed_forward": 64}
    first = report_works.make(work, "students", "first", "distill", facts, inputs)
    mixed = report_works.make(
        work, "students", "mixed", "average", {"method": "average"}, {first.reference: first.digest}
    )
    both = {one.reference: one.digest for one in (first, mixed)}
    best = report_works.make(work, "students", "best", "select", {"method": "select", METHOD_OF: first.reference}, both)
    facts_of_export: dict[str, Any] = {"dimension": 32, "parameters": 10, "bytes": {}, "checked": {"folder": COSINES}}
    facts_of_export["formats"] = {"folder": {"title": "the folder", "files": []}}
    encoder = load_model(tiny_model)
    lineage = [best, mixed, first, documents]
    shown = Card("best", encoder, facts_of_export, lineage, "t", "t", [], "mit", ["en", "de"]).render()
    cut = "the teacher's last 2 layers, cut to a vocabulary of 9,000 tokens and feed-forward layers of 64 units."
    assert f"Its teacher is t; it was made with simtde, starting from {cut}" in shown
    assert "split-documents c.txt" in shown
    assert "/a/b" not in shown
    averaged = Card("mixed", encoder, facts_of_export, lineage[1:], "t", "t", []).render()
    assert f"made with simtde, then average, starting from {cut}" in averaged
    yaml = pytest.importorskip("yaml")
    front = yaml.safe_load(shown[4:].split("\n---\n")[0])
    assert (front["license"], front["language"]) == ("mit", ["en", "de"])


OTHER = "2" * 64


@pytest.mark.parametrize(
    ("data", "facts", "chosen"),
    [
        ({"file:/data/dev.tsv": "1" * 64}, {}, True),
        ({"file:/data/test.tsv": OTHER}, {}, False),
        ({"file:/data/dev.tsv": "1" * 64, "file:/data/test.tsv": OTHER}, {}, False),
        ({"file:/data/dev.tsv": "1" * 64}, {"dataset": {"split": "test"}}, False),
        ({"file:/data/dev.tsv": "1" * 64}, {"dataset": {"split": "dev"}}, True),
        ({"documents/main": "3" * 64}, {"protocol": {"statement": "dev queries", "part": "dev"}}, True),
        ({"documents/main": "3" * 64}, {"protocol": {"statement": "all queries", "part": "all"}}, True),
        ({"documents/main": "3" * 64}, {"protocol": {"statement": "test queries", "part": "test"}}, False),
        ({"sentences/main": "4" * 64}, {}, False),
    ],
)
def test_scores_that_chose_the_model_are_marked(
    tmp_path: Path, tiny_model: Path, data: dict[str, str], facts: dict[str, Any], chosen: bool
) -> None:
    work = WorkDirectory(tmp_path / "work")
    made_from = {"file:/data/dev.tsv": "1" * 64, "documents/main": "3" * 64, "sentences/main": "4" * 64}
    student = report_works.make(work, "students", "s", "distill", {"method": "m", "teacher": "t"}, made_from)
    model = {"label": "s", "reference": student.reference, "digest": student.digest}
    recorder = Recorder({"model": student.reference})
    recorder.add("pairs", SPEARMAN, {"model": 81.234}, count=1379)
    document = {**report_works.document("sts", {"model": model}, recorder), **facts}
    measured = report_works.make(work, "evaluations", "e", "eval-sts", document, data)
    text = _card(tiny_model, [student], [measured])
    assert ("The checkpoint or the model was selected on this data" in text) == chosen
    assert ("model-index" in text) != chosen, "such a score is not one to publish"
    assert f"Protocol: {document['protocol']['statement']}." in text


def test_a_score_of_another_split_says_so(tmp_path: Path, tiny_model: Path) -> None:
    yaml = pytest.importorskip("yaml")
    work = WorkDirectory(tmp_path / "work")
    student = report_works.student(work, "small")
    facts = report_works.sts(work, student).facts
    dev = {**facts, "protocol": {**facts["protocol"], "split": "dev"}}
    measured = [*work.newest("evaluations"), report_works.make(work, "evaluations", "sts-dev", "eval-sts", dev)]
    text = _card(tiny_model, [student], measured)
    results = yaml.safe_load(text[4:].split("\n---\n")[0])["model-index"][0]["results"]
    sets = [(one["dataset"]["name"], one["dataset"].get("split")) for one in results]
    assert sets == [("STS-B", None), ("STS13", None), ("STS-B", "dev"), ("STS13", "dev")]
    assert text.replace("\\", "").count("Sentence similarity (STS), dev split:") == 1


def test_a_score_that_a_selection_was_made_by_is_marked(tmp_path: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    student = report_works.make(work, "students", "s", "distill", {"method": "m", "teacher": "t"})
    model = {"label": "s", "reference": student.reference, "digest": student.digest}
    recorder = Recorder({"model": student.reference})
    recorder.add("pairs", SPEARMAN, {"model": 81.234}, count=1379)
    document = report_works.document("sts", {"model": model}, recorder)
    measured = report_works.make(work, "evaluations", "e", "eval-sts", document, {"file:/data/test.tsv": OTHER})
    inputs = {one.reference: one.digest for one in (student, measured)}
    selected = report_works.make(work, "students", "best", "select", {"method": "select"}, inputs)
    assert "was selected on this data" in _card(tiny_model, [selected, student], [measured])
    assert "was selected on this data" not in _card(tiny_model, [student], [measured])


def _card(tiny_model: Path, lineage: list[Artifact], measured: list[Artifact]) -> str:
    facts = {
        "dimension": 32,
        "parameters": 10,
        "bytes": {"model.safetensors": 3},
        "checked": {"folder": COSINES},
        "formats": {"folder": {"title": "the folder", "files": []}},
    }
    encoder = load_model(tiny_model)
    return Card("s", encoder, facts, lineage, "t", None, [read_evaluation(one) for one in measured]).render()
