"""Handlers of MCP requests for a workspace: run in threads, with progress notifications of index runs.

The event loop stays free to receive cancellations.
"""

from __future__ import annotations

import asyncio
import logging
import os
import warnings
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from satchel import __version__
from satchel.errors import InvalidInput, SatchelError, UnknownBlock
from satchel.mcp import answers
from satchel.mcp.folders import Folders, ServedFolders
from satchel.mcp.result_pages import MOST_CHARS, Result, ResultLimits, failure, refusal
from satchel.mcp.tools import INSTRUCTIONS, STATUS, TOOLS, checked

if TYPE_CHECKING:
    from satchel.service.auto_index import IndexState
    from satchel.service.client import Caller
    from satchel.service.open_roots import LocalClient


_QUESTION_THREADS: Final = max(4, (os.cpu_count() or 2) * 2)  # more than cores: most wait for an index run
_QUICK_THREADS: Final = 2  # separate threads for requests without a wait (status, lists): never behind questions
_ROOTS_WAIT_S: Final = 3.0  # for a client to tell its roots: programs answer at once
_REPORT_INTERVAL_S: Final = 0.2  # between progress notifications: nobody reads more than five a second
_SILENT_SCAN_S: Final = 0.5  # no progress before this: a shorter scan of the folder goes unnoticed
_TOOL_LIST_TTL_MS: Final = 3_600_000  # the list is constant per version; a client sees an update after an hour
_RESOURCE_NOT_FOUND_CODE: Final = -32002  # MCP versions with a handshake; later versions use INVALID_PARAMS
_TOOLS: Final = {tool.name: tool for tool in TOOLS}
_TOOL_ENTRIES: Final = {tool.name: tool.as_dict() for tool in TOOLS}
_log: Final = logging.getLogger(__name__)

RequestContext: TypeAlias = "ServerRequestContext[Any, Any]"
PageParams: TypeAlias = "types.PaginatedRequestParams | None"
Answer: TypeAlias = "Callable[[LocalClient, Any, ResultLimits], Result]"
Report = Callable[[float, float | None, str], Awaitable[None]]


class Gone(Exception):
    """The client no longer waits for the answer (cancelled or disconnected)."""


class ProgressReporter:
    """Sends the progress of an index run from a waiting thread to the client, through the event loop."""

    def __init__(self, report: Report, loop: asyncio.AbstractEventLoop) -> None:
        self._report = report
        self._loop = loop
        self._gone = Event()
        self._begun: float | None = None
        self._reported_at = -float("inf")
        self._reported = -1
        self._before = 0
        self._doing = ""
        self._done = 0
        self._sending: Future[None] | None = None

    def give_up(self) -> None:
        """Make the waiting thread stop with `Gone`. The index run goes on."""
        self._gone.set()

    def __call__(self, state: IndexState) -> None:
        """Report a new state; called from the waiting thread."""
        if self._gone.is_set():
            raise Gone
        now = monotonic()
        self._begun = self._begun or now
        is_sending = self._sending is not None and not self._sending.done()
        if not state.running or is_sending or now - self._reported_at < _REPORT_INTERVAL_S:
            return
        if not state.of and now - self._begun < _SILENT_SCAN_S:
            return
        progress, total = self._count(state)
        if progress > self._reported:
            self._reported, self._reported_at = progress, now
            self._sending = asyncio.run_coroutine_threadsafe(self._send(progress, total, state.summary), self._loop)

    async def finish(self) -> None:
        """Wait for a pending progress notification: no notification may follow the answer."""
        if self._sending is not None:
            await asyncio.wrap_future(self._sending)

    def _count(self, state: IndexState) -> tuple[int, int | None]:
        """Progress and total over all steps: finished steps count towards the sum."""
        if state.doing != self._doing:
            self._before, self._doing = self._before + self._done, state.doing
        self._done = state.done
        return self._before + state.done, self._before + state.of if state.of else None

    async def _send(self, progress: float, total: float | None, message: str) -> None:
        try:
            await self._report(progress, total, message)
        except Exception:
            self.give_up()  # the client is gone


