"""Judges whether a value that looks like a secret is one: random enough, no placeholder, no hash, no identifier."""

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

_UUID: Final = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_HEX: Final = re.compile(rb"(?:0x)?[0-9a-f]+", re.IGNORECASE)
_BASE64_RUN: Final = re.compile(rb"[A-Za-z0-9+/]*")
_TURN: Final = re.compile(rb"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")
_CASE_TURN: Final = re.compile(
    rb"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[0-9])|(?<=\d)(?=[A-Za-z])|(?<=[A-Z]{2})(?=[a-z])"
)
_HASH_BEFORE: Final = re.compile(
    rb"(?:\bh1|sha-?(?:1|224|256|384|512)|md5|integrity|checksum|digest|commit|blob|rev(?:ision)?|hash)\w{0,8}"
    rb"['\"]?\s{0,2}[-:=]?\s{0,2}['\"]?$",
    re.IGNORECASE,
)
_NAMES_A_SECRET: Final = re.compile(
    rb"secret|passw|token|(?:api|access|auth|service)[_-]?key|private|master|encrypt", re.IGNORECASE
)
_NAMES_A_KEY: Final = re.compile(rb"secret|passw|api[_-]?key|access[_-]?key", re.IGNORECASE)
_NAMES_A_HASH: Final = re.compile(rb"hash|sha|md5|sum|commit|cache|public|etag|fingerprint", re.IGNORECASE)
# The last word before the value says that it is none: an id, an address, a marker of a page of results.
_NAMES_SOMETHING_ELSE: Final = re.compile(
    rb"(?:ids?|ur[il]s?|usage|source|arn|name|type|spec|group|provider|version|format|alias|algorithm|path|file|dir"
    rb"|host|policy|label|class|certificate|expires?|expiration|(?:next|continuation|page|pagination|marker|cursor"
    rb"|change|lock|update|client_?request|idempotency|csrf|xsrf|authenticity|sync|upload|cancell?ation)_?-?token"
    rb"|websocket-?key)['\"\\\])]{0,4}\s*(?:[:=,|>]|$)|public|primary[_ -]?key|foreign[_ -]?key"
    rb"|key(?:board|frame|word|code)",
    re.IGNORECASE,
)
_PUBLIC_KEY: Final = re.compile(rb"MFkw|MIIBI|MIICI|MIGf|MII[A-H]|AAAA[BCE]|MCow")
_CODE: Final = re.compile(rb"[(){}\[\]]|::|->|//|\.\w+\.")
_ATTRIBUTES: Final = re.compile(rb"[a-z_]\w*(?:\.\w+)+", re.IGNORECASE)
_NO_PASSWORD: Final = re.compile(rb"[\d.:/,_-]+|[A-Za-z_.:/-]+|#[0-9a-f]{3,8}|:?\$\w+")
_CONSTANT: Final = re.compile(rb"[A-Z0-9]+(?:_[A-Z0-9]+)+")
_DOTTED: Final = re.compile(rb"[\w-]*(?:\.[a-zA-Z_][\w-]*)+")
_NAMES_WITH_A_HASH: Final = re.compile(rb"[a-zA-Z]+(?:[_.-][a-zA-Z]*)*[_.-][0-9a-f]{6,64}(?:[_-][a-z]+)?")
_PATH: Final = re.compile(rb"(?:^|/)(?:[A-Za-z_.-]{2,}/){2,}")
_WORDS_AND_DOTS: Final = re.compile(rb"(?:[a-z_]+\d*[a-z_]*\.){2,}")
_NOT_IN_A_SECRET: Final = re.compile(rb"[(){}\[\]<>]|::|->|//|\$|%[sd]|&&|^\W?[./]")
_KEY_LINES: Final = re.compile(rb"-----[^-]*-----|\\[nr]")
_KEY_BODY: Final = re.compile(rb"[A-Za-z0-9+/]{20,}")
_LOGIN: Final = re.compile(rb"[\x21-\x7e]+:[\x20-\x7e]{4,}")
_READABLE: Final = re.compile(rb"[\x20-\x7e\s]{6,}")
_NO_HOST: Final = re.compile(
    rb"localhost|127\.|0\.0\.0\.0|::1|\[|example|\w*\.?example\.|host|server|domain|proxy|some|my|site|test"
    rb"|\w+\.(?:local|test|invalid)\b|www\.example"
)
_NO_URL_PASSWORD: Final = re.compile(rb"[(){}\[\]*$+]$|^[%+.]|%s|\\")

_EMBEDDED_CHARS: Final = 60  # of base64 around a value: it is a part of a picture, say
_MIN_TURNS: Final = 3  # between letters and digits
_LONG_CHARS: Final = 24  # of a value: longer ones have more different signs by chance
# Least entropy in bits of a sign; English words have about 3.
_MIN_RANDOM_LONG: Final = 3.5
_MIN_RANDOM_SHORT: Final = 3.2  # short values repeat fewer signs


