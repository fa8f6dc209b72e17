"""The verification of an export as tables, for the model card and the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentcompress.numeric import figure


def cosines_of(title: str, found: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Table rows of a format's verification: title, minimum and mean cosine."""
    both = "single_min_cosine" in found
    rows = [(f"{title}, in batches" if both else title, *_cosines(found))]
    return rows + ([(f"{title}, one at a time", *_cosines(found, "single_"))] if both else [])


def router_rows(facts: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Table rows of the verification of the router: route, minimum and mean cosine to the vectors of its model."""
    found = facts.get("router")
    return [(f"router, {route}", *_cosines(one)) for route, one in found["checked"].items()] if found else []


def sts_table(facts: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of the STS scores of an export's formats."""
    titles = {}
    for name, one in facts["formats"].items():
        both = f"{name}_single" in facts["sts"][0]
        titles[name] = f"{one['title']}, in batches" if both else one["title"]
        titles[f"{name}_single"] = f"{one['title']}, one at a time"
    ways = [way for way in titles if way in facts["sts"][0]]
    rows = [[s["set"], f"{s['pairs']:,}", *(figure(s[way], ".2f") for way in ways)] for s in facts["sts"]]
    return ["set", "pairs", *(titles[way] for way in ways)], rows


def _cosines(found: Mapping[str, Any], prefix: str = "") -> tuple[str, str]:
    return figure(found[f"{prefix}min_cosine"], ".6f"), figure(found[f"{prefix}mean_cosine"], ".6f")
