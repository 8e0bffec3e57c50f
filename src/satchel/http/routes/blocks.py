"""Blocks of a workspace: read, written, shared, and what was done to them."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Request
from fastapi import Path as InPath
from pydantic import ConfigDict, Field
from starlette.responses import Response

from satchel.errors import InvalidInput, NotAllowed, UnknownBlock
from satchel.http import response_models as answers
from satchel.http.routes.requests import ANY, as_json, caller_of, describe, satchel_for, work_of
from satchel.http.schemas import Name, Strict, with_examples
from satchel.models.block import Action, Block, LinkKind, Notice, Record
from satchel.service.importing import Edit, record_from
from satchel.service.local_client import LocalSatchel

router = APIRouter(prefix="/v1", tags=["workspace"])

_MOST_RECORDS: Final = 10_000
_MOST_CHILDREN: Final = 200
_ID = Annotated[str, InPath(min_length=1, max_length=4_096, examples=["launch"])]

_TAKEN_AWAY: Final = ("delete", "move", "revoke", "unlink", "inherits")


class RecordBody(Strict):
    """One change. `block`, `link`, `activity`, `grant`, `group` and `policy` have the fields of an export's lines
    (`satchel workspace export`); `delete` has id; `move` id, parent and position; `revoke` block and principal;
    `unlink` source, and may have kind and target; `inherits` block and inherits.
    """

    model_config = ConfigDict(extra="allow")

    record: Literal[
        "block", "link", "activity", "grant", "group", "policy", "delete", "move", "revoke", "unlink", "inherits"
    ]

    def values(self) -> dict[str, Any]:
        """What was sent."""
        return {"record": self.record, **(self.model_extra or {})}


class EditBody(Strict):
    """Changes to a workspace, all made in one commit or none."""

    model_config = with_examples("EditBody")

    records: Annotated[list[RecordBody], Field(min_length=1, max_length=_MOST_RECORDS)]


class ActivityBody(Strict):
    """That a user saw or changed a block; the caller, unless an owner says who."""

    model_config = with_examples("ActivityBody")

    block: Name
    action: Literal["view", "edit"] = "view"
    user: Name | None = None


@router.post(
    "/blocks", **describe("edit_blocks", "Change a workspace in one commit", 404, 422, 503, model=answers.Edited)
)
async def edit_blocks(request: Request, body: EditBody) -> Response:
    """Put, move, delete, link, record, grant, deny and revoke; for owners. Either all of it is done or nothing."""
    caller_of(request).must_be_owner("change the workspace")
    bag = satchel_for(request)
    return await work_of(request).long(lambda: as_json(_edited(bag, body)))


@router.get(
    f"/blocks/{{block_id:{ANY}}}",
    **describe("read_block", "A block, and what is around it", 404, 422, model=answers.BlockAnswer),
)
async def read_block(request: Request, block_id: _ID, user: Name | None = None) -> Response:
    """The block, the way down to it, and what is directly below it, as far as the caller may read."""
    from satchel.models.request import User

    bag = satchel_for(request, User(id=user) if user else None)
    return await work_of(request).question(lambda: as_json(_read(bag, block_id)))


@router.delete(
    f"/blocks/{{block_id:{ANY}}}",
    **describe("delete_block", "Remove a block and all that is below it", 404, 422, 503, model=answers.Edited),
)
async def delete_block(request: Request, block_id: _ID) -> Response:
    """Remove it; for owners."""
    caller_of(request).must_be_owner("change the workspace")
    bag = satchel_for(request)
    body = EditBody(records=[RecordBody.model_validate({"record": "delete", "id": block_id})])
    return await work_of(request).long(lambda: as_json(_edited(bag, body)))


@router.post(
    "/activity",
    **describe("record_activity", "Note that a block was seen or changed", 404, 422, 503, model=answers.Edited),
)
async def record_activity(request: Request, body: ActivityBody) -> Response:
    """What people see and change counts when contexts are built. A user may record what they did themselves."""
    caller = caller_of(request)
    who = body.user or (caller.user.id if caller.user else None)
    if who is None:
        raise InvalidInput("user", None, "say who it was")
    if not caller.is_owner and (caller.user is None or who != caller.user.id):
        raise NotAllowed("user", who, "only an owner's token may record what others did")
    bag = satchel_for(request)

    def record() -> Response:
        if not caller.is_owner and bag.engine.store.block(body.block, bag.filters()) is None:
            raise UnknownBlock(body.block)
        with bag.engine.workspace.edit() as edit:
            edit.record(who, Action(body.action), body.block, datetime.now(UTC))
        return as_json({"done": 1, "generation": bag.engine.store.generation})

    return await work_of(request).long(record)


def _edited(bag: LocalSatchel, body: EditBody) -> dict[str, Any]:
    changes = [_change(f"records[{i}]", one.values()) for i, one in enumerate(body.records)]
    with bag.engine.workspace.edit() as edit:
        for i, change in enumerate(changes):
            _do(edit, change, f"records[{i}]")
    return {"done": len(changes), "generation": bag.engine.store.generation}


def _change(where: str, values: dict[str, Any]) -> Record | dict[str, Any]:
    if values["record"] not in _TAKEN_AWAY:
        if values["record"] == "activity":
            values = {"timestamp": datetime.now(UTC).isoformat(), **values}
        return record_from(where, values)
    fields_of: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
        "delete": (("id",), ()),
        "move": (("id", "parent"), ("position",)),
        "revoke": (("block", "principal"), ()),
        "unlink": (("source",), ("kind", "target")),
        "inherits": (("block", "inherits"), ()),
    }
    needed, possible = fields_of[values["record"]]
    for name in needed:
        if name not in values:
            raise InvalidInput(f"{where}.{name}", None, f"is missing; {values['record']} needs it")
    for name, value in values.items():
        if name not in ("record", *needed, *possible):
            raise InvalidInput(f"{where}.{name}", value, f"is no field of {values['record']}")
        _check(f"{where}.{name}", name, value)
    return values


def _check(where: str, name: str, value: Any) -> None:
    match name:
        case "position" if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise InvalidInput(where, value, "must be a number")
        case "inherits" if not isinstance(value, bool):
            raise InvalidInput(where, value, "must be true or false")
        case "kind" if value not in list(LinkKind):
            raise InvalidInput(where, value, f"must be one of {', '.join(LinkKind)}")
        case "parent" | "target" if value is None:
            return
        case "position" | "inherits" | "kind":
            return
        case _ if not isinstance(value, str) or not value:
            raise InvalidInput(where, value, "must be text that is not empty")


def _do(edit: Edit, change: Record | dict[str, Any], where: str) -> None:
    if isinstance(change, Block):
        edit.put(change)
    elif isinstance(change, Notice):
        raise InvalidInput(where, "notice", "is not for this")
    elif not isinstance(change, dict):
        edit.add(change)
    else:
        match change["record"]:
            case "delete":
                edit.delete(change["id"])
            case "move":
                edit.move(change["id"], change["parent"], change.get("position"))
            case "revoke":
                edit.revoke(change["block"], change["principal"])
            case "unlink":
                kind = change.get("kind")
                edit.unlink(change["source"], kind=LinkKind(kind) if kind else None, target=change.get("target"))
            case "inherits":
                edit.set_inherits(change["block"], change["inherits"])


def _read(bag: LocalSatchel, block_id: str) -> dict[str, Any]:
    store, filters = bag.engine.store, bag.filters()
    block = store.block(block_id, filters)
    if block is None:
        raise UnknownBlock(block_id)
    trail = store.trails([block_id], filters).get(block_id, ())
    below = store.children(block_id, filters, limit=_MOST_CHILDREN)
    readable = {step.id for step in trail}
    told = _told(block)
    if told.get("parent") not in readable:
        told["parent"] = None
    return {
        "block": told,
        "trail": [step._asdict() for step in reversed(trail) if step.id != block_id],
        "children": [{"id": one.id, "type": str(one.type), "title": one.title} for one in below],
    }


def _told(block: Block) -> dict[str, Any]:
    told = {one.name: getattr(block, one.name) for one in fields(block)}
    told["last_modified"] = block.last_modified.isoformat() if block.last_modified else None
    return {**told, "type": str(block.type), "metadata": dict(block.metadata)}
