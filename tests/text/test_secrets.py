"""Secrets in text: found in every form, replaced line for line, and nothing else touched."""

from __future__ import annotations

import base64
import json
import random
import re
import string
import tomllib
from importlib import resources
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from satchel.text.secret_values import randomness
from satchel.text.secrets import _rules, find_secrets, redact, redactions
from tests.support.effort import no_blow_up

TABLE = tomllib.loads(resources.files("satchel.text").joinpath("secret_forms.toml").read_text("utf-8"))
TOKENS = [rule for rule in TABLE["rule"] if "token" in rule]
DRAWN = random.Random(20)


def made(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(DRAWN.choice(letters) for _ in range(length))


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


BODY = "\n".join(made(64) for _ in range(6))
SURROUNDED = {
    "private-key": (f"key = '''-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----'''", BODY),
    "private-key-base64": (
        "KEY_B64=",
        in_base64(f"-----BEGIN PRIVATE KEY-----\n{BODY}\n-----END PRIVATE KEY-----"),
    ),
    "url-password": ("postgresql://app:{}@db7.harbor.io:5432/ships", made(14)),
    "url-token": ("git clone https://{}@git.harbor.io/ships.git", made(40)),
    "netrc-password": ("machine api.harbor.io\n  login pilot\n  password {}\n", made(14)),
    "npmrc-auth": ("//registry.harbor.io/:_authToken={}\n", made(36)),
    "docker-config-auth": ('{{"auths": {{"harbor.io": {{"auth": "{}"}}}}}}', in_base64(f"pilot:{made(14)}")),
    "pypirc-password": ("[pypi]\nusername = pilot\npassword = {}\n", made(14)),
    "password-hash": ("pilot:{}\n", f"$2y$10${made(53)}"),
    "connection-string-password": ("Server=sql7.harbor.io;Database=ships;User ID=app;Password={};", made(14)),
    "authorization-basic": ("Authorization: Basic {}", in_base64(f"pilot:{made(14)}")),
    "authorization-bearer": ("Authorization: Bearer {}", made(40)),
    "curl-login": ("curl -u pilot:{} https://harbor.io/ships", made(14)),
    "kubeconfig-key": ("    client-key-data: {}\n", in_base64(made(300))),
    "kubernetes-secret": ("kind: Secret\nmetadata:\n  name: db\ndata:\n  password: {}\n", in_base64(made(20))),
    "aws-secret-access-key": ("aws_secret_access_key = {}\n", made(40)),
    "azure-storage-key": ("AccountKey={};", f"{made(86)}=="),
    "service-key": ('datadog_key: "{}"', made(32, "0123456789abcdef")),
    "generic-secret": ('client_token = "{}"', made(28)),
    "quoted-secret": ('SECRET_KEY = "{}"', "k3!x9@" + made(30, "abcdefghijk0123456789!@#^*-_=+")),
    "password": ('db_password = "{}"', "kX7!" + made(10)),
    "password-line": ("DB_PASSWORD={}\n", "kX7!" + made(10)),
}


@pytest.mark.parametrize("kind", SURROUNDED)
@pytest.mark.parametrize("container", ["alone", "code", "json", "notebook"])
def test_a_secret_is_found_by_what_surrounds_it(kind: str, container: str) -> None:
    pattern, secret = SURROUNDED[kind]
    text = pattern if secret in pattern else pattern.format(secret) if "{}" in pattern else pattern + secret
    if container == "code":
        text = f"def moor(ship):\n    return ship\n\n{text}\n\nclass Harbor:\n    pass\n" * 3
    elif container == "json":
        text = json.dumps({"config": text}, indent=2)
    elif container == "notebook":
        text = json.dumps({"cells": [{"cell_type": "code", "source": text.splitlines(keepends=True)}]}, indent=1)
    for line in secret.split("\n"):
        assert line in text
        assert line not in redact(text)
    assert redactions(redact(text))


@pytest.mark.parametrize("row", TOKENS, ids=lambda row: str(row["id"]))
def test_every_alternative_of_a_form_is_found(row: dict[str, object]) -> None:
    near = row.get("near", [])
    assert isinstance(near, list)

    @given(st.from_regex(re.compile(str(row["token"]), re.ASCII), fullmatch=True))
    def law(secret: str) -> None:
        values = _rules().values
        assume(randomness(secret.encode()) > float(str(row.get("random", 0))) + 0.1)
        assume(not values.is_placeholder(secret.encode()) and secret[0] not in "~.-")
        text = f"# {near[0] if row['id'] == 'discord-token' else 'harbor'}\nvalue = '{secret}'\n"
        assert secret not in redact(text)

    law()


TOKEN = "ghp_" + made(36)


@pytest.mark.parametrize(
    "text",
    [
        "**{}**", "_{}_", "__{}__", "~~{}~~", "“{}”", "{}。", "「{}」", "{}—x", "{}!", "{}/", "{}(old)", "a%3D{}",
        "{}%0A", "\\u0022{}\\u0022", "{}\u00a0x", "{}\u200b", "\x1b[31m{}\x1b[0m", "{}\0", "def {}():", "NAME_{}",
        "x={}$",
    ],
)  # fmt: skip
def test_any_sign_may_stand_beside_a_token(text: str) -> None:
    assert TOKEN not in redact(text.format(TOKEN))


@pytest.mark.parametrize(
    "text",
    [
        "deploy --password Gx7!kq2Lp9zz", "PGPASSWORD=Gx7!kq2Lp9zz psql -h x", "mysql -u root -pGx7!kq2Lp9zz",
        "<password>Gx7!kq2Lp9zz</password>", '<add key="ApiKey" value="q8Zk3Lp0Wx7Vn2Rt5YbA"/>',
        "- name: API_KEY\n  value: q8Zk3Lp0Wx7Vn2Rt5YbA", '{"name":"API_KEY","value":"q8Zk3Lp0Wx7Vn2Rt5YbA"}',
        "password: str = 'Gx7!kq2Lp9zz'", "password = b'Gx7!kq2Lp9zz'", "| password | Gx7!kq2Lp9zz |",
        "client_secret: '8f14e45f-ceea-467a-9a36-dedd4bea2543'",
    ],
)  # fmt: skip
def test_passwords_are_found_as_people_write_them(text: str) -> None:
    assert not re.search("Gx7|q8Z|8f14", redact(text))


@pytest.mark.parametrize(
    "text",
    [
        'api_key = "YOUR_API_KEY"', "password: ${DB_PASSWORD}", "DB_PASSWORD={{ vault.password }}",
        "postgresql://user:password@localhost/db", 'token = "<your-token-here>"', "AKIAIOSFODNN7EXAMPLE",
        'integrity: "sha512-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC3KqHpRd2hQ1ZP8ZbVt0Pqg=="',
        "commit: 9fceb02d0ae598e95dc970b74767f19372d61af8", "id = '123e4567-e89b-12d3-a456-426614174000'",
        "public_key = 'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE0001112223334445556667778889990aBcDeFgHiJkLmNoPqRsTuVwXyZ'",
        "password_field = forms.CharField(widget=forms.PasswordInput)", "def reset_password(token, new_password1):",
        "secretKeyRef: {name: database-credentials}", "https://docs.harbor.io/api/v2/tokens#refresh_token",
        "token_type_hint = 'access_token'", "next_page_token = 'CAUQAA9fKx3dPzV7LmQ2'", "passwd: files systemd",
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_lines_keep_their_numbers() -> None:
    text = f"first\n-----BEGIN EC PRIVATE KEY-----\n{BODY}\n-----END EC PRIVATE KEY-----\nlast = 1"
    assert redact(text).split("\n")[0] == "first"
    assert redact(text).split("\n")[-1] == "last = 1"
    assert redact(text).count("\n") == text.count("\n")


def test_places_are_those_of_characters() -> None:
    secret = made(36)
    text = f"# Schlüssel für den Häfen ⚓ 港\nträger = 'ghp_{secret}'"
    assert redact(text) == "# Schlüssel für den Häfen ⚓ 港\nträger = '[redacted: github-token]'"


def test_a_password_in_an_address_leaves_the_address() -> None:
    assert redact(f"redis://app:{made(16)}@cache.harbor.io:6379/0") == (
        "redis://app:[redacted: url-password]@cache.harbor.io:6379/0"
    )


secret_like = st.lists(
    st.one_of(
        st.sampled_from(
            [pattern.format(secret) if "{}" in pattern else pattern for pattern, secret in SURROUNDED.values()]
        ),
        st.text(max_size=30),
        st.sampled_from(["\n", " = ", "password: ", "token=", "'", '"', "\\n", "[redacted: password]"]),
    ),
    max_size=8,
).map("".join)


@given(secret_like)
def test_law_redacting_keeps_lines_and_changes_nothing_twice(text: str) -> None:
    once = redact(text)
    assert once.count("\n") == text.count("\n")
    assert redact(once) == once
    found = find_secrets(text)
    assert all(one.end <= other.start for one, other in pairwise(found))


@pytest.mark.parametrize(
    "sign",
    [
        "a:b@c://",
        "http://a:bcd@x ",
        "password=",
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "kind: Secret\ndata:\n",
        "eyJ.",
        "=",
    ],
)
def test_hostile_text_takes_time_in_proportion(sign: str) -> None:
    with no_blow_up(f"finding secrets in {sign!r}"):
        find_secrets(sign * (1_000_000 // len(sign)))
