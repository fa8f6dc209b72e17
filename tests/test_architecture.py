"""The house rules: who may import whom, what the command line may load, where names lead."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import sentcompress
from sentcompress.cli.main import COMMANDS

PACKAGE = Path(sentcompress.__file__).parent
DRAWING = (PACKAGE / "cli" / "render.py", PACKAGE / "cli" / "terminal_reporter.py")
MIDDLE = (
    "corpora",
    "augmentations",
    "mining",
    "passages",
    "encoding",
    "methods",
    "training",
    "evaluation",
    "exporting",
    "measuring",
    "quantization",
    "reporting",
    "recipes",
    "compression",
)
BASE = (
    "published",
    "ranks",
    "store",
    "commands",
    "plugins",
    "extras",
    "hub",
    "json_documents",
    "plain_text",
    "numeric",
    "process_memory",
    "progress",
    "quantities",
    "signals",
    "errors",
    "exit_codes",
)
HEAVY = {
    "torch",
    "transformers",
    "faiss",
    "sklearn",
    "pyarrow",
    "numpy",
    "nltk",
    "nlpaug",
    "sentence_transformers",
    "matplotlib",
}
# Which of the middle packages may use which other, and nothing more.
SIDEWAYS = {
    ("compression", "corpora"),
    ("compression", "encoding"),
    ("compression", "evaluation"),
    ("compression", "exporting"),
    ("augmentations", "corpora"),
    ("mining", "corpora"),
    ("mining", "evaluation"),
    ("passages", "augmentations"),
    ("passages", "corpora"),
    ("encoding", "corpora"),
    ("encoding", "quantization"),
    ("training", "corpora"),
    ("training", "encoding"),
    ("training", "methods"),
    ("training", "evaluation"),
    ("exporting", "encoding"),
    ("exporting", "evaluation"),
    ("measuring", "corpora"),
    ("measuring", "encoding"),
    ("measuring", "evaluation"),
    ("measuring", "exporting"),
    ("reporting", "evaluation"),
    ("reporting", "compression"),
    ("recipes", "augmentations"),
    ("recipes", "corpora"),
    ("recipes", "evaluation"),
}


@cache
def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def room(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def modules_of(package: str) -> list[Path]:
    found = [path for path in modules() if room(path) == package]
    assert found, f"there is no {package}"
    return found


@cache
def imports(path: Path, *, top_level_only: bool = False) -> set[str]:
    tree = parsed(path)
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def rooms_used(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imports(path) if name.startswith("sentcompress.")}


def allowed(source: str) -> set[str]:
    if source in ("cli", "__main__"):
        return {"cli", "stages", *MIDDLE, "models", *BASE, "__version__"}
    if source == "__init__":
        return {"workspace", "errors"}
    if source == "workspace":
        return {*MIDDLE, "models", *BASE}
    if source == "commands":
        return {*MIDDLE, "models", *BASE}
    if source == "stages":
        return {*MIDDLE, "models", *BASE}
    if source in MIDDLE:
        beside = {target for origin, target in SIDEWAYS if origin == source}
        below = {"progress", "plugins", "errors"} if source == "methods" else {"models", *BASE}
        return {source, *beside, *below}
    if source == "models":
        return {"models", *BASE}
    if source == "ranks":
        return {*BASE, "__version__"}
    return set(BASE)


def test_imports_point_downwards() -> None:
    wrong = {str(path.relative_to(PACKAGE)): rooms_used(path) - allowed(room(path)) for path in modules()}
    assert not {path: used for path, used in wrong.items() if used}


@pytest.mark.parametrize("path", sorted((PACKAGE / "commands").glob("*.py")), ids=lambda path: path.name)
def test_declarations_load_nothing_from_above(path: Path) -> None:
    """What a check needs of methods, models or corpora is imported when it runs."""
    used = {name.split(".")[1] for name in imports(path, top_level_only=True) if name.startswith("sentcompress.")}
    assert used <= {"commands", "errors", "numeric", "plain_text", "plugins", "quantities", "signals"}


def test_every_sideways_import_is_needed() -> None:
    used = {(room(path), target) for path in modules() for target in rooms_used(path) & set(MIDDLE)}
    assert set(SIDEWAYS) <= used


def test_arrays_are_saved_by_the_store() -> None:
    """NumPy's own writers report every failed write as a full disk."""
    users = [path.name for path in modules() if re.search(r"np\.savez?\(|\.tofile\(", path.read_text("utf-8"))]
    assert users == []


