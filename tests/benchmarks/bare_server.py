"""The least server the SDK allows, with one tool: what Deskbook's start and its calls are measured against.

`bare_server.py` serves stdio; `bare_server.py http` serves Streamable HTTP and HTTP+SSE with the SDK's own apps on a
free port of this machine, which it names on stderr.
"""

from __future__ import annotations

import socket
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("bare")


@server.tool()
def echo(text: str) -> str:
    """Say it back."""
    return text


def serve_http() -> None:
    import uvicorn

    app = server.streamable_http_app()
    app.router.routes.extend(server.sse_app().routes)
    # Named as TCP, or asyncio leaves small answers waiting for an acknowledgement (40 ms).
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    sys.stderr.write(f"listening on http://127.0.0.1:{listener.getsockname()[1]}\n")
    sys.stderr.flush()
    # Without a line for every request, which the SDK's own way of running it would print.
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run([listener])


if __name__ == "__main__":
    if sys.argv[1:] == ["http"]:
        serve_http()
    else:
        server.run("stdio")
