"""Checks an answer's citations against the context that it was written from, or the JSON of one."""

from satchel.assembly.citations.verify import citable_sources, verify
from satchel.integrations.frameworks.json_context import sources_from_document, sources_from_json

__all__ = ["citable_sources", "sources_from_document", "sources_from_json", "verify"]
