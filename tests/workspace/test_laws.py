"""Nobody sees what they may not read, not as content and not as a hint: random workspaces held to a model of them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from satchel import Block, ContextEngine, ContextRequest, ConversationMessage, Focus, User
from satchel.errors import UnknownBlock
from satchel.integrations.embedders.static_embedder import StaticEmbedder
from satchel.models.search import Filters
from tests.support.workspace_oracle import ALLOW, DENY, NOW, OWNER, TWIN, Deed, Entry, Model, Violation, World, opened

KNOWN_FAULTS: frozenset[str] = frozenset()
"""Faults that the machine and the soak pass over; each has a strict xfail below."""

ANN, BOB = User(id="ann"), User(id="bob")
STEPS = 22
choosers = st.integers(0, 2**32).map(Random)
"""A seed for each step: the steps shrink, and what is left of them is repeated exactly."""


@cache
def embedder() -> StaticEmbedder:
    return StaticEmbedder()


class NobodySeesWhatTheyMayNotRead(RuleBasedStateMachine):
    """Changes and requests in any order; `World` looks at every answer."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="satchel-law-"))
        self.world = World(self.folder, embedder(), KNOWN_FAULTS)

    def teardown(self) -> None:
        self.world.close()
        shutil.rmtree(self.folder)

    @initialize(chooser=choosers, size=st.integers(1, 14))
    def fill(self, chooser: Random, size: int) -> None:
        with self.world.edit(chooser) as edit:
            self.world.fill(chooser, edit, size)

    @rule(chooser=choosers)
    def change(self, chooser: Random) -> None:
        with self.world.edit(chooser) as edit:
            self.world.change(chooser, edit)

    @precondition(lambda self: self.world.model.blocks)
    @rule(chooser=choosers)
    def move_within_the_tree(self, chooser: Random) -> None:
        with self.world.edit(chooser) as edit:
            self.world.move(chooser, edit)

    @precondition(lambda self: self.world.model.grants)
    @rule(chooser=choosers)
    def revoke(self, chooser: Random) -> None:
        with self.world.edit(chooser) as edit:
            self.world.revoke(chooser, edit)

    @rule(chooser=choosers)
    def change_rights_and_fail_to_catch_up(self, chooser: Random) -> None:
        with self.world.cut_off(chooser) as edit:
            self.world.take_away(chooser, edit)

    @rule(chooser=choosers)
    def ask(self, chooser: Random) -> None:
        user = self.world.user(chooser)
        self.world.ask(self.world.request(chooser, user), self.world.engine(chooser))

    @rule(chooser=choosers)
    def ask_the_same_for_everybody(self, chooser: Random) -> None:
        request = self.world.request(chooser, ANN)
        for user in (ANN, BOB, User(id="zoe"), self.world.user(chooser)):
            for engine in self.world.engines:
                self.world.ask(_for(request, user), engine, thoroughly=False)

    @rule(chooser=choosers)
    def ask_plainly(self, chooser: Random) -> None:
        self.world.ask_plainly(chooser, self.world.user(chooser), self.world.engine(chooser))

    @rule(chooser=choosers)
    def look(self, chooser: Random) -> None:
        self.world.look(chooser, self.world.user(chooser), self.world.engine(chooser))

    @rule(chooser=choosers)
    def compare_with_a_workspace_that_hides_nothing(self, chooser: Random) -> None:
        user = self.world.user(chooser)
        with self.world.without_hidden(user) as reference:
            for _ in range(2):
                self.world.compare(self.world.request(chooser, user), self.world.engine(chooser), reference)


TestLawNobodySeesWhatTheyMayNotRead = NobodySeesWhatTheyMayNotRead.TestCase
TestLawNobodySeesWhatTheyMayNotRead.settings = settings(
    max_examples=max(1, settings().max_examples // 3), stateful_step_count=STEPS
)


def _for(request: ContextRequest, user: User) -> ContextRequest:
    return ContextRequest(
        query=request.query, user=user, type=request.type, focus=request.focus, token_budget=request.token_budget,
        hints=request.hints, format=request.format, conversation_history=request.conversation_history,
    )  # fmt: skip


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 12))])
def test_law_random_workspaces_keep_to_the_model(seed: int, tmp_path: Path) -> None:
    """A short run of what scripts/soak_workspace.py does at length."""
    chooser = Random(seed)
    world = World(tmp_path, embedder(), KNOWN_FAULTS)
    try:
        with world.edit(chooser) as edit:
            world.fill(chooser, edit, 30)
        for _ in range(4):
            with world.edit(chooser) as edit:
                world.change(chooser, edit)
            for _ in range(10):
                world.ask(world.request(chooser, world.user(chooser)), world.engine(chooser))
            world.look(chooser, world.user(chooser), world.engine(chooser))
        user = world.user(chooser)
        with world.without_hidden(user) as reference:
            for _ in range(8):
                world.compare(world.request(chooser, user), world.engine(chooser), reference)
    finally:
        world.close()


# -- the model itself: rules as they are written, on trees that can be checked by eye


