"""Open the folders and packages of a question: one client for all of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from satchel.errors import InvalidOption
from satchel.service.auto_index import FOREVER
from satchel.service.client import OWNER, Caller
from satchel.service.factory.opening import is_database, place_of, settings_at
from satchel.service.joint_store import JointFolder, JointStore, Labels
from satchel.service.local_client import LocalSatchel, is_setting, open_local
from satchel.service.roots import Root, roots_of
from satchel.service.settings import Settings, index_folder
from satchel.service.several_roots import JointRoots, SeveralRoots

if TYPE_CHECKING:
    from collections.abc import Mapping

    from satchel.service.packages import Package

LocalClient: TypeAlias = "LocalSatchel | SeveralRoots"
"""Client of what is on this machine: one workspace, or several roots."""


def open_roots(
    paths: Sequence[str | os.PathLike[str]],
    *,
    caller: Caller = OWNER,
    every: float = 0.0,
    patience: float = FOREVER,
    busy_wait_s: float = 10.0,
    encoding: Any = None,
    **changed: Any,
) -> LocalClient:
    """Open one folder or database, or several folders with the packages that their settings name.

    The arguments are those of `open_local`; settings given here apply to every folder.
    """
    how: dict[str, Any] = {"caller": caller, "patience": patience, "busy_wait_s": busy_wait_s, "encoding": encoding}
    if len(paths) == 1 and is_database(paths[0]):
        return open_local(paths[0], every=every, **how, **changed)
    found = roots_of(paths)
    own_settings = {name: value for name, value in changed.items() if name in Settings.__slots__}
    own_settings = {name: value for name, value in own_settings.items() if is_setting(name, value)}
    engine = {name: value for name, value in changed.items() if name not in own_settings}
    settings = {root: settings_at(root.path, own_settings) for root in found.folders}
    packages = _packages(settings)
    first = found.folders[0]
    if len(settings) == 1 and not packages:
        return open_local(first.path, settings=settings[first], every=every, **how, **engine)
    _refuse_one_place(settings)
    folders = sorted(settings, key=lambda root: root.label)
    with ExitStack() as opened:
        clients = []
        for root in folders:
            clients.append(open_local(root.path, settings=settings[root], every=every, **how, **engine))
            opened.callback(clients[-1].close)
        for package in packages:
            # A copy never changes: it is looked at once.
            own = _package_settings(settings[first])
            clients.append(open_local(_folder_of(package, own), settings=own, every=FOREVER, **how, **engine))
            opened.callback(clients[-1].close)
        opened.pop_all()
    labels = Labels([*(root.label for root in folders), *(package.label for package in packages)])
    joint = _joint(clients, labels, len(folders), folders.index(first))
    return SeveralRoots(joint._replace(notes=found.notes), caller, patience)


def _joint(clients: Sequence[LocalSatchel], labels: Labels, folders: int, primary: int) -> JointRoots:
    from satchel.retrieval.search import Searcher

    engines = [client.engine for client in clients]
    folder = JointFolder(tuple(engine.folder for engine in engines), labels)
    store = JointStore(tuple(engine.store for engine in engines), labels)
    return JointRoots(
        clients=tuple(clients),
        labels=labels,
        folders=folders,
        primary=primary,
        searcher=Searcher(folder, store, engines[primary].embedder),
    )


def _packages(settings: Mapping[Root, Settings]) -> list[Package]:
    """The packages that the folders' settings name, each once, by label."""
    if not any(own.with_packages for own in settings.values()):
        return []
    from satchel.service.packages import find_package  # most questions ask no package

    found = [find_package(name, root.path) for root, own in settings.items() for name in own.with_packages]
    return [*{package.label: package for package in sorted(found, key=lambda package: package.label)}.values()]


def _package_settings(settings: Settings) -> Settings:
    """Settings for a package: the user's, without the filters of the project; its index is always in the cache."""
    return replace(settings, store="", include=(), exclude=(), languages=(), with_packages=(), documents="off")


def _folder_of(package: Package, settings: Settings) -> Path:
    from satchel.service.packages import package_folder

    return package_folder(package, index_folder(package.folder, settings).parent)


def _refuse_one_place(settings: Mapping[Root, Settings]) -> None:
    """Raise InvalidOption if two folders would be stored in one workspace of a database."""
    places = [place_of(root.path, own).shown for root, own in settings.items()]
    if len(set(places)) < len(places):
        problem = "names one workspace for several folders; leave `workspace=` out, so that each gets its own"
        raise InvalidOption("store", places[0], problem)