class FoundValue(NamedTuple):
    """A value that may be a secret, in its text."""

    text: bytes
    start: int
    end: int
    first: int
    """Where the name, the address or whatever stands before the value begins."""

    @property
    def value(self) -> bytes:
        """The value itself."""
        return self.text[self.start : self.end]

    @property
    def before(self) -> bytes:
        """The name of the value, with some of what stands before it."""
        return self.text[max(0, self.first - 50) : self.start].rpartition(b"\n")[2]


class NoSecrets(NamedTuple):
    """NoSecrets that are no secret anywhere, and words that stand where a secret would."""

    placeholder: re.Pattern[bytes]
    weak: re.Pattern[bytes]
    known: frozenset[bytes]

    def is_placeholder(self, value: bytes) -> bool:
        """True for a placeholder, a variable, an example, or a key that its maker publishes."""
        return bool(self.placeholder.search(value)) or value in self.known or len(set(value)) < 4

    def is_weak(self, value: bytes) -> bool:
        """True for a value with a word that people use in documentation and tests."""
        return bool(self.weak.search(value))


class _Case(NamedTuple):
    """What a check judges: a value, where it was found, and the values that are no secret."""

    place: FoundValue
    value: bytes
    values: NoSecrets


def randomness(value: bytes) -> float:
    """The entropy of the value's own bytes, in bits."""
    return -sum(count / len(value) * math.log2(count / len(value)) for count in Counter(value).values())


def is_secret(place: FoundValue, check: str, least: float, values: NoSecrets) -> bool:
    """True if a value is a secret by the check of its rule."""
    if check in _BY_FORM:
        return _BY_FORM[check](place.value)
    value = place.value.removeprefix(b"django-insecure-") if check == "symbols" else place.value
    if not value or (least and randomness(value) <= least) or values.is_placeholder(value):
        return False
    if check not in CHECKS_BY_NAME and _is_embedded(place):
        return False
    if check and _HASH_BEFORE.search(place.text[max(0, place.start - 40) : place.start]):
        return False
    return not check or _CHECKS[check](_Case(place, value, values))


def _turns(value: bytes) -> int:
    """Changes between letter and digit: many in random strings, few in identifiers and versions."""
    return len(_TURN.findall(value))


def _kinds(value: bytes) -> int:
    """Kinds of signs: small letters, capitals, digits, others."""
    return sum(bool(re.search(kind, value)) for kind in (rb"[a-z]", rb"[A-Z]", rb"\d", rb"[^A-Za-z0-9]"))


def _decoded(value: bytes) -> bytes:
    """The bytes that base64 stands for; nothing if it is none."""
    try:
        return base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except ValueError:
        return b""


