"""Required packages: the versions required by Satchel, the installed versions, and the commands to install them."""

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
_CONDITION: Final = re.compile(r"\s*(>=|<=|==|!=|~=|>|<)\s*([0-9][0-9.]*)\S*\s*")


class Requirement(NamedTuple):
    """A required package: required always, or only for an extra."""

    name: str
    versions: str
    extra: str = ""
    of_extras: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The requirement in pip's syntax."""
        return f"{self.name}{self.versions}"

    def installed_version(self) -> str:
        """The installed version, or ''."""
        try:
            return version(self.name)
        except PackageNotFoundError:
            return ""

    def accepts(self, version: str) -> bool:
        """True if a version meets every condition."""
        return all(_meets(version, condition) for condition in self.versions.split(",") if condition.strip())


def installed_satchel() -> Distribution | None:
    """Satchel's metadata as written by pip; None if Satchel is not installed."""
    try:
        return distribution("satchel")
    except PackageNotFoundError:
        return None


def requirements() -> Iterator[Requirement]:
    """Yield the requirements in Satchel's metadata, including all extras."""
    satchel = installed_satchel()
    for line in (satchel.requires if satchel else None) or ():
        parts = _REQUIREMENT.fullmatch(line)
        if parts is None:
            continue
        name, of_extras, versions, marker = parts.groups()
        extra = _EXTRA.search(marker or "")
        yield Requirement(
            name=name,
            versions=versions.strip("() ").replace(" ", ""),
            extra=extra[1] if extra else "",
            of_extras=tuple(part.strip() for part in (of_extras or "").split(",") if part.strip()),
        )


def pip_install(extra: str = "") -> str:
    """The command to install Satchel again from the same origin, with an extra."""
    python, (place, is_editable) = shlex.quote(sys.executable), _origin()
    what = shlex.quote(f"{place or '.'}{f'[{extra}]' if extra else ''}")
    command = f"{python} -m pip install {'-e ' if is_editable else ''}{what}"
    return command if place else f"{command}   (in Satchel's checkout)"


def _origin() -> tuple[str, bool]:
    """The folder or URL of Satchel's installation, and True for an editable installation."""
    satchel = installed_satchel()
    try:
        origin = json.loads((satchel.read_text("direct_url.json") if satchel else None) or "{}")
        parts = urlsplit(origin.get("url", ""))
        place = unquote(parts.path) if parts.scheme == "file" else f"satchel @ {origin['url']}" if origin else ""
        return place, bool(origin.get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError, KeyError):
        return "", False


def _meets(version: str, condition: str) -> bool:
    parts = _CONDITION.fullmatch(condition)
    if parts is None:
        return True
    have, limit = _numbers(version), _numbers(parts[2])
    width = max(len(have), len(limit))
    left, right = (*have, *(0,) * (width - len(have))), (*limit, *(0,) * (width - len(limit)))
    if parts[1] == "~=":
        return left >= right and have[: len(limit) - 1] == limit[:-1]
    return bool(_COMPARISONS[parts[1]](left, right))


def _numbers(text: str) -> tuple[int, ...]:
    release = re.match(r"[0-9]+(?:\.[0-9]+)*", text)
    return tuple(int(part) for part in release[0].split(".")) if release else ()