def tree(**parents: str | None) -> Model:
    model = Model(default=DENY)
    for name, parent in parents.items():
        model.blocks[name] = Entry(name, "page", parent, 0, True, "", "", "", {}, None, frozenset(), 0)
    return model


def test_the_model_inherits_refuses_and_cuts_off() -> None:
    model = tree(top=None, middle="top", leaf="middle", aside="top", orphan="nowhere")
    assert model.readable("ann") == set()
    model.grants["top", "group:staff"] = True
    model.groups["staff"] = {"ann"}
    assert model.readable("ann") == model.readable("bob", ["staff"]) == {"top", "middle", "leaf", "aside"}
    model.grants["middle", "user:ann"] = False
    assert model.readable("ann") == {"top", "aside"}
    model.grants["leaf", "user:ann"] = True
    assert model.readable("ann") == {"top", "aside", "leaf"}
    model.grants["leaf", "*"] = False
    assert model.readable("ann") == {"top", "aside"}
    model.blocks["aside"].inherits = False
    assert model.readable("ann") == {"top"}
    model.default = ALLOW
    assert model.readable("cem") == {"top", "middle", "orphan"}
    model.default = OWNER
    assert model.readable("cem") == set(model.blocks)


def test_the_model_makes_a_root_of_what_has_no_readable_parent() -> None:
    model = tree(top=None, middle="top", leaf="middle", other="middle", below="leaf")
    seen = {"top", "leaf", "other", "below"}
    assert model.trail("below", seen) == ["below", "leaf"]
    assert model.children("top", seen) == model.children("middle", seen) == model.siblings("leaf", seen, 2) == []
    assert model.descendants("top", seen, 9) == []
    assert model.distance("leaf", "other", seen) is None
    assert model.distance("below", "leaf", seen) == 1


# -- the world can fail: each of these is a workspace that differs from its model in one way


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, embedder(), KNOWN_FAULTS)
    with made.edit(Random(0)) as edit:
        edit.put(Block(id="idQXZ00001", type="page", title="titleQXZ00001 harbor"))
        edit.put(Block(id="idQXZ00002", type="text", parent="idQXZ00001", content="bodyQXZ00002 harbor budget"))
        edit.grant("idQXZ00001", "user:ann")
    yield made
    made.close()


def entry(block_id: str, parent: str | None = None) -> Entry:
    return Entry(block_id, "text", parent, 0, True, "", "", "", {}, None, frozenset({block_id[-5:]}), 0)


def test_a_leak_is_noticed(world: World) -> None:
    world.model.blocks = {"idQXZ00001": entry("idQXZ00001"), "idQXZ00002": entry("idQXZ00002", "idQXZ00001")}
    world.model.grants = {("idQXZ00001", "user:ann"): True, ("idQXZ00002", "user:ann"): False}
    world.model.default = DENY
    with pytest.raises(Violation, match="leak: ann is shown the id idQXZ00002"):
        world.ask(ContextRequest(query="harbor", user=ANN), world.engines[0])
    with pytest.raises(Violation, match="leak: ann focused idQXZ00002"):
        world.ask(ContextRequest(query="x", user=ANN, focus=Focus(block_id="idQXZ00002")), world.engines[0])


def test_a_hint_is_noticed(world: World) -> None:
    world.model.blocks = {"idQXZ00001": entry("idQXZ00001"), "idQXZ00002": entry("idQXZ00002", "idQXZ00001")}
    world.model.grants = {("idQXZ00001", "user:ann"): True}
    world.model.deeds = [Deed("idQXZ00002", "ann", "edit", NOW, "", "00003")]
    world.model.default = DENY
    with world.without_hidden(ANN) as reference, pytest.raises(Violation, match="hint: ann: serialized"):
        world.compare(ContextRequest(query="harbor", user=ANN), world.engines[0], reference)


# -- promises with a name


def filters(engine: ContextEngine) -> Filters:
    return engine.filters_for(ANN)


def shared(folder: Path) -> ContextEngine:
    """A page that is Bob's, and below it a block that Ann may read too."""
    engine = opened(folder, embedder())
    with engine.workspace.edit() as edit:
        edit.put(Block(id="secret", type="page", title="Layoffs"))
        edit.put(Block(id="open", type="text", parent="secret", content="The harbor budget"))
        edit.put(Block(id="closed", type="text", parent="open", content="The harbor salaries"))
        edit.put(Block(id="last", type="text", parent="open", position=1, content="The harbor crane"))
        edit.grant("secret", "user:bob")
        edit.grant("open", "user:ann")
        edit.deny("closed", "user:ann")
        edit.link("secret", "open", name="the layoffs")
    return engine


def test_a_revoked_grant_holds_for_the_very_next_request_everywhere(tmp_path: Path) -> None:
    request = ContextRequest(query="harbor budget", user=ANN)
    with shared(tmp_path) as engine, opened(tmp_path, embedder()) as other:
        for one in (engine, other, engine):
            assert "harbor budget" in one.build(request).serialized.partition("User Query")[0]
        with engine.workspace.edit() as edit:
            edit.revoke("open", "user:ann")
        for one in (other, engine):
            payload = one.build(request)
            assert payload.items == ()
            assert len(payload.ledger) == 0
            assert one.search("harbor budget", filters=one.filters_for(ANN)).hits == ()


