from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import satchel


def test_every_public_name_can_be_imported_and_is_listed_once() -> None:
    assert sorted([*satchel.__all__, "open"]) == sorted(satchel._HOME)
    assert len(set(satchel.__all__)) == len(satchel.__all__)
    for name in satchel.__all__:
        assert getattr(satchel, name) is not None
    assert set(satchel.__all__) <= set(dir(satchel))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        satchel.nope  # noqa: B018


def test_the_version_is_that_of_the_package() -> None:
    assert satchel.__version__ == version("satchel")


def test_importing_satchel_loads_nothing_heavy() -> None:
    code = "import sys; before = set(sys.modules); import satchel; new = set(sys.modules) - before;print(sorted(new))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(eval(done.stdout))
    heavy = {"toktok", "regex", "click", "rich", "json", "logging", "dataclasses", "numpy", "splintr"}
    assert not loaded & heavy


def test_assembling_needs_neither_the_command_line_nor_the_extras() -> None:
    code = (
        "import sys\n"
        "for name in ('click', 'rich', 'splintr', 'numpy', 'langchain_core', 'sentence_transformers', 'torch'):\n"
        "    sys.modules[name] = None\n"
        "from satchel import *\n"
        "options = ContextBuildOptions(token_estimation='tokenizer', overflow='truncate', max_tokens=300)\n"
        "result = assemble([KnowledgeChunk('line of text\\n' * 400, file_path='a')], options)\n"
        "assert 200 < result.estimated_tokens <= 300"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
