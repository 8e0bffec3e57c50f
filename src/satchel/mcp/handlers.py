"""The server: tools and resources of one workspace, whichever way the requests come."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from satchel import __version__
from satchel.errors import InvalidInput, SatchelError, UnknownBlock
from satchel.mcp import answers
from satchel.mcp.progress import Gone, Telling, Work
from satchel.mcp.result_pages import MOST_CHARS, Limits, Result, failure, refusal
from satchel.mcp.tools import INSTRUCTIONS, STATUS, TOOLS, checked

if TYPE_CHECKING:
    from satchel.service.identity import Caller
    from satchel.service.local_client import LocalSatchel


_log: Final = logging.getLogger(__name__)
_LIST_IS_FRESH_MS: Final = 3_600_000
_RESOURCE_NOT_FOUND: Final = -32002
"""What the handshake versions call it; the later ones say that the parameters are wrong."""

Asked: TypeAlias = "ServerRequestContext[Any, Any]"


class Desk:
    """Where requests arrive: who asks, what they may see, and how long an answer may be."""

    def __init__(
        self,
        opened: Callable[[], LocalSatchel],
        caller_of: Callable[[Asked], Caller],
        *,
        max_result_chars: int = MOST_CHARS,
        after_listing: Callable[[], None] = lambda: None,
        if_user_is_missing: str = "",
    ) -> None:
        self._opened = opened
        self._caller_of = caller_of
        self._chars = max_result_chars
        self._after_listing = after_listing
        self._if_user_is_missing = if_user_is_missing
        self.work = Work()

    def server(self) -> Server[Any]:
        """The server of the SDK that asks here."""
        return Server(
            "satchel",
            version=__version__,
            title="Satchel",
            instructions=INSTRUCTIONS,
            get_tool_input_schema=_SCHEMAS.get,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
        )

    # -- tools

    async def list_tools(self, _: Asked, __: PaginatedRequestParams | None) -> ListToolsResult:
        """The tools, always the same and in the same order."""
        self._after_listing()
        listed = {"tools": [tool.listed() for tool in TOOLS], "ttlMs": _LIST_IS_FRESH_MS, "cacheScope": "private"}
        return ListToolsResult.model_validate(listed)

    async def call_tool(self, asked: Asked, params: CallToolRequestParams) -> CallToolResult:
        """The answer of a tool; whatever goes wrong in it is an answer, too."""
        tool = next((one for one in TOOLS if one.name == params.name), None)
        if tool is None:
            names = ", ".join(one.name for one in TOOLS)
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {ascii(params.name)[:80]} (there are {names})")
        caller: Caller | None = None
        try:
            caller = self._caller_of(asked)
            said = checked(tool.arguments, params.arguments)
            answered = getattr(answers, tool.name)
            result = await self._done(
                asked, caller, lambda bag, limits: answered(bag, said, limits), quick=tool is STATUS
            )
        except SatchelError as error:
            is_about_user = isinstance(error, InvalidInput) and error.field == "user"
            result = refusal(error, caller, self._if_user_is_missing if is_about_user else "")
        except Gone as error:
            raise MCPError(code=INTERNAL_ERROR, message="Nobody waits for this any more") from error
        except Exception as error:
            result = failure(tool.name, error)
        return CallToolResult.model_validate(result)

    # -- resources

    async def list_templates(self, _: Asked, __: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        """How pieces are addressed."""
        return ListResourceTemplatesResult.model_validate({"resourceTemplates": [answers.TEMPLATE]})

    async def list_resources(self, asked: Asked, params: PaginatedRequestParams | None) -> ListResourcesResult:
        """The files of the index, as far as there is one. Clients list at once: no problem is made of a folder."""
        cursor = params.cursor if params else None
        try:
            caller = self._caller_of(asked)
            found = await self._done(asked, caller, lambda bag, limits: answers.listed(bag, cursor, limits), quick=True)
        except InvalidInput as error:
            if error.field == "cursor":
                raise MCPError(code=INVALID_PARAMS, message=str(error)) from None
            found = {"resources": []}
        except SatchelError as error:
            _log.warning("resources cannot be listed [%s]", error.code)
            found = {"resources": []}
        return ListResourcesResult.model_validate(found)

    async def read_resource(self, asked: Asked, params: ReadResourceRequestParams) -> ReadResourceResult:
        """The text of a piece."""
        caller = self._caller_of(asked)
        uri = str(params.uri)
        try:
            found = await self._done(asked, caller, lambda bag, limits: answers.read(bag, uri, limits))
        except UnknownBlock:
            raise _not_found(asked, uri) from None
        except SatchelError as error:
            if isinstance(error, InvalidInput) and error.field == "uri":
                raise _not_found(asked, uri) from None
            told = refusal(error, caller)["content"][0]["text"]
            raise MCPError(code=INVALID_PARAMS, message=told) from None
        return ReadResourceResult.model_validate(found)

    async def _done(
        self, asked: Asked, caller: Caller, work: Callable[[LocalSatchel, Limits], Result], *, quick: bool = False
    ) -> Result:
        limits = Limits(chars=self._chars, escaped=_is_escaped(asked))

        def do(telling: Telling) -> Result:
            return work(self._opened().seen_by(caller, telling), limits)

        return await self.work.do(do, asked.session.report_progress, quick=quick)


_SCHEMAS: Final[dict[str, Any]] = {tool.name: tool.listed()["inputSchema"] for tool in TOOLS}


def _is_escaped(asked: Asked) -> bool:
    """Whether the transport writes all but ASCII as escapes: HTTP does, since the handshake was dropped."""
    return asked.request is not None and asked.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS


def _not_found(asked: Asked, uri: str) -> MCPError:
    by_handshake = asked.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
    code = _RESOURCE_NOT_FOUND if by_handshake else INVALID_PARAMS
    return MCPError(code=code, message="Resource not found", data={"uri": uri[:2_000]})
