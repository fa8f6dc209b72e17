"""`sentcompress methods` and `sentcompress methods show NAME`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from sentcompress.cli import options
from sentcompress.errors import UsageError, did_you_mean
from sentcompress.plain_text import shell_word

USED_BY = {"distill": "distill --method", "finetune": "finetune, train-teacher --objective"}


def command(
    action: Annotated[str | None, typer.Argument(help="`show`, to see one method whole.", show_default=False)] = None,
    method: Annotated[str | None, typer.Argument(help="The method to show.", show_default=False)] = None,
    as_json: options.Json = False,
) -> None:
    """What methods there are; `methods show hpd`: its equation, needs, recipe with sources, and switches."""
    from sentcompress.cli import render
    from sentcompress.methods import METHODS, OBJECTIVES
    from sentcompress.stages import methods as stage

    if action not in (None, "show"):
        known = action in METHODS or action in OBJECTIVES
        hint = (
            f"write: sentcompress methods show {shell_word(action)}"
            if known
            else "the one there is: sentcompress methods show NAME"
        )
        raise UsageError(f"methods {action}: no such action", hint)
    if action == "show" and method is None:
        raise UsageError("methods show: name a method", did_you_mean("", {**METHODS, **OBJECTIVES}))
    found = stage.run(stage.Params(method))
    if as_json:
        render.print_json(found)
    elif method:
        for described in found:
            _show(described)
    else:
        columns = ["method", "for", "paper", "needs", "deployed"]
        rows = [[m["name"], m["stage"], m["paper"], ", ".join(m["needs"]), m["deployed"]] for m in found]
        render.print_table(columns, rows)


def _show(method: Mapping[str, Any]) -> None:
    from sentcompress.cli import render

    facts = {
        "used by": USED_BY[method["stage"]],
        "paper": method["paper"],
        "link": method["link"],
        "equation": method["equation"],
        **{f"needs {need}": _need(source) for need, source in method["needs"].items()},
        "deployed": method["deployed"],
    }
    render.print_facts(facts, f"{method['name']}: {method['title']}")
    render.print_text(method["description"])
    recipe = [[name, _value(number["value"]), number["source"]] for name, number in method["recipe"].items()]
    render.print_table(["recipe", "value", "source"], recipe)
    if method["options"]:
        columns = ["--set", "type", "default", "what it does", "source"]
        switches = [
            [name, option["type"], _value(option["default"]), option["help"], option["source"]]
            for name, option in method["options"].items()
        ]
        render.print_table(columns, switches)


def _need(source: Mapping[str, Any]) -> str:
    return f"{source['what']} (sentcompress {source['command']})" if source["command"] else str(source["what"])


def _value(value: Any) -> str:
    """As it would be typed; a recipe's number is not rounded."""
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
