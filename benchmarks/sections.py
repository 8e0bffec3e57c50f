"""The sections of docs/benchmarks.md: each benchmark puts in its own, and leaves the others alone."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def put_section(page: Path, heading: str, section: str) -> None:
    """Put a section (with its heading) in the place of the one that has its heading, or at the end."""
    text = page.read_text(encoding="utf-8")
    before, found, after = text.partition(f"{heading}\n")
    following = after.find("\n## ")
    rest = after[following + 1 :] if found and following >= 0 else ""
    parts = [before.rstrip(), section.rstrip(), rest.rstrip()]
    page.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")


def put_results(file: Path, part: str, results: Mapping[str, Any]) -> None:
    """Put the results of a part into docs/benchmarks.json under the name of the part."""
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    write_results(file, before | {part: results})


def write_results(file: Path, results: Mapping[str, Any]) -> None:
    """Write docs/benchmarks.json."""
    file.write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def run_part(
    part: str,
    heading: str,
    measured: Callable[[], dict[str, Any]],
    section: Callable[[Mapping[str, Any]], str],
    about: str,
) -> int:
    """The command of a part: measure, or take the last results, and write its results and its section."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="write the section again from the last results")
    parser.add_argument("--print", action="store_true", help="print the section and leave the page alone")
    given = parser.parse_args()
    docs = Path(__file__).parent.parent / "docs"
    results = json.loads((docs / "benchmarks.json").read_text("utf-8"))[part] if given.draw else measured()
    print(section(results))
    if not given.print:
        put_results(docs / "benchmarks.json", part, results)
        put_section(docs / "benchmarks.md", heading, section(results))
    return 0


def measure(heading: str, page: Callable[[], str]) -> None:
    """Measure a part, print it, and put it into docs/benchmarks.md."""
    measured = page()
    print(measured)
    put_section(Path(__file__).parent.parent / "docs" / "benchmarks.md", heading, measured)


def measure_repositories(heading: str, page: Callable[[list[Path]], str]) -> None:
    """Measure the repositories that the command names; with `--print` the page of the docs is left alone."""
    repositories = [Path(name) for name in sys.argv[1:] if not name.startswith("--")]
    if "--print" in sys.argv:
        print(page(repositories))
    else:
        measure(heading, lambda: page(repositories))
