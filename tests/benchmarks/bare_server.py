"""The least server the SDK allows: one tool, on stdio. What Deskbook's start is measured against."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("bare")


@server.tool()
def echo(text: str) -> str:
    """Say it back."""
    return text


if __name__ == "__main__":
    server.run("stdio")