@pytest.mark.parametrize("path", sorted((PACKAGE / "stages").glob("*.py")), ids=lambda path: path.name)
def test_no_stage_imports_another(path: Path) -> None:
    assert not {name for name in imports(path) if name.startswith("sentcompress.stages")}


def test_only_run_and_compress_look_other_stages_up() -> None:
    """A chain has to know its links; it asks for them by name when it runs, and no other stage may do so."""
    finder = re.compile("import_module|find_command")
    users = {path.name for path in modules_of("stages") if finder.search(path.read_text("utf-8"))}
    assert users == {"compress.py", "run.py"}


@pytest.mark.parametrize("package", ["corpora", "mining", "passages", "evaluation", "quantization"])
def test_data_and_scores_are_arrays_and_need_no_torch(package: str) -> None:
    for path in modules_of(package):
        assert "torch" not in {name.split(".")[0] for name in imports(path)}, path


def test_only_results_and_progress_use_rich() -> None:
    users = {path.name for path in modules() if any(name.split(".")[0] == "rich" for name in imports(path))}
    assert users == {path.name for path in DRAWING}


def test_only_the_drawing_of_reports_imports_matplotlib() -> None:
    users = {path for path in modules() if any(name.split(".")[0] == "matplotlib" for name in imports(path))}
    assert {path.parent.name for path in users} == {"reporting"}


