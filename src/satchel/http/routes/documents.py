"""Routes for uploaded documents and for page images."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi import Path as InPath
from starlette.responses import Response

from satchel.errors import InvalidInput, UnknownBlock, UnknownPage
from satchel.http import schemas
from satchel.http.routes.requests import ANY, as_json, describe, satchel_for, satchel_for_owner, work_of
from satchel.http.schemas import Name
from satchel.models.access import DefaultAccess, Grant
from satchel.models.request import User
from satchel.service.maintenance import split_notes
from satchel.service.open_roots import LocalClient
from satchel.service.uploads import UPLOADS, Upload, remove

router = APIRouter(prefix="/v1", tags=["documents"])

_OWNERS_ALONE: Final = (
    "only the owner may read this workspace; first allow several users: `satchel workspace default deny` "
    "(or POST /v1/blocks with a policy)"
)

_DOCUMENT: Final = f"/documents/{{path:{ANY}}}"
_Where = Annotated[str, InPath(min_length=1, max_length=1_000, examples=["reports/2026.pdf"])]
_BINARY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {"type": "string"}}}}
}


@router.get("/documents", **describe("The documents that the caller may read", schemas.Documents, 422))
async def list_documents(request: Request, user: Name | None = None) -> Response:
    """Documents with pages (PDF, office files, …) and their ids, and all files that were uploaded."""
    client = satchel_for(request, User(id=user) if user else None)

    def listed() -> Response:
        store, filters = client.engine.store, client.filters()
        documents = [
            {"path": path, "doc_id": doc_id.hex()} for path, doc_id in sorted(store.documents(filters).items())
        ]
        uploads = [path for path in sorted(store.files()) if path.startswith(f"{UPLOADS}/")]
        readable = [path for path in uploads if store.text_of(path, filters) is not None]
        return as_json({"documents": documents, "uploads": readable})

    return await work_of(request).question(listed)


@router.put(_DOCUMENT, openapi_extra=_BINARY, **describe("Upload a document", schemas.Uploaded, 422, 503))
async def upload_document(
    request: Request,
    path: _Where,
    readers: Annotated[
        list[Name] | None, Query(description="Who may read the document: user:ann, group:staff or *")
    ] = None,
) -> Response:
    """Store a file as `uploads/<path>` in the workspace, replacing an existing file, and index it; for owners.

    The body is the file. An incomplete upload changes nothing.
    """
    client, work = satchel_for_owner(request, "upload documents"), work_of(request)
    if readers and client.engine.store.default_access() is DefaultAccess.OWNER:
        raise InvalidInput("readers", readers[0], _OWNERS_ALONE)
    folder = client.engine.folder_here()
    upload = await work.long(lambda: Upload(folder, path))
    try:
        async for part in request.stream():
            if part:
                await work.long(lambda part=part: upload.write(part))  # type: ignore[misc]
        await work.long(upload.keep)
    finally:
        upload.close()
    return await work.long(lambda: _index(client, upload, readers or []))


@router.delete(_DOCUMENT, **describe("Remove an uploaded document", schemas.IndexedAnswer, 404, 422, 503))
async def remove_document(request: Request, path: _Where) -> Response:
    """Remove `uploads/<path>` and its rows in the index; for owners."""
    client = satchel_for_owner(request, "remove documents")

    def remove_file() -> Response:
        if not remove(client.engine.folder_here(), path):
            raise UnknownBlock(f"{UPLOADS}/{path}")
        return as_json(client.index().to_dict())

    return await work_of(request).long(remove_file)


@router.get("/pages", **describe("A picture of a page", None, 404, 422, also="image/jpeg"))
async def page_picture(
    request: Request,
    document: Annotated[str, Query(min_length=1, max_length=4_096, description="Path or doc_id of the document")],
    page: Annotated[int, Query(ge=1, le=1_000_000)],
    thumbnail: bool = False,
    user: Name | None = None,
) -> Response:
    """A picture of a page of a PDF or a picture (JPEG), made at the first request."""
    client = satchel_for(request, User(id=user) if user else None)

    def picture() -> Response:
        library = client.library()
        doc_id = client.engine.store.documents(client.filters()).get(document)
        file = library.page_image(doc_id.hex() if doc_id else document, page, thumbnail=thumbnail)
        if file is None:
            raise UnknownPage(document, page)
        return Response(file.read_bytes(), media_type="image/jpeg")

    return await work_of(request).long(picture)


def _index(client: LocalClient, upload: Upload, readers: list[str]) -> Response:
    if readers:
        with client.engine.workspace.edit() as edit:
            for principal in readers:
                edit.add(Grant(block=upload.path, principal=principal, is_path=True))
    client.index()
    notes = client.engine.store.notes()
    note = notes.get(upload.path)
    is_there = upload.path in client.engine.store.files() and upload.path not in split_notes(notes)[0]
    if not is_there and note is None:
        note = "not indexed: the file type is not supported, or the folder is ignored"
    return as_json({"path": upload.path, "bytes": upload.size, "indexed": is_there, "note": note})
