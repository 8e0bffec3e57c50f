"""Settings: every layer, from the weakest to the strongest."""

from __future__ import annotations

from pathlib import Path

import pytest

import satchel
from satchel.errors import InvalidOption
from satchel.service.settings import Settings, configure, index_folder
from tests.support.places import ROOT


@pytest.fixture
def user(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "user.toml"
    path.write_text("token_budget = 1000\nmodel = 'gpt-4'\nembedder = 'openai:x'\n")
    return {"SATCHEL_CONFIG": str(path)}


def test_each_layer_has_the_last_word_over_those_before(tmp_path: Path, user: dict[str, str]) -> None:
    assert configure(tmp_path, environ={"SATCHEL_CONFIG": str(tmp_path / "none")}).settings == Settings()
    assert configure(tmp_path, environ=user).settings.token_budget == 1000
    (tmp_path / "pyproject.toml").write_text("[tool.satchel]\ntoken_budget = 2000\nexclude = ['*.md']\n")
    assert configure(tmp_path, environ=user).settings.token_budget == 2000
    (tmp_path / "satchel.toml").write_text("token_budget = 3000\n")
    configured = configure(tmp_path, environ=user)
    assert (configured.settings.token_budget, configured.settings.exclude) == (3000, ())
    user |= {"SATCHEL_TOKEN_BUDGET": "5000", "SATCHEL_INCLUDE": "*.py, *.go"}
    configured = configure(tmp_path, environ=user)
    assert (configured.settings.token_budget, configured.settings.include) == (5000, ("*.py", "*.go"))
    configured = configure(tmp_path, {"token_budget": 6000, "model": None}, environ=user)
    assert (configured.settings.token_budget, configured.settings.model) == (6000, "gpt-4")
    assert configured.origins["token_budget"] == "given"
    assert configured.origins["include"] == "environment"
    assert configured.origins["model"].endswith("user.toml")


@pytest.mark.parametrize("name", ["index_dir", "embedder", "embedder_url", "workers"])
def test_a_project_decides_neither_where_we_write_nor_whom_we_talk_to(tmp_path: Path, name: str) -> None:
    (tmp_path / "satchel.toml").write_text(f"{name} = {'3' if name == 'workers' else repr('/tmp/x')}\n")
    with pytest.raises(InvalidOption, match="a project may not set this"):
        configure(tmp_path, environ={})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nope = 1\n", "no such setting"),
        ("token_budget = 'many'\n", "a whole number"),
        ("token_budget = 0\n", "at least 1"),
        ("include = [1]\n", "a list of strings"),
        ("format = 3\n", "text"),
        ("top_k = true\n", "a whole number"),
        ("x = = 1\n", "not valid TOML"),
    ],
)
def test_wrong_settings_are_refused_with_their_place(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "satchel.toml").write_text(text)
    with pytest.raises(InvalidOption, match=complaint) as caught:
        configure(tmp_path, environ={})
    assert "satchel.toml" in str(caught.value)


def test_every_workspace_has_a_folder_of_its_own_that_can_be_moved(tmp_path: Path) -> None:
    one, two = tmp_path / "a" / "same", tmp_path / "b" / "same"
    settings = Settings(index_dir=str(tmp_path / "indexes"))
    assert index_folder(one, settings) != index_folder(two, settings)
    assert index_folder(one, settings).parent == tmp_path / "indexes"
    assert index_folder(one, settings).name.startswith("same-")
    assert index_folder(one, Settings()) != index_folder(one, settings)


def test_every_setting_is_documented() -> None:
    page = (ROOT / "docs/settings.md").read_text()
    for name in Settings.__slots__:
        assert f"`{name}`" in page, name


def test_a_project_may_neither_name_a_tokenizer_file_nor_raise_a_limit(tmp_path: Path) -> None:
    (tmp_path / "satchel.toml").write_text("model = 'tok.json'\n")
    with pytest.raises(InvalidOption, match="may only name a model"):
        configure(tmp_path, environ={})
    (tmp_path / "satchel.toml").write_text("max_file_bytes = 10000000000\n")
    assert configure(tmp_path, environ={}).settings.max_file_bytes == 50_000_000
    (tmp_path / "satchel.toml").write_text("max_file_bytes = 1000\n")
    assert configure(tmp_path, environ={}).settings.max_file_bytes == 1000


def test_a_folder_may_be_given_as_a_path(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with satchel.open(tmp_path / "work", index_dir=tmp_path / "index"):
        assert (tmp_path / "index").is_dir()


def test_no_folder_at_all_is_refused() -> None:
    with pytest.raises(InvalidOption, match="at least one folder"):
        satchel.open([])
