"""Nothing specified is untested, and nothing tested is unspecified."""

from __future__ import annotations

import re

import pytest

from tests.support.manifest import MANIFEST, covering_tests, requirements

CAPABILITIES = {"embedded-index", "workspace", "research", "surfaces", "postgres", "scoreboard"}


def test_entries_are_well_formed_and_unique() -> None:
    seen = set()
    for entry in requirements():
        assert re.fullmatch(r"S[0-4]\.[a-z0-9-]+\.[a-z0-9-]+", entry["id"]), entry["id"]
        assert entry["id"] not in seen
        seen.add(entry["id"])
        assert entry["text"].endswith(".")
        assert entry["section"]
        assert entry.get("open", "workspace") in CAPABILITIES


def test_every_entry_is_covered_by_a_test_or_open_for_a_capability() -> None:
    covered = covering_tests()
    for entry in requirements():
        if "open" in entry:
            assert entry["id"] not in covered, f"{entry['id']} is covered: take `open` away"
        else:
            assert entry["id"] in covered, f"no test names {entry['id']}: {entry['text']}"


def test_every_id_that_a_test_names_is_in_the_manifest() -> None:
    known = {entry["id"] for entry in requirements()}
    assert set(covering_tests()) <= known


def test_every_ruling_has_a_decision_record() -> None:
    records = "\n".join(path.read_text(encoding="utf-8") for path in (MANIFEST.parent / "decisions").glob("*.md"))
    for ruling in {entry["ruling"] for entry in requirements() if "ruling" in entry}:
        assert f"`{ruling}`" in records, ruling


@pytest.mark.requirement("S0.quality.test-counts", "S1.quality.test-counts")
@pytest.mark.parametrize(
    ("prefixes", "least"),
    [
        (("S0.options.",), 12),
        (("S0.result.",), 10),
        (("S0.formatted-chunk.",), 6),
        (("S0.format.",), 4),
        (("S0.method.", "S1.tokens.tokenizer"), 3),
        (("S1.assemble.", "S1.group.", "S1.budget.", "S1.result."), 12),
        (("S1.markdown.", "S1.xml.", "S1.json.", "S1.plain.", "S1.format-chunk."), 10),
        (("S1.tokens.",), 10),
    ],
)
def test_each_area_has_as_many_tests_as_the_specifications_ask(prefixes: tuple[str, ...], least: int) -> None:
    tests = {test for id, names in covering_tests().items() if id.startswith(prefixes) for test in names}
    assert len(tests) >= least


@pytest.mark.requirement("S0.quality.test-counts")
def test_every_scenario_that_a_specification_lists_belongs_to_one_entry() -> None:
    scenarios = [
        name
        for entry in requirements()
        for name in [*entry.get("scenarios", []), *([entry["scenario"]] if "scenario" in entry else [])]
    ]
    assert len(scenarios) == len(set(scenarios))
    assert len(scenarios) >= 40
