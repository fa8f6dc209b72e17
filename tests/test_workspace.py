"""The library: commands as methods, models that encode, scores as records, warnings that are heard."""

from __future__ import annotations

import inspect
import logging
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from distilling import write_dev
from sentence_transformers import SentenceTransformer
from tiny_models import make_prompted, make_sentences

import sentcompress
from sentcompress import InputError, SentcompressError, SentcompressWarning, UsageError, Workspace, errors
from sentcompress.commands import all_commands
from sentcompress.commands.options import keys_of
from sentcompress.progress import LOGGED
from sentcompress.store import Request

ROOT = Path(__file__).resolve().parents[1]


def test_importing_the_library_loads_nothing_large() -> None:
    code = "import sys, sentcompress; print(*(name for name in sys.modules if name.startswith('sentcompress')))"
    code += "; sentcompress.Workspace('w'); print(*{name.split('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, then = run.stdout.splitlines()
    assert first == "sentcompress"
    assert not {"torch", "numpy", "transformers", "typer", "rich"} & set(then.split())


def test_every_exported_name_is_there() -> None:
    for name in sentcompress.__all__:
        assert getattr(sentcompress, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = sentcompress.nothing  # type: ignore[attr-defined]


def test_every_kind_of_error_is_exported_and_on_the_page() -> None:
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, SentcompressError)]
    assert len(kinds) > 5
    for kind in kinds:
        assert getattr(sentcompress, kind.__name__) is kind
        assert f"`{kind.__name__}`" in page or f"`sentcompress.{kind.__name__}`" in page, kind


def test_the_package_is_marked_as_typed() -> None:
    assert (Path(sentcompress.__file__).parent / "py.typed").is_file()


@pytest.mark.parametrize("command", all_commands().values(), ids=lambda command: command.name)
def test_every_command_is_a_method_with_its_options(command: sentcompress.commands.Command) -> None:
    method = getattr(Workspace, command.slug)
    fields = {key.field for key in keys_of(command.params).values()}
    assert set(inspect.signature(method).parameters) - {"self"} == fields
    assert method.__doc__.startswith(command.summary.partition(" --")[0])
    assert all(f"    {field}: " in method.__doc__ for field in fields)
    assert not re.search(r" --[a-z]", re.sub(r"`[^`]*`", "", method.__doc__))


def test_the_page_lists_every_option_whose_name_differs_from_the_flags() -> None:
    page = (Path(__file__).parents[1] / "docs" / "library.md").read_text(encoding="utf-8")
    table = page.split("| command line | Python |")[1].split("\n\n")[0].splitlines()
    differ = {
        (name, key.name, key.field)
        for name, command in all_commands().items()
        for key in keys_of(command.params).values()
        if key.name != key.field.replace("_", "-")
    }
    assert ("export", "format", "formats") in differ
    for name, flag, field in differ:
        rows = [row for row in table if f"`--{flag} " in row and f"{field}=" in row]
        # A row without a command is for all; `--set` names its other field beside it.
        assert any(f"of `{name}`" in row or "of `" not in row for row in rows), (name, flag, field)


def test_wrong_options_are_told_together_by_the_names_of_the_fields(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        Workspace(tmp_path).distill(metod="ckd", lr=-1, token_dim="many")
    assert raised.value.faults == (
        "no option `metod`; did you mean method?",
        "`token_dim` must be a whole number, not 'many'",
        "`lr` must be above 0, not -1.0",
    )
    assert raised.value.hint == "see help(sentcompress.Workspace.distill)"


def test_a_missing_option_and_one_too_many_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`sts` is missing"):
        Workspace(tmp_path).eval_sts()
    with pytest.raises(UsageError, match="options must be keyword arguments"):
        Workspace(tmp_path).augment("a.txt", 1)


def test_a_mistyped_command_is_told(tmp_path: Path) -> None:
    with pytest.raises(AttributeError, match="did you mean distill"):
        Workspace(tmp_path).distil()


def test_one_value_a_path_and_none_are_read_as_python_means_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(make_sentences(5)), encoding="utf-8")
    work = Workspace(tmp_path / "work")
    made = work.augment(inputs=tmp_path / "a.txt", wordnet=0, back_translate=0, max_length=None, name="one")
    again = work.augment([str(tmp_path / "a.txt")], wordnet=0, back_translate=0, name="one")
    assert (made.reference, made.facts["rows"]) == ("sentences/one", 5)
    assert again.digest == made.digest
    assert again.finished == made.finished


