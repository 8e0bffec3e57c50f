"""The second lock: what the database itself shows, keeps and refuses, whatever our statements say.

`House` is a database of its own with four workspaces of the same content. Everything in it carries a word of its own,
`hush_<label>_…`, and `SEES` says by hand who may read which label: any trace of another is a leak.
"""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import numpy as np
import psycopg
import pytest
from psycopg import errors
from psycopg.rows import dict_row

from satchel.errors import InvalidInput, StoreUnavailable
from satchel.models.access import DefaultAccess, Grant, Group
from satchel.models.block import Activity, Block, Link, LinkKind
from satchel.models.files import PASSED_OVER
from satchel.models.outline import embedded_text, text_hash
from satchel.models.search import Filters
from satchel.ports.file_index import NewFile, StoreQuery
from satchel.ports.transfer import RowKind
from satchel.storage.postgres import search as searching
from satchel.storage.postgres import store as storing
from satchel.storage.postgres.address import address_of
from satchel.storage.postgres.administration import TABLES, set_up
from satchel.storage.postgres.connections import Connections, reading_as
from satchel.storage.postgres.derived import unpacked
from satchel.storage.postgres.search import Search
from satchel.storage.postgres.store import PostgresStore
from satchel.testing.store_suite import document_of, file_of, put, vector_of
from satchel.workspace.blocks import outline_of
from tests.support.waiting import HANG_SECONDS, wait_for

Connection = psycopg.Connection[Any]
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
ROLES = ("satchel_owner", "satchel_writer", "satchel_reader")
NOT_FOR_READERS = {"permit", "vector"}


# -- a house with four flats, and who may read what in it

READERS = {
    "secret": ("user:bob",), "shared": ("user:ann", "user:bob"), "own": ("user:ann",), "report": ("user:bob",),
    "paper": ("user:ann",), "open": None, "gone": ("user:bob",), "past": ("user:ann", "user:bob"),
}  # fmt: skip
DROPPED = ("gone", "past")
DOCUMENTS = ("report", "paper")
BLOCKS = ("top", "mine", "closed", "staffed", "free")
LABELS = {label for label in READERS if label not in DROPPED} | set(BLOCKS)
DEFAULTS = {"deny": DefaultAccess.DENY, "allow": DefaultAccess.ALLOW, "owned": DefaultAccess.OWNER}
ANN = frozenset({"user:ann", "*", "group:staff"})
BOB = frozenset({"user:bob", "*", "group:board"})
EVE = frozenset({"user:eve", "*"})
NOBODY: frozenset[str] = frozenset()
_OPEN = {"open", "top", "mine", "closed", "staffed", "free"}
_ANNS = {"shared", "own", "paper", "mine", "staffed"}
_BOBS = {"secret", "shared", "report", "top", "mine", "closed"}


class Who(NamedTuple):
    """Somebody who reads in a workspace, and the labels that they may see there."""

    place: str
    names: frozenset[str] | None
    sees: frozenset[str]

    @property
    def filters(self) -> Filters:
        return Filters(readers=self.names)


SEES = {
    f"{name} in {place}": Who(place, names, frozenset(sees))
    for name, place, names, sees in (
        ("ann", "deny", ANN, _ANNS), ("bob", "deny", BOB, _BOBS), ("eve", "deny", EVE, set()),
        ("nobody", "deny", NOBODY, set()), ("owner", "deny", None, set()),
        ("ann", "allow", ANN, (_ANNS | _OPEN) - {"closed"}), ("bob", "allow", BOB, _BOBS | _OPEN),
        ("eve", "allow", EVE, _OPEN), ("nobody", "allow", NOBODY, set()), ("owner", "allow", None, set()),
        ("ann", "owned", ANN, (_ANNS | _OPEN) - {"closed"}), ("nobody", "owned", NOBODY, _OPEN),
        ("owner", "owned", None, LABELS),
    )
}  # fmt: skip
ANN_THERE, BOB_THERE = SEES["ann in deny"], SEES["bob in deny"]
everybody = pytest.mark.parametrize("who", list(SEES.values()), ids=[one.replace(" ", "-") for one in SEES])


def path_of(label: str) -> str:
    return f"hush_{label}_.{'pdf' if label in DOCUMENTS else 'py'}"


def id_of(label: str) -> str:
    return f"hush_{label}_id"


def told(what: object) -> set[str]:
    """The labels of which anything shows; what is gone is told of as well."""
    return set(re.findall(r"hush_([a-z]+)_", re.sub(r"\\+x([0-9a-f]+)", _unhexed, repr(what))))


def _unhexed(match: re.Match[str]) -> str:
    return bytes.fromhex(match[1]).decode("utf-8", "replace") if len(match[1]) % 2 == 0 else match[0]


def fill(store: PostgresStore, default: DefaultAccess) -> None:
    """One of everything that can be kept, in several commits."""
    with store.write() as writer:
        writer.settle_embedder("four", 4)
        for label, readers in READERS.items():
            put(writer, _file(label, readers))
        for label, parent in (("top", None), ("mine", "top"), ("closed", "mine"), ("staffed", None), ("free", None)):
            block = Block(
                id=id_of(label), type="page" if label == "top" else "todo",
                title=f"hush_{label}_title", content=f"hush_{label}_text about retry",
                parent=parent and id_of(parent), position=len(label), last_modified=NOON,
                metadata={"due": "2026-11-20", "note": f"hush_{label}_meta"},
            )  # fmt: skip
            writer.blocks.put(block, outline_of(block), origin=f"vault:hush_{label}_origin")
        blocks = writer.blocks
        for label, who, effect in (("top", "bob", "allow"), ("mine", "ann", "allow"), ("closed", "ann", "deny")):
            blocks.grant(Grant(block=id_of(label), principal=f"user:{who}", effect=effect))  # type: ignore[arg-type]
        blocks.grant(Grant(block=id_of("staffed"), principal="group:staff"))
        for team, people in {"staff": ("ann", "dee"), "board": ("bob",)}.items():
            blocks.put_group(Group(name=team, members=people))
        for source, target in (("top", "mine"), ("mine", "top"), ("mine", "staffed"), ("mine", "free"), ("mine", None)):
            kind = LinkKind.MENTIONS if target else LinkKind.RELATION
            blocks.link(Link(source=id_of(source), kind=kind, target=target and id_of(target)))
        for label in BLOCKS:
            blocks.record(_deed(id_of(label), f"hush_{label}_deed"))
        commits = [_deed(path_of(label), f"hush_{label}_commit") for label in ("secret", "shared", "own", "report")]
        writer.put_activity(commits, "head")
        writer.set_fact("sources", "hush_secret_folder")
        blocks.set_default(default)
    store.catch_up()
    with store.write() as writer:
        for label in DROPPED:
            writer.drop(path_of(label))


def _file(label: str, readers: tuple[str, ...] | None) -> NewFile:
    if label in DOCUMENTS:
        file = document_of(path_of(label), [f"hush_{label}_one socket", f"hush_{label}_two"], readers=readers)
        return file._replace(outline=file.outline._replace(note=f"{PASSED_OVER}hush_{label}_reason"))
    # Every file is as long as its label says: a length that is not yours is a trace too.
    functions = [f"hush_{label}_{i}" for i in range(len(label))]
    calls = ["hush_shared_0"] if label in ("secret", "own") else ["retry"]
    return file_of(path_of(label), functions, calls=calls, readers=readers)


def _deed(where: str, detail: str) -> Activity:
    return Activity(block=where, actor="ann", action="edit", timestamp=NOON, detail=detail, reference="r")


class House(NamedTuple):
    """The database: how to come in as its administrator, as the application, and as one who may only read."""

    admin: str
    application: str
    watcher: str
    numbers: dict[str, int]

    def store(self, place: str, **options: Any) -> PostgresStore:
        url = self.application
        return PostgresStore(f"{url}{'&' if '?' in url else '?'}workspace={place}", **options)

    def in_database(self, name: str) -> House:
        """The same in a copy of the database."""
        urls = [urlunsplit(urlsplit(url)._replace(path=f"/{name}")) for url in self[:3]]
        return House(urls[0], urls[1], urls[2], self.numbers)

    @contextmanager
    def inside(self, who: Who, role: str = "satchel_reader", login: str = "") -> Iterator[Connection]:
        """A raw connection as somebody; whatever is done there is undone."""
        with psycopg.connect(login or self.application) as connection:
            enter(connection, self.numbers[who.place], who.names, role)
            yield connection
            connection.rollback()

    @contextmanager
    def as_admin(self) -> Iterator[Connection]:
        with psycopg.connect(self.admin, autocommit=True) as connection:
            connection.execute("SET search_path = satchel, public, pg_temp")
            yield connection


def enter(connection: Connection, number: int, names: frozenset[str] | None, role: str = "satchel_reader") -> None:
    connection.execute("SET LOCAL search_path = satchel, public, pg_temp")
    connection.execute(
        "SELECT e.*, set_config('role', %s, true) FROM satchel.enter(%s, %s, %s) AS e",
        (role, number, sorted(names or ()), names is None),
    )


