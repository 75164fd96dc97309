"""The pins hold everything the package asks for, with hashes and nothing of one machine."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).resolve().parents[3]
FILES = {
    "runtime": "requirements.txt",
    "local": "requirements-local.txt",
    "dev": "requirements-dev.txt",
}
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)(.*)$", re.MULTILINE)


def _pins(kind: str) -> dict[str, str]:
    text = (PROJECT / FILES[kind]).read_text()
    return {canonicalize_name(name): version for name, version, _ in PIN.findall(text)}


def _asked_for(kind: str) -> list[Requirement]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    asked: list[str] = list(project["dependencies"])
    if kind != "runtime":
        asked += project["optional-dependencies"]["local"]
    if kind == "dev":
        asked += project["optional-dependencies"]["dev"]
    found = [Requirement(text) for text in asked]
    return [each for each in found if each.name != project["name"]]


@pytest.mark.parametrize("kind", FILES)
def test_everything_asked_for_is_pinned_to_a_version_that_fits(kind: str) -> None:
    pins = _pins(kind)
    missing = [
        str(each)
        for each in _asked_for(kind)
        if not each.specifier.contains(pins.get(canonicalize_name(each.name), "0"))
    ]
    assert missing == []


@pytest.mark.parametrize("kind", FILES)
def test_every_pin_has_hashes_and_no_line_is_anything_else(kind: str) -> None:
    header, *lines = (PROJECT / FILES[kind]).read_text().splitlines()
    assert header.startswith("# Pinned from pyproject.toml")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if PIN.match(line):
            assert following.startswith("    --hash=sha256:"), line
        else:
            assert re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line), line


def test_the_test_pins_hold_the_local_ones_and_those_the_runtime_ones() -> None:
    assert _pins("runtime").items() <= _pins("local").items() <= _pins("dev").items()
