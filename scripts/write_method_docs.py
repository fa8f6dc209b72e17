"""Write the generated parts of docs/methods.md: the descriptions in sentcompress/methods/.

python scripts/write_method_docs.py

The name of a part is `overview`, `defaults`, or the
command and name of a method, such as `distill hpd`. All other text of the page is written by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

from generated_parts import table, update

from sentcompress.cli.methods import commands_before
from sentcompress.commands.spelling import DEFAULT_WORK
from sentcompress.methods.hyperparameters import Hyperparameters, Number
from sentcompress.stages import methods as stage
from sentcompress.store import WorkDirectory

TARGET = Path(__file__).resolve().parents[1] / "docs" / "methods.md"
WIDTH = 120
LABELS = {
    "lr": "learning rate",
    "clip": "gradient norm clipped to",
    "betas": "AdamW betas",
    "max_length": "maximum length, tokens",
    "eval_every": "steps between dev scores",
    "patience": "patience, epochs",
}
DEFAULTS = Hyperparameters(*[Number(None, "")] * 4).as_dict()


def generated() -> dict[str, str]:
    """Name of a part -> its Markdown."""
    found = stage.run(stage.Params(), WorkDirectory(DEFAULT_WORK))
    parts = {"overview": _overview(found), "defaults": _defaults()}
    return parts | {_name(method): _method(method, found[:place]) for place, method in enumerate(found)}


def _name(method: Mapping[str, Any]) -> str:
    return f"{method['stage']} {method['name']}"


def _overview(found: list[dict[str, Any]]) -> str:
    rows = [
        [f"`{m['name']}`", m["stage"], m["title"], ", ".join(map(_code, commands_before(m))), m["deployed"]]
        for m in found
    ]
    return _table(["method", "for", "objective", "run first", "embedding"], rows)


def _code(command: str) -> str:
    return " or ".join(f"`{one}`" for one in command.split(" or "))


def _defaults() -> str:
    rows = [[_label(name), _value(DEFAULTS[name]["value"]), DEFAULTS[name]["source"]] for name in list(DEFAULTS)[4:]]
    return _table(["hyperparameter", "value", "source"], rows)


def _method(method: Mapping[str, Any], before: list[dict[str, Any]]) -> str:
    needs = [f"- needs {need['what']}{_made_by(need)}" for need in method["needs"].values()]
    return "\n".join(
        [
            _filled(f"**{method['title']}.** [{method['paper'][0].upper()}{method['paper'][1:]}]({method['link']})."),
            "",
            f"    {method['equation']}",
            "",
            *needs,
            f"- embedding: {method['deployed']}",
            "",
            _escaped(method["description"]),
            "",
            _recipe(method, before),
            _options(method, before),
        ]
    )


def _filled(line: str) -> str:
    return fill(line, WIDTH, break_long_words=False, break_on_hyphens=False)


def _made_by(need: Mapping[str, Any]) -> str:
    return f" ({_code(need['command'])})" if need["command"] else ""


def _recipe(method: Mapping[str, Any], before: list[dict[str, Any]]) -> str:
    same = next((other["name"] for other in before if other["recipe"] == method["recipe"]), None)
    if same:
        return f"Hyperparameters: as `{same}`.\n"
    rows = [
        [label, _value(number["value"]), number["source"]]
        for name, told in method["recipe"].items()
        if told != DEFAULTS[name]
        for label, number in _numbers(name, told)
    ]
    return _table(["hyperparameter", "value", "source"], rows)


def _numbers(name: str, told: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """A hyperparameter, and its value for models of another size if it has one."""
    sized = told.get("sized")
    return [(_label(name), told), *([(f"{_label(name)}, {sized['condition']}", sized)] if sized else [])]


def _options(method: Mapping[str, Any], before: list[dict[str, Any]]) -> str:
    """A table of the options that are new, and a line for those shared with an earlier method."""
    own: list[list[str]] = []
    shared: dict[str, list[str]] = {}
    for name, option in method["options"].items():
        same = next((other["name"] for other in before if other["options"].get(name) == option), None)
        if same:
            shared.setdefault(same, []).append(f"`{name}`")
        else:
            kind = option["type"].replace("|", ", ")
            own.append([f"`{name}`", kind, _value(option["default"]), option["help"], option["source"]])
    own_table = _table(["`--set`", "type", "default", "effect", "source"], own) if own else ""
    lines = [f"Options as in `{name}`: {', '.join(options)}." for name, options in shared.items()]
    return own_table + ("\n" if own_table and lines else "") + "".join(f"{line}\n" for line in lines)


def _label(name: str) -> str:
    return LABELS.get(name, name.replace("_", " "))


def _value(value: Any) -> str:
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _escaped(text: str) -> str:
    return text.replace("|", r"\|").replace("*", r"\*").replace("<", r"\<")


def _table(columns: list[str], rows: list[list[str]]) -> str:
    return table(columns, [[_escaped(cell) for cell in row] for row in rows])


if __name__ == "__main__":
    update(TARGET, generated())