@contextmanager
def built(url: str) -> Iterator[tuple[House, House]]:
    """A database of its own with two logins that own nothing, and a copy that keeps nothing from anybody."""
    token = uuid4().hex[:10]
    database, copy = f"satchel_house_{token}", f"satchel_open_{token}"
    logins = [f"satchel_app_{token}", f"satchel_watcher_{token}"]
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    inside = parts._replace(path=f"/{database}")
    application, watcher = (urlunsplit(inside._replace(netloc=f"{one}:{one}@{host}")) for one in logins)
    house = House(urlunsplit(inside), application, watcher, {})
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {database}".encode())
        for login in logins:
            server.execute(f"CREATE ROLE {login} LOGIN PASSWORD '{login}'".encode())
        try:
            set_up(address_of(house.admin), (logins[0],))
            set_up(address_of(house.admin), (logins[1],), reading_only=True)
            for place, default in {**DEFAULTS, "theirs": DefaultAccess.DENY}.items():
                with closing(house.store(place)) as store:
                    fill(store, default)
            server.execute(f"CREATE DATABASE {copy} TEMPLATE {database}".encode())
            with house.as_admin() as admin:
                admin.execute("ANALYZE")
                house.numbers.update(admin.execute("SELECT name, id FROM workspace").fetchall())
            unguarded = house.in_database(copy)
            with unguarded.as_admin() as admin:
                for table in TABLES:
                    admin.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY".encode())
            yield house, unguarded
        finally:
            for one in (database, copy):
                server.execute(f"DROP DATABASE IF EXISTS {one} WITH (FORCE)".encode())
            server.execute(f"DROP ROLE {', '.join(logins)}".encode())


@pytest.fixture(scope="module")
def houses(postgres: str) -> Iterator[tuple[House, House]]:
    with built(postgres) as both:
        yield both


@pytest.fixture(scope="module")
def house(houses: tuple[House, House]) -> House:
    return houses[0]


@pytest.fixture(scope="module")
def unguarded(houses: tuple[House, House]) -> House:
    """A house in which the database keeps nothing from anybody."""
    return houses[1]


@pytest.fixture(scope="module")
def stores(houses: tuple[House, House]) -> Iterator[dict[tuple[str, str], PostgresStore]]:
    """Stores that are only read."""
    opened = {(one.admin, place): one.store(place) for one in houses for place in DEFAULTS}
    yield opened
    for store in opened.values():
        store.close()


# -- (a) keys, owners, rights


def column(connection: Connection, statement: str, *values: Any) -> list[Any]:
    return [row[0] for row in connection.execute(statement.encode(), values or None).fetchall()]


def test_every_table_of_workspaces_is_known(house: House) -> None:
    with house.as_admin() as admin:
        kept = column(
            admin,
            "SELECT relname FROM pg_class WHERE relnamespace = 'satchel'::regnamespace AND relkind IN ('r', 'p', 'm')",
        )
        assert sorted(kept) == sorted([*TABLES, "workspace", "schema_version"])
        with_it = column(
            admin, "SELECT table_name FROM information_schema.columns WHERE table_schema = 'satchel'"
            " AND column_name = 'workspace'",
        )  # fmt: skip
        assert sorted(with_it) == sorted(TABLES)
        # A view would show what its owner may see.
        assert not column(admin, "SELECT viewname FROM pg_views WHERE schemaname = 'satchel'")
        for table in TABLES:
            assert column(admin, f"SELECT DISTINCT workspace FROM {table}"), f"nothing is kept in {table}"


def test_the_workspace_comes_first_in_every_key(house: House) -> None:
    with house.as_admin() as admin:
        rows = admin.execute(
            "SELECT t.relname, i.relname, x.indisprimary, x.indisunique, a.attname FROM pg_index AS x"
            " JOIN pg_class AS t ON t.oid = x.indrelid JOIN pg_class AS i ON i.oid = x.indexrelid"
            " LEFT JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]"
            " WHERE t.relnamespace = 'satchel'::regnamespace"
        ).fetchall()
        other = [row for row in rows if row[0] in TABLES and row[4] != "workspace"]
        assert {row[0] for row in rows if row[2]} >= set(TABLES)
        # What is near in meaning is found in an index over all workspaces, which no constraint rests on.
        assert all(row[0] == "dense" and row[1].startswith("dense_nearest_") and not row[3] for row in other), other
        assert not column(
            admin, "SELECT conname FROM pg_constraint WHERE connamespace = 'satchel'::regnamespace"
            " AND contype IN ('f', 'x')",
        )  # fmt: skip


def test_row_level_security_is_enabled_and_forced(house: House) -> None:
    with house.as_admin() as admin:
        rows = admin.execute(
            "SELECT relname, relrowsecurity, relforcerowsecurity, pg_get_userbyid(relowner) FROM pg_class"
            " WHERE relnamespace = 'satchel'::regnamespace AND relkind = 'r'"
        ).fetchall()
        assert {row[3] for row in rows} == {"satchel_owner"}
        assert all(enabled and forced for name, enabled, forced, _ in rows if name in TABLES)
        # A permissive policy opens; there must be no other than ours.
        policies = admin.execute("SELECT tablename, policyname, roles, cmd FROM pg_policies WHERE schemaname='satchel'")
        told = {(table, name, roles[0], cmd) for table, name, roles, cmd in policies.fetchall() if len(roles) == 1}
        readers = {(table, "reader", "satchel_reader", "SELECT") for table in set(TABLES) - NOT_FOR_READERS}
        writers = {(table, "writer", "satchel_writer", "ALL") for table in TABLES}
        owners = {(table, "owner", "satchel_owner", "SELECT") for table in ("fact", "access")}
        assert {one for one in told if one[0] in TABLES} == readers | writers | owners


def test_the_roles_can_do_no_more_than_they_must(house: House) -> None:
    with house.as_admin() as admin:
        roles = admin.execute(
            "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s) AND NOT (rolcanlogin OR rolsuper OR rolbypassrls"
            " OR rolcreaterole OR rolcreatedb OR rolreplication)",
            (list(ROLES),),
        ).fetchall()
        assert {row[0] for row in roles} == set(ROLES)
        for role in ("satchel_reader", "satchel_writer", *(urlsplit(house.application).username or "",)):
            owned = "SELECT relname FROM pg_class WHERE relowner = %s::regrole UNION ALL" \
                " SELECT proname FROM pg_proc WHERE proowner = %s::regrole"  # fmt: skip
            assert not column(admin, owned, role, role)
            for owner in ("satchel_owner", "pg_read_all_data", "pg_write_all_data"):
                assert admin.execute("SELECT pg_has_role(%s, %s, 'MEMBER')", (role, owner)).fetchone() == (False,)
        granted = admin.execute(
            "SELECT table_name, grantee, privilege_type FROM information_schema.table_privileges"
            " WHERE table_schema = 'satchel' AND grantee <> 'satchel_owner'"
        ).fetchall()
        held: dict[tuple[str, str], set[str]] = {}
        for table, grantee, privilege in granted:
            held.setdefault((table, grantee), set()).add(privilege)
        assert {who for _, who in held} == {"satchel_reader", "satchel_writer"}
        for table in TABLES:
            # TRUNCATE, REFERENCES and TRIGGER go past the policies.
            assert held[table, "satchel_writer"] == {"SELECT", "INSERT", "UPDATE", "DELETE"}
            assert held.get((table, "satchel_reader"), set()) == (set() if table in NOT_FOR_READERS else {"SELECT"})
        assert not column(
            admin, "SELECT table_name FROM information_schema.column_privileges"
            " WHERE table_schema = 'satchel' AND grantee NOT IN ('satchel_owner', 'satchel_reader', 'satchel_writer')",
        )  # fmt: skip


def test_the_public_has_nothing(house: House) -> None:
    with house.as_admin() as admin:
        for catalog, name, acl, kind in (
            ("pg_class", "relname", "relacl", "r"),
            ("pg_proc", "proname", "proacl", "f"),
            ("pg_namespace", "nspname", "nspacl", "n"),
        ):
            space = {"r": "relnamespace", "f": "pronamespace", "n": "oid"}[kind]
            owner = {"r": "relowner", "f": "proowner", "n": "nspowner"}[kind]
            open_to_all = column(
                admin, f"SELECT {name} FROM {catalog}, aclexplode(coalesce({acl}, acldefault('{kind}', {owner}))) AS a"
                f" WHERE {space} = 'satchel'::regnamespace AND a.grantee = 0",
            )  # fmt: skip
            assert not open_to_all, f"{catalog}: {open_to_all}"
        functions = admin.execute(
            "SELECT proname, prosecdef, proconfig FROM pg_proc WHERE pronamespace = 'satchel'::regnamespace"
        ).fetchall()
        definers = [(name, config) for name, definer, config in functions if definer]
        assert "enter" in dict(definers)
        assert all(config == ["search_path=satchel, pg_temp"] for _, config in definers)
        assert not column(admin, "SELECT defaclobjtype FROM pg_default_acl")


