"""Installed packages as pip and npm leave them, written by hand: nothing is installed and nothing is run."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

SITE = "lib/python3.11/site-packages"


def install_python(
    environment: Path,
    name: str,
    version: str,
    files: Mapping[str, str | bytes],
    *,
    readme: str = "",
    more: Mapping[str, str] | None = None,
    record: tuple[str, ...] = (),
) -> Path:
    """Write a wheel's files into an environment; `more` are files of its metadata, `record` further lines of RECORD."""
    site = environment / SITE
    info = f"{name}-{version}.dist-info"
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nDescription-Content-Type: text/markdown\n"
    written: dict[str, str | bytes] = {**files, f"{info}/METADATA": f"{head}\n{readme}"}
    written |= {f"{info}/{file}": text for file, text in (more or {}).items()}
    lines = [*record, f"{info}/RECORD,,"]
    for path, text in written.items():
        data = text if isinstance(text, bytes) else text.encode()
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        lines.append(f"{path},sha256={digest},{len(data)}")
    (site / info / "RECORD").write_text("\n".join(lines) + "\n")
    return site


def install_npm(modules: Path, name: str, version: str, files: Mapping[str, str]) -> Path:
    """Write the files of an npm package into a `node_modules`."""
    folder = modules / name
    for path, text in {**files, "package.json": json.dumps({"name": name, "version": version})}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder
