"""Everything of the `mcp` SDK that is private to it and used here, in one place (written against 2.3).

A new minor version of the SDK is checked against this file first: the low-level server behind an `MCPServer`
with its lifespan and middleware list, the loop that serves one pair of streams, what lasts as long as a connection,
the sessions of Streamable HTTP, and the logging it sets up.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

from mcp.server._otel import OpenTelemetryMiddleware
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver import server as mcpserver_module
from mcp.server.runner import serve_dual_era_loop
from mcp.server.session import ServerSession
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import PROTOCOL_VERSION_META_KEY
from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

__all__ = [
    "Inbound",
    "Outbound",
    "connection_state",
    "drop_idle_tracing",
    "end_session",
    "has_modern_envelope",
    "lifespan",
    "lifespan_state",
    "log_to_stderr",
    "lowlevel",
    "on_connection_end",
    "serve_streams",
]

Inbound: TypeAlias = ReadStream[SessionMessage | Exception]
Outbound: TypeAlias = WriteStream[SessionMessage]


def lowlevel(server: MCPServer[Any]) -> Server[Any]:
    """The low-level server behind an `MCPServer`: its handler registry, middleware and capabilities."""
    return server._lowlevel_server  # noqa: SLF001


def lifespan(server: MCPServer[Any]) -> AbstractAsyncContextManager[Any]:
    """The server's lifespan, to be entered once per process whatever number of loops then serves."""
    low = lowlevel(server)
    return low.lifespan(low)


async def serve_streams(server: MCPServer[Any], inbound: Inbound, outbound: Outbound, *, state: Any) -> None:
    """Serve one pair of streams until `inbound` ends, in the protocol era its first request opens with.

    `state` is what `lifespan` yielded. Calls still in flight when `inbound` ends are cancelled.
    """
    low = lowlevel(server)
    options = low.create_initialization_options()
    await serve_dual_era_loop(low, inbound, outbound, lifespan_state=state, init_options=options)


def connection_state(session: ServerSession) -> dict[str, Any]:
    """What is kept for as long as the client's connection (over HTTP: its session) lasts."""
    return session._connection.state  # noqa: SLF001


def on_connection_end(session: ServerSession, callback: Callable[[], None]) -> None:
    """Have `callback` called once the client's connection or session has ended."""
    session._connection.exit_stack.callback(callback)  # noqa: SLF001


def lifespan_state(manager: StreamableHTTPSessionManager) -> Any:
    """What the server's lifespan yielded to a manager that runs."""
    return manager._lifespan_state  # noqa: SLF001


async def end_session(manager: StreamableHTTPSessionManager, session_id: str) -> None:
    """End a Streamable HTTP session: its streams close, and its id is unknown from now on."""
    transport = manager._server_instances.get(session_id)  # noqa: SLF001
    if transport is not None:
        await manager._discard_session(session_id, transport)  # noqa: SLF001


def has_modern_envelope(params: Mapping[str, Any] | None) -> bool:
    """Whether a request carries the per-request envelope of protocol 2026-07-28 in its `_meta`."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, Mapping) and PROTOCOL_VERSION_META_KEY in meta


def drop_idle_tracing(server: MCPServer[Any]) -> None:
    """Take the SDK's tracing off every call unless this process has a tracer to send spans to.

    Without one each call still builds a span that goes nowhere (about 0.015 ms).
    """
    if isinstance(get_tracer_provider(), ProxyTracerProvider):
        chain = lowlevel(server).middleware
        chain[:] = [layer for layer in chain if not isinstance(layer, OpenTelemetryMiddleware)]


def log_to_stderr(level: int = logging.WARNING, *, timed: bool = False) -> None:
    """Send all logging to stderr as plain lines, with their local time if `timed`; call it before the first server.

    The SDK would install a `rich` handler at level INFO (10 ms of imports, a line for every request). Its own
    loggers stay at WARNING or above, except at level DEBUG.
    """
    handler = logging.StreamHandler(sys.stderr)
    when = "%(asctime)s " if timed else ""
    handler.setFormatter(logging.Formatter(f"{when}%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # It tells of headers, and so of a key that an address sends back.
    logging.getLogger("httpcore2").setLevel(logging.WARNING)
    logging.getLogger("mcp").setLevel(level if level <= logging.DEBUG else max(level, logging.WARNING))
    vars(mcpserver_module)["configure_logging"] = _leave_logging_alone


def _leave_logging_alone(*_args: object, **_kwargs: object) -> None:
    """Stand in for the SDK's `configure_logging`, which every `MCPServer` calls when it is made."""