@pytest.mark.parametrize("break_it", [
    "ALTER TABLE file NO FORCE ROW LEVEL SECURITY", "ALTER TABLE node DISABLE ROW LEVEL SECURITY",
    "CREATE POLICY naive ON block FOR SELECT TO satchel_reader USING (true)",
], ids=["unforced", "disabled", "open"])  # fmt: skip
def test_a_door_left_open_is_noticed(break_it: str, house: House) -> None:
    with house.as_admin() as admin, admin.transaction(force_rollback=True):
        admin.execute(break_it.encode())
        rigged = _Rigged(house, admin)
        with pytest.raises(AssertionError):
            test_row_level_security_is_enabled_and_forced(rigged)  # type: ignore[arg-type]
    test_row_level_security_is_enabled_and_forced(house)


class _Rigged:
    """The house as it would be after a change that is not committed."""

    def __init__(self, house: House, admin: Connection) -> None:
        self.numbers = house.numbers
        self._admin = admin

    @contextmanager
    def as_admin(self) -> Iterator[Connection]:
        yield self._admin

    @contextmanager
    def inside(self, who: Who, role: str = "satchel_reader", login: str = "") -> Iterator[Connection]:
        with self._admin.transaction(force_rollback=True):
            enter(self._admin, self.numbers[who.place], who.names, role)
            yield self._admin


# -- (c) raw statements as the roles


class Row(NamedTuple):
    """A row as the administrator sees it."""

    whole: str
    values: dict[str, Any]


def all_rows(admin: Connection, table: str, number: int) -> list[Row]:
    with admin.cursor(row_factory=dict_row) as cursor:
        cursor.execute(f"SELECT t::text AS whole_row, t.* FROM {table} AS t WHERE workspace = %s".encode(), (number,))
        return [Row(str(row.pop("whole_row")), row) for row in cursor.fetchall()]


def oracle(admin: Connection, number: int, who: Who) -> dict[str, set[str]]:
    """For each table the rows that somebody may see, worked out row by row in the plainest way."""
    rows = {table: all_rows(admin, table, number) for table in TABLES}
    names = {row.values["id"]: label_of(row.values["path"]) for row in rows["file"]}
    files = {one for one, label in names.items() if label in who.sees}
    blocks = {row.values["id"] for row in rows["node"] if names[row.values["file"]] in who.sees}
    default = next((row.values["value"] for row in rows["fact"] if row.values["name"] == "default_access"), "owner")
    lists = {row.values["id"] for row in rows["access"] if lets_in(row.values["readers"], who, default)}
    me = {name.removeprefix("user:") for name in who.names or () if name.startswith("user:")}
    of_file = ("content", "block", "piece", "page", "mention", "node", "dense")
    tests: dict[str, Callable[[dict[str, Any]], bool]] = {
        **{table: lambda row: row["file"] in files for table in of_file},
        **{table: lambda row: row["access"] in lists for table in ("file", "chunk", "posting", "dead")},
        "access": lambda row: row["id"] in lists,
        "activity": lambda row: label_of(row["path"]) in who.sees,
        "bond": lambda row: row["source"] in blocks and (row["target"] is None or row["target"] in blocks),
        "deed": lambda row: row["block"] in blocks,
        "member": lambda row: row["person"] in me,
        "fact": lambda row: True,
        **{table: lambda row: False for table in NOT_FOR_READERS},
    }
    # The lists and the labels were worked out apart; they have to say the same.
    assert {row.whole for row in rows["file"] if row.values["id"] in files} == {
        row.whole for row in rows["file"] if row.values["access"] in lists
    }
    return {table: {row.whole for row in rows[table] if tests[table](row.values)} for table in TABLES}


def label_of(path: bytes) -> str:
    return path.decode().split("_")[1]


def lets_in(readers: str, who: Who, default: str) -> bool:
    """What an access list says, read as it is written."""
    if who.names is None:
        return default == "owner"
    kept = {"allow": ["@default"], "deny": []} if readers == "*" else json.loads(readers)
    kept = kept if isinstance(kept, dict) else {"allow": kept, "deny": []}
    mine = set(who.names)
    if default == "owner" or (default == "allow" and mine):
        mine.add("@default")
    return bool(mine & set(kept["allow"])) and not mine & set(kept["deny"])


def shown(connection: Connection, table: str) -> set[str]:
    try:
        with connection.transaction():
            return set(column(connection, f"SELECT t::text FROM {table} AS t"))
    except errors.InsufficientPrivilege:
        return set()


def differences(house: House, who: Who, login: str = "") -> list[str]:
    """Where what is shown is not what may be seen, table by table."""
    with house.as_admin() as admin:
        right = oracle(admin, house.numbers[who.place], who)
    with house.inside(who, login=login) as raw:
        found = {table: shown(raw, table) for table in TABLES}
    right["fact"] &= found["fact"]  # which of the facts readers see is for another test
    return [
        f"{table}: {len(found[table] - right[table])} too many, {len(right[table] - found[table])} too few"
        for table in TABLES
        if found[table] != right[table]
    ]


@everybody
def test_raw_statements_see_the_rows_of_the_reader_and_no_others(who: Who, house: House) -> None:
    assert differences(house, who) == []
    assert differences(house, who, house.watcher) == []


def test_there_is_something_to_see_and_to_hide_in_every_table(house: House) -> None:
    with house.as_admin() as admin:
        right = oracle(admin, house.numbers["deny"], ANN_THERE)
        for table in set(TABLES) - NOT_FOR_READERS - {"fact"}:
            assert 0 < len(right[table]) < len(all_rows(admin, table, house.numbers["deny"])), table


@pytest.mark.parametrize("leak", [
    "CREATE POLICY naive ON file FOR SELECT TO satchel_reader USING (workspace = here())",
    "ALTER POLICY reader ON bond USING (workspace = here())",
    "ALTER POLICY reader ON posting USING (access = ANY (lists()) OR field = 0)",
    "ALTER POLICY reader ON deed USING (true)",
    "ALTER POLICY reader ON member USING (workspace = here())",
    "ALTER POLICY reader ON piece USING (false)",
], ids=["file", "bond", "posting", "deed", "member", "piece"])  # fmt: skip
def test_a_policy_that_leaks_is_noticed(leak: str, house: House) -> None:
    with house.as_admin() as admin, admin.transaction(force_rollback=True):
        admin.execute(leak.encode())
        rigged: Any = _Rigged(house, admin)
        assert differences(rigged, ANN_THERE)


@pytest.mark.parametrize("role", ["satchel_reader", "satchel_writer", "none"])
def test_nothing_shows_before_one_has_entered(role: str, house: House) -> None:
    logins = (house.application, house.watcher) if role != "satchel_writer" else (house.application,)
    for login in logins:
        with psycopg.connect(login) as raw:
            raw.execute("SET search_path = satchel, public")
            raw.execute(f"SET ROLE {role}".encode())
            for table in TABLES:
                assert shown(raw, table) == set()


def test_what_is_laid_out_holds_no_other_files(house: House) -> None:
    with house.as_admin() as admin:
        names = {
            row.values["id"]: label_of(row.values["path"]) for row in all_rows(admin, "file", house.numbers["deny"])
        }
        past = column(admin, "SELECT file FROM dead WHERE workspace = %s", house.numbers["deny"])
    with house.inside(ANN_THERE) as raw:
        chunks = raw.execute("SELECT columns FROM chunk").fetchall()
        told = {int(file) for (data,) in chunks for file in unpacked(data)["files"]}
        buried = set(column(raw, "SELECT file FROM dead"))
    assert buried < set(past)
    assert {names[file] for file in told - buried} == set(ANN_THERE.sees)


