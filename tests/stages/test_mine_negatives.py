"""mine-negatives against an exhaustive search in NumPy, from pairs, collections and triplets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from beir import with_ids, write_beir, write_jsonl
from distilling import add_sentences
from interrupting import interrupted
from listening import Listener
from tiny_models import load_model, make_sentences

from sentcompress.cli.main import _run
from sentcompress.corpora.sentence_table import SCHEMA, TRIPLET_SCHEMA, SentenceTable
from sentcompress.encoding import compute_plan
from sentcompress.encoding.embedder import Embedder
from sentcompress.encoding.embedder_sources import EmbedderSource
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.mining import miner
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import save_encoder
from sentcompress.stages import mine_negatives, status, teacher_embed
from sentcompress.stages.mine_negatives import Params, run
from sentcompress.store import Artifact, Request, WorkDirectory

Floats = npt.NDArray[np.float64]
TEXTS = make_sentences(90, seed=5)
QUERIES, POSITIVES, OTHERS = TEXTS[:30], TEXTS[30:60], TEXTS[60:]
TOP: dict[str, Any] = {"negatives": 3, "max_score": None, "strategy": "top"}


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """30 pairs of a query and its positive."""
    return write_pairs(tmp_path / "pairs.tsv", list(zip(QUERIES, POSITIVES, strict=True)))


def write_pairs(path: Path, rows: Sequence[Sequence[str]], header: str = "query\tpositive") -> Path:
    path.write_text("\n".join([header, *("\t".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


@cache
def encoder_of(model: Path) -> Encoder:
    return load_model(model)


def embedded(model: Path, texts: Sequence[str]) -> Floats:
    """Normalised vectors, in one batch."""
    encoder = encoder_of(model)
    tokens = [torch.tensor(ids) for ids in encoder.tokenize(texts)]
    ids = torch.nn.utils.rnn.pad_sequence(tokens, batch_first=True)
    with torch.inference_mode():
        return encoder(ids, (ids > 0).long()).double().numpy()  # type: ignore[no-any-return]


def mine(work: WorkDirectory, model: Path, rules: dict[str, Any] | None = None, **params: Any) -> Artifact:
    return run(Params(model=str(model), **(rules or TOP), **params), work)


def triplets_of(artifact: Artifact) -> list[tuple[str, str, list[str]]]:
    """The triplets as texts."""
    table = SentenceTable(artifact.path)
    texts = [text for texts in table.stream() for text in texts]
    assert len(set(texts)) == len(texts) == artifact.facts["rows"]
    return [(texts[a], texts[p], [texts[row] for row in rest]) for a, p, *rest in table.triplets().tolist()]


def ranked(model: Path, query: str, corpus: Sequence[str]) -> list[str]:
    """The corpus by falling cosine to the query."""
    scores = embedded(model, corpus) @ embedded(model, [query])[0]
    return [corpus[place] for place in np.argsort(-scores)]


def test_negatives_are_the_best_that_do_not_answer(work: WorkDirectory, tiny_model: Path, pairs: Path) -> None:
    artifact = mine(work, tiny_model, pairs=pairs)
    vectors = embedded(tiny_model, POSITIVES)
    found = triplets_of(artifact)
    assert [(anchor, positive) for anchor, positive, _ in found] == list(zip(QUERIES, POSITIVES, strict=True))
    sums = [0.0, 0.0]
    for query, positive, negatives in found:
        scores = vectors @ embedded(tiny_model, [query])[0]
        order = [POSITIVES[place] for place in np.argsort(-scores) if POSITIVES[place] != positive]
        assert negatives == order[:3]
        sums[0] += scores[POSITIVES.index(positive)]
        sums[1] += np.mean([scores[POSITIVES.index(text)] for text in negatives])
    facts = artifact.facts
    assert facts["mean_positive_score"] == pytest.approx(sums[0] / 30, abs=1e-5)
    assert facts["mean_negative_score"] == pytest.approx(sums[1] / 30, abs=1e-5)
    assert (facts["queries"], facts["corpus"], facts["triplets"], facts["negatives"]) == (30, 30, 30, 3)
    assert (facts["padded_pairs"], facts["share_dropped"], facts["positives_among_candidates"]) == (0, 0, 1)


def test_several_answers_and_the_query_itself_are_no_negatives(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    rows = [("dog runs", text) for text in POSITIVES[:4]] + [("cat sleeps", POSITIVES[5])]
    rows += [("cat sleeps", "dog runs"), ("cat  sleeps ", POSITIVES[5]), ("dog runs", "dog runs")]
    path = write_pairs(tmp_path / "pairs.tsv", rows)
    more = tmp_path / "more.txt"
    more.write_text("\n".join([*OTHERS[:6], "dog runs", "cat sleeps"]) + "\n", encoding="utf-8")
    artifact = mine(work, tiny_model, pairs=path, corpus=more)
    found = triplets_of(artifact)
    corpus = [*POSITIVES[:4], POSITIVES[5], "dog runs", *OTHERS[:6], "cat sleeps"]
    for query, _, negatives in found:
        mine_alone = [text for text in ranked(tiny_model, query, corpus) if (query, text) not in rows and text != query]
        assert negatives == mine_alone[:3]
    assert len(found) == 6
    assert artifact.facts["corpus"] == len(corpus)
    assert artifact.facts["left_out"] == {"same_text": 1}


def test_rank_and_score_keep_likely_answers_out(work: WorkDirectory, tiny_model: Path, pairs: Path) -> None:
    skipping = triplets_of(mine(work, tiny_model, {**TOP, "skip": 2, "depth": 5}, pairs=pairs))
    assert skipping
    for query, positive, negatives in skipping:
        order = [text for text in ranked(tiny_model, query, POSITIVES) if text != positive]
        assert negatives == order[2:5]
    limited = mine(work, tiny_model, {**TOP, "max_score": 0.9}, pairs=pairs, name="limited")
    vectors = dict(zip(TEXTS, embedded(tiny_model, TEXTS), strict=True))
    for query, positive, negatives in triplets_of(limited):
        limit = 0.9 * vectors[query] @ vectors[positive]
        assert all(vectors[query] @ vectors[text] <= limit + 1e-6 for text in negatives)
    assert 0 < limited.facts["share_dropped"] < 1
    assert limited.facts["triplets"] + limited.facts["left_out"].get("too_few_negatives", 0) == 30


@pytest.mark.parametrize(
    ("similarity", "limit", "warned"), [("dot", 0.9, True), ("dot", None, False), ("cosine", 0.9, False)]
)
def test_a_share_of_an_inner_product_is_warned_of(
    work: WorkDirectory, tiny_model: Path, pairs: Path, similarity: str, limit: float | None, warned: bool
) -> None:
    listener, rules = Listener(), {"negatives": 3, "max_score": limit}
    run(Params(model=str(tiny_model), pairs=pairs, **rules, similarity=similarity), work, listener)
    assert any("inner products" in warning for warning in listener.warnings) == warned


def test_binary_is_refused_for_inner_products(work: WorkDirectory, pairs: Path) -> None:
    with pytest.raises(UsageError, match="`index` binary ignores the lengths of vectors"):
        run(Params(model="x", pairs=pairs, index="binary", similarity="dot"), work)


@pytest.mark.parametrize("value", [np.nan, 1e19])
def test_inner_products_that_are_not_numbers_decide_nothing(
    work: WorkDirectory,
    tiny_model: Path,
    pairs: Path,
    monkeypatch: pytest.MonkeyPatch,
    value: float,
) -> None:
    """A query without a finite vector would find no candidate below its limit, and be left out without a word."""
    whole = EncodeEngine.encode

    def encode(self: EncodeEngine, texts: Sequence[str], task: Any = None) -> Any:
        vectors = whole(self, texts, task)
        vectors[0, 0] = value
        return vectors

    monkeypatch.setattr(EncodeEngine, "encode", encode)
    with pytest.raises(InputError, match="its vectors contain NaN or infinity, or are longer"):
        run(Params(model=str(tiny_model), pairs=pairs, negatives=3, max_score=None, similarity="dot"), work)


def test_random_negatives_follow_the_seed_and_not_the_size_of_chunks(
    work: WorkDirectory, tiny_model: Path, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = {"negatives": 3, "depth": 10, "max_score": None}
    found = triplets_of(mine(work, tiny_model, rules, pairs=pairs))
    for query, positive, negatives in found:
        order = [text for text in ranked(tiny_model, query, POSITIVES) if text != positive]
        assert len(set(negatives)) == 3
        assert set(negatives) <= set(order[:10])
    assert found != triplets_of(mine(work, tiny_model, rules, pairs=pairs, seed=1, name="other"))
    monkeypatch.setattr(miner, "QUERIES", 7)
    assert found == triplets_of(mine(work, tiny_model, rules, pairs=pairs, force=True))


def test_random_texts_fill_up_and_pairs_that_none_fit_are_left_out(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    path = write_pairs(tmp_path / "pairs.tsv", [("dog runs", POSITIVES[0])])
    more = tmp_path / "more.txt"
    more.write_text("\n".join(OTHERS[:7]) + "\n", encoding="utf-8")
    # Everything scores above a tiny share of the positive's score.
    with pytest.raises(InputError, match="no pair has 5 candidate negatives") as caught:
        run(
            Params(
                pairs=path,
                corpus=more,
                model=str(tiny_model),
                negatives=5,
                skip=0,
                depth=5,
                max_score=1e-6,
                strategy="top",
            ),
            work,
        )
    assert caught.value.hint == "raise `max_score`, or lower `skip` or `negatives`, or add texts with `corpus`"
    assert work.unfinished("sentences") == []
    listener = Listener()
    # An inverted file of which one cell is searched finds too few.
    many = write_pairs(tmp_path / "many.tsv", list(zip(make_sentences(200, 8), make_sentences(200, 9), strict=True)))
    settings = {"nlist": 4, "nprobe": 1}
    rules: dict[str, Any] = {"negatives": 60, "depth": 100, "max_score": None, "strategy": "top"}
    padded = run(Params(pairs=many, model=str(tiny_model), **rules, index="ivf", **settings), work, listener)
    assert padded.facts["padded_pairs"] > 0
    assert padded.facts["padded_negatives"] >= padded.facts["padded_pairs"]
    assert any("random texts of the corpus" in warning for warning in listener.warnings)
    for query, positive, negatives in triplets_of(padded):
        assert len(set(negatives)) == 60
        assert not {query, positive} & set(negatives)


def test_the_cells_of_an_index_that_are_lowered_are_told(work: WorkDirectory, tiny_model: Path, pairs: Path) -> None:
    """As a warning only if the user set them."""
    for nlist in (Params.nlist, 20):
        listener = Listener()
        asked = Params(pairs=pairs, model=str(tiny_model), index="ivf", nlist=nlist, name=f"of-{nlist}", **TOP)
        run(asked, work, listener)
        told = [message for message in listener.heard if message.startswith(f"nlist lowered from {nlist} to 1")]
        assert len(told) == 1
        assert (told[0] in listener.warnings) == (nlist == 20)


def test_an_index_that_cannot_be_built_is_refused_before_the_corpus_is_encoded(
    work: WorkDirectory, tiny_model: Path, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encode(*_: Any) -> None:
        raise AssertionError("encoded for nothing")

    monkeypatch.setattr("sentcompress.stages.mine_negatives._Mining._embed", encode)
    for shard in (None, "1/2"):
        asked = Params(pairs=pairs, model=str(tiny_model), index="pq", shard=shard, **TOP)
        with pytest.raises(UsageError, match="the corpus of 30 documents is too small to train pq"):
            run(asked, work)


def test_marks_say_which_pairs_belong_together(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    rows = [(q, p, str(number % 2)) for number, (q, p) in enumerate(zip(QUERIES, POSITIVES, strict=True))]
    path = write_pairs(tmp_path / "quora.tsv", rows, "question1\tquestion2\tis_duplicate")
    artifact = mine(work, tiny_model, pairs=path)
    assert [anchor for anchor, _, _ in triplets_of(artifact)] == QUERIES[1::2]
    assert artifact.facts["corpus"] == 30  # those marked 0 are searched as well
    entities = ({"query": q, "entity": e, "label": int(mark)} for q, e, mark in rows)
    again = mine(work, tiny_model, pairs=write_jsonl(tmp_path / "entities.jsonl", entities), name="entities")
    assert triplets_of(again) == triplets_of(artifact)


def write_collection(folder: Path, splits: Sequence[str] = ("train", "test")) -> Path:
    """Query i is answered by document i; the documents behind the first 30 are judged by nobody."""
    judged = {
        split: [(f"q{n}", f"d{n}", 1) for n in range(number, 30, len(splits))] for number, split in enumerate(splits)
    }
    documents = with_ids([*POSITIVES, *OTHERS, OTHERS[0]], "d")
    return write_beir(folder, documents, with_ids(QUERIES, "q"), **judged)


def test_a_collection_is_mined_in_its_training_part(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    artifact = mine(work, tiny_model, collection=write_collection(tmp_path / "beir"))
    found = triplets_of(artifact)
    assert [(a, p) for a, p, _ in found] == list(zip(QUERIES[::2], POSITIVES[::2], strict=True))
    corpus = [*POSITIVES, *OTHERS]
    for query, positive, negatives in found[:5]:
        assert negatives == [text for text in ranked(tiny_model, query, corpus) if text != positive][:3]
    assert artifact.facts["corpus"] == 60  # a document that occurs twice is one
    assert artifact.facts["mined_from"] == "beir, train"
    listener = Listener()
    run(Params(collection=tmp_path / "beir", split="test", model=str(tiny_model), name="test", **TOP), work, listener)
    assert any("cannot be evaluated on this split" in warning for warning in listener.warnings)


def test_a_collection_without_a_training_part_has_to_be_asked_for(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="no split 'train'"):
        mine(work, tiny_model, collection=write_collection(tmp_path / "beir", ["test"]))
    with pytest.raises(InputError, match="is not a folder"):
        mine(work, tiny_model, collection=tmp_path / "nowhere")


def add_triplets(work: WorkDirectory, name: str) -> Artifact:
    """The texts in three files, and 20 triplets of them."""
    texts = TEXTS[:60] if name == "main" else TEXTS[:45]
    rows = np.stack([np.arange(20), np.arange(20, 40), np.arange(25, 45)], axis=1)
    with work.build(Request("sentences", name, "augment", {"name": name})) as build:
        for number in range(3):
            part = range(number * 20, min((number + 1) * 20, len(texts)))
            columns = [
                list(part),
                [texts[row] for row in part],
                *([value] * len(part) for value in ("original", -1, "x", "")),
            ]
            with build.write(f"sentences-{number:05d}.parquet") as path:
                pq.write_table(pa.table([pa.array(column) for column in columns], schema=SCHEMA), path)
        with build.write("triplets.parquet") as path:
            pq.write_table(pa.table([pa.array(rows[:, place]) for place in range(3)], schema=TRIPLET_SCHEMA), path)
        return build.finish({"rows": len(texts), "triplets": 20})


def test_triplets_of_the_work_directory_are_the_default(work: WorkDirectory, tiny_model: Path) -> None:
    add_triplets(work, "main")
    add_sentences(work, [OTHERS], "plain")
    artifact = mine(work, tiny_model)
    assert artifact.facts["mined_from"] == "sentences/main"
    assert artifact.facts["corpus"] == 25  # positives and labelled negatives
    for number, (anchor, positive, negatives) in enumerate(triplets_of(artifact)):
        assert (anchor, positive) == (TEXTS[number], TEXTS[number + 20])
        assert negatives == [t for t in ranked(tiny_model, anchor, TEXTS[20:45]) if t != positive][:3]
    again = mine(work, tiny_model)  # not its own result, which is the newest
    assert again.manifest["finished"] == artifact.manifest["finished"]
    assert mine(work, tiny_model, sentences="mined", name="twice").facts["mined_from"] == "sentences/mined"


def test_the_result_is_a_sentence_table_like_any_other(work: WorkDirectory, tiny_model: Path, pairs: Path) -> None:
    mined = mine(work, tiny_model, pairs=pairs)
    vectors = teacher_embed.run(teacher_embed.Params(teacher=str(tiny_model), sentences="mined"), work)
    assert vectors.facts["rows"] == mined.facts["rows"] == 60
    origins = SentenceTable(mined.path).origins(0)
    assert set(origins) == {"pairs.tsv"}
    states = {(row["kind"], row["name"]): (row["state"], row["facts"]) for row in status.run(status.Params(), work)}
    assert states["sentences", "mined"] == ("fresh", {"rows": 60, "triplets": 30})
    assert set(mined.manifest["files"]) == {"sentences-00000.parquet", "triplets.parquet"}


def test_a_killed_run_does_not_encode_the_corpus_again(
    work: WorkDirectory, tiny_model: Path, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = mine(work, tiny_model, pairs=pairs, name="whole")

    with interrupted(mine_negatives, "exact_search"):
        mine(work, tiny_model, pairs=pairs)
    assert work.unfinished("sentences") == ["mined"]
    monkeypatch.delattr(mine_negatives, "writing_vectors")
    artifact = mine(work, tiny_model, pairs=pairs)
    assert artifact.digest == whole.digest
    assert work.unfinished("sentences") == []


def test_a_resumed_run_keeps_the_number_format_that_was_chosen(
    work: WorkDirectory, tiny_model: Path, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be resumed on a machine that would choose another one."""
    chosen = iter(("bfloat16", "float32"))
    own, opened = EmbedderSource.open_bare, list[str]()

    def noted(source: EmbedderSource, *, dtype: str, **others: Any) -> Embedder:
        opened.append(dtype)
        return own(source, dtype=dtype, **others)

    def choose(asked: str, *_: object) -> tuple[str, str]:
        return (next(chosen) if asked == "auto" else asked), "for the test"

    monkeypatch.setattr(EmbedderSource, "open_bare", noted)
    monkeypatch.setattr(compute_plan, "choose_dtype", choose)
    with interrupted(mine_negatives, "exact_search"):
        mine(work, tiny_model, pairs=pairs, dtype="auto")
    mine(work, tiny_model, pairs=pairs, dtype="auto")
    assert opened == ["auto", "bfloat16", "bfloat16"]