def _is_embedded(place: FoundValue) -> bool:
    """True inside a longer run of base64."""
    before = place.text[max(0, place.start - 80) : place.start]
    left = len(before) - len(before.rstrip(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"))
    right = _BASE64_RUN.match(place.text, place.end, place.end + 80)
    return left >= _EMBEDDED_CHARS or bool(right and len(right[0]) >= _EMBEDDED_CHARS)


def _is_password(value: bytes, values: NoSecrets) -> bool:
    """True for what a person or a machine would choose as a password; not for an identifier, a path or a format."""
    if values.is_weak(value) or _CODE.search(value) or _ATTRIBUTES.fullmatch(value) or _NO_PASSWORD.fullmatch(value):
        return False
    if not value.isascii() and not re.search(rb"\d", value):  # a word of another language
        return False
    kinds, random = _kinds(value), randomness(value)
    return (kinds >= 3 and random >= 2.5) or (kinds >= 2 and len(value) >= 12 and random >= 3 and _turns(value) >= 2)


def _password(case: _Case) -> bool:
    return _is_password(case.value, case.values) and not _UUID.fullmatch(case.value)


def _plain(case: _Case) -> bool:
    """A value where only a password stands."""
    return len(case.value) >= 6 and not case.values.is_weak(case.value)


def _login(case: _Case) -> bool:
    """Base64 of `user:password`."""
    login = _decoded(case.value)
    password = login.partition(b":")[2]
    is_real = len(password) >= 6 and not case.values.is_placeholder(password) and not case.values.is_weak(password)
    return is_real and bool(_LOGIN.fullmatch(login))


def _mixed(case: _Case) -> bool:
    return _turns(case.value) >= 2 or len(_CASE_TURN.findall(case.value)) >= len(case.value) // 5


def _kubernetes(case: _Case) -> bool:
    """Base64 of anything but a placeholder, a date or prose; or a password as it is."""
    if b"..." in case.place.text[case.place.end : case.place.end + 5]:
        return False
    content = _decoded(case.value)
    if not content:
        return _is_password(case.value, case.values)
    is_date = re.match(rb"\d{4}-\d\d-", content)
    if len(content) < 6 or is_date or case.values.is_placeholder(content):
        return False
    return not _is_prose(content, case.values)


def _is_prose(content: bytes, values: NoSecrets) -> bool:
    if not _READABLE.fullmatch(content):
        return False
    return bool(re.search(rb"[ {]", content)) or values.is_placeholder(content) or values.is_weak(content)


def _url(case: _Case) -> bool:
    """The password of an address, unless address or password are of documentation."""
    user = case.place.text[case.place.first : case.place.end].partition(b"://")[2].partition(b":")[0]
    host = case.place.text[case.place.end + 1 : case.place.end + 40].lower()
    password = unquote_to_bytes(case.value)
    if password == user or (case.values.is_weak(password) and len(password) < 20) or _NO_URL_PASSWORD.search(password):
        return False
    if (_kinds(password) >= 3 and len(password) >= 8) or (len(password) >= 12 and _turns(password) >= 2):
        return True
    return not _NO_HOST.match(host) and len(password) >= 6 and _kinds(password) >= 2


def _named(case: _Case) -> bool:
    """The value after a service's name: of the alphabet of keys, with digits among its letters."""
    if _NAMES_SOMETHING_ELSE.search(case.place.before) or case.values.is_weak(case.value):
        return False
    if _DOTTED.fullmatch(case.value):
        return False
    if _HEX.fullmatch(case.value):
        return len(case.value) >= 16 and not _NAMES_A_HASH.search(case.place.before)
    return _turns(case.value) >= max(2, len(case.value) // 12)


def _generic(case: _Case) -> bool:
    """A random value after a word such as *token*, that nothing says to be something else."""
    if not _may_be_random(case):
        return False
    name = case.place.before
    if _UUID.fullmatch(case.value):
        return True
    if _HEX.fullmatch(case.value):  # a hash, unless the name says otherwise
        return len(case.value) >= 16 and bool(_NAMES_A_SECRET.search(name)) and not _NAMES_A_HASH.search(name)
    if randomness(case.value) <= (_MIN_RANDOM_LONG if len(case.value) >= _LONG_CHARS else _MIN_RANDOM_SHORT):
        return False
    turns = _turns(case.value)
    if _DOTTED.fullmatch(case.value) and turns < 4:  # attribute access, file name, host
        return False
    is_mixed = turns >= 1 and len(case.value) <= 40 and len(_CASE_TURN.findall(case.value)) >= len(case.value) // 3
    return turns >= max(_MIN_TURNS, len(case.value) // 12) or is_mixed


def _may_be_random(case: _Case) -> bool:
    name = case.place.before
    if _UUID.search(case.value):
        return bool(_UUID.fullmatch(case.value) and _NAMES_A_KEY.search(name))
    if not re.search(rb"\d", case.value) or not re.search(rb"[a-zA-Z]", case.value):
        return False
    if re.search(rb",\s*$", case.place.text[max(0, case.place.start - 3) : case.place.start]):  # f(key, value2)
        return False
    if case.values.is_weak(case.value) or _NAMES_SOMETHING_ELSE.search(name):
        return False
    if _PUBLIC_KEY.match(case.value) and b"rivate" not in name.lower():
        return False
    if _NAMES_WITH_A_HASH.fullmatch(case.value) or _PATH.search(case.value) or _WORDS_AND_DOTS.match(case.value):
        return False
    turns = _turns(case.value)
    if _is_prose(_decoded(case.value), case.values) or (_CONSTANT.fullmatch(case.value) and turns < 6):
        return False
    is_name = re.search(rb"[A-Z]", case.value) and re.search(rb"[a-z]{4}", case.value)
    return not (is_name and len(case.value) < _LONG_CHARS and turns <= 2)  # X509Certificate


def _symbols(case: _Case) -> bool:
    """As `generic`, with any signs."""
    return not (_NOT_IN_A_SECRET.search(case.value) and _turns(case.value) < 3) and _generic(case)


def _pem(value: bytes) -> bool:
    return bool(_KEY_BODY.search(_KEY_LINES.sub(b" ", value)))


def _pem_base64(value: bytes) -> bool:
    return b"PRIVATE KEY" in _decoded(value[: len(value) // 4 * 4])


_BY_FORM: Final[Mapping[str, Callable[[bytes], bool]]] = {
    "any": bool,
    "pem": _pem,
    "pem-base64": _pem_base64,
}
CHECKS_BY_NAME: Final = frozenset({"named", "generic", "symbols", "password"})
"""Checks of values that only their name says to be secret."""
_CHECKS: Final[Mapping[str, Callable[[_Case], bool]]] = {
    "password": _password,
    "plain": _plain,
    "login": _login,
    "mixed": _mixed,
    "kubernetes": _kubernetes,
    "url": _url,
    "named": _named,
    "generic": _generic,
    "symbols": _symbols,
}