WAYS = (
    "SELECT * FROM file, content WHERE content.file = file.id",
    "SELECT f.*, c.* FROM content AS c LEFT JOIN file AS f ON f.id = c.file",
    "SELECT * FROM (SELECT * FROM file OFFSET 0) AS f JOIN block AS b ON b.file = f.id",
    "WITH RECURSIVE up AS (SELECT * FROM node UNION SELECT n.* FROM node AS n JOIN up ON n.id = up.parent)"
    " SELECT id, title, summary, metadata, origin FROM up",
    "WITH m AS MATERIALIZED (SELECT * FROM mention) SELECT m, path FROM m LEFT JOIN file ON file.id = m.file",
    "SELECT (SELECT array_agg(c) FROM content AS c), (SELECT json_agg(f) FROM file AS f)",
    "SELECT encode(text, 'escape') FROM content TABLESAMPLE SYSTEM (100)",
    "SELECT * FROM file WHERE ctid = ANY (SELECT format('(%s,%s)', p, i)::tid FROM generate_series(0, 9) AS p,"
    " generate_series(1, 60) AS i)",
    "SELECT * FROM file UNION ALL SELECT * FROM ONLY file",
    "SELECT max(encode(text, 'escape')), min(encode(text, 'escape')) FROM content",
    "SELECT lead(title) OVER (ORDER BY title DESC), lag(title) OVER () FROM node",
    "SELECT DISTINCT ON (detail) * FROM deed FULL JOIN activity USING (detail)",
    "SELECT b.source, b.target, b.name FROM bond AS b",
    "SELECT * FROM file AS f, LATERAL (SELECT * FROM piece WHERE piece.file = f.id) AS p",
    "SELECT f.path FROM file AS f RIGHT JOIN dense AS d ON d.file = f.id ORDER BY d.vector <#> '[1,0,0,0]'",
    "SELECT (SELECT text FROM content WHERE content.file = page.file) FROM page",
    "SELECT most_common_vals, histogram_bounds FROM pg_stats WHERE schemaname = 'satchel'",
)


@pytest.mark.parametrize("way", range(len(WAYS)))
def test_no_way_of_asking_shows_more(way: int, house: House) -> None:
    with house.as_admin() as admin:
        assert told(admin.execute(WAYS[way].encode()).fetchall()) - ANN_THERE.sees - {"past"}
    for who in (ANN_THERE, BOB_THERE, SEES["eve in deny"]):
        with house.inside(who) as raw:
            found = told(raw.execute(WAYS[way].encode()).fetchall())
            assert found <= who.sees | {"past"}, found - who.sees
            out = []
            with (
                suppress(errors.FeatureNotSupported),
                raw.cursor().copy(f"COPY ({WAYS[way]}) TO STDOUT".encode()) as copy,
            ):
                out = [bytes(part) for part in copy]
            assert told(out) <= who.sees | {"past"}


def test_counts_and_guesses_tell_nothing(house: House) -> None:
    with house.as_admin() as admin:
        right = oracle(admin, house.numbers["deny"], ANN_THERE)
        terms = column(admin, "SELECT DISTINCT term FROM posting")
        hidden = [
            row.values for row in all_rows(admin, "file", house.numbers["deny"]) if row.whole not in right["file"]
        ]
    with house.inside(ANN_THERE) as raw:
        for table in set(TABLES) - NOT_FOR_READERS - {"fact"}:
            assert column(raw, f"SELECT count(*) FROM {table}") == [len(right[table])]
            plan = raw.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM {table}".encode()).fetchone()
            assert plan is not None
            assert plan[0][0]["Plan"]["Actual Rows"] == len(right[table])
        for file in hidden:
            asked = (
                "SELECT EXISTS (SELECT 1 FROM file WHERE path = %s) OR EXISTS (SELECT 1 FROM content WHERE file = %s)"
            )
            assert column(raw, asked, file["path"], file["id"]) == [False]
            assert column(raw, "SELECT count(*) FROM file WHERE hash = %s OR id = %s", file["hash"], file["id"]) == [0]
        found = set(column(raw, "SELECT t::text FROM posting AS t WHERE term = ANY(%s)", terms))
        assert found == right["posting"]
        for near in ("[1,0,0,0]", "[0,1,0,0]", "[-1,-1,-1,-1]"):
            order = "SELECT t::text FROM dense AS t ORDER BY t.vector <#> %s::halfvec LIMIT 1000"
            assert set(column(raw, order, near)) == right["dense"]


def test_errors_are_not_made_of_hidden_rows(house: House) -> None:
    """What can fail is tried on visible rows alone: no error comes of a hidden one, and so none quotes it."""
    with house.as_admin() as admin:
        lengths = "SELECT path, length(text) FROM file JOIN content ON content.file = file.id WHERE file.workspace = %s"
        sizes = dict(admin.execute(lengths, (house.numbers["deny"],)).fetchall())
        hidden = {size for path, size in sizes.items() if label_of(path) not in ANN_THERE.sees}
        hidden -= {size for path, size in sizes.items() if label_of(path) in ANN_THERE.sees}
        assert hidden
        guess = "SELECT count(*) FROM content WHERE 1 / (length(text) - %s) > 5"
        for size in hidden:
            with pytest.raises(errors.DivisionByZero):
                admin.execute(guess, (size,))
    with house.inside(ANN_THERE) as raw:
        raw.execute("SET LOCAL enable_seqscan = off")
        for size in hidden:
            assert column(raw, guess, size) == [0]
            assert column(raw, "SELECT count(*) FROM file WHERE 1 / (size - %s) > 5", size) == [0]
        for statement in (
            "SELECT count(*) FROM deed WHERE CASE WHEN detail LIKE 'hush_mine%' OR detail LIKE 'hush_staffed%' THEN 0"
            " ELSE detail::int END = 1",
            "SELECT count(*) FROM node WHERE (metadata::json ->> 'note') LIKE 'hush_top%'"
            " AND (metadata::json ->> 'note')::int = 1",
            "SELECT count(*) FROM dense WHERE CASE WHEN EXISTS (SELECT 1 FROM file WHERE file.id = dense.file) THEN 0"
            " ELSE vector <#> '[1]' END > 0",
        ):
            assert column(raw, statement) == [0]
        with pytest.raises(errors.InvalidTextRepresentation) as caught:
            raw.execute("SELECT detail::int FROM deed")
        assert told(str(caught.value)) <= ANN_THERE.sees


def test_facts_of_the_whole_are_not_for_readers(house: House) -> None:
    with house.inside(ANN_THERE) as raw:
        assert not {"sources", "history"} & set(column(raw, "SELECT name FROM fact"))
        # How many pieces there are is told only to the next power of two.
        about = int(column(raw, "SELECT value FROM fact WHERE name = 'pieces'")[0])
        assert about & (about - 1) == 0


def test_the_names_of_other_workspaces_are_not_told(house: House) -> None:
    for role in ("satchel_reader", "satchel_writer"):
        with house.inside(ANN_THERE, role) as raw, suppress(errors.InsufficientPrivilege):
            assert set(column(raw, "SELECT name FROM workspace")) <= {"deny"}


def test_a_function_that_talks_hears_of_visible_rows_only(house: House) -> None:
    """Nobody can leave one where others would use it; one of the session's own is called last."""
    talk = (
        "CREATE FUNCTION {}.talk(bytea) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS"
        " $$ BEGIN RAISE NOTICE 'heard %', encode($1, 'escape'); RETURN true; END $$"
    )
    with house.inside(ANN_THERE) as raw:
        for schema in ("satchel", "public"):
            with pytest.raises(errors.InsufficientPrivilege), raw.transaction():
                raw.execute(talk.format(schema).encode())
        heard: list[str] = []
        raw.add_notice_handler(lambda notice: heard.append(notice.message_primary or ""))
        raw.execute(talk.format("pg_temp").encode())
        raw.execute("SELECT count(*) FROM content WHERE pg_temp.talk(text)")
        raw.execute("SELECT count(*) FROM file WHERE pg_temp.talk(path) AND pg_temp.talk(hash)")
        with pytest.raises(errors.InsufficientPrivilege):
            raw.execute("ALTER FUNCTION pg_temp.talk(bytea) LEAKPROOF")
        assert told(heard) == ANN_THERE.sees


REFUSED = (
    "INSERT INTO {0} DEFAULT VALUES", "UPDATE {0} SET workspace = workspace", "DELETE FROM {0}",
    "TRUNCATE {0}", "SELECT * FROM {0} FOR UPDATE", "LOCK TABLE {0} IN SHARE MODE",
    "ALTER TABLE {0} NO FORCE ROW LEVEL SECURITY", "DROP TABLE {0}", "CREATE INDEX ON {0} (workspace)",
    "CREATE POLICY mine ON {0} USING (true)",
    "CREATE TRIGGER t AFTER INSERT ON {0} EXECUTE FUNCTION access_names()", "COMMENT ON TABLE {0} IS 'x'",
    "CREATE TABLE satchel.mine (LIKE {0})", "CREATE VIEW satchel.mine AS SELECT * FROM {0}",
    "MERGE INTO {0} AS a USING {0} AS b ON true WHEN MATCHED THEN DELETE",
)  # fmt: skip


@pytest.mark.parametrize("statement", REFUSED)
def test_a_reader_changes_nothing(statement: str, house: House) -> None:
    with house.inside(ANN_THERE) as raw:
        for table in (*TABLES, "workspace", "schema_version"):
            with pytest.raises((errors.InsufficientPrivilege, errors.UndefinedColumn)), raw.transaction():
                raw.execute(statement.format(table).encode())


