"""What `compress` prints at its end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sentcompress.cli import compress
from sentcompress.cli.call import Call
from sentcompress.commands.compress import Params
from sentcompress.compression.verdict import Achieved
from sentcompress.stages.compress import Result


def test_the_end_names_the_model_and_a_search_of_its_own_documents(capsys: pytest.CaptureFixture[str]) -> None:
    figures = (9_490_000, 90_900_000, 1536, 1536, 84.26, None, "", 3.8, None, 73.4, 98.8)
    verdict = Achieved("w/exports/my docs", *figures, "w/exports/my docs/onnx/int8.onnx", cautions=["few"])
    result = Result("my docs", Path("w/plans/my docs.toml"), [], 300.0, verdict, Path("w/report/report.html"))
    call = Call(Params(inputs=("docs/",), keep_index=True), Path("w"))
    # The newest documents may be another collection's, of a dry run for example.
    assert compress.show(result, call) == (
        "sentcompress search 'your query' --collection 'documents/my docs' --model 'exports/my docs' "
        "--compare embedded --keep-index --work w"
    )
    assert capsys.readouterr().out.splitlines() == [
        verdict.sentence,
        verdict.results,
        "Few.",
        "Model: w/exports/my docs",
        "Int8 graph: w/exports/my docs/onnx/int8.onnx (to run it, see README.md in the model's folder)",
        "Report: w/report/report.html",
        "Plan: w/plans/my docs.toml, run in 5 min",
    ]
    compress.show(replace(result, verdict=replace(verdict, weight_format="int4")), call)
    assert "Int8 graph with 4-bit weights: w/exports/my docs/onnx" in capsys.readouterr().out


def test_the_end_names_the_command_that_encodes_the_documents_as_they_were_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    documents = tmp_path / "my docs.csv"
    documents.write_text("name,body,url\na,b,c\n", encoding="utf-8")
    figures = (9_490_000, 90_900_000, 128, 1536, 84.26, None, "", 3.8, None, 73.4, 98.8)
    result = Result("docs", Path("w/plans/docs.toml"), [], 300.0, Achieved("w/exports/docs", *figures, "int8.onnx"))
    asked = Params(inputs=(str(documents),), column=("name", "body"), id_column="url", skip_bad=True)
    compress.show(result, Call(asked, Path("w")))
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"To encode the documents: sentcompress encode '{documents}' --model exports/docs --store quantizer "
        "--runtime onnx-int8 --column name --column body --id-column url --skip-bad -o vectors --work w"
    )
    # Vectors of the teacher; two commands; other texts than `encode` reads.
    others = ({"keep_index": True}, {"inputs": (*asked.inputs, "b")}, {"text_as": "paragraph"})
    for other in (*others, {"inputs": ("stanfordnlp/snli",)}):
        compress.show(result, Call(replace(asked, **other), Path("w")))
        assert "To encode" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("files", "options", "expected"),
    [
        ({"docs/a.txt": "One.\n"}, "--id-column url", "docs --passages --texts --id-column url"),
        ({"docs.md": "# Title\n\nText.\n"}, "", "docs.md --passages --texts"),
        ({"docs.txt": "One text.\nAnother text.\n"}, "", "docs.txt"),
        ({"docs/corpus.jsonl": '{"_id": "1", "title": "", "text": "One."}\n'}, "--id-column url --skip-bad", "docs"),
        # `compress` reads paragraphs, and both questions.
        ({"docs.txt": "A line that is\nwrapped.\n\nAnother that\nis wrapped.\n"}, "", None),
        ({"docs.tsv": "question1\tquestion2\tis_duplicate\nwho\twhat\t1\n"}, "", None),
    ],
)
def test_documents_that_encode_would_read_otherwise_are_not_named(
    files: dict[str, str],
    options: str,
    expected: str | None,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    figures = (9_490_000, 90_900_000, 128, 1536, 84.26, None, "", 3.8, None, 73.4, 98.8)
    result = Result("d", Path("w/plans/d.toml"), [], 300.0, Achieved("w/exports/d", *figures, ""))
    given = {"id_column": "url"} if "--id-column" in options else {}
    params = Params(inputs=(next(iter(files)).split("/")[0],), skip_bad="--skip-bad" in options, **given)
    compress.show(result, Call(params, Path("w")))
    found = [line for line in capsys.readouterr().out.splitlines() if line.startswith("To encode")]
    words = (expected or "").split()
    line = " ".join([*words[:1], "--model exports/d --store quantizer", *words[1:], "-o vectors --work w"])
    assert found == ([f"To encode the documents: sentcompress encode {line}"] if expected else [])


def test_without_a_verdict_only_the_plan_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    plan = ["Read 2 documents (choose with `column`)", "60 s: encode all texts with the teacher"]
    result = Result("docs", Path("w/plans/docs.toml"), plan, 300.0)
    dry, edited = (Call(Params(inputs=("docs/",), dry_run=dry), Path("w")) for dry in (True, False))
    assert compress.show(result, dry) == "the same command without --dry-run"
    assert capsys.readouterr().out.splitlines() == [
        "Read 2 documents (choose with --column)",
        plan[1],
        "Plan: w/plans/docs.toml",
    ]
    assert compress.document(result, dry)["plan"] == ["Read 2 documents (choose with --column)", plan[1]]
    assert compress.show(result, edited) == "sentcompress report --work w"
    assert capsys.readouterr().out == "Plan: w/plans/docs.toml, run in 5 min\n"
