"""The lock: what a fresh machine installs, on every Python that is promised."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from sentcompress.extras import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
# The oldest of each release that people have: Debian 12 ships 3.11.2.
PYTHONS = ("3.11.2", "3.12.0", "3.13.0")


def locked() -> dict[str, Version]:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {re.sub(r"[-_.]+", "-", name).lower(): Version(version) for name, version in pairs}


@pytest.mark.parametrize("python", PYTHONS)
def test_every_locked_package_that_is_installed_takes_this_python(python: str) -> None:
    refused, compared = {}, 0
    for name, version in locked().items():
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # of another platform, or an extra that is not installed
        wanted = found.metadata["Requires-Python"]
        if Version(found.version) == version and wanted:
            compared += 1
            if not SpecifierSet(wanted).contains(python):
                refused[name] = wanted
    if not compared:
        pytest.skip("no package is installed in the locked version")
    assert refused == {}


def test_what_the_package_asks_for_is_in_the_lock() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    names = {re.sub(r"[-_.]+", "-", re.split(r"[ <>=!~;\[]", line)[0]).lower() for line in asked}
    assert names - set(locked()) == {"sentcompress"}


def test_every_extra_is_in_all_and_every_optional_package_in_its_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (whole,) = extras["all"]
    assert set(re.findall(r"\w+", whole)) - {"sentcompress"} == set(extras) - {"all", "dev"}
    assert set(filter(None, EXTRAS.values())) == set(extras) - {"all", "dev"}
    for package, extra in EXTRAS.items():
        names = [re.split(r"[<>=]", line)[0] for line in extras.get(extra or "", [])]
        assert extra is None or any(name.replace("-", "_").removesuffix("_cpu") == package for name in names), package
