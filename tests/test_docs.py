"""The documentation is true: its commands parse, its links lead somewhere, the README's chain runs."""

from __future__ import annotations

import os
import random
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import write_method_docs
import write_paper_docs
import write_recipe_docs
from command_group import command_group
from generated_parts import filled, names_of
from tiny_models import WORDS, make_tiny_model

from sentcompress.cli.main import COMMANDS, _run
from sentcompress.compression import budget, measuring_time
from sentcompress.exit_codes import MEANINGS
from sentcompress.published import PUBLISHED

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "recipes" / "README.md",
]


def blocks(page: Path) -> list[str]:
    return re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def lines_of(block: str) -> list[list[str]]:
    """The words after `sentcompress` of each line of a block."""
    words = [shlex.split(line, comments=True) for line in block.splitlines()]
    return [found[found.index("sentcompress") + 1 :] for found in words if "sentcompress" in found]


def command_lines(page: Path) -> list[list[str]]:
    """The words after `sentcompress` of each line of the shell blocks; continued lines are joined."""
    return lines_of("\n".join(blocks(page)).replace("\\\n", " "))


@pytest.mark.parametrize(
    "page", [page for page in PAGES if command_lines(page)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_every_command_in_the_documentation_parses(page: Path) -> None:
    group = command_group()
    for words in command_lines(page):
        words = [word for word in words if word != "--offline"]
        if words and not words[0].startswith("-"):
            assert words[0] in COMMANDS, words
            group.commands[words[0]].make_context(words[0], list(words[1:]))


def test_every_command_has_a_page_and_a_place_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in COMMANDS:
        assert any(words[:1] == [command] for words in command_lines(ROOT / "docs" / f"{command}.md")), command
        assert f"docs/{command}.md" in readme or f"sentcompress {command}" in readme, command


def test_the_printed_help_in_the_documentation_is_current() -> None:
    import write_cli_docs  # sets the width of the terminal for this process

    written = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == write_cli_docs.page(), "run: python scripts/write_cli_docs.py"


def test_the_page_of_methods_has_what_the_code_says_of_each() -> None:
    written = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    parts = write_method_docs.generated()
    assert names_of(written) == list(parts)
    assert written == filled(written, parts), "run: python scripts/write_method_docs.py"


def test_the_page_of_the_papers_has_the_tables_and_what_ran() -> None:
    written = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    parts = write_paper_docs.generated()
    assert names_of(written) == list(parts)
    assert written == filled(written, parts), "run: python scripts/write_paper_docs.py"


def test_the_list_of_recipes_has_every_variant() -> None:
    written = (ROOT / "recipes" / "README.md").read_text(encoding="utf-8")
    parts = write_recipe_docs.generated()
    assert names_of(written) == list(parts)
    assert written == filled(written, parts), "run: python scripts/write_recipe_docs.py"


def test_the_commands_of_the_demo_parse() -> None:
    group = command_group()
    lines = (ROOT / "scripts" / "demo.sh").read_text(encoding="utf-8").splitlines()
    chain = [shlex.split(line)[2:] for line in lines if line.startswith("run sentcompress ")]
    assert chain
    for words in chain:
        group.commands[words[0]].make_context(words[0], list(words[1:]))


def test_the_exit_codes_of_the_documentation_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    table = page.partition("## Exit codes")[2].partition("\n\nA process")[0]
    assert dict(re.findall(r"^\| (\d+) \| (.*) \|$", table, flags=re.MULTILINE)) == {
        str(code): meaning for code, meaning in MEANINGS.items()
    }


def test_the_chain_for_slurm_submits_commands_that_parse_and_wait_for_each_other(tmp_path: Path) -> None:
    """With an sbatch that notes what it is given and answers with a number."""
    sbatch = tmp_path / "sbatch"
    sbatch.write_text('#!/bin/sh\necho "$@" >>"$NOTED"; wc -l <"$NOTED"\n')
    sbatch.chmod(0o755)
    noted = tmp_path / "noted"
    given = {"NOTED": str(noted), "PATH": f"{tmp_path}:{os.environ['PATH']}", "SENTCOMPRESS_WORK": str(tmp_path / "w")}
    script = ROOT / "docs" / "examples" / "slurm" / "chain.sh"
    subprocess.run(["bash", str(script)], check=True, cwd=ROOT, env={**given, "TEXT": "a.txt", "DEV": str(script)})
    group = command_group()
    after = []
    for line in noted.read_text(encoding="utf-8").splitlines():
        options, _, words = line.partition(" docs/examples/slurm/stage.sh ")
        name, *rest = words.split()
        group.commands[name].make_context(name, rest)
        assert ("--array=1-16" in options) == ("--shard auto" in words), line
        after.append((name, (re.findall("afterok:([0-9]+)", options) or [None])[0]))
    chain = ["augment", "merge", "teacher-embed", "merge", "distill", "eval-fidelity", "export"]
    assert after == list(zip(chain, [None, "1", "2", "3", "4", "5", "5"], strict=True))


@pytest.mark.parametrize(("restarts", "requeued"), [("0", True), ("20", False)])
def test_a_job_gives_its_cores_to_the_command_and_is_queued_again(
    tmp_path: Path, restarts: str, requeued: bool
) -> None:
    """With an srun whose command was stopped by SIGUSR1, and a scontrol that notes what it is told."""
    for name, lines in {"srun": 'echo "$SRUN_CPUS_PER_TASK $@"; exit 85', "scontrol": 'echo "$@"', "sleep": ""}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{lines}\n")
        (tmp_path / name).chmod(0o755)
    job = {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "8", "SLURM_RESTART_COUNT": restarts}
    script = ROOT / "docs" / "examples" / "slurm" / "stage.sh"
    found = subprocess.run(
        ["bash", str(script), "status", "--json"],
        check=False,
        env={**job, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 85
    assert found.stdout.splitlines()[0] == "8 --kill-on-bad-exit=1 sentcompress status --json"
    assert ("requeue 7" in found.stdout) == requeued
    assert ("not queued again after 20 restarts" in found.stdout) != requeued


def test_the_commands_of_the_torchrun_example_parse() -> None:
    """With the options that the script has by default; tests/ranks/test_torchrun.py runs it, but only if asked to."""
    group = command_group()
    script = (ROOT / "docs" / "examples" / "torchrun.sh").read_text(encoding="utf-8")
    for name, default in re.findall(r'^read -ra (\w+) <<<"\$\{\w+:-(.*)\}"', script, flags=re.MULTILINE):
        script = script.replace(f'"${{{name}[@]}}"', default)
    chain = [shlex.split(line)[1:] for line in re.findall(r"^(?:sentcompress|on_gpus) .*$", script, flags=re.MULTILINE)]
    assert [words[0] for words in chain] == ["augment", "teacher-embed", "distill", "eval-fidelity", "export"]
    assert "--method" in chain[2]
    for name, *rest in chain:
        group.commands[name].make_context(name, rest)


@pytest.mark.parametrize("script", sorted((ROOT / "docs").rglob("*.sh")), ids=lambda script: script.name)
def test_the_example_scripts_are_shell(script: Path) -> None:
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_every_link_of_the_documentation_leads_to_a_file_and_a_heading() -> None:
    links = [
        (page, target)
        for page in [*PAGES, ROOT / "SECURITY.md", ROOT / "data" / "README.md"]
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
        if "://" not in target
    ]
    assert len(links) > 300
    for page, target in links:
        path, _, heading = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), (page.name, target)
        assert not heading or heading in headings(found), (page.name, target)


def headings(page: Path) -> set[str]:
    """The anchors that GitHub makes of the headings."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_file_of_the_code_that_the_documentation_names_is_there() -> None:
    # The page of the methods names files of other repositories.
    for page in (page for page in PAGES if page.name != "methods.md"):
        for name in re.findall(r"(?<![\w./])(?:[a-z_0-9]+/)+[a-z_0-9]+\.py\b", page.read_text(encoding="utf-8")):
            assert any((folder / name).is_file() for folder in (ROOT, ROOT / "sentcompress")), (page.name, name)


def test_every_command_and_option_is_explained() -> None:
    group = command_group()
    for name, command in group.commands.items():
        assert command.help, name
        unexplained = [parameter.name for parameter in command.params if not getattr(parameter, "help", "x")]
        assert not unexplained, (name, unexplained)


@pytest.mark.slow
def test_the_quick_start_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first block, with a tiny teacher and its words, in seconds instead of minutes."""
    quick_start = lines_of(blocks(ROOT / "README.md")[0])
    assert [words[0] for words in quick_start] == ["compress", "search", "encode", "report"]
    teacher = make_tiny_model(tmp_path / "teacher", layers=3)
    draw = random.Random(0)
    questions = [" ".join(draw.choices(WORDS, k=9)) + f" {number}." for number in range(200)]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "quora.tsv").write_text("\n".join(["question2", *questions]) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SENTCOMPRESS_WORK", raising=False)
    for name in ("STAGE", "FITTING", "EXPORTING"):
        monkeypatch.setattr(measuring_time, name, 0.1)
    for name, value in {"LEAST_TRAINING": 1.0, "LEAST_TRIAL": 0.5, "FOR_ROUNDS": 2.0}.items():
        monkeypatch.setattr(budget, name, value)
    smaller = ["--teacher", str(teacher), "--max-bytes", "75kB"]
    for words in quick_start:
        line = ["8s" if word == "4m" else word for word in words]
        assert _run([*line, *(smaller if words[0] == "compress" else [])]) == 0, words
    assert (tmp_path / "work" / "students" / "small-last").is_dir(), "the teacher does not fit as it is"
    assert (tmp_path / "work" / "exports" / "small" / "modules.json").is_file()
    assert (tmp_path / "vectors" / "manifest.json").is_file()
    assert "Compression: small" in (tmp_path / "work" / "report" / "report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("figures_not_drawn")
def test_the_chain_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second block, line by line, with a tiny teacher, in a folder that has a clone's files, but shorter."""
    teacher = make_tiny_model(tmp_path / "teacher", layers=3)
    (tmp_path / "data" / "sts").mkdir(parents=True)
    for file, lines in (("data/nli.jsonl", 150), ("data/quora.tsv", 120), ("data/sts/test.tsv", 80)):
        shorten(ROOT / file, tmp_path / file, lines)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SENTCOMPRESS_WORK", raising=False)
    chain = lines_of(blocks(ROOT / "README.md")[1])
    assert len({words[0] for words in chain}) == len(chain) == 10
    for words in chain:
        assert _run([*words, *(["--teacher", str(teacher)] if words[0] == "teacher-embed" else [])]) == 0, words
    assert (tmp_path / "vectors.npy").stat().st_size == 128 + 119 * 32 * 4
    assert (tmp_path / "work" / "exports" / "layers" / "modules.json").is_file()


def test_every_picture_of_the_readme_is_there_and_small() -> None:
    pictures = re.findall(r'(?:src|srcset)="([^"]+)"', (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(pictures) == 4
    for picture in pictures:
        assert 0 < (ROOT / picture).stat().st_size < 150_000, picture


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_the_sizes_of_the_published_students_in_the_readme_are_theirs(name: str) -> None:
    size = (ROOT / "sentcompress" / "published" / name / "model.safetensors").stat().st_size
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"[`{name}`](docs/published-students.md), {size / 1e6:.0f} MB, in this repository" in readme


def shorten(source: Path, target: Path, lines: int) -> None:
    kept = source.read_text(encoding="utf-8").splitlines(keepends=True)[:lines]
    target.write_text("".join(kept), encoding="utf-8")


def test_the_table_of_all_methods_is_the_one_that_was_measured() -> None:
    measured = (ROOT / "benchmarks" / "results" / "all_methods.md").read_text(encoding="utf-8")
    assert measured in (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")


def test_the_figures_of_compress_are_those_of_its_runs() -> None:
    measured = (ROOT / "benchmarks" / "results" / "compress_documents.md").read_text(encoding="utf-8")
    head, _, *runs = [line.strip("| ").split(" | ") for line in measured.splitlines() if line.startswith("|")]
    rows = [dict(zip((title.strip() for title in head), run, strict=True)) for run in runs]
    small = [row for row in rows if "--max-bytes 3MB" in row["budget"]]
    assert len({row["collection"] for row in small}) == 4

    def between(found: list[dict[str, str]], column: str, decimals: int) -> str:
        # A run that was interrupted has no minutes.
        values = [float(row[column].strip("%")) for row in found if row[column]]
        return f"{min(values):.{decimals}f} to {max(values):.{decimals}f}"

    page = " ".join((ROOT / "docs" / "compress.md").read_text(encoding="utf-8").split())
    fidelity, kept = between(small, "search fidelity", 0), between(small, "stored vectors", 1)
    assert f"On four collections, models with a search fidelity of {fidelity} kept {kept}% of the teacher's" in page
    assert f"took {between(rows, 'minutes', 0)} minutes" in page
    (law,) = (row for row in small if row["collection"] == "law")
    assert f"With 3 MB for passages of law, it scored {law['STS-B']} and {law['STS13']};" in page


def test_the_tests_that_the_threat_model_names_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(named) > 20
    for file, test in named:
        assert f"def {test or 'test_'}" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{test}"
