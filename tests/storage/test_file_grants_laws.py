"""Grants on files and folders against a model that is too simple to be wrong."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from satchel.errors import InvalidInput, UnknownBlock
from satchel.models.access import Effect, Grant, readers_for
from satchel.models.search import Filters
from satchel.storage.sqlite.store import EmbeddedStore
from satchel.testing.store_suite import file_of

FILES = ("f", "a/f", "a/g", "a/b/f", "a/b/c/f", "a0/f", "ab/f", "ä/f")
PLACES = (*FILES, "a", "a/", "a/b", "a/b/", "a/b/c", "a0", "ab/", "ä", "/", ".")
WHO = ("user:ann", "user:bob", "*")

commits = st.lists(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.sampled_from(FILES)),
            st.tuples(st.just("drop"), st.sampled_from(FILES)),
            st.tuples(st.just("grant"), st.sampled_from(PLACES), st.sampled_from(WHO), st.sampled_from(list(Effect))),
            st.tuples(st.just("revoke"), st.sampled_from(PLACES), st.sampled_from(WHO)),
        ),
        min_size=1,
        max_size=6,
    ),
    min_size=1,
    max_size=5,
)


class Model:
    """Who may read what, worked out anew from all that was said, each time it is asked for."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.said: dict[tuple[str, str], Effect] = {}

    def place(self, name: str) -> str | None:
        if name in self.files:
            return name
        folder = name.rstrip("/") + "/"
        if folder in ("/", "./"):
            return "/"
        if any(file.startswith(folder) for file in self.files):
            return folder
        return next((one for one in (name, folder) if any(place == one for place, _ in self.said)), None)

    def may_read(self, user: str, file: str) -> bool:
        folders = ["/", *(file[: i + 1] for i, sign in enumerate(file) if sign == "/"), file]
        last = {
            who: [self.said[place, who] for place in folders if (place, who) in self.said][-1:]
            for who in (f"user:{user}", "*")
        }
        effects = [effect for found in last.values() for effect in found]
        return Effect.ALLOW in effects and Effect.DENY not in effects


@settings(deadline=None)
@given(commits)
def test_law_of_grants_on_files(story: list[list[tuple[object, ...]]]) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        store = EmbeddedStore(Path(folder))
        try:
            # Several users from the start: what nobody was granted is denied.
            with store.write() as writer:
                writer.put(file_of("f", ["f"]))
                writer.blocks.grant(Grant(block="f", principal="user:nobody"))
            model.files.add("f")
            model.said["f", "user:nobody"] = Effect.ALLOW
            for commit in story:
                with store.write() as writer:
                    for work, name, *more in commit:
                        place = model.place(str(name))
                        if work == "put":
                            writer.put(file_of(str(name), ["f"]))
                            model.files.add(str(name))
                        elif work == "drop":
                            writer.drop(str(name))
                            model.files.discard(str(name))
                        elif work == "grant":
                            who, effect = str(more[0]), Effect(str(more[1]))
                            with suppress(UnknownBlock):
                                writer.blocks.grant(Grant(block=str(name), principal=who, effect=effect))
                                assert place is not None
                                model.said[place, who] = effect
                        else:
                            with suppress(UnknownBlock, InvalidInput):
                                writer.blocks.revoke(str(name), str(more[0]))
                                assert place is not None
                                del model.said[place, str(more[0])]
                for user in ("ann", "bob"):
                    filters = Filters(readers=readers_for(user))
                    found = {file for file in model.files if store.text_of(file, filters) is not None}
                    assert found == {file for file in model.files if model.may_read(user, file)}, (user, model.said)
        finally:
            store.close()