def test_a_column_is_one_name_or_several(tmp_path: Path, tiny_model: Path) -> None:
    """A string is one column, not a column for each of its letters."""
    pytest.importorskip("faiss")
    rows = "".join(f"{number},{text},other\n" for number, text in enumerate(make_sentences(8)))
    table = tmp_path / "news.csv"
    table.write_text(f"id,headline,body\n{rows}", encoding="utf-8")
    work = Workspace(tmp_path / "work")
    reading = {"model": tiny_model, "dtype": "float32", "device": "cpu"}
    made = [
        work.encode(table, column=column, output=tmp_path / f"{place}.npy", **reading)
        for place, column in enumerate(("headline", ["headline"], ("headline", "body")))
    ]
    assert [one.rows for one in made] == [8, 8, 8]
    one, same, both = (np.load(one.output) for one in made)
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, both)
    sought = make_sentences(8)[3]
    found = work.search(sought, collection=table, column="headline", top=1, **reading)
    assert [one["text"] for one in found.answers[0].results] == [sought]
    assert work.search(sought, collection=table, column=["headline"], top=1, **reading).index == found.index


def test_the_work_directory_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENTCOMPRESS_WORK", "/elsewhere")
    assert repr(Workspace()) == "Workspace('/elsewhere')"
    assert repr(Workspace("here")) == "Workspace('here')"
    with pytest.raises(UsageError, match="must not be blank"):
        Workspace(" ")
    monkeypatch.setenv("SENTCOMPRESS_WORK", "\t")
    with pytest.raises(UsageError, match="must not be blank"):
        Workspace()


def test_a_model_encodes_what_the_folder_encodes(tiny_model: Path, sentences: list[str]) -> None:
    model = sentcompress.load(tiny_model, dtype="float32")
    vectors = model.encode(sentences[:3])
    assert vectors.shape == (3, model.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(model.encode(sentences[1:2])[0], vectors[1], atol=1e-6)
    with pytest.raises(UsageError, match="list of texts"):
        model.encode("one text")


def test_a_model_encodes_with_its_prompts(tiny_model: Path, sentences: list[str], tmp_path: Path) -> None:
    prompts = {"query": "the man reads ", "other": "two people "}
    folder = make_prompted(tmp_path / "prompted", tiny_model, prompts, default="other")
    library = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    model = sentcompress.load(folder, dtype="float32", device="cpu")
    for name in (None, "query", "document", "other"):
        expected = library.encode(sentences[:5], prompt_name=name)
        np.testing.assert_allclose(model.encode(sentences[:5], prompt_name=name), expected, rtol=0, atol=1e-5)
    with pytest.raises(InputError, match="prompted has no prompt passage"):
        model.encode(sentences[:5], prompt_name="passage")


class Table:
    """Iterates over the names of its columns, as a DataFrame does."""

    ndim = 2

    def __iter__(self) -> Iterator[str]:
        return iter(["text"])


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (None, "must be a list of texts, not of type NoneType"),
        (b"a text", r"texts\[0\] is 97"),
        ({"text": "one"}, "must be a list of texts, not of type dict"),
        (Table(), "must be a list of texts, not of type Table"),
        (["one", None], r"texts\[1\] is None"),
        (["one", float("nan")], r"texts\[1\] is nan"),
        ([["one", "two"]], r"texts\[0\] is \['one', 'two'\]"),
        (["one", "\ud800"], r"texts\[1\] contains a lone surrogate"),
    ],
)
def test_what_is_not_a_list_of_texts_is_told_and_not_encoded(tiny_model: Path, texts: object, told: str) -> None:
    model = sentcompress.load(tiny_model, dtype="float32")
    with pytest.raises(SentcompressError, match=told):
        model.encode(texts)  # type: ignore[arg-type]


