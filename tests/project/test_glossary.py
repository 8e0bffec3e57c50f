"""Every name of the specifications is in the list of names, and every name given there exists."""

from __future__ import annotations

import dataclasses
import importlib
import re

import pytest

from tests.support.places import ROOT

PAGE = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
SPECIFICATIONS = ROOT.parent / "shared" / "specs"


def rows() -> list[tuple[str, str, str]]:
    """Specification, name there, name here."""
    found = []
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        for there, here in re.findall(r"^\| `?(.*?)`? \| (.*) \|$", section, flags=re.MULTILINE):
            if there not in ("There", "---"):
                found.append((section[:2], there, here))
    return found


def resolves(path: str) -> bool:
    parts = path.split(".")
    for size in range(len(parts), 0, -1):
        try:
            thing: object = importlib.import_module(".".join(parts[:size]))
        except ImportError:
            continue
        for name in parts[size:]:
            if hasattr(thing, name):
                thing = getattr(thing, name)
            else:
                known = {f.name for f in dataclasses.fields(thing)} if dataclasses.is_dataclass(thing) else set()
                return name in known | set(getattr(thing, "model_fields", ()))
        return True
    return False


def test_every_name_here_exists_or_is_planned() -> None:
    assert len(rows()) > 400
    for _, there, here in rows():
        if "(planned)" not in here:
            match = re.match(r"`([\w.]+)`", here)
            assert match, (there, here)
            assert resolves(match[1]), (there, here)


def test_nothing_is_called_planned_that_exists() -> None:
    for _, there, here in rows():
        if "(planned)" in here:
            match = re.match(r"`([\w.]+)`", here)
            assert match, (there, here)
            assert not resolves(match[1]), f"{there} is here: {here}"


PATTERNS = {
    "S0": r"public (?:sealed |static )*(?:class|enum|[\w<>?\[\]]+) (\w+)(?= *(?:\{|=>|\n|$))|^    (\w+) = \d",
    "S1": r"public (?:sealed )?(?:class|interface) (\w+)|const float (\w+)|private (?:static )?[\w<>(), ]+ (\w+)\(",
    "S2": r"^(?:export )?(?:interface|class) (\w+)|^  (\w+)\??: [\w'|\[\] ]+;|private (\w+)\(",
    "S3": r"^class (\w+)|^    (?:async )?def (\w+)\(|^    (\w+): [\w\[\], ]+(?: =.*)?  #",
    "S4": r"^(?:interface|class|enum) (\w+)|^    ?(\w+)\??: [\w\[\]{}'|; ]+[;,]|^  (\w+) = '",
}


@pytest.mark.skipif(not SPECIFICATIONS.is_dir(), reason="the specifications are not beside this checkout")
@pytest.mark.parametrize("specification", PATTERNS)
def test_every_name_of_the_specification_is_here(specification: str) -> None:
    (path,) = SPECIFICATIONS.glob(f"00{specification[1]}_*.txt")
    text = path.read_text(encoding="utf-8")
    names = {name for match in re.findall(PATTERNS[specification], text, flags=re.MULTILINE) for name in match if name}
    assert len(names) > 15
    known = {word for spec, there, _ in rows() if spec == specification for word in re.findall(r"\w+", there)}
    assert names - known - {"__init__"} == set()