def test_empty_sides_are_counted_and_unknown_columns_named(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    rows = [*zip(QUERIES, POSITIVES, strict=True), ("", "a dog"), ("a cat", "  ")]
    path = write_pairs(tmp_path / "pairs.tsv", rows, "frage\tantwort")
    with pytest.raises(InputError, match="cannot tell which columns") as raised:
        mine(work, tiny_model, pairs=path)
    assert "its columns: frage, antwort" in str(raised.value.hint)
    with pytest.raises(InputError, match="no column 'reply'") as raised:
        mine(work, tiny_model, pairs=path, columns=("frage", "reply"))
    assert "its columns: frage, antwort" in str(raised.value.hint)
    listener = Listener()
    params = Params(pairs=path, columns=("frage", "antwort"), model=str(tiny_model), **TOP)
    artifact = run(params, work, listener)
    assert artifact.facts["left_out"] == {"empty_side": 2}
    assert listener.warnings == ["dropped 2 pairs: empty side"]
    empty = write_pairs(tmp_path / "empty.tsv", [("", "a dog"), ("a cat", "")])
    with pytest.raises(InputError, match="no pairs of a query and a positive") as raised:
        mine(work, tiny_model, pairs=empty, name="empty")
    assert raised.value.hint == "dropped: 2 empty side"


def test_settings_of_another_index_are_refused(work: WorkDirectory, pairs: Path) -> None:
    with pytest.raises(UsageError, match="`rescore` is for `index` pq and binary, not flat"):
        run(Params(pairs=pairs, rescore="float32"), work)


def test_what_cannot_be_is_refused(work: WorkDirectory, tiny_model: Path, pairs: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the corpus has 30 texts: too few for 30 negatives"):
        mine(work, tiny_model, {**TOP, "negatives": 30}, pairs=pairs)
    with pytest.raises(InputError, match="no such file"):
        mine(work, tiny_model, pairs=tmp_path / "nowhere.tsv")
    with pytest.raises(InputError, match="no such file"):
        mine(work, tiny_model, pairs=pairs, corpus=tmp_path / "nowhere.txt")
    (tmp_path / "lines.txt").write_text("A dog runs.\nA cat sleeps.\n", encoding="utf-8")
    with pytest.raises(InputError, match="no known columns"):
        mine(work, tiny_model, pairs=tmp_path / "lines.txt")
    with pytest.raises(MissingArtifactError, match="no sentences with triplets"):
        mine(work, tiny_model)
    add_sentences(work, [OTHERS], "plain")
    with pytest.raises(InputError, match="sentences/plain has no triplets"):
        mine(work, tiny_model, sentences="plain")
    wrong = Params(
        pairs=pairs,
        collection=tmp_path,
        negatives=0,
        skip=-1,
        depth=-2,
        max_score=2.0,
        strategy="best",
        similarity="l2",
    )
    with pytest.raises(UsageError, match="7 errors") as raised:
        run(wrong, work)
    assert "`pairs` and `collection`: give one of them" in raised.value.message
    assert work.unfinished("sentences") == []


def test_the_command_shows_what_it_found(
    work: WorkDirectory, tiny_model: Path, pairs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["mine-negatives", "--pairs", str(pairs), "--model", str(tiny_model), "--negatives", "2"]
    assert _run([*words, "--max-score", "0", "--work", str(work.path)]) == 0
    captured = capsys.readouterr()
    assert "positives among candidates" in captured.out
    assert f"sentcompress finetune --sentences mined --work {work.path}" in captured.err
    assert _run([*words, "--max-score", "0", "--work", str(work.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["facts"]["negatives"] == 2


def test_a_student_mines_with_its_own_vectors(work: WorkDirectory, tiny_model: Path, pairs: Path) -> None:
    """`student` is the one finished last, and no other model than the teacher's says the same."""
    encoder = load_model(tiny_model)
    for number, name in enumerate(("older", "newer"), 1):
        with torch.no_grad():
            torch.manual_seed(number)
            for parameter in encoder.parameters():
                parameter.add_(0.5 * torch.randn_like(parameter))
        with work.build(Request("students", name, "distill", {"number": number})) as build:
            save_encoder(encoder, build.path / "model")
            build.finish({"dimension": encoder.dimension})
    newest = work.get("students", "newer").path / "model"
    artifact = run(Params(model="student", **TOP, pairs=pairs), work)
    found = triplets_of(artifact)
    for query, positive, negatives in found:
        assert negatives == [text for text in ranked(newest, query, POSITIVES) if text != positive][:3]
    assert artifact.facts["model"] == "newer"
    assert found != triplets_of(mine(work, tiny_model, pairs=pairs, name="teacher"))
