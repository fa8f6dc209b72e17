"""The output of `sentcompress methods`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.commands import names

USED_BY = {"distill": "distill --method", "finetune": "finetune, train-teacher --objective"}


def document(found: list[dict[str, Any]], call: Call) -> list[dict[str, Any]]:
    """The descriptions for `--json`."""
    return found


def show(found: list[dict[str, Any]], call: Call) -> None:
    """Show one method in full, or a row for each method."""
    if call.params.method:
        for described in found:
            _show(described)
        return
    columns = ["method", "for", "paper", "run first", "deployed"]
    rows = [[m["name"], m["stage"], m["paper"], ", ".join(commands_before(m)), m["deployed"]] for m in found]
    render.print_table(columns, rows)


def commands_before(method: Mapping[str, Any]) -> list[str]:
    """The commands whose results a method needs, in the order to run them in.

    A command is omitted if a longer one starts with it.
    """
    commands = [need["command"] for need in method["needs"].values() if need["command"]]
    whole = [one for one in commands if not any(one != other and other.startswith(f"{one} ") for other in commands)]
    return sorted(whole, key=lambda command: names().index(command.split()[0]))


def _show(method: Mapping[str, Any]) -> None:
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
    recipe = [
        [label, _value(number["value"]), number["source"]]
        for name, told in method["recipe"].items()
        for label, number in _numbers(name, told)
    ]
    render.print_table(["recipe", "value", "source"], recipe)
    if method["options"]:
        columns = ["--set", "type", "default", "effect", "source"]
        switches = [
            [name, option["type"], _value(option["default"]), option["help"], option["source"]]
            for name, option in method["options"].items()
        ]
        render.print_table(columns, switches)


def _numbers(name: str, told: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """A hyperparameter, and its value for models of another size if it has one."""
    sized = told.get("sized")
    return [(name, told), *([(f"{name}, {sized['condition']}", sized)] if sized else [])]


def _need(source: Mapping[str, Any]) -> str:
    return f"{source['what']} (sentcompress {source['command']})" if source["command"] else str(source["what"])


def _value(value: Any) -> str:
    """A value as the user would type it; numbers are not rounded."""
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
