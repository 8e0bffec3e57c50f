"""The sections of docs/benchmarks.md: each benchmark puts in its own, and leaves the others alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def put_section(page: Path, heading: str, section: str) -> None:
    """Put a section (with its heading) in the place of the one that has its heading, or at the end."""
    text = page.read_text(encoding="utf-8")
    before, found, after = text.partition(f"{heading}\n")
    following = after.find("\n## ")
    rest = after[following + 1 :] if found and following >= 0 else ""
    parts = [before.rstrip(), section.rstrip(), rest.rstrip()]
    page.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")


def measure(heading: str, page: Callable[[], str]) -> None:
    """Measure a part, print it, and put it into docs/benchmarks.md."""
    measured = page()
    print(measured)
    put_section(Path(__file__).parent.parent / "docs" / "benchmarks.md", heading, measured)
