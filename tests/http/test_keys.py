"""Tokens, files of tokens, one-time codes and sessions."""

from __future__ import annotations

import pickle
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

import satchel
from satchel.errors import InvalidOption
from satchel.http.guard.credentials import Keyring, entry_for, new_token
from satchel.models.request import User
from satchel.service.client import OWNER, Caller

ANN = Caller(user=User(id="ann", groups=("staff",)))
TOKEN = "satchel_0123456789abcdef"
DIGEST = sha256(TOKEN.encode()).hexdigest()


def key_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "keys.toml"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_single_token_is_the_owners() -> None:
    keys = Keyring.single(TOKEN)
    assert keys.caller(TOKEN) == OWNER
    assert not keys.has_users


@pytest.mark.parametrize("wrong", ["", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), f" {TOKEN}", DIGEST, "\ud800", "é" * 20])
def test_any_other_token_is_nobodys(wrong: str) -> None:
    assert Keyring.single(TOKEN).caller(wrong) is None


def test_new_tokens_differ_and_can_be_used() -> None:
    made = {new_token() for _ in range(100)}
    assert len(made) == 100
    for token in made:
        assert token.startswith("satchel_")
        assert len(token) > 40
        assert Keyring.single(token).caller(token) == OWNER


@pytest.mark.parametrize(
    "token", ["", "short", "x" * 15, "sixteen with spaces", "not-äscii-0123456789", "line\nbreak-0123456789"]
)
def test_tokens_that_will_not_do_are_refused_without_being_repeated(token: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        Keyring.single(token)
    assert not token or ascii(token)[1:-1] not in str(caught.value)


def test_the_keyring_does_not_hold_the_token() -> None:
    keys = Keyring.single(TOKEN)
    held = repr(vars(keys)).encode() + pickle.dumps(keys._callers)
    assert TOKEN.encode() not in held


def test_a_file_maps_tokens_to_users_and_owners(tmp_path: Path) -> None:
    tokens = [new_token() for _ in range(4)]
    text = (
        entry_for(tokens[0], "ann", ["staff"])
        + entry_for(tokens[1], "bob", owner=True)
        + entry_for(tokens[2], owner=True)
    )
    path = key_file(tmp_path, text + f'[[token]]\ntoken = "{tokens[3]}"\nuser = "cyd"\n', 0o640)
    keys = Keyring.from_file(path)
    assert keys.caller(tokens[0]) == ANN
    assert keys.caller(tokens[1]) == Caller(user=User(id="bob"), is_owner=True)
    assert keys.caller(tokens[2]) == OWNER
    assert keys.caller(tokens[3]) == Caller(user=User(id="cyd"))
    assert all(token not in text for token in tokens[:3])


def test_names_are_written_so_that_they_are_read_back(tmp_path: Path) -> None:
    name, group = 'O"Brien \\ 李', "a,]b"
    keys = Keyring.from_file(key_file(tmp_path, entry_for(TOKEN, name, [group])))
    assert keys.caller(TOKEN) == Caller(user=User(id=name, groups=(group,)))


def test_an_entry_without_user_or_owner_is_refused() -> None:
    with pytest.raises(InvalidOption, match="give the token's user"):
        entry_for(TOKEN)


GOOD = f'[[token]]\nsha256 = "{DIGEST}"\nuser = "ann"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", "contains no token", id="empty"),
        pytest.param("# nothing\n", "contains no token", id="comment"),
        pytest.param("token = []\n", "contains no token", id="empty-list"),
        pytest.param("token = 3\n", "contains no token", id="no-list"),
        pytest.param("token = [3]\n", "must be a table", id="no-table"),
        pytest.param("[[token]\n", "is not TOML", id="no-toml"),
        pytest.param('[[keys]]\nuser = "a"\n', "unknown key 'keys'", id="unknown-table"),
        pytest.param(GOOD + "admin = true\n", "'admin' is not a field", id="unknown-key"),
        pytest.param(GOOD + GOOD, "the same token", id="doubled"),
        pytest.param(GOOD + f'[[token]]\ntoken = "{TOKEN}"\nuser = "b"\n', "the same token", id="doubled-in-plain"),
        pytest.param('[[token]]\nsha256 = "abc"\nuser = "a"\n', "64 hexadecimal", id="short-digest"),
        pytest.param(f'[[token]]\nsha256 = "{"x" * 64}"\nuser = "a"\n', "64 hexadecimal", id="no-hex"),
        pytest.param('[[token]]\nsha256 = 3\nuser = "a"\n', "64 hexadecimal", id="number"),
        pytest.param('[[token]]\nuser = "a"\n', "either sha256 or token", id="neither"),
        pytest.param(GOOD + f'token = "{TOKEN}"\n', "either sha256 or token", id="both"),
        pytest.param('[[token]]\ntoken = "short"\nuser = "a"\n', "has 5 characters", id="short-token"),
        pytest.param('[[token]]\ntoken = 3\nuser = "a"\n', "must be text", id="token-number"),
        pytest.param(f'[[token]]\nsha256 = "{DIGEST}"\n', "must have a user", id="no-user"),
        pytest.param(
            f'[[token]]\nsha256 = "{DIGEST}"\nowner = true\ngroups = ["a"]\n', "must have a user", id="owner-groups"
        ),
        pytest.param(f'[[token]]\nsha256 = "{DIGEST}"\nuser = ""\n', "must not be empty", id="empty-user"),
        pytest.param(f'[[token]]\nsha256 = "{DIGEST}"\nuser = 3\n', "user.id", id="user-number"),
        pytest.param(GOOD + 'groups = "staff"\n', "must be a list", id="groups-text"),
        pytest.param(GOOD + "groups = [3]\n", "printable|list of names", id="groups-numbers"),
        pytest.param(GOOD + 'owner = "yes"\n', "true or false", id="owner-text"),
        pytest.param("#" * 1_000_001, "larger than", id="large"),
    ],
)
def test_a_file_that_cannot_be_right_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InvalidOption, match=told) as caught:
        Keyring.from_file(key_file(tmp_path, text))
    assert TOKEN not in str(caught.value)