def test_reports_and_plans_load_no_torch_and_matplotlib_only_when_something_is_drawn() -> None:
    code = (
        "import sys, sentcompress.stages.report, sentcompress.compression.recipe; "
        "print({'matplotlib', 'torch'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


# The only places that may write to the terminal or make what rich draws, each behind a function of `plain_text`.
WRITERS = {
    "cli/terminal.py": {"say", "say_page", "tell", "warn", "print_json"},
    "cli/render.py": {"rich_text", "_cell", "stdout", "finished"},
    "cli/terminal_reporter.py": {"__init__"},
}
WRITING = {"print", "echo", "secho", "write", "writelines", "Text", "Console", "from_markup", "from_ansi", "assemble"}


def called(node: ast.Call) -> str:
    return str(getattr(node.func, "id", "") or getattr(node.func, "attr", ""))


def functions(path: Path) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("path", sorted((PACKAGE / "cli").glob("*.py")), ids=lambda path: path.name)
def test_nothing_reaches_the_terminal_but_through_plain_text(path: Path) -> None:
    """Where rich is used, `console.print` may be called: what it is given is made by `rich_text` or is no text."""
    allowed = WRITERS.get(f"cli/{path.name}", set())
    for function in functions(path):
        for node in ast.walk(function):
            if not isinstance(node, ast.Call) or called(node) not in WRITING or function.name in allowed:
                continue
            drawn = path in DRAWING and called(node) == "print"
            assert drawn, f"{path.name}:{node.lineno} writes past sentcompress.plain_text"
            assert not any(isinstance(given, ast.Constant | ast.JoinedStr) for given in node.args), node.lineno


@pytest.mark.parametrize("path", DRAWING, ids=lambda path: path.name)
def test_what_rich_draws_in_tables_is_made_by_the_one_function(path: Path) -> None:
    """A string given to rich's tables would be parsed as markup, and drawn with all that is in it."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call) and called(node) in ("add_row", "add_column", "Table", "add_task"):
            titles = [keyword.value for keyword in node.keywords if keyword.arg in ("title", "caption")]
            for given in [*node.args, *titles]:
                assert re.search(r"\b(rich_text|_cell|printable)\b", ast.unparse(given)), ast.unparse(node)


COMMAND_BEGINS = re.compile(r"\bsentcompress ([a-z][a-z-]*[^,()<]*)?$")
# What stands in commands without being quoted: our own command names, and what was put together of quoted words.
UNQUOTED = {
    "__version__",
    "self.command",
    "self.arguments",
    "step.command",
    "step.number",
    "source['command']",
    "what.split()[0]",
    "place",
    "named",
    "EVALUATIONS[name].command.format(model=shell_word(model))",
}


def test_names_in_commands_to_copy_are_words_of_the_shell() -> None:
    unquoted = set()
    for path in modules():
        for node in ast.walk(parsed(path)):
            in_command = False
            for part in node.values if isinstance(node, ast.JoinedStr) else []:
                if isinstance(part, ast.Constant):
                    text = str(part.value)
                    in_command = bool(COMMAND_BEGINS.search(text)) or (in_command and not re.search(r"[,()<]", text))
                elif isinstance(part, ast.FormattedValue) and in_command:
                    shown = ast.unparse(part.value)
                    assert shown.startswith("shell_word(") or shown in UNQUOTED, f"{path}:{node.lineno} {shown}"
                    unquoted.add(shown)
    assert unquoted >= UNQUOTED


FLAG = re.compile(r"(?<=\s)--[a-z]")
# A flag is part of a command to copy if one of these comes before it in its text, or if the text begins with it: such a
# text is added to a command.
IN_A_COMMAND = re.compile(rf"sentcompress |pip install |\b({'|'.join(COMMANDS)}) |command|\.usage|^ --")
FLAGS_OF_ZSTD = "compress it again without --long or --ultra"
# The command line, recipes, whose keys are its flags, and what speaks of torchrun's.
SPELLING_FLAGS = {"cli", "commands", "recipes", "exit_codes", "ranks"}


@pytest.mark.parametrize("package", sorted({room(path) for path in modules()} - SPELLING_FLAGS))
def test_messages_name_fields_and_only_the_command_line_spells_flags(package: str) -> None:
    for path in modules_of(package):
        for text in texts(path):
            flag = FLAG.search(text)
            spelled = flag and not IN_A_COMMAND.search(text[: flag.end()]) and text != FLAGS_OF_ZSTD
            assert not spelled, f"{path.name}: {text}"


def texts(path: Path) -> Iterator[str]:
    """The string constants of a module but its docstrings; what an f-string formats is put in as its code."""
    tree = parsed(path)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    docstrings = [body[0].value for body in bodies if body and isinstance(body[0], ast.Expr)]
    whole = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = [part for node in whole for part in node.values]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in [*docstrings, *parts]:
            yield node.value
    for node in whole:
        yield "".join(str(p.value) if isinstance(p, ast.Constant) else ast.unparse(p) for p in node.values)


def test_stages_neither_print_nor_exit() -> None:
    for path in modules_of("stages"):
        calls = {node.func.id for node in ast.walk(parsed(path)) if named_call(node)}
        assert not calls & {"print", "exit"}, path


def named_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def test_a_command_has_the_same_name_all_the_way_down() -> None:
    for command in COMMANDS:
        name = command.replace("-", "_")
        assert (PACKAGE / "commands" / f"{name}.py").is_file(), command
        assert (PACKAGE / "stages" / f"{name}.py").is_file(), command
        assert (PACKAGE.parent / "tests" / "stages" / f"test_{name}.py").is_file(), command


def test_every_package_is_on_the_map() -> None:
    page = (PACKAGE.parent / "docs" / "code.md").read_text(encoding="utf-8")
    table = page.partition("## Packages")[2].partition("\n## ")[0]
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == {
        name for name in re.findall(r"`(\w+)`", table) if (PACKAGE / name).is_dir()
    }


def test_there_is_no_utils() -> None:
    assert not [path for path in modules() if "util" in path.stem or "helper" in path.stem]


def test_the_command_line_loads_nothing_heavy() -> None:
    code = "import sys, sentcompress.cli.main; print(*{name.split('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(run.stdout.split())