def test_a_reader_copies_nothing_in_and_becomes_nobody_else(house: House) -> None:
    with house.inside(ANN_THERE, login=house.watcher) as raw:
        for table in TABLES:
            with (
                pytest.raises(errors.InsufficientPrivilege),
                raw.transaction(),
                raw.cursor().copy(f"COPY {table} FROM STDIN".encode()),
            ):
                pass
        for statement in (
            "SET ROLE satchel_writer", "SET ROLE satchel_owner", "SET SESSION AUTHORIZATION satchel_owner",
            "ALTER ROLE satchel_reader BYPASSRLS", "GRANT satchel_owner TO satchel_reader", "CREATE SCHEMA mine",
            "SELECT pg_read_file('PG_VERSION')", "COPY (SELECT 1) TO PROGRAM 'true'",
            "SELECT nextval('segment_number')", "ALTER FUNCTION lists() LEAKPROOF", "SELECT * FROM pg_authid",
            "CREATE OR REPLACE FUNCTION satchel.lists() RETURNS integer[] LANGUAGE sql RETURN '{1,2,3}'::integer[]",
            "SELECT * FROM pg_statistic", "ALTER DATABASE postgres SET role = 'satchel_owner'",
        ):  # fmt: skip
            with pytest.raises(errors.InsufficientPrivilege), raw.transaction():
                raw.execute(statement.encode())
        raw.execute("GRANT SELECT ON file TO PUBLIC")  # no more than a warning
        assert column(raw, "SELECT has_table_privilege('public', 'satchel.file', 'SELECT')") == [False]
        with pytest.raises(errors.InsufficientPrivilege):
            # Not "without the policies", but "an error rather than what they leave".
            raw.execute("SET LOCAL row_security = off; SELECT * FROM file")


def test_a_writer_has_one_workspace(house: House) -> None:
    mine, theirs = house.numbers["deny"], house.numbers["theirs"]
    with house.inside(ANN_THERE, "satchel_writer") as raw, house.as_admin() as admin:
        for table in TABLES:
            assert shown(raw, table) == {row.whole for row in all_rows(admin, table, mine)}
            for statement in (
                "DELETE FROM {} WHERE workspace = %s",
                "UPDATE {} SET workspace = %s WHERE workspace = %s",
            ):
                values = (theirs,) if "DELETE" in statement else (mine, theirs)
                assert raw.execute(statement.format(table).encode(), values).rowcount == 0
            with pytest.raises(errors.InsufficientPrivilege, match="row-level security"), raw.transaction():
                raw.execute(f"UPDATE {table} SET workspace = %s".encode(), (theirs,))
            with pytest.raises(errors.InsufficientPrivilege, match="permission denied"), raw.transaction():
                raw.execute(f"TRUNCATE {table}".encode())


def test_a_key_that_is_taken_elsewhere_is_refused_as_one_that_is_free(house: House) -> None:
    insert = (
        "INSERT INTO file (workspace, path, hash, size, modified_ns, read_ns, note, generation, access)"
        " VALUES (%s, %s, '', 0, 0, 0, '', 1, 1){}"
    )
    said = set()
    with house.inside(ANN_THERE, "satchel_writer") as raw:
        for path in (b"hush_secret_.py", b"never.py"):
            for end in ("", " ON CONFLICT DO NOTHING", " ON CONFLICT (workspace, path) DO UPDATE SET size = file.size"):
                with pytest.raises(errors.InsufficientPrivilege) as caught, raw.transaction():
                    raw.execute(insert.format(end).encode(), (house.numbers["theirs"], path))
                said.add(str(caught.value))
        assert len(said) == 1, said
        with pytest.raises(errors.UniqueViolation) as taken:
            raw.execute(insert.format("").encode(), (house.numbers["deny"], b"hush_secret_.py"))
        assert not told(str(taken.value))


# -- every reading and writing that there is

VECTOR = np.array(vector_of("retry"), np.float32)
QUERY = StoreQuery(
    terms={"hush": 1.0, "retri": 1.0, "socket": 1.0, "return": 1.0},
    names=("hush_secret_0", "hush_own_0"),
    vector=VECTOR,
)
PATHS = [path_of(label) for label in READERS if label not in DROPPED]
IDS = [id_of(label) for label in BLOCKS]
PLACES = [*PATHS, *IDS, *(f"{path_of(label)}#hush_{label}_0" for label in ("secret", "own"))]
NUMBERS = range(1, 400)
Reading = Callable[[PostgresStore, Filters], object]


def each(ask: Callable[[str], object], places: Sequence[str] = PLACES) -> list[object]:
    return [ask(place) for place in places]


def search_all(store: PostgresStore, filters: Filters) -> list[object]:
    """With every filter, and each twice: the second time what may be seen is known from before."""
    narrowed: tuple[dict[str, Any], ...] = (
        {}, {"patterns": ("*.py",)}, {"languages": ("python",)}, {"types": ("function", "todo")},
        {"modified_after": datetime(2020, 1, 1, tzinfo=UTC), "modified_before": datetime(2030, 1, 1, tzinfo=UTC)},
    )  # fmt: skip
    found: list[object] = []
    for more in narrowed:
        some = Filters(readers=filters.readers, **more)
        for query in (QUERY, QUERY, StoreQuery(terms={"hush": 1.0}), StoreQuery(vector=VECTOR)):
            hits = store.search(query, some, top_k=50)
            found.append((hits, store.pieces([hit.piece for hit in hits], filters)))
    return found


FOR_READERS: dict[str, Reading] = {
    "search": search_all,
    "pieces": lambda s, f: s.pieces(NUMBERS, f),
    "pieces_of": lambda s, f: each(lambda one: s.pieces_of(one, f), PATHS),
    "text_of": lambda s, f: each(lambda one: s.text_of(one, f), [*PATHS, "\0" + id_of("top"), id_of("top")]),
    "outline_of": lambda s, f: each(lambda one: s.outline_of(one, f), PATHS),
    "pages_of": lambda s, f: each(lambda one: s.pages_of(one, f), PATHS),
    "documents": lambda s, f: s.documents(f),
    "paths_of": lambda s, f: [s.paths_of(_file(label, None).state.content_hash, f) for label in READERS],
    "skipped": lambda s, f: s.skipped(f),
    "block": lambda s, f: each(lambda one: s.block(one, f)),
    "blocks": lambda s, f: s.blocks(PLACES, f),
    "blocks_of": lambda s, f: each(lambda one: s.blocks_of(one, f), PATHS),
    "children": lambda s, f: each(lambda one: s.children([one], f, limit=9).get(one, [])),
    "siblings": lambda s, f: each(lambda one: s.siblings(one, f, count=9)),
    "descendants": lambda s, f: each(lambda one: s.descendants([one], f, limit=99, deepest=9)),
    "trails": lambda s, f: s.trails(PLACES, f),
    "distances": lambda s, f: each(lambda one: s.distances(one, PLACES, f), IDS[:3]),
    "links_from": lambda s, f: each(lambda one: s.links_from([one], f).get(one, [])),
    "links_to": lambda s, f: each(lambda one: s.links_to([one], f).get(one, [])),
    "named": lambda s, f: (s.named("hush", f, limit=200), each(lambda one: s.named(one, f), IDS)),
    "texts": lambda s, f: list(s.texts(f)),
    "definitions": lambda s, f: [s.definitions(f"hush_{label}_0", f) for label in READERS],
    "mentions_of": lambda s, f: (s.mentions_of("hush_shared_0", f), s.mentions_of("retry", f)),
    "pages": lambda s, f: s.pages(f),
    "tasks": lambda s, f: (s.tasks(f), s.tasks(f, done=False, due_before=NOON, due_after=NOON)),
    "activity": lambda s, f: (s.activity(f), each(lambda one: s.activity(f, path=one), PATHS[:2])),
    "recent": lambda s, f: (
        s.recent(f), s.recent(f, actor="ann", since=NOON, until=NOON, actions=("edit",), latest=True),
    ),
    "access_key": lambda s, f: s.access_key(f),
    "word_counts": lambda s, f: s.word_counts(["retri", "word"], f),
    "paths": lambda s, f: s.paths(NUMBERS, f),
    "titles": lambda s, f: s.titles(NUMBERS, f),
    "last_changes": lambda s, f: s.last_changes(NUMBERS, f),
}  # fmt: skip
BY_NUMBER = ("paths", "titles", "last_changes")


def everything(store: PostgresStore) -> list[object]:
    """All that is kept, as another store would take it over."""
    kept = store.transfer
    files = [*kept.files(limit=99), *kept.files_by_path(limit=99), *kept.files_at(PATHS).values()]
    vectors = kept.vectors([one for file in files for one in file.hashes])
    rows = [list(kept.rows(kind)) for kind in RowKind]
    return [kept.count(), kept.paths(limit=99), kept.facts(), files, vectors, rows]