def test_plain_tokens_that_everybody_may_read_are_refused(tmp_path: Path) -> None:
    plain = f'[[token]]\ntoken = "{TOKEN}"\nuser = "ann"\n'
    with pytest.raises(InvalidOption, match="chmod 600"):
        Keyring.from_file(key_file(tmp_path, plain, 0o644))
    assert Keyring.from_file(key_file(tmp_path, GOOD, 0o644)).has_users


def test_a_missing_or_unreadable_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="No such file"):
        Keyring.from_file(tmp_path / "none.toml")
    with pytest.raises(InvalidOption, match="directory"):
        Keyring.from_file(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# \xe9\n")
    with pytest.raises(InvalidOption, match="not UTF-8"):
        Keyring.from_file(tmp_path / "latin.toml")


# -- sessions


def test_a_code_works_once() -> None:
    keys = Keyring.single(TOKEN)
    code = keys.one_time_code(ANN)
    session = keys.log_in(code)
    assert session is not None
    assert keys.sessions.get(session) == ANN
    assert keys.log_in(code) is None
    assert keys.log_in("") is None
    assert keys.sessions.get(code) is None
    assert keys.caller(code) is None
    assert keys.caller(session) is None


def test_a_code_works_for_ten_minutes_and_a_session_for_twelve_hours() -> None:
    clock = Clock()
    keys = Keyring({}, clock)
    early, late = keys.one_time_code(OWNER), keys.one_time_code(OWNER)
    clock.now = 10 * 60 - 1
    session = keys.log_in(early)
    assert session is not None
    clock.now = 10 * 60
    assert keys.log_in(late) is None
    clock.now += 12 * 60 * 60 - 2
    assert keys.sessions.get(session) == OWNER
    clock.now += 1
    assert keys.sessions.get(session) is None


def test_the_oldest_session_gives_way() -> None:
    keys = Keyring({})
    made = [keys.log_in(keys.one_time_code(OWNER)) for _ in range(1_001)]
    assert keys.sessions.get(made[0] or "") is None
    assert all(keys.sessions.get(one or "") == OWNER for one in made[1:])


def test_codes_that_nobody_uses_do_not_pile_up() -> None:
    keys = Keyring({})
    first = keys.one_time_code(OWNER)
    for _ in range(100):
        last = keys.one_time_code(OWNER)
    assert keys.log_in(first) is None
    assert keys.log_in(last) is not None


def test_a_session_can_be_forgotten() -> None:
    keys = Keyring({})
    session = keys.log_in(keys.one_time_code(ANN)) or ""
    keys.sessions.pop(session)
    keys.sessions.pop("never-there")
    assert keys.sessions.get(session) is None


@pytest.mark.parametrize("user", ["ann \U0001f600", "größe", 'a"b', "a\\b"])
def test_an_entry_for_a_key_file_can_be_read(user: str) -> None:
    (entry,) = tomllib.loads(entry_for(new_token(), user, ("staff é",)))["token"]
    assert (entry["user"], entry["groups"]) == (user, ["staff é"])


@pytest.mark.parametrize(
    ("user", "groups", "owner"),
    [("a\nb", (), False), ("a\x7f", (), False), (" ", (), False), ("a", ("",), False), ("", ("x",), True)],
    ids=ascii,
)
def test_an_entry_that_the_server_would_refuse_is_not_made(user: str, groups: tuple[str, ...], owner: bool) -> None:
    with pytest.raises(satchel.errors.InvalidInput):
        entry_for(new_token(), user, groups, owner)