def test_any_iterable_of_texts_is_encoded(tiny_model: Path, sentences: list[str]) -> None:
    model = sentcompress.load(tiny_model, dtype="float32")
    vectors = model.encode(sentences[:3])
    for texts in (tuple(sentences[:3]), np.array(sentences[:3]), (text for text in sentences[:3])):
        np.testing.assert_array_equal(model.encode(texts), vectors)  # type: ignore[arg-type]
    assert model.encode([]).shape == (0, model.dimension)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda _: sentcompress.load(None), "`model` must be a string or a path, not None"),  # type: ignore[arg-type]
        (lambda model: sentcompress.load(model, work=3), "`work` must be a string or a path, not 3"),
        (lambda _: sentcompress.read_vectors(3), "`path` must be a string or a path, not 3"),  # type: ignore[arg-type]
        (lambda model: sentcompress.load(model, dtype=torch.float32), "no dtype torch.float32"),
        (lambda model: sentcompress.load(model, device=torch.device("cpu")), "no device device"),
    ],
)
def test_values_of_a_wrong_type_are_told(tiny_model: Path, call: Callable[[Path], object], told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        call(tiny_model)


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no model folder"):
        sentcompress.load("./nowhere", work=tmp_path)


def test_scores_are_records_and_a_table(tmp_path: Path) -> None:
    work = Workspace(tmp_path)
    score = {"model": "students/a", "role": "model", "data": "stsb", "metric": "spearman", "value": 81.5}
    with work.directory.build(Request("evaluations", "sts-a", "eval-sts", {})) as build:
        build.finish({"scores": [score, {**score, "value": None, "interval": [1.0, 2.0]}]})
    scores = work.scores()
    assert scores[0] == {"evaluation": "sts-a", "command": "eval-sts", **score}
    pytest.importorskip("pandas")
    table = scores.to_dataframe()
    assert list(table["value"])[:1] == [81.5]
    assert len(table) == 2
    assert {"evaluation", "model", "interval"} <= set(table.columns)


def test_warnings_are_given_at_the_line_of_the_caller() -> None:
    with pytest.warns(SentcompressWarning, match="the student collapsed") as caught:
        LOGGED.warn("the student collapsed")
    assert caught[0].filename == __file__


def test_notes_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "sentcompress"):
        LOGGED.note("100% of the rows")
        LOGGED.metrics({"loss": 1})
    assert [(record.name, record.getMessage()) for record in caplog.records] == [("sentcompress", "100% of the rows")]


def test_a_stage_warns_without_being_asked_to(tmp_path: Path, tiny_model: Path) -> None:
    pairs = write_dev(tmp_path / "pairs.tsv", make_sentences(20))
    with pairs.open("a", encoding="utf-8") as stream:
        stream.write("3.0\tthe dog runs\t\n")
    with pytest.warns(SentcompressWarning, match="dropped 1 pair with an empty sentence") as caught:
        Workspace(tmp_path / "work").eval_sts(sts=pairs, model=tiny_model, bootstrap=0)
    assert caught[0].filename == __file__


@pytest.fixture
def example_folder(tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sentences.txt").write_text("\n".join(make_sentences(200)), encoding="utf-8")
    (tmp_path / "my-model").symlink_to(tiny_model, target_is_directory=True)
    write_dev(tmp_path / "dev.tsv", make_sentences(40))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.filterwarnings("ignore::sentcompress.errors.SentcompressWarning")
def test_the_example_of_the_page_runs(example_folder: Path) -> None:
    pytest.importorskip("pandas")
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
        exec(compile(block, "docs/library.md", "exec"), names)
    np.testing.assert_array_equal(names["vectors"], names["same"])
    assert (example_folder / "work" / "evaluations").is_dir()
    assert repr(names["work"]) == "Workspace('work')"
