"""The SDK's own client against the stdio transport, in both eras."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

pytestmark = pytest.mark.anyio
MODES = ("legacy", "2026-07-28", "auto")
GUARD = 60


@pytest.fixture(params=MODES)
def client(request: pytest.FixtureRequest, desk_command: list[str]) -> Client:
    command, *args = desk_command
    return Client(StdioServerParameters(command=command, args=args), mode=request.param)


async def said(client: Client, name: str, **arguments: object) -> str:
    result = await client.call_tool(name, arguments)
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_the_sdk_client_lists_and_calls_tools(client: Client) -> None:
    with anyio.fail_after(GUARD):
        async with client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert "echo" in names
            assert await said(client, "echo", text="目标价", n=1.5) == (
                r"{'text': str '\u76ee\u6807\u4ef7', 'n': float 1.5}"
            )


async def test_a_result_json_cannot_carry_does_not_end_the_sdk_clients_session(client: Client) -> None:
    """P051 (transport part)."""
    with anyio.fail_after(GUARD):
        async with client:
            assert await said(client, "bad_result") == "lone \ufffd here"
            assert await said(client, "shout") == "done"
            assert await said(client, "echo", a=1) == "{'a': int 1}"


async def test_the_sdk_client_learns_of_a_frame_over_the_cap_and_goes_on(client: Client) -> None:
    """P053 (stdio part)."""
    with anyio.fail_after(GUARD):
        async with client:
            with pytest.raises(MCPError, match="over the limit of 200000 bytes"):
                await client.call_tool("echo", {"text": "x" * 1_000_000})
            assert await said(client, "echo", a=1) == "{'a': int 1}"


async def test_calls_of_the_sdk_client_run_beside_a_slow_one(client: Client, fifo: Path) -> None:
    """P165 (transport part)."""
    slow: list[str] = []

    async def hold() -> None:
        slow.append(await said(client, "hold", fifo=str(fifo)))

    with anyio.fail_after(GUARD):
        async with client, anyio.create_task_group() as tasks:
            tasks.start_soon(hold)
            for n in range(25):
                assert await said(client, "echo", n=n) == f"{{'n': int {n}}}"
            assert slow == []
            await anyio.to_thread.run_sync(fifo.write_text, "done")
        assert slow == ["done"]


async def test_a_call_the_sdk_client_cancels_leaves_the_session_whole(client: Client, fifo: Path) -> None:
    with anyio.fail_after(GUARD):
        async with client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(said, client, "hold", fifo=str(fifo)))
                in_flight = await anyio.to_thread.run_sync(os.open, fifo, os.O_WRONLY)
                tasks.cancel_scope.cancel()
            assert await said(client, "echo", a=1) == "{'a': int 1}"
            os.close(in_flight)
