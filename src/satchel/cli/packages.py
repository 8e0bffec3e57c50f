"""Installed packages: which versions are wanted, which are there, and how to install what is not."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from operator import eq, ge, gt, le, lt, ne
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?\s*([^;]*?)\s*(?:;(.*))?")
_COMPARISONS: Final = {">=": ge, "<=": le, "==": eq, "!=": ne, ">": gt, "<": lt}
_EXTRA: Final = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


class Wanted(NamedTuple):
    """A package that is needed: always, or for an extra."""

    name: str
    versions: str
    extra: str
    of_extras: tuple[str, ...]

    @property
    def text(self) -> str:
        """As pip takes it."""
        return f"{self.name}{self.versions}"

    def there(self) -> str:
        """The version that is installed, or nothing."""
        try:
            return version(self.name)
        except PackageNotFoundError:
            return ""

    def suits(self, found: str) -> bool:
        """Whether a version is one of those that are wanted."""
        return all(_holds(found, condition) for condition in self.versions.split(",") if condition.strip())


def ours() -> Distribution | None:
    """Satchel as it was installed, if it was."""
    try:
        return distribution("satchel")
    except PackageNotFoundError:
        return None


def wanted() -> Iterator[Wanted]:
    """What Satchel was installed to need."""
    mine = ours()
    for line in (mine.requires if mine else None) or ():
        parts = _REQUIREMENT.fullmatch(line)
        if parts is None:
            continue
        name, of_extras, versions, marker = parts.groups()
        extra = _EXTRA.search(marker or "")
        yield Wanted(
            name=name,
            versions=versions.strip("() ").replace(" ", ""),
            extra=extra[1] if extra else "",
            of_extras=tuple(name.strip() for name in (of_extras or "").split(",") if name.strip()),
        )


def pip_install(extra: str = "") -> str:
    """The command that installs Satchel again, with an extra, from where it was installed before."""
    python, (place, is_editable) = shlex.quote(sys.executable), _origin()
    what = shlex.quote(f"{place or '.'}{f'[{extra}]' if extra else ''}")
    command = f"{python} -m pip install {'-e ' if is_editable else ''}{what}"
    return command if place else f"{command}   (in Satchel's checkout)"


def _origin() -> tuple[str, bool]:
    """The folder that Satchel was installed from, and whether changes there take effect at once."""
    mine = ours()
    try:
        origin = json.loads((mine.read_text("direct_url.json") if mine else None) or "{}")
        parts = urlsplit(origin.get("url", ""))
        place = unquote(parts.path) if parts.scheme == "file" else f"satchel @ {origin['url']}" if origin else ""
        return place, bool(origin.get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError, KeyError):
        return "", False


def _holds(found: str, condition: str) -> bool:
    parts = re.fullmatch(r"\s*(>=|<=|==|!=|~=|>|<)\s*([0-9][0-9.]*)\S*\s*", condition)
    if parts is None:
        return True
    have, limit = _numbers(found), _numbers(parts[2])
    width = max(len(have), len(limit))
    left, right = (*have, *(0,) * (width - len(have))), (*limit, *(0,) * (width - len(limit)))
    if parts[1] == "~=":
        return left >= right and have[: len(limit) - 1] == limit[:-1]
    return bool(_COMPARISONS[parts[1]](left, right))


def _numbers(text: str) -> tuple[int, ...]:
    release = re.match(r"[0-9]+(?:\.[0-9]+)*", text)
    return tuple(int(part) for part in release[0].split(".")) if release else ()
