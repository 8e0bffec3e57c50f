"""A kind of document: minutes of meetings (`*.minutes`), whose items begin with `* `."""

from satchel.indexing.documents.recognition import DocumentSource
from satchel.models.document import Document, Page, Unreadable
from satchel.models.files import DocumentKind, PageUnit

MINUTES = DocumentKind(
    unit=PageUnit.SECTION,
    reader="satchel_example_plugins.minutes:read_minutes",
    suffixes=("minutes",),
    magic=(b"MINUTES\n",),
    needs_extra=False,
)


def read_minutes(source: DocumentSource) -> Document | Unreadable:
    """Each item as a page; runs in a process without network."""
    title, *items = source.data.decode("utf-8", "replace").removeprefix("MINUTES\n").split("\n* ")
    if not items:
        return Unreadable("has no items")
    pages = [Page(number=number, markdown=item.strip()) for number, item in enumerate(items, 1)]
    return Document(pages=tuple(pages), title=title.strip())
