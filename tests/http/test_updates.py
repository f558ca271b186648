"""Who subscribes to the state is told when it changes: in both eras, on every transport, whoever changed it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceUpdatedNotification

if TYPE_CHECKING:
    from conftest import HttpDesk, StartDesk

pytestmark = [
    pytest.mark.anyio,
    # The client's own word that subscribing this way ends with protocol 2025-11-25, which is what is tried here.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
GUARD = 60.0
STATE = "memory://state"
NEWS = count(1)
"""An exact repeat is no news."""
WIRES = [(transport, era) for transport in ("http", "sse", "stdio") for era in ("legacy", "modern")]
NO_STATE = """
[profiles.blind]
extends = "trader"
deny = ["state"]
[agents.blind]
profile = "blind"
token_env = "BLIND_TOKEN"
[agents.trader]
profile = "trader"
token_env = "TRADER_TOKEN"
"""
RUNS = """
[clock]
mode = "simulated"
[agents.trader]
profile = "trader"
token_env = "TRADER_TOKEN"
[agents.live]
profile = "trader"
token_env = "LIVE_TOKEN"
clock = { mode = "live" }
"""
Told = Callable[[], Awaitable[str]]


@asynccontextmanager
async def subscribed(
    desk: HttpDesk, agent: str, transport: str, era: str, **headers: str
) -> AsyncIterator[tuple[Client, Told]]:
    """A client that is subscribed to the state, and what waits for its next notification."""
    send, receive = anyio.create_memory_object_stream[str](100)

    async def heard(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            await send.send(str(message.params.uri))

    async with (
        send,
        receive,
        desk.client(agent, transport, era, options={"message_handler": heard}, **headers) as client,
    ):
        if era == "legacy":
            await client.subscribe_resource(STATE)
            yield client, receive.receive
            return
        async with client.listen(resource_subscriptions=[STATE]) as subscription:
            assert subscription.honored.resource_subscriptions == [STATE]

            async def next_event() -> str:
                return str((await anext(aiter(subscription))).uri)  # type: ignore[union-attr]

            yield client, next_event


async def subscribe(client: Client, era: str) -> None:
    if era == "legacy":
        await client.subscribe_resource(STATE)
        return
    async with client.listen(resource_subscriptions=[STATE]):
        pass


async def write(desk: HttpDesk, agent: str = "trader", transport: str = "stdio", **headers: str) -> None:
    async with desk.client(agent, transport, **headers) as client:
        assert not (await client.call_tool("remember", {"text": f"news {next(NEWS)}"})).is_error


@pytest.mark.parametrize(("transport", "era"), WIRES)
async def test_a_subscriber_is_told_of_a_change_by_another_process(
    desk: HttpDesk, transport: str, era: str
) -> None:
    with anyio.fail_after(GUARD):
        async with subscribed(desk, "researcher", transport, era) as (client, told):
            await write(desk, "trader", "http" if transport == "stdio" else "stdio")
            assert await told() == STATE
            # Reading the state is recorded, and must not be taken for a change of it.
            assert (await client.read_resource(STATE)).contents
            await write(desk)
            assert await told() == STATE


@pytest.mark.parametrize(("transport", "era"), WIRES)
async def test_what_only_shows_and_searches_is_no_change(desk: HttpDesk, transport: str, era: str) -> None:
    with anyio.fail_after(GUARD):
        async with subscribed(desk, "researcher", transport, era) as (client, told):
            for _ in range(3):
                await client.call_tool("search_memory", {"query": "nothing"})
                await client.call_tool(
                    "remember_decision", {"text": "t", "action": "hold"}
                )  # refused and recorded
            with anyio.move_on_after(1.0) as waited:
                await told()
            assert waited.cancelled_caught
            await write(desk)
            assert await told() == STATE


@pytest.mark.parametrize(("transport", "era"), WIRES)
async def test_who_may_not_read_the_state_cannot_subscribe_to_it(
    start_desk: StartDesk, transport: str, era: str
) -> None:
    desk = start_desk(NO_STATE)
    assert desk.url
    with anyio.fail_after(GUARD):
        async with desk.client("blind", transport, era) as client:
            with pytest.raises(MCPError) as refused:
                await subscribe(client, era)
    assert refused.value.error.data["code"] == "permission_denied"
    await write(desk)
    assert [entry.agent for entry in desk.entries("permission.denied")] == ["blind"]


@pytest.mark.parametrize(("transport", "era"), WIRES)
async def test_only_the_state_can_be_subscribed_to(desk: HttpDesk, transport: str, era: str) -> None:
    with anyio.fail_after(GUARD):
        async with desk.client("trader", transport, era) as client:
            if era == "legacy":
                for uri in ("memory://memory/x", "file:///etc/passwd"):
                    with pytest.raises(MCPError) as refused:
                        await client.subscribe_resource(uri)
                    assert json.loads(refused.value.error.message)["code"] == "not_found"
                return
            async with client.listen(
                resource_subscriptions=["memory://memory/x"], tools_list_changed=True
            ) as stream:
                assert not stream.honored.resource_subscriptions
                assert not stream.honored.tools_list_changed


@pytest.mark.parametrize("transport", ["http", "sse", "stdio"])
async def test_who_unsubscribed_is_told_no_more(desk: HttpDesk, transport: str) -> None:
    with anyio.fail_after(GUARD):
        async with subscribed(desk, "researcher", transport, "legacy") as (client, told):
            await client.unsubscribe_resource(STATE)
            await client.unsubscribe_resource(STATE)
            await write(desk)
            with anyio.move_on_after(1.0) as waited:
                await told()
            assert waited.cancelled_caught
            await client.subscribe_resource(STATE)
            await client.subscribe_resource(STATE)
            await write(desk)
            assert await told() == STATE


@pytest.mark.parametrize(("transport", "era"), [("http", "legacy"), ("http", "modern"), ("sse", "modern")])
async def test_a_run_and_the_live_ledger_tell_their_own_subscribers_only(
    start_desk: StartDesk, transport: str, era: str
) -> None:
    desk = start_desk(RUNS)
    labels = {"Deskbook-Run": "one", "Deskbook-Now": "2026-03-02T14:30:00Z"}
    with anyio.fail_after(GUARD):
        await write(desk, "trader", "http", **labels)
        async with subscribed(desk, "trader", transport, era, **labels) as (_, told):
            await write(desk, "live", "http")
            await write(desk, "trader", "http", **labels | {"Deskbook-Run": "two"})
            with anyio.move_on_after(1.0) as waited:
                await told()
            assert waited.cancelled_caught
            await write(desk, "trader", "http", **labels)
            assert await told() == STATE


async def test_a_subscriber_that_does_not_read_keeps_nobody_else_from_being_told(desk: HttpDesk) -> None:
    session = desk.initialize("auditor")
    with (
        anyio.fail_after(GUARD),
        desk.raw("auditor") as http,
        http.stream("GET", "/mcp", headers={"Mcp-Session-Id": session}),  # opened, and never read
    ):
        http.post(
            "/mcp", json=desk.rpc("resources/subscribe", uri=STATE), headers={"Mcp-Session-Id": session}
        )
        async with subscribed(desk, "researcher", "http", "legacy") as (_, told):
            for _ in range(3):
                await write(desk, "trader", "http")
                assert await told() == STATE


async def test_subscribing_is_offered_in_both_eras(desk: HttpDesk) -> None:
    for era in ("legacy", "modern"):
        async with desk.client("researcher", "http", "legacy" if era == "legacy" else "auto") as client:
            resources = client.server_capabilities.resources
            assert resources is not None
            assert resources.subscribe is True
