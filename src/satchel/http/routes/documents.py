"""Documents that are sent to the workspace, and pictures of pages."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi import Path as InPath
from starlette.responses import Response

from satchel.errors import InvalidInput, UnknownBlock, UnknownPage
from satchel.http import response_models as answers
from satchel.http.routes.requests import ANY, as_json, caller_of, describe, satchel_for, work_of
from satchel.http.schemas import Name
from satchel.models.access import DefaultAccess, Grant
from satchel.models.request import User
from satchel.service.local_client import LocalSatchel
from satchel.service.maintenance import split_notes
from satchel.service.uploads import UPLOADS, Upload, remove

router = APIRouter(prefix="/v1", tags=["documents"])

_Where = Annotated[str, InPath(min_length=1, max_length=1_000, examples=["reports/2026.pdf"])]
_BINARY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {"type": "string"}}}}
}


@router.get("/documents", **describe("The documents that can be read", answers.Documents, 422))
async def list_documents(request: Request, user: Name | None = None) -> Response:
    """Documents with pages (PDF, office files, …) and their ids, and all files that were uploaded."""
    bag = satchel_for(request, User(id=user) if user else None)

    def listed() -> Response:
        store, filters = bag.engine.store, bag.filters()
        found = store.documents(filters)
        sent = [path for path in sorted(store.files()) if path.startswith(f"{UPLOADS}/")]
        return as_json(
            {
                "documents": [{"path": path, "doc_id": found[path].hex()} for path in sorted(found)],
                "uploads": [path for path in sent if store.text_of(path, filters) is not None],
            }
        )

    return await work_of(request).question(listed)


@router.put(
    f"/documents/{{path:{ANY}}}", openapi_extra=_BINARY, **describe("Send a document", answers.Uploaded, 422, 503)
)
async def upload_document(
    request: Request,
    path: _Where,
    readers: Annotated[list[Name] | None, Query(description="Who may read it: user:ann, group:staff or *")] = None,
) -> Response:
    """Keep a file as `uploads/<path>` below the workspace, in place of what was there, and index it; for owners.

    The body is the file. It is there whole or not at all.
    """
    caller_of(request).must_be_owner("send documents")
    bag, work = satchel_for(request), work_of(request)
    if readers and bag.engine.store.default_access() is DefaultAccess.OWNER:
        told = (
            "this workspace is its owner's alone; first say that it has several users: `satchel workspace default deny`"
        )
        raise InvalidInput("readers", readers[0], f"{told} (or POST /v1/blocks with a policy)")
    folder = bag.engine.folder_here()
    upload = await work.long(lambda: Upload(folder, path))
    try:
        async for part in request.stream():
            if part:
                await work.long(lambda part=part: upload.write(part))  # type: ignore[misc]
        await work.long(upload.keep)
    finally:
        upload.close()
    return await work.long(lambda: as_json(_indexed(bag, upload, readers or [])))


@router.delete(
    f"/documents/{{path:{ANY}}}", **describe("Remove a document that was sent", answers.IndexedAnswer, 404, 422, 503)
)
async def remove_document(request: Request, path: _Where) -> Response:
    """Remove `uploads/<path>` and what the index holds of it; for owners."""
    caller_of(request).must_be_owner("remove documents")
    bag = satchel_for(request)

    def removed() -> Response:
        if not remove(bag.engine.folder_here(), path):
            raise UnknownBlock(f"{UPLOADS}/{path}")
        return as_json(bag.index().to_dict())

    return await work_of(request).long(removed)


@router.get("/pages", **describe("A picture of a page", None, 404, 422, media_type="image/jpeg"))
async def page_picture(
    request: Request,
    document: Annotated[str, Query(min_length=1, max_length=4_096, description="Its path or doc_id")],
    page: Annotated[int, Query(ge=1, le=1_000_000)],
    thumbnail: bool = False,
    user: Name | None = None,
) -> Response:
    """A picture of a page of a PDF or a picture (JPEG), made when it is asked for first."""
    bag = satchel_for(request, User(id=user) if user else None)

    def picture() -> bytes:
        library = bag.library()
        held = bag.engine.store.documents(bag.filters()).get(document)
        made = library.page_image(held.hex() if held else document, page, thumbnail=thumbnail)
        if made is None:
            raise UnknownPage(document, page)
        return made.read_bytes()

    data = await work_of(request).long(picture)
    return Response(data, media_type="image/jpeg", headers={"cache-control": "private, max-age=600"})


def _indexed(bag: LocalSatchel, upload: Upload, readers: list[str]) -> dict[str, Any]:
    if readers:
        with bag.engine.workspace.edit() as edit:
            for principal in readers:
                edit.add(Grant(block=upload.path, principal=principal, is_path=True))
    bag.index()
    notes = bag.engine.store.notes()
    note = notes.get(upload.path)
    is_there = upload.path in bag.engine.store.files() and upload.path not in split_notes(notes)[0]
    if not is_there and note is None:
        note = "it is not indexed: its kind is not read here, or the folder is ignored"
    return {"path": upload.path, "bytes": upload.size, "indexed": is_there, "note": note}
