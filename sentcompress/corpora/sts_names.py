"""What sets of graded pairs are called, and what the name of a file says about its place among them."""

from __future__ import annotations

import re
from pathlib import Path

from sentcompress.corpora.sts_senteval import SPLITS
from sentcompress.corpora.text_files import COMPRESSED, format_extension

# What counts as a file of ours in a folder. Not .txt: SentEval's folder is full of other things called so.
EXTENSIONS = ("tsv", "tab")
# Every name under which a published set is found -> the name that papers print.
KNOWN_SETS = {
    **{f"sts{year}": f"STS{year}" for year in (12, 13, 14, 15, 16)},
    **dict.fromkeys(("stsb", "stsbenchmark", "stsbench"), "STS-B"),
    **dict.fromkeys(("sick", "sickr"), "SICK-R"),
}
# Graded pairs of the published test sets. Copies of another size are about, and their scores do not compare: STS13
# with SMT, and a SICK-R that holds the training part too.
OFFICIAL_PAIRS = {
    "STS12": 3108,
    "STS13": 1500,
    "STS14": 3750,
    "STS15": 3000,
    "STS16": 1186,
    "STS-B": 1379,
    "SICK-R": 4927,
}
YEAR = re.compile(r"(sts1[2-6])(?:-en-test)?(?:[-_.](.+))?", re.IGNORECASE)


def set_name(raw: str) -> str:
    """The name that papers print for a published set, else the name as it is."""
    return KNOWN_SETS.get(re.sub(r"[-_ ]", "", raw.lower()), raw)


def split_stem(path: Path) -> tuple[str, str]:
    """`FNWN.test.tsv.gz` -> ("FNWN", "test"); without a split in its name, test."""
    name = Path(path.name)
    while name.suffix.lower() in COMPRESSED or format_extension(name) in (*EXTENSIONS, "txt"):
        name = name.with_suffix("")
    match = re.fullmatch(rf"(?:(.*)[-_.])?({'|'.join(SPLITS)})", str(name), re.IGNORECASE)
    return (match[1] or "", match[2].lower()) if match else (str(name), "test")


def place_of(path: Path, *, is_top: bool) -> tuple[str, str, str]:
    """Set, subset and split of one of our files."""
    stem, split = split_stem(path)
    folder = path.resolve().parent.name
    year = YEAR.fullmatch(stem)
    if year:
        return set_name(year[1]), year[2] or "", split
    if not stem:
        return set_name(folder), "", split
    if not is_top or set_name(folder) in KNOWN_SETS.values():
        return set_name(folder), "" if set_name(stem) == set_name(folder) else stem, split
    return set_name(stem), "", split