FOR_OWNERS: dict[str, Callable[[PostgresStore], object]] = {
    "generation": lambda s: s.generation, "fact": lambda s: s.fact("embedder"), "embedder": lambda s: s.embedder(),
    "history_head": lambda s: s.history_head(), "notes": lambda s: s.notes(), "files": lambda s: s.files(),
    "groups_of": lambda s: s.groups_of("ann"), "default_access": lambda s: s.default_access(),
    "holds_blocks": lambda s: s.holds_blocks(), "blocks_from": lambda s: s.blocks_from("vault:x"),
    "records": lambda s: list(s.records()), "generation_for": lambda s: s.generation_for(Filters()),
    "search_version": lambda s: s.search_version(Filters()),
    "facts": lambda s: s.facts(), "check": lambda s: s.check(),
    "transfer": everything,
}  # fmt: skip
CHANGES = {"lock", "write", "catch_up", "tidy", "clear", "snapshot", "close", "where", "many_writers"}


def test_every_reading_is_among_ours() -> None:
    public = {name for name in dir(PostgresStore) if not name.startswith("_")}
    assert public == {*FOR_READERS, *FOR_OWNERS, *CHANGES}


# -- (b) plans


class Sent(NamedTuple):
    """A statement, and as whom it was sent."""

    identity: tuple[Any, ...]
    text: str
    values: Any


@contextmanager
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Sent]]:
    """Everything that is sent to the server through psycopg."""
    sent: list[Sent] = []
    identity: list[tuple[Any, ...]] = [()]
    execute, executemany = psycopg.Cursor.execute, psycopg.Cursor.executemany

    def note(query: Any, values: Any) -> None:
        text = query.decode() if isinstance(query, bytes) else query if isinstance(query, str) else query.as_string()
        if "satchel.enter(" in text:
            identity[0] = tuple(values)
        sent.append(Sent(identity[0], text, values))

    def one(self: Any, query: Any, params: Any = None, **more: Any) -> Any:
        note(query, params)
        return execute(self, query, params, **more)

    def many(self: Any, query: Any, params_seq: Any, **more: Any) -> Any:
        rows = list(params_seq)
        note(query, rows[0])
        return executemany(self, query, rows, **more)

    with monkeypatch.context() as patched:
        patched.setattr(psycopg.Cursor, "execute", one)
        patched.setattr(psycopg.Cursor, "executemany", many)
        yield sent


_TOUCHED = re.compile(rf"\b(?:FROM|JOIN|INTO|UPDATE)\s+(?:satchel\.)?({'|'.join(TABLES)})\b")


def unbound(plan: dict[str, Any], workspace: str, *, keyed: bool = False) -> list[str]:
    """The scans of a plan that are not narrowed to a workspace; with `keyed`, those that use no key that begins so."""
    found = []
    table = plan.get("Relation Name")
    if table in TABLES and plan["Node Type"] != "ModifyTable":
        names = ("Index Cond", "Recheck Cond") if keyed else ("Index Cond", "Recheck Cond", "Filter")
        if not re.search(workspace, " ".join(str(plan.get(name, "")) for name in names)):
            found.append(f"{plan['Node Type']} on {table}: {plan.get('Filter')}")
    return found + [one for below in plan.get("Plans", ()) for one in unbound(below, workspace, keyed=keyed)]


def plan_of(connection: Connection, sent: Sent) -> dict[str, Any]:
    statement = psycopg.ClientCursor(connection).mogrify(sent.text.encode(), sent.values)
    row = connection.execute(f"EXPLAIN (FORMAT JSON) {statement}".encode()).fetchone()
    assert row is not None
    plan: dict[str, Any] = row[0][0]["Plan"]
    return plan


class Plans:
    """Asks the server how it would run statements."""

    def __init__(self, house: House) -> None:
        self._admin = psycopg.connect(house.admin)
        self._raw = psycopg.connect(house.application)

    def __enter__(self) -> Plans:
        return self

    def __exit__(self, *_: object) -> None:
        self._admin.close()
        self._raw.close()

    def faults(self, sent: Sent) -> list[str]:
        """What is wrong with a statement: it names a table without its workspace, or is planned without it."""
        found = []
        if len(_TOUCHED.findall(sent.text)) > len(re.findall(r"\bworkspace\b", sent.text)):
            found.append("a table is named without its workspace")
        role, number, names, is_owner = sent.identity
        # As the administrator, whom no policy binds: what is there is in the statement itself.
        self._admin.execute("SET LOCAL search_path = satchel, public")
        found += unbound(plan_of(self._admin, sent), rf"\bworkspace = '?{number}\b")
        self._admin.execute("SET LOCAL enable_seqscan = off")
        found += unbound(plan_of(self._admin, sent), r"\bworkspace = ", keyed=True)
        self._admin.rollback()
        enter(self._raw, number, None if is_owner else frozenset(names), role)
        found += unbound(plan_of(self._raw, sent), r"\bworkspace = ")
        self._raw.rollback()
        return found