async def _listed_roots(context: RequestContext) -> tuple[Path, ...]:
    """The client's roots that are folders here; () from a client that tells none, or does not answer in time."""
    has_roots = types.ClientCapabilities(roots=types.RootsCapability())
    if context.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        return ()  # the later versions have no requests to the client
    if not context.session.check_client_capability(has_roots):
        return ()
    try:
        async with asyncio.timeout(_ROOTS_WAIT_S):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                listed = await context.session.list_roots()
    except (MCPError, TimeoutError, ValueError):
        return ()
    uris = (urlsplit(str(root.uri)) for root in listed.roots)
    folders = (Path(url2pathname(uri.path)) for uri in uris if uri.scheme == "file")
    return tuple(dict.fromkeys(folder.resolve() for folder in folders if folder.is_dir()))


def _inside(arguments: Any, within: str) -> Any:
    """The arguments of a question or a search for a name, for the files in a folder of the workspace only."""
    if not within or not isinstance(arguments, dict) or not arguments.keys() & {"question", "what"}:
        return arguments
    if arguments.get("kind") == "outline":  # its path is relative to the folder
        return arguments | {"what": f"{within}/{arguments['what'].strip('/')}".removesuffix("/.")}
    globs = arguments.get("include") or ["**"]
    return arguments | {"include": [f"{within}/{glob.removeprefix('/')}" for glob in globs]}


