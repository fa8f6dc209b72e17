"""From the declaration of a command to its line: typer's view of its options, the run, and the output."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand

from sentcompress.cli.call import Call
from sentcompress.cli.terminal import print_json
from sentcompress.commands import Command
from sentcompress.commands.options import Key, Options, keys_of
from sentcompress.commands.parsing import checked
from sentcompress.commands.spelling import DEFAULT_WORK
from sentcompress.errors import SentcompressError, UsageError
from sentcompress.progress import SILENT
from sentcompress.ranks.launch import find_launch, run_alone, without_traces
from sentcompress.signals import Loading
from sentcompress.store import Artifact, WorkDirectory

METAVARS = {int: "INTEGER", float: "FLOAT", Path: "PATH", str: "TEXT"}
# Options of every command, besides its own.
WORK = Annotated[str, typer.Option("--work", envvar="SENTCOMPRESS_WORK", metavar="PATH", help="Work directory.")]
JSON = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else on standard output.")]
QUIET = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print no progress and no messages, only results, warnings and errors.")
]
COMMON = {"work": (WORK, DEFAULT_WORK), "as_json": (JSON, False), "quiet": (QUIET, False)}


class PlainCommand(TyperCommand):
    """A command whose help shows arguments without their Python type, such as `list[str]`."""

    def get_params(self, ctx: Any) -> list[Any]:
        params = super().get_params(ctx)
        for param in params:
            if isinstance(param, TyperArgument):
                param.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
        return params


class ToldError(Exception):
    """A failure after the result was printed as JSON; no error document is printed for it."""

    def __init__(self, error: SentcompressError) -> None:
        super().__init__(error.message)
        self.error = error


def function_of(command: Command) -> Callable[..., None]:
    """The function that typer makes the command from; its signature is that of the options."""

    def run(**values: Any) -> None:
        common = {name: values.pop(name) for name in COMMON}
        execute(command, values, **common)

    keys = {key.field: key for key in keys_of(command.params).values()}
    signature = {field: (_annotation(key), _default(key)) for field, key in keys.items()} | COMMON
    run.__doc__ = command.summary
    run.__annotations__ = {name: annotation for name, (annotation, _) in signature.items()}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in signature.items()
        ]
    )
    return run


def _annotation(key: Key) -> Any:
    """Numbers and paths are read as text, so that `checked` reports every fault at once, and in our words."""
    opt, kind = key.opt, key.types[0]
    several = key.item is not None and not opt.commas
    hint: Any = (bool if key.default is not None else bool | None) if kind is bool else str | None
    hint = list[str] | None if several else hint
    metavar = opt.metavar or METAVARS.get(key.item or kind, "") + (",..." if opt.commas else "")
    shown: dict[str, Any] = {"help": opt.help, "metavar": metavar or None}
    if key.default is MISSING:
        shown["help"] = f"{opt.help}  [required]"
    if opt.positional:
        # typer adds the brackets of what is optional, and the dots of what can be repeated.
        metavar = (opt.metavar or key.name.upper()).strip("[]").removesuffix("...").strip("[]")
        return Annotated[hint, typer.Argument(help=shown["help"], metavar=metavar, show_default=False)]
    if kind is bool:
        flag = f"--{key.name}/--no-{key.name}" if key.default or key.optional else f"--{key.name}"
        return Annotated[hint, typer.Option(flag, help=opt.help, show_default=_shown_default(key))]
    names = [f"--{key.name}", *([f"-{opt.short}"] if opt.short else [])]
    return Annotated[hint, typer.Option(*names, **shown, show_default=_shown_default(key))]


def _shown_default(key: Key) -> Any:
    if key.default is MISSING:
        return False
    return (key.opt.default or False) if key.default in (None, ()) else True


def _default(key: Key) -> Any:
    """As text, as it would be typed; None stands for what is not given."""
    if key.default is MISSING or key.default in (None, ()):
        return None
    if key.types[0] is bool:
        return key.default
    if isinstance(key.default, tuple):
        texts = [str(one) for one in key.default]
        return ",".join(texts) if key.opt.commas else texts
    return str(key.default)


def execute(command: Command, values: dict[str, Any], *, work: str, as_json: bool, quiet: bool) -> None:
    """Run a command and print its result. Of the processes that torchrun starts, only the first one prints.

    Args:
        values: the options by field, as typer read them; None and empty lists are not given.

    Raises:
        UsageError: if the options are wrong, or `work` is blank.
        SentcompressError: as the stage does.
        ToldError: for a failure that the JSON document already tells.
    """
    if not work.strip():
        raise UsageError(
            f"{command.name}: --work, or SENTCOMPRESS_WORK, must not be blank", "name a folder, or leave both out"
        )
    call = Call(options_of(command, values), Path(work))
    launch = find_launch()
    first = launch is None or launch.number == 0
    if launch and not command.shared:
        if not first:
            return
        run_alone()
    if launch:
        without_traces()
    with Loading():
        from sentcompress.cli import render
        from sentcompress.cli.terminal_reporter import reporting

    with reporting(quiet, command.params) as reporter:
        reporter = reporter if first else SILENT
        run = partial(command.run, call.params, WorkDirectory(call.work), reporter)
        if launch and command.shared == "encoding":
            command.load()  # before the ranks have joined: a signal that ends one of them has to end all
            with Loading():
                from sentcompress.encoding.evaluation_in_ranks import evaluate_together

            outcome: Any = evaluate_together(call.params, reporter, run)
        else:
            outcome = run()
    if not first:
        return
    view = _view(command, outcome)
    if as_json:
        document = getattr(view, "document", None)
        print_json(document(outcome, call) if document else render.document_of(outcome))
    else:
        next_command = getattr(view, "show", _show_facts)(outcome, call)
        if not quiet:
            render.finished(outcome if isinstance(outcome, Artifact) else None, next_command)
    if failure := getattr(view, "failure", lambda *_: None)(outcome, call):
        raise ToldError(failure) if as_json else failure


def options_of(command: Command, values: Mapping[str, Any]) -> Any:
    """The Params of a command from what typer read, by field.

    Raises:
        UsageError: that lists every fault.
    """
    names = {key.field: key.name for key in keys_of(command.params).values()}
    given = {names[field]: value for field, value in values.items() if field in names and value not in (None, [], ())}
    return checked(command.params, given)


def _view(command: Command, outcome: Any) -> Any:
    """What shows the command's result: a module of its own, or a function of `cli.results` or `cli.evaluations`."""
    from sentcompress.cli import evaluations, results

    if isinstance(outcome, Artifact) and "shard" in outcome.facts:
        return SimpleNamespace(show=results.show_shard)
    own = command.module or f"sentcompress.cli.{command.slug}"
    if importlib.util.find_spec(own):
        return importlib.import_module(own)
    return SimpleNamespace(show={**results.SHOW, **evaluations.SHOW}.get(command.name, evaluations.show))


def _show_facts(outcome: Any, call: Call) -> None:
    """The figures of an evaluation of another package that does not show them itself."""
    from sentcompress.cli import render

    if isinstance(outcome, Artifact):
        render.print_facts({name: value for name, value in outcome.facts.items() if not isinstance(value, dict | list)})


def params_of(words: list[str], commands: dict[str, Command]) -> type[Options] | None:
    """The options of the command that a line names."""
    return next((commands[word].params for word in words if word in commands), None)
