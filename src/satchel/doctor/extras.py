"""The extras: what each is for, whether it is there, and how to have it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from satchel.cli.packages import Wanted, pip_install, wanted
from satchel.doctor.finding import Finding, State, note, ok, problem

_FOR: Final = {
    "documents": "reads PDF, office files, e-books and web pages",
    "ocr": "reads scans where tesseract is not installed",
    "serve": "`satchel serve`: HTTP API, MCP and the inspector page",
    "mcp": "`satchel mcp`, for coding agents",
    "postgres": "keeps indexes in PostgreSQL",
    "chroma": "research over Chroma",
    "fastembed": "another embedder, without torch",
    "sentence-transformers": "another embedder, and cross-encoders; large (torch)",
    "visual": "finds pages by what is seen on them; large (torch)",
    "ray": "indexes large folders on many machines",
}


def extras() -> Iterator[Finding]:
    """Each extra in a line."""
    needs = list(wanted())
    known = {one.extra for one in needs}
    found = [_looked_at(extra, purpose, _needed(extra, needs)) for extra, purpose in _FOR.items() if extra in known]
    yield from found
    unheard = [extra for extra in _FOR if extra not in known]
    if unheard:
        told = f"the installation is older than the source: it does not know {', '.join(unheard)}"
        yield note("extras", told, pip_install())
    missing = sum(one.state is State.NOTE for one in found)
    if missing:
        how = f"if you need one, name it in the place of NAME: {pip_install('NAME')}"
        yield note("extras", f"{missing} are not installed" if missing > 1 else "1 is not installed", how)


def _needed(extra: str, needs: list[Wanted]) -> list[Wanted]:
    """The packages of an extra, and of the extras that it brings along."""
    found = []
    for one in (one for one in needs if one.extra == extra):
        if one.name.lower() == "satchel":
            found += [more for other in one.of_extras for more in _needed(other, needs)]
        else:
            found.append(one)
    return found


def _looked_at(extra: str, purpose: str, needed: list[Wanted]) -> Finding:
    subject = f"extra {extra}"
    there = {one: one.there() for one in needed}
    wrong = [f"{one.name} {found} is installed, {one.versions} is needed" for one, found in there.items()
             if found and not one.suits(found)]  # fmt: skip
    if not all(there.values()):
        return note(subject, f"not installed; {purpose}")
    if wrong:
        return problem(subject, "; ".join(wrong), pip_install(extra))
    return ok(subject, purpose)
