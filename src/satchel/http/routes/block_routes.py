"""Routes for blocks of a workspace: read, change, share, and record activity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Request
from fastapi import Path as InPath
from pydantic import ConfigDict, Field
from starlette.responses import Response

from satchel.errors import InvalidInput, NotAllowed, UnknownBlock
from satchel.http import schemas
from satchel.http.routes.requests import ANY, as_json, caller_of, describe, satchel_for, satchel_for_owner, work_of
from satchel.http.schemas import Name, Strict, with_examples
from satchel.models.block import Action, Block, LinkKind, Notice, Record
from satchel.models.request import User
from satchel.service.importing import Edit, record_from
from satchel.service.open_roots import LocalClient

router = APIRouter(prefix="/v1", tags=["workspace"])

_MAX_RECORDS: Final = 10_000  # of a commit: all or nothing, and other writers wait; split larger changes
_MAX_CHILDREN: Final = 200  # listed below a block; bounds the response of a database with many rows
_BLOCK: Final = f"/blocks/{{block_id:{ANY}}}"
_ID = Annotated[str, InPath(min_length=1, max_length=4_096, examples=["launch"])]

# Removals by record kind: the method of Edit, the required fields, and the optional fields.
_REMOVALS: Final[dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]]] = {
    "delete": ("delete", ("id",), ()),
    "move": ("move", ("id", "parent"), ("position",)),
    "revoke": ("revoke", ("block", "principal"), ()),
    "unlink": ("unlink", ("source",), ("kind", "target")),
    "inherits": ("set_inherits", ("block", "inherits"), ()),
}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


# Check and description of a field's value; all further fields must be non-empty text.
_FIELD_CHECKS: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "position": (lambda value: isinstance(value, int | float) and not isinstance(value, bool), "a number"),
    "inherits": (lambda value: isinstance(value, bool), "true or false"),
    "kind": (lambda value: value in list(LinkKind), f"one of {', '.join(LinkKind)}"),
}
_NULLABLE: Final = ("position", "parent", "target")


class RecordBody(Strict):
    """One change. `block`, `link`, `activity`, `grant`, `group` and `policy` have the fields of an export's lines
    (`satchel workspace export`); `delete` has id; `move` id, parent and position; `revoke` block and principal;
    `unlink` source, and may have kind and target; `inherits` block and inherits.
    """

    model_config = ConfigDict(extra="allow")

    record: Literal[
        "block", "link", "activity", "grant", "group", "policy", "delete", "move", "revoke", "unlink", "inherits"
    ]


class EditBody(Strict):
    """Changes to a workspace, all made in one commit or none."""

    model_config = with_examples("EditBody")

    records: Annotated[list[RecordBody], Field(min_length=1, max_length=_MAX_RECORDS)]


class ActivityBody(Strict):
    """That a user saw or changed a block; the caller, unless an owner says who."""

    model_config = with_examples("ActivityBody")

    block: Name
    action: Literal["view", "edit"] = "view"
    user: Name | None = None


@router.post("/blocks", **describe("Change a workspace in one commit", schemas.Edited, 404, 422, 503))
async def edit_blocks(request: Request, body: EditBody) -> Response:
    """Put, move, delete, link, record, grant, deny and revoke; for owners. Either all of it is done or nothing."""
    client = satchel_for_owner(request, "change the workspace")
    return await work_of(request).long(lambda: _edit(client, body.records))


@router.get(
    f"/blocks/{{block_id:{ANY}}}",
    **describe("A block with its parents, children and links", schemas.BlockAnswer, 404, 422),
)
async def read_block(request: Request, block_id: _ID, user: Name | None = None) -> Response:
    """The block, the way down to it, and what is directly below it, as far as the caller may read."""
    client = satchel_for(request, User(id=user) if user else None)
    return await work_of(request).question(lambda: _read(client, block_id))


@router.delete(_BLOCK, **describe("Remove a block and all blocks below it", schemas.Edited, 404, 422, 503))
async def delete_block(request: Request, block_id: _ID) -> Response:
    """Remove it; for owners."""
    client = satchel_for_owner(request, "change the workspace")
    change = RecordBody.model_validate({"record": "delete", "id": block_id})
    return await work_of(request).long(lambda: _edit(client, [change]))


@router.post("/activity", **describe("Record that a block was viewed or edited", schemas.Edited, 404, 422, 503))
async def record_activity(request: Request, body: ActivityBody) -> Response:
    """Activity raises the rank of blocks in contexts. Users may record their own activity."""
    caller = caller_of(request)
    own_id = caller.user.id if caller.user else None
    who = body.user or own_id
    if who is None:
        raise InvalidInput("user", None, "is missing: give the user who acted")
    if not caller.is_owner and who != own_id:
        raise NotAllowed("user", who, "only an owner's token may record activity of other users")
    client = satchel_for(request)

    def record() -> Response:
        if not caller.is_owner and client.engine.store.block(body.block, client.filters()) is None:
            raise UnknownBlock(body.block)
        with client.engine.workspace.edit() as edit:
            edit.record(who, Action(body.action), body.block, datetime.now(UTC))
        return as_json({"done": 1, "generation": client.generation})

    return await work_of(request).long(record)


def _edit(client: LocalClient, bodies: list[RecordBody]) -> Response:
    changes = [
        _change(f"records[{i}]", {"record": body.record, **(body.model_extra or {})}) for i, body in enumerate(bodies)
    ]
    with client.engine.workspace.edit() as edit:
        for change in changes:
            _apply(edit, change)
    return as_json({"done": len(changes), "generation": client.generation})


def _change(where: str, values: dict[str, Any]) -> Record | dict[str, Any]:
    """The record to put or add, or the checked values of a removal."""
    kind = values["record"]
    if kind not in _REMOVALS:
        if kind == "activity":
            values = {"timestamp": datetime.now(UTC).isoformat(), **values}
        return record_from(where, values)
    _, needed, possible = _REMOVALS[kind]
    for name in needed:
        if name not in values:
            raise InvalidInput(f"{where}.{name}", None, f"is missing; {kind} needs it")
    for name, value in values.items():
        if name not in ("record", *needed, *possible):
            raise InvalidInput(f"{where}.{name}", value, f"is not a field of {kind}")
        is_valid, expected = _FIELD_CHECKS.get(name, (_is_text, "non-empty text"))
        if not is_valid(value) and not (value is None and name in _NULLABLE):
            raise InvalidInput(f"{where}.{name}", value, f"must be {expected}")
    return values


def _apply(edit: Edit, change: Record | dict[str, Any]) -> None:
    if isinstance(change, dict):
        method, needed, possible = _REMOVALS[change["record"]]
        options = {name: change[name] for name in possible if name in change}
        getattr(edit, method)(*(change[name] for name in needed), **options)
    elif isinstance(change, Block):
        edit.put(change)
    else:
        assert not isinstance(change, Notice)  # no body holds a Notice: see RecordBody
        edit.add(change)


def _read(client: LocalClient, block_id: str) -> Response:
    store, filters = client.engine.store, client.filters()
    block = store.block(block_id, filters)
    if block is None:
        raise UnknownBlock(block_id)
    trail = store.trails([block_id], filters).get(block_id, ())
    children = store.children([block_id], filters, limit=_MAX_CHILDREN).get(block_id, [])
    values: dict[str, Any] = {field.name: getattr(block, field.name) for field in fields(block)}
    values["last_modified"] = block.last_modified.isoformat() if block.last_modified else None
    values |= {"type": str(block.type), "metadata": dict(block.metadata)}
    if block.parent not in {step.id for step in trail}:
        values["parent"] = None
    return as_json(
        {
            "block": values,
            "trail": [step._asdict() for step in reversed(trail) if step.id != block_id],
            "children": [{"id": child.id, "type": str(child.type), "title": child.title} for child in children],
        }
    )