def test_every_statement_keeps_to_one_workspace(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded(monkeypatch) as sent, closing(house.store("busy", nearest_from=0)) as store:
        fill(store, DefaultAccess.DENY)
        for who in (ANN_THERE.filters, Filters()):
            for ask in FOR_READERS.values():
                ask(store, who)
        for look in FOR_OWNERS.values():
            look(store)
        with store.write() as writer:
            writer.touch(path_of("own"), writer_state())
            writer.blocks.move(id_of("free"), id_of("mine"))
            writer.blocks.revoke(id_of("closed"), "user:ann")
            writer.blocks.unlink(id_of("mine"), kind=LinkKind.MENTIONS, target=id_of("free"))
            writer.blocks.set_inherits(id_of("free"), False)
            writer.blocks.is_closed(id_of("free"))
            writer.blocks.remove(id_of("top"))
            writer.blocks.delete(id_of("staffed"))
            put(writer, file_of("later.py", ["retry_later"]))
            with suppress(Exception):
                writer.blocks.revoke(id_of("mine"), "user:zoe")
        take_over(store)
        for i in range(10):
            with store.write() as writer:
                put(writer, file_of(f"small{i}.py", [f"retry{i}"]))
        assert store.catch_up()
        store.tidy()
        with store.lock(), store.snapshot():
            search_all(store, ANN_THERE.filters)
        store.clear()
    about = {(one.identity[0], re.sub(r"\d+", "0", one.text)): one for one in sent if _TOUCHED.search(one.text)}
    touched = {(role, table) for (role, text) in about for table in _TOUCHED.findall(text)}
    assert touched >= {("satchel_writer", table) for table in TABLES}
    assert touched >= {("satchel_reader", table) for table in set(TABLES) - NOT_FOR_READERS}
    with Plans(house) as plans:
        assert {one.text: found for one in about.values() if (found := plans.faults(one))} == {}


def take_over(store: PostgresStore) -> None:
    """What is kept, put once more as another store's would be."""
    files = store.transfer.files(limit=99)
    vectors = store.transfer.vectors([one for file in files for one in file.hashes])
    rows = {kind: list(store.transfer.rows(kind)) for kind in RowKind}
    with store.write() as writer:
        writer.transfer.put(files, vectors)
        writer.transfer.amend(files[0])
        for kind, some in rows.items():
            writer.transfer.clear_rows(kind)
            writer.transfer.put_rows(kind, some)
        writer.transfer.set_facts({"x": "1", "y": None})
        writer.transfer.drop([files[0].path])


def writer_state() -> Any:
    return file_of("x.py", ["x"]).state


@pytest.mark.parametrize("text", [
    "SELECT id FROM file WHERE path = 'a'",
    "SELECT f.id FROM file AS f JOIN piece ON piece.file = f.id WHERE f.workspace = {0} AND workspace IS NOT NULL",
    "DELETE FROM vector WHERE workspace = {0} AND hash NOT IN (SELECT hash FROM piece WHERE workspace > 0)",
    "UPDATE dense SET indexed = 0 WHERE piece IN (SELECT piece FROM dense WHERE workspace = {0})",
], ids=["bare", "joined", "nested", "update"])  # fmt: skip
def test_a_statement_that_crosses_workspaces_is_noticed(text: str, house: House) -> None:
    number = house.numbers["deny"]
    text = text.format(number).replace("AND workspace IS", "AND piece.workspace IS")
    with Plans(house) as plans:
        assert plans.faults(Sent(("satchel_writer", number, [], False), text, None))


def test_entering_asks_for_one_workspace(house: House) -> None:
    with house.as_admin() as admin:
        (source,) = column(
            admin, "SELECT prosrc FROM pg_proc WHERE proname = 'enter' AND pronamespace = 'satchel'::regnamespace"
        )
    assert len(_TOUCHED.findall(source)) == len(re.findall(r"\bworkspace = into_workspace\b", source)) == 2


# -- (d) pooled connections


@pytest.fixture
def lone(house: House, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresStore]:
    """A store all of whose users share one connection."""
    monkeypatch.setattr(storing, "Connections", partial(Connections, most=1))
    with closing(house.store("deny")) as store:
        yield store


LOCKED = "a lock"


def remains(store: PostgresStore) -> list[str]:
    """What is left of the last user on the connection that the next one gets."""
    login = urlsplit(store._connections.address.database).username
    held = " + ".join(f"(SELECT count(*) FROM satchel.{table})" for table in TABLES if table not in NOT_FOR_READERS)
    with store._connections.checked_out() as connection:
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        row = connection.execute(
            "SELECT current_user, session_user, current_setting('role'), current_setting('transaction_read_only'),"
            " coalesce(current_setting('satchel.workspace', true), ''),"
            " coalesce(current_setting('satchel.readers', true), ''),"
            " coalesce(current_setting('satchel.lists', true), ''), current_setting('statement_timeout'),"
            " current_setting('lock_timeout'), current_setting('enable_indexscan'), current_setting('enable_sort'),"
            f" {held}, (SELECT count(*) FROM pg_cursors), (SELECT count(*) FROM pg_prepared_statements"
            " WHERE statement ~ 'user[:]|group[:]'),"  # what is prepared is bound to values, and names nobody
            " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())".encode(),
            prepare=False,
        ).fetchone()
    assert row is not None
    *row, locks = row
    clean = (login, login, "none", "off", "", "", "", "0", "0", "on", "on", 0, 0, 0)
    found = [f"{value!r} instead of {right!r}" for value, right in zip(row, clean, strict=True) if value != right]
    return found + [LOCKED] * bool(locks)


def finds(store: PostgresStore, who: Who) -> set[str]:
    """The labels that somebody finds and reads, through all that a connection can be used for."""
    found = told([search_all(store, who.filters), store.blocks(PLACES, who.filters), store.recent(who.filters)])
    assert told(list(store.records())) >= set(BLOCKS)
    return found


def test_a_pooled_connection_keeps_nothing_of_its_last_user(lone: PostgresStore) -> None:
    assert remains(lone) == []
    for name, ask in FOR_READERS.items():
        ask(lone, ANN_THERE.filters)
        assert remains(lone) == [], name
    for name, look in FOR_OWNERS.items():
        look(lone)
        assert remains(lone) == [], name
    with lone.snapshot():
        for who in (ANN_THERE, BOB_THERE, Who("deny", None, frozenset())):
            assert told(lone.blocks(PLACES, who.filters)) <= who.sees
            lone.search(QUERY, who.filters, top_k=9)
    assert remains(lone) == []
    with lone.lock(), lone.write() as writer:
        writer.set_fact("x", 1)
        lone.search(QUERY, ANN_THERE.filters, top_k=9)
    assert remains(lone) == []


@pytest.mark.parametrize("naive", [
    "SET satchel.lists = '{1,2,3}'", "SET ROLE satchel_reader", "SELECT satchel.enter(1, '{user:ann}', false)",
    "SELECT set_config('satchel.workspace', '1', false)", "SELECT pg_advisory_lock(1)",
])  # fmt: skip
def test_what_a_naive_store_would_leave_is_noticed(naive: str, lone: PostgresStore) -> None:
    with lone._connections.checked_out() as connection:
        connection.execute(naive.encode())
        if "enter" in naive:
            connection.execute("BEGIN")
            connection.execute("SELECT satchel.enter(1, '{user:ann}', true)")
            connection.execute("SET satchel.readers = '{user:ann}'")
            connection.execute("COMMIT")
    assert remains(lone) != []


def test_a_failure_leaves_no_rights_behind(lone: PostgresStore) -> None:
    class Odd(Exception):
        pass

    ann = reading_as(ANN)
    with pytest.raises(Odd), lone._connections.transaction(ann):
        raise Odd
    assert remains(lone) == []
    with pytest.raises((errors.DivisionByZero, InvalidInput)), lone._connections.transaction(ann) as visit:
        visit.database.execute("SELECT 1 / 0")
    assert remains(lone) == []
    with suppress(Odd), lone.snapshot():
        lone.text_of(path_of("own"), ANN_THERE.filters)
        with pytest.raises((errors.DivisionByZero, InvalidInput)), lone._connections.transaction(ann) as visit:
            visit.database.execute("SELECT 1 / 0")
        raise Odd
    assert remains(lone) == []
    with suppress(errors.DivisionByZero, InvalidInput, StoreUnavailable), lone.write() as writer:
        writer.set_fact("x", 2)
        with lone._connections.transaction(ann) as visit:
            visit.database.execute("SELECT 1 / 0").fetchall()
    assert remains(lone) == []
    with lone._connections.transaction(ann) as visit:
        visit.database.connection.execute("COMMIT")
    assert remains(lone) == []
    assert finds(lone, BOB_THERE) == BOB_THERE.sees


@pytest.mark.parametrize("end", ["pg_cancel_backend", "pg_terminate_backend"])
def test_a_stopped_statement_leaves_no_rights_behind(end: str, lone: PostgresStore, house: House) -> None:
    def stop() -> None:
        with house.as_admin() as admin:
            while not column(admin, f"SELECT {end}(pid) FROM pg_stat_activity WHERE state = 'active' AND datname ="
                             " current_database() AND query LIKE 'SELECT pg_sleep%'"):  # fmt: skip
                pass

    for inner in (reading_as(ANN), reading_as(None)):
        stopper = threading.Thread(target=stop)
        stopper.start()
        with pytest.raises(StoreUnavailable), lone._connections.transaction(inner) as visit:
            visit.database.execute("SELECT pg_sleep(20)")
        stopper.join()
        assert remains(lone) == []
    assert finds(lone, BOB_THERE) == BOB_THERE.sees


def test_ctrl_c_leaves_no_rights_behind(lone: PostgresStore, house: House) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def press() -> None:
        running = (
            "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND datname = current_database()"
            " AND query LIKE 'SELECT pg_sleep%'"
        )
        with house.as_admin() as admin:
            wait_for(lambda: column(admin, running), "a statement that runs")
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(3):
            presser = threading.Thread(target=press)
            presser.start()
            with pytest.raises(KeyboardInterrupt), lone._connections.transaction(reading_as(ANN)) as visit:
                visit.database.execute("SELECT pg_sleep(20)")
            presser.join()
            assert remains(lone) == []
    finally:
        signal.signal(signal.SIGALRM, before)
    assert finds(lone, BOB_THERE) == BOB_THERE.sees


def _nested(store: PostgresStore) -> None:
    with store.snapshot():
        store.fact("generation")
        store.text_of(path_of("own"), ANN_THERE.filters)


def _written(store: PostgresStore) -> None:
    # A lock whose end was interrupted is free once the server has noticed that the connection is gone.
    with store.lock(wait=HANG_SECONDS), store.write() as writer:
        writer.set_fact("x", 3)
        store.block(id_of("mine"), ANN_THERE.filters)


INTERRUPTED: dict[str, Callable[[PostgresStore], object]] = {
    "search": lambda s: s.search(QUERY, ANN_THERE.filters, top_k=9),
    "read": lambda s: s.block(id_of("mine"), ANN_THERE.filters),
    "nested": _nested,
    "write": _written,
}


def interrupted_everywhere(
    store: PostgresStore, what: str, after: bool, monkeypatch: pytest.MonkeyPatch
) -> Iterator[int]:
    """Ctrl-C just before each statement of something, or just after it was sent; gives the number of each in turn."""
    execute = psycopg.Cursor.execute
    left = [-1]

    def interrupted(self: Any, query: Any, params: Any = None, **more: Any) -> Any:
        left[0] -= 1
        if left[0] == 0 and not after:
            raise KeyboardInterrupt
        done = execute(self, query, params, **more)
        if left[0] == 0:
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(psycopg.Cursor, "execute", interrupted)
    store.search(QUERY, ANN_THERE.filters, top_k=9)
    for at in range(1, 60):
        left[0] = at
        try:
            INTERRUPTED[what](store)
        except KeyboardInterrupt:
            left[0] = -1
            yield at
        else:
            assert at > 3
            return


@pytest.mark.parametrize("what", list(INTERRUPTED))
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_interruption_at_any_statement_leaves_no_rights_behind(
    what: str, after: bool, lone: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in interrupted_everywhere(lone, what, after, monkeypatch):
        assert [one for one in remains(lone) if one != LOCKED] == [], f"at statement {at}"
        assert lone._connections.visit is None
        assert told(lone.block(id_of("top"), BOB_THERE.filters)) == {"top"}
        assert lone.block(id_of("top"), ANN_THERE.filters) is None


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_interruption_does_not_keep_others_from_writing(
    after: bool, lone: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in interrupted_everywhere(lone, "write", after, monkeypatch):
        assert LOCKED not in remains(lone), f"at statement {at}"


def test_threads_on_few_connections_get_what_is_theirs(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "Connections", partial(Connections, most=2))
    wrong: list[str] = []

    def ask(store: PostgresStore, who: Who) -> None:
        for _ in range(6):
            for found in (
                told(store.pieces([hit.piece for hit in store.search(QUERY, who.filters, top_k=50)], who.filters)),
                told(store.blocks(PLACES, who.filters)),
            ):  # fmt: skip
                if not found <= who.sees or (who.sees and not found):
                    wrong.append(f"{sorted(who.names or ())} found {found}")

    with closing(house.store("deny")) as store:
        people = [ANN_THERE, BOB_THERE, SEES["eve in deny"], SEES["owner in deny"]] * 2
        threads = [threading.Thread(target=ask, args=(store, who)) for who in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert remains(store) == []


def test_a_reading_that_ends_on_another_thread_leaves_nothing_on_the_first(lone: PostgresStore) -> None:
    kept: list[Iterator[object]] = []
    dangling: list[bool] = []
    begun, ended = threading.Event(), threading.Event()

    def begin() -> None:
        kept.append(lone.records())
        next(kept[0])
        begun.set()
        ended.wait(30)
        dangling.append(lone._connections.visit is not None)

    thread = threading.Thread(target=begin)
    thread.start()
    begun.wait(30)
    list(kept.pop())
    ended.set()
    thread.join()
    assert dangling == [False]


def test_a_reading_within_another_gives_its_rights_back(lone: PostgresStore) -> None:
    with lone._connections.transaction(reading_as(BOB)) as visit:
        before = set(column(visit.database.connection, "SELECT path FROM file"))
        lone.fact("generation")  # as the writer
        assert set(column(visit.database.connection, "SELECT path FROM file")) == before
        lone.block(id_of("mine"), ANN_THERE.filters)
        assert set(column(visit.database.connection, "SELECT path FROM file")) == before


def test_a_reading_within_a_commit_sees_what_its_reader_may(lone: PostgresStore) -> None:
    with suppress(ZeroDivisionError), lone.lock(), lone.write() as writer:
        put(writer, file_of("hush_fresh_.py", ["hush_fresh_0"], readers=("user:bob",)))
        assert told(lone.text_of("hush_fresh_.py", BOB_THERE.filters)) == {"fresh"}
        assert lone.text_of("hush_fresh_.py", ANN_THERE.filters) is None
        lone.search(QUERY, ANN_THERE.filters, top_k=9)
        raise ZeroDivisionError  # nothing of it is kept


def test_what_an_interruption_leaves_is_not_taken_for_what_was(
    lone: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C between the server's becoming somebody else and our knowing of it."""
    execute = psycopg.Connection.execute

    def interrupted(self: Any, query: Any, *more: Any, **options: Any) -> Any:
        done = execute(self, query, *more, **options)
        if "satchel.enter" in str(query) and more[0][0] == "satchel_writer":
            raise KeyboardInterrupt
        return done

    with lone._connections.transaction(reading_as(BOB)) as visit:
        with monkeypatch.context() as patched:
            patched.setattr(psycopg.Connection, "execute", interrupted)
            with suppress(KeyboardInterrupt):
                lone.fact("generation")
        visit.enter(reading_as(BOB))
        assert column(visit.database.connection, "SELECT current_user::text") == ["satchel_reader"]


# -- (d) one lock at a time


def results(store: PostgresStore, who: Who) -> dict[str, object]:
    """What somebody gets from every reading, without what rests on the numbers of lists."""
    return {name: ask(store, who.filters) for name, ask in FOR_READERS.items() if name != "access_key"}


def without_parents(found: object) -> str:
    """A block's row holds the id of its parent; that a hidden one is not told is the first lock's doing."""
    return re.sub(r"parent=(None|'[^']*')", "", repr(found))


@pytest.mark.parametrize("name", ["ann in deny", "bob in deny", "ann in allow", "nobody in owned", "owner in owned"])
def test_the_second_lock_holds_alone(
    name: str, house: House, stores: dict[tuple[str, str], PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    who = SEES[name]
    right = results(stores[house.admin, who.place], who)
    for what, found in right.items():
        assert told(found) <= who.sees, what
    assert {label for found in right.values() for label in told(found)} == who.sees
    monkeypatch.setattr(PostgresStore, "_allowed", lambda *_: None)
    with closing(house.store(who.place)) as store:
        for what, found in results(store, who).items():
            assert told(without_parents(found)) <= who.sees, what
            assert without_parents(found) == without_parents(right[what]), what


def test_the_unguarded_house_is_open(unguarded: House) -> None:
    assert len(differences(unguarded, ANN_THERE)) > 10


@pytest.mark.parametrize("name", [name for name in FOR_READERS if name != "access_key"])
def test_the_first_lock_holds_alone(
    name: str, house: House, unguarded: House, stores: dict[tuple[str, str], PostgresStore]
) -> None:
    for who in (ANN_THERE, BOB_THERE, SEES["eve in deny"], SEES["ann in allow"]):
        found = FOR_READERS[name](stores[unguarded.admin, who.place], who.filters)
        assert told(found) <= who.sees
        assert found == FOR_READERS[name](stores[house.admin, who.place], who.filters)


def test_without_both_locks_everything_shows(unguarded: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the two tests above look for is there to be found."""
    monkeypatch.setattr(PostgresStore, "_allowed", lambda *_: None)
    with closing(unguarded.store("deny")) as store:
        for name, found in results(store, SEES["eve in deny"]).items():
            assert found if name in ("last_changes", "distances", "word_counts") else told(found), name


# -- (e) near ones among many that are hidden


DIMENSIONS = 256
FILES, PIECES, MINE = 100, 30, 1


def random_vectors(count: int) -> Any:
    drawn = np.random.default_rng(7).standard_normal((count, DIMENSIONS)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@contextmanager
def crowd(house: House) -> Iterator[PostgresStore]:
    """3,000 pieces, of which Ann may see one in a hundred, all of them in the index of near ones."""
    with closing(house.store("crowd", nearest_from=0)) as store:
        with store.write() as writer:
            writer.settle_embedder("random", DIMENSIONS)
            files = [
                file_of(
                    f"{i}.py", [f"f_{i}_{k}" for k in range(PIECES)], readers=("user:ann" if i < MINE else "user:bob",)
                )
                for i in range(FILES)
            ]
            keys = [
                text_hash(embedded_text(one.outline, piece, one.text[piece.start : piece.end]))
                for one in files
                for piece in one.outline.pieces
            ]
            writer.put_vectors(keys, random_vectors(len(keys)))
            for one in files:
                writer.put(one)
            writer.blocks.set_default(DefaultAccess.DENY)
        store.catch_up()
        assert store.fact("nearest") == str(DIMENSIONS)
        yield store


def near(store: PostgresStore, vector: Any, filters: Filters) -> dict[int, float]:
    found = store.search(StoreQuery(vector=vector), filters, top_k=10)
    return {one.piece: round(one.signals["meaning"], 5) for one in found}


@pytest.mark.slow
def test_the_index_finds_what_is_found_without_it_though_nearly_all_is_hidden(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = random_vectors(FILES * PIECES)[:: FILES * PIECES // 3] + 0.3 * random_vectors(3)
    ways: list[bool] = []
    is_exact: Any = Search.__dict__["is_exact"].fget

    def noted(search: Search) -> bool:
        ways.append(is_exact(search))
        return ways[-1]

    def found(store: PostgresStore) -> list[dict[int, float]]:
        ways.clear()
        return [near(store, vector, ANN_THERE.filters) for vector in asked]

    monkeypatch.setattr(Search, "is_exact", property(noted))
    with crowd(house) as store:
        exact = found(store)
        assert all(exact)
        monkeypatch.setattr(searching, "EXACT_MOST", 5)
        # So few are compared one by one all the same.
        assert found(store) == exact
        assert set(ways) == {True}
        monkeypatch.setattr(searching, "_INDEX_SHARE", 0.0)
        with recorded(monkeypatch) as sent:
            assert found(store) == exact
        assert set(ways) == {False}
        assert sum("ORDER BY far" in one.text for one in sent) == len(asked)
        loses_rows_without_looking_further(house, store._connections.workspace)
        monkeypatch.setattr(PostgresStore, "_allowed", lambda *_: None)
        with closing(house.store("crowd")) as careless:
            assert found(careless) == exact


def loses_rows_without_looking_further(house: House, number: int) -> None:
    """The index is used; that it looks on where most is hidden is what the search rests on."""
    statement = searching._NEAR.format(DIMENSIONS, "")
    values = (searching._as_text(random_vectors(1)[0] * 100), number, 30)
    with psycopg.connect(house.application) as raw:
        enter(raw, number, ANN)
        raw.execute("SET LOCAL enable_sort = off")
        plan = raw.execute(f"EXPLAIN {psycopg.ClientCursor(raw).mogrify(statement.encode(), values)}".encode())
        assert f"dense_nearest_{DIMENSIONS}" in str(plan.fetchall())
        found = {}
        for further in ("off", "relaxed_order"):
            raw.execute("SELECT set_config('hnsw.iterative_scan', %s, true)", (further,))
            found[further] = len(raw.execute(statement.encode(), values).fetchall())
    assert found["off"] < found["relaxed_order"] == MINE * PIECES
