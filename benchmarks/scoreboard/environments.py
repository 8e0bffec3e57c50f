"""An environment for every tool, made on first use below a work folder and kept as long as its requirements stay.

PLACE/environments/NAME    a virtual environment for each requirements file
PLACE/npm/NAME             the same for tools from npm
PLACE/models, PLACE/vocabularies, PLACE/home    what they need and cannot download, and where they may write
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.scoreboard.contestants import (
    MODEL,
    PACKAGES,
    REQUIREMENTS,
    SEMBLE_MODEL,
    WORKERS,
    Contestant,
    pinned,
)

ROOT: Final = Path(__file__).resolve().parents[2]
OUR_MODEL: Final = ROOT / "src" / "satchel" / "integrations" / "embedders" / "static_model"
_MARKER: Final = "made-from"
_SIZES: Final = {"o200k_base": 199_998, "cl100k_base": 100_256}
_PACKAGE_OF: Final = {"rg": "ripgrep", "node": "nodejs", "npm": "npm"}
_OLDEST_NODE: Final = 20
_LONGEST_INSTALL: Final = 1200.0
_QUIET: Final = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "AIDER_ANALYTICS": "false",
    "AIDER_CHECK_UPDATE": "false",
    "LITELLM_TELEMETRY": "False",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "SCARF_NO_ANALYTICS": "true",
    "NO_UPDATE_NOTIFIER": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONUTF8": "1",
    "NO_COLOR": "1",
}


class PeerMissing(Exception):
    """A tool cannot take part here; says what to install."""

    def __init__(self, peer: str, why: str, install: str) -> None:
        super().__init__(f"{peer}: {why}; to measure it: {install}")
        self.peer = peer
        self.install = install


def ready(contestant: Contestant, place: Path) -> list[str]:
    """The command that starts the tool's worker; its environment is made if it isn't there."""
    place = place.resolve()
    for program in contestant.programs:
        _check_program(contestant, program)
    place.mkdir(parents=True, exist_ok=True)
    _vocabularies(place)
    python = sys.executable
    if contestant.requirements and not contestant.from_npm:
        python = str(_virtual_environment(contestant, place) / "bin" / "python")
    arguments = [_filled(argument, contestant, python, place) for argument in contestant.arguments]
    return [python, "-P", str(WORKERS / contestant.worker), *arguments]


def variables(place: Path) -> dict[str, str]:
    """The environment variables for every worker: no network, no telemetry, nothing written to the user's home."""
    place = place.resolve()
    home = place / "home"
    home.mkdir(parents=True, exist_ok=True)
    vocabularies = str(place / "vocabularies")
    return {
        **{
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "SATCHEL_", "VIRTUAL_ENV"))
        },
        **_QUIET,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "PYTHONPATH": str(ROOT),
        "TIKTOKEN_CACHE_DIR": vocabularies,
        "CUSTOM_TIKTOKEN_CACHE_DIR": vocabularies,
    }


def _check_program(contestant: Contestant, program: str) -> None:
    found = shutil.which(program)
    install = f"apt-get install {_PACKAGE_OF.get(program, program)}"
    if found is None:
        raise PeerMissing(contestant.name, f"{program} is not installed", install)
    if program == "node":
        told = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout.strip()
        major = re.match(r"v(\d+)", told)
        if major is None or int(major[1]) < _OLDEST_NODE:
            raise PeerMissing(contestant.name, f"node is {told}, not {_OLDEST_NODE} or newer", "a newer nodejs")


def _filled(argument: str, contestant: Contestant, python: str, place: Path) -> str:
    if argument == PACKAGES:
        return str(_npm_packages(contestant, place) / "node_modules")
    if argument == SEMBLE_MODEL:
        named = os.environ.get("SATCHEL_BENCH_SEMBLE_MODEL")
        return _named_model(named, contestant, python, place) if named else _static_model(contestant, python, place)
    return _static_model(contestant, python, place) if argument == MODEL else argument


