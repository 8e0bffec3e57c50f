"""Names that other packages may add to: found once, imported late, and harmless when they are broken."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from satchel.errors import InvalidOption
from satchel.registry import Registry, _has_plugins


@pytest.fixture
def plugin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    metadata = tmp_path / "colours-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: colours\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[satchel.colours]\nteal = colours_plugin:TEAL\nred = colours_plugin:RED\nbad = colours_plugin:BAD\n"
        "gone = no_such_module_of_colours:X\n"
    )
    (tmp_path / "colours_plugin.py").write_text("TEAL = '008080'\nRED = 'other'\nBAD = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    _has_plugins.cache_clear()
    yield tmp_path
    _has_plugins.cache_clear()


def _registry() -> Registry[str]:
    return Registry("colour", "satchel.colours", {"red": "ff0000", "green": "00ff00"}, entry_type=str)


def test_ours_come_first_and_a_plugin_is_an_entry_like_them(plugin_folder: Path) -> None:
    registry = _registry()
    assert registry.names() == ("red", "green", "teal", "bad", "gone")
    assert registry.get("teal") == "008080"
    assert dict(registry.entries()) == {"red": "ff0000", "green": "00ff00", "teal": "008080"}


def test_a_plugin_does_not_replace_what_is_ours(plugin_folder: Path) -> None:
    registry = _registry()
    assert dict(registry.entries())["red"] == "ff0000"
    assert "another colour has the same name" in registry.problems["red"]


def test_a_broken_plugin_is_reported_by_its_name_and_sinks_nothing(plugin_folder: Path) -> None:
    registry = _registry()
    assert "gone" not in dict(registry.entries())
    assert "the plug-in 'gone' of colours cannot be loaded (ModuleNotFoundError" in registry.problems["gone"]
    assert "is not a str" in registry.problems["bad"]
    with pytest.raises(InvalidOption, match="the plug-in 'gone' of colours cannot be loaded"):
        registry.get("gone")


def test_an_unknown_name_is_told_the_near_and_the_known_ones() -> None:
    with pytest.raises(InvalidOption, match=r"did you mean green\? known: green, red"):
        _registry().get("gren")


def test_a_name_is_registered_once() -> None:
    registry = _registry()
    registry.register("blue", "0000ff")
    assert registry.get("blue") == "0000ff"
    with pytest.raises(InvalidOption, match="another colour already has this name"):
        registry.register("blue", "00f")