@dataclass(slots=True, eq=False)
class RequestHandlers:
    """Handles MCP requests with the caller's access and the limit of a result's length."""

    folders: Folders
    caller_of: Callable[[RequestContext], Caller]
    _: KW_ONLY
    max_result_chars: int = MOST_CHARS
    after_listing: Callable[[], object] = lambda: None
    if_user_is_missing: str = ""
    _roots: tuple[Path, ...] | None = None
    """The client's roots; None before the client is asked."""
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_QUESTION_THREADS, "satchel-mcp"))
    _quick: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_QUICK_THREADS, "satchel-mcp-status"))
    _waiting: set[ProgressReporter] = field(default_factory=set)

    def server(self) -> Server[Any]:
        """An MCP server of the SDK with these handlers."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the SDK warns that later versions have no roots; clients still do
            return Server(
                "satchel",
                version=__version__,
                title="Satchel",
                instructions=INSTRUCTIONS,
                get_tool_input_schema=lambda name: (
                    _TOOL_ENTRIES[name]["inputSchema"] if name in _TOOL_ENTRIES else None
                ),
                on_list_tools=self.list_tools,
                on_call_tool=self.call_tool,
                on_list_resources=self.list_resources,
                on_list_resource_templates=self.list_templates,
                on_read_resource=self.read_resource,
                on_roots_list_changed=self.forget_roots,
            )

    # -- roots

    async def forget_roots(self, _: RequestContext, __: Any) -> None:
        """Ask for the roots again before the next answer."""
        self._roots = None

    async def _client_roots(self, context: RequestContext) -> tuple[Path, ...]:
        """The folders that the client has open, if it tells them."""
        if self._roots is None:
            self._roots = await _listed_roots(context) if isinstance(self.folders, ServedFolders) else ()
        return self._roots

    # -- tools

    async def list_tools(self, _: RequestContext, __: PageParams) -> types.ListToolsResult:
        """The list of tools, always in the same order."""
        self.after_listing()
        listed = {"tools": list(_TOOL_ENTRIES.values()), "ttlMs": _TOOL_LIST_TTL_MS, "cacheScope": "private"}
        return types.ListToolsResult.model_validate(listed)

    async def call_tool(self, context: RequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        """The result of a tool; errors of the tool are results, too (`isError`)."""
        tool = _TOOLS.get(params.name)
        if tool is None:
            message = f"Unknown tool: {ascii(params.name)[:80]} (there are {', '.join(_TOOLS)})"
            raise MCPError(code=types.INVALID_PARAMS, message=message)
        caller: Caller | None = None
        try:
            caller = self.caller_of(context)
            arguments = checked(tool.arguments, params.arguments)
            result = await self._run(context, caller, getattr(answers, tool.name), arguments, quick=tool is STATUS)
        except SatchelError as error:
            is_about_user = isinstance(error, InvalidInput) and error.field == "user"
            result = refusal(error, caller, self.if_user_is_missing if is_about_user else "")
        except Gone as error:
            raise MCPError(code=types.INTERNAL_ERROR, message="The client cancelled this request") from error
        except Exception as error:
            _log.error("%s failed", tool.name, exc_info=error)  # the message may hold content and is not sent
            kind = type(error).__name__
            result = failure(f"Internal error ({kind}); Satchel's log has details [internal-error]")
        return types.CallToolResult.model_validate(result)

    # -- resources

    async def list_templates(self, _: RequestContext, __: PageParams) -> types.ListResourceTemplatesResult:
        """The URI template of pieces."""
        return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": [answers.TEMPLATE]})

    async def list_resources(self, context: RequestContext, params: PageParams) -> types.ListResourcesResult:
        """The files of the index; empty if the workspace has an error, as clients list right after connecting."""
        page: Result = {"resources": []}
        try:
            cursor = params.cursor if params else None
            page = await self._run(context, self.caller_of(context), answers.listed, cursor, quick=True)
        except InvalidInput as error:
            if error.field == "cursor":
                raise MCPError(code=types.INVALID_PARAMS, message=str(error)) from None
        except SatchelError as error:
            _log.warning("resources cannot be listed [%s]", error.code)
        return types.ListResourcesResult.model_validate(page)

    async def read_resource(
        self, context: RequestContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """The text of a piece."""
        caller = self.caller_of(context)
        uri = str(params.uri)
        try:
            result = await self._run(context, caller, answers.read, uri)
        except SatchelError as error:
            if isinstance(error, UnknownBlock) or (isinstance(error, InvalidInput) and error.field == "uri"):
                by_handshake = context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
                code = _RESOURCE_NOT_FOUND_CODE if by_handshake else types.INVALID_PARAMS
                raise MCPError(code=code, message="Resource not found", data={"uri": uri[:2_000]}) from None
            message = refusal(error, caller)["content"][0]["text"]
            raise MCPError(code=types.INVALID_PARAMS, message=message) from None
        return types.ReadResourceResult.model_validate(result)

    async def _run(
        self, context: RequestContext, caller: Caller, answer: Answer, argument: Any, *, quick: bool = False
    ) -> Result:
        # Over HTTP, the protocol versions without a handshake escape all non-ASCII characters.
        is_escaped = context.request is not None and context.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS
        limits = ResultLimits(chars=self.max_result_chars, escaped=is_escaped)

        loop = asyncio.get_running_loop()
        reporter = ProgressReporter(context.session.report_progress, loop)

        roots = await self._client_roots(context)

        def work() -> Result:
            path = argument.get("path", "") if isinstance(argument, dict) else ""
            place = self.folders.at(path, roots)
            return answer(place.client.seen_by(caller, reporter), _inside(argument, place.within), limits)

        self._waiting.add(reporter)
        try:
            result = await loop.run_in_executor(self._quick if quick else self._threads, work)
            await reporter.finish()
            return result
        finally:  # also after a cancellation: the thread stops waiting
            reporter.give_up()
            self._waiting.discard(reporter)

    async def close(self) -> None:
        """Cancel all waits for index runs, and join the threads."""
        for reporter in tuple(self._waiting):
            reporter.give_up()
        for pool in (self._threads, self._quick):
            await asyncio.to_thread(pool.shutdown, wait=True, cancel_futures=True)