def _static_model(contestant: Contestant, python: str, place: Path) -> str:
    """Our model as a model2vec folder; another model is another folder."""
    digest = hashlib.sha256((OUR_MODEL / "model.json").read_bytes() + (WORKERS / "static_model.py").read_bytes())
    out = place / "models" / f"satchel-static-{digest.hexdigest()[:12]}"
    if not out.exists():
        command = [python, "-P", str(WORKERS / "static_model.py"), str(OUR_MODEL), str(out)]
        _run(contestant, command, env=variables(place))
    return str(out)


def _named_model(named: str, contestant: Contestant, python: str, place: Path) -> str:
    """A folder as it is; a name on the hub is downloaded once, here, where nothing is timed."""
    if Path(named).is_dir():
        return str(Path(named).resolve())
    out = place / "models" / named.replace("/", "--")
    if not out.exists():
        online = {name: value for name, value in variables(place).items() if not name.endswith("_OFFLINE")}
        _run(contestant, [python, "-P", str(WORKERS / "static_model.py"), named, str(out)], env=online)
    return str(out)


def _virtual_environment(contestant: Contestant, place: Path) -> Path:
    name = str(contestant.requirements)
    folder = place / "environments" / name.removesuffix(".txt")
    if _is_made(folder, name):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    _run(contestant, [sys.executable, "-m", "venv", str(folder)])
    install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run(contestant, [*install, "-r", str(REQUIREMENTS / name)])
    _mark(folder, name)
    return folder


def _npm_packages(contestant: Contestant, place: Path) -> Path:
    name = str(contestant.requirements)
    folder = place / "npm" / name.removesuffix(".npm.txt")
    if _is_made(folder, name):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": pinned(name)}))
    _run(contestant, ["npm", "install", "--no-fund", "--no-audit", "--ignore-scripts", "--prefix", str(folder)])
    _mark(folder, name)
    return folder


def _digest(requirements: str) -> str:
    content = (REQUIREMENTS / requirements).read_bytes()
    return hashlib.sha256(content + sys.version.encode()).hexdigest()


def _is_made(folder: Path, requirements: str) -> bool:
    marker = folder / _MARKER
    return marker.exists() and marker.read_text() == _digest(requirements)


def _mark(folder: Path, requirements: str) -> None:
    (folder / _MARKER).write_text(_digest(requirements))


def _run(contestant: Contestant, command: list[str], env: dict[str, str] | None = None) -> None:
    print(f"{contestant.name}: {' '.join(command[:6])} …", file=sys.stderr)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=env, timeout=_LONGEST_INSTALL, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerMissing(contestant.name, f"{command[0]}: {error}", "see above") from error
    if done.returncode:
        told = (done.stderr or done.stdout).strip()[-1500:]
        raise PeerMissing(contestant.name, f"its environment could not be made ({told})", " ".join(command))


def _vocabularies(place: Path) -> None:
    """tiktoken's files, which it would download, written from the vocabulary inside toktok's wheel."""
    import toktok
    from tiktoken_ext import openai_public

    folder = place / "vocabularies"
    folder.mkdir(parents=True, exist_ok=True)
    for encoding, size in _SIZES.items():
        source = inspect.getsource(getattr(openai_public, encoding))
        url = re.search(r'"(https://[^"]+)"', source)
        expected = re.search(r'expected_hash="([0-9a-f]{64})"', source)
        if url is None or expected is None:
            raise RuntimeError(f"tiktoken no longer says where {encoding} is from")
        path = folder / hashlib.sha1(url[1].encode()).hexdigest()
        if path.exists():
            continue
        tokens = toktok._encoding(encoding)
        written = b"".join(base64.b64encode(tokens.decode_bytes([i])) + b" %d\n" % i for i in range(size))
        if hashlib.sha256(written).hexdigest() != expected[1]:
            raise RuntimeError(f"the vocabulary of {encoding} is not the one that tiktoken expects")
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(written)
        os.replace(file.name, path)
