"""A client written against the older SDK: run as a script with the server's command; prints what it saw as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.metadata import version
from typing import Any

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client


async def call(session: ClientSession, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await session.call_tool(tool, arguments)
    return {
        "is_error": bool(result.isError),
        "blocks": len(result.content),
        "text": json.loads(result.content[0].text),
        "structured": result.structuredContent,
    }


async def read(session: ClientSession, uri: Any) -> Any:
    try:
        found = await session.read_resource(uri)
    except McpError as refusal:
        return {"refused": json.loads(refusal.error.message)}
    return json.loads(found.contents[0].text)


async def visit() -> dict[str, Any]:
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with stdio_client(server) as (incoming, outgoing), ClientSession(incoming, outgoing) as session:
        hello = await session.initialize()
        listed = await session.list_tools()
        seen: dict[str, Any] = {
            "sdk": version("mcp"),
            "protocol": hello.protocolVersion,
            "instructions": hello.instructions,
            "tools": {tool.name: tool.inputSchema for tool in listed.tools},
            "pages_left": listed.nextCursor,
            "resources": [str(each.uri) for each in (await session.list_resources()).resources],
            "templates": [t.uriTemplate for t in (await session.list_resource_templates()).resourceTemplates],
            "prompts": [prompt.name for prompt in (await session.list_prompts()).prompts],
            "written": await call(
                session, "remember", text="unicorn margins 目标价", symbol="aapl", tags='["a"]'
            ),
            "nulls": await call(session, "remember", text="second", symbol=None, tags=None, supersedes=None),
            "found": await call(session, "search_memory", query="unicorn", limit="5"),
            "wrong": await call(session, "search_memory", ticker="AAPL"),
            "blank": await call(session, "remember", text=" "),
            "denied": await call(session, "remember_decision", text="d", action="buy"),
            "state": await read(session, "memory://state"),
        }
        seen["item"] = await read(session, f"memory://memory/{seen['written']['text']['id']}")
        seen["missing"] = await read(session, "memory://memory/mem_none")
        await session.send_ping()
        burst = await asyncio.gather(*(call(session, "remember", text=f"burst {n}") for n in range(25)))
        seen["burst"] = [each["text"].get("id") for each in burst]
        return seen


if __name__ == "__main__":
    json.dump(asyncio.run(visit()), sys.stdout)