def test_an_id_that_may_not_be_read_is_as_unknown_as_one_that_never_was(tmp_path: Path) -> None:
    with shared(tmp_path) as engine:
        told = []
        for wanted in ("closed", "nobody"):
            for focus in (Focus(block_id=wanted), Focus(page_id=wanted), Focus(database_id=wanted)):
                with pytest.raises(UnknownBlock) as caught:
                    engine.build(ContextRequest(query="harbor", user=ANN, focus=focus))
                told.append(str(caught.value).replace(wanted, "…"))
            with pytest.raises(UnknownBlock) as caught:
                engine.expand(wanted, filters=engine.filters_for(ANN))
            told.append(str(caught.value).replace(wanted, "…"))
        assert len(set(told)) == 1


def test_a_hidden_block_has_nothing_below_it_and_leads_nowhere(tmp_path: Path) -> None:
    with shared(tmp_path) as engine:
        store, mine = engine.store, filters(engine)
        assert store.children(["secret"], mine, limit=9) == {}
        assert store.descendants(["secret"], mine, limit=9, deepest=9) == {}
        assert store.links_from(["secret"], mine) == {}
        assert store.links_to(["open"], mine) == {}
        assert store.siblings("open", mine, count=2) == []
        assert [step.id for step in store.trails(["last"], mine)["last"]] == ["last", "open"]


def test_a_block_cannot_take_the_place_of_a_turn_of_the_conversation(tmp_path: Path) -> None:
    with opened(tmp_path, embedder()) as engine:
        with engine.workspace.edit() as edit:
            edit.put(Block(id="conversation:1", type="text", content="The harbor budget"))
        said = (ConversationMessage(role="user", content="Where is the crane?"),)
        focus = Focus(block_id="conversation:1")
        payload = engine.build(ContextRequest(query="harbor", user=ANN, focus=focus, conversation_history=said))
        assert "Where is the crane?" in payload.serialized


# -- faults that were found; each names what is wrong, and fails once it is mended


def test_a_block_below_a_hidden_one_is_a_root(tmp_path: Path) -> None:
    with shared(tmp_path) as engine:
        block = engine.store.block("open", filters(engine))
        assert block is not None
        assert block.parent is None


def test_a_hidden_block_has_no_siblings(tmp_path: Path) -> None:
    with shared(tmp_path) as engine:
        assert engine.store.siblings("closed", filters(engine), count=2) == []


def test_hidden_blocks_do_not_decide_between_equals(tmp_path: Path) -> None:
    orders = set()
    for hidden in range(6):
        folder = tmp_path / str(hidden)
        folder.mkdir()
        with opened(folder, embedder()) as engine:
            with engine.workspace.edit() as edit:
                edit.put(Block(id="one", type="text", content=TWIN))
                for i in range(hidden):
                    edit.put(Block(id=f"hidden-{i}", type="text", content=f"Salaries {i}"))
                edit.put(Block(id="two", type="text", content=TWIN))
                for block_id in ("one", "two"):
                    edit.grant(block_id, "user:ann")
            answers = [
                engine.search(text, filters=filters(engine)).hits for text in ("customs", "budget", "moved house")
            ]
            orders.add(tuple(hit.block_id for hits in answers for hit in hits))
    assert len(orders) == 1


def test_a_hidden_block_does_not_show_in_a_file_of_the_same_id(tmp_path: Path) -> None:
    told = []
    for hidden in (False, True):
        folder = tmp_path / str(hidden)
        folder.mkdir()
        (folder / "crane.py").write_text("def crane():\n    return 1\n\n\ndef harbor():\n    return crane()\n")
        with opened(folder, embedder()) as engine:
            engine.index()
            with engine.workspace.edit() as edit:
                edit.put(Block(id="any", type="text", content="Salaries", inherits=False))
                if hidden:
                    edit.put(Block(id="crane.py#harbor", type="text", content="Salaries", inherits=False))
                edit.set_default("allow")
            focus = Focus(block_id="crane.py#harbor")
            told.append(engine.build(ContextRequest(query="harbor", user=ANN, focus=focus)).serialized)
    assert told[0] == told[1]


@pytest.mark.parametrize("odd", ["\ud800", "crane.py:" + "9" * 5000], ids=["surrogate", "digits"])
def test_an_odd_id_is_an_unknown_one(odd: str, tmp_path: Path) -> None:
    (tmp_path / "crane.py").write_text("def crane():\n    return 1\n")
    with opened(tmp_path, embedder()) as engine:
        engine.index()
        with pytest.raises(UnknownBlock):
            engine.expand(odd)
        with pytest.raises(UnknownBlock):
            engine.build(ContextRequest(query="harbor", user=ANN, focus=Focus(block_id=odd)))
