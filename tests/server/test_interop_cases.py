"""Handed cases of client interoperability that need many replies; the others stand in test_tools_schema."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

if TYPE_CHECKING:
    from conftest import InMemoryDesk, OpenDesk

pytestmark = pytest.mark.anyio

REPLIES = 1_000
WORDS = (
    "margin",
    "AAPL",
    "目标价",
    "short",
    "",
    " ",
    "null",
    "a" * 300,
    "ths_none",
    "2026-03-02T14:30:00Z",
    "-3.5",
)
ODD = (None, True, 0, -1, 2**70, 1.5, [], ["a", "b"], [1], {}, {"a": 1}, '{"a": 1}', "[1, 2")


def some(dice: random.Random, name: str, shape: dict[str, Any], ids: list[str]) -> Any:
    """A value for one argument: mostly what its schema asks for, an id that exists now and then, else anything."""
    if dice.random() < 0.08:
        return dice.choice(ODD)
    if name.endswith("_id") and ids:
        return dice.choice(ids)
    if "enum" in shape:
        return dice.choice(shape["enum"])
    kind = {"integer": dice.randint(0, 60), "array": dice.sample(WORDS, 2)}
    return kind.get(shape["type"], dice.choice(WORDS))


async def test_a_thousand_random_replies_are_what_they_say_they_are_p197(
    open_desk: OpenDesk, era: str
) -> None:
    """Each reply fits its tool's outputSchema where one is published, and is a whole body or a whole error.

    None is published today (see test_tools_schema), as an error has no structured content that could fit one.
    """
    desk: InMemoryDesk = open_desk('[store]\ndurability = "normal"\n[agents.a]\nprofile = "solo"', "a")
    dice, ids = random.Random(197), list[str]()
    served = refused = 0
    async with desk.client(era) as client:
        tools = (await client.list_tools()).tools
        for _ in range(REPLIES):
            tool = dice.choice(tools)
            schema = tool.input_schema
            needed = set(schema.get("required", ()))
            arguments = {
                name: some(dice, name, shape, ids)
                for name, shape in schema["properties"].items()
                if name in needed or dice.random() < 0.2
            }
            reply = await client.call_tool(tool.name, arguments)
            if reply.is_error:
                desk.error(reply)
                refused += 1
                continue
            body = desk.body(reply)
            if tool.output_schema is not None:
                Draft202012Validator(tool.output_schema).validate(body)
            ids = [*ids, body["id"]][-50:] if "id" in body else ids
            served += 1
    assert (served + refused, min(served, refused) > 100) == (REPLIES, True)


async def test_every_list_comes_whole_in_the_first_page_p193(open_desk: OpenDesk, era: str) -> None:
    """A client that follows no cursor misses nothing: tools, resources, templates and prompts fit one page."""
    desk = open_desk('[agents.h]\nprofile = "solo"', "h")
    async with desk.client(era) as client:
        pages = (
            await client.list_tools(),
            await client.list_resources(),
            await client.list_resource_templates(),
            await client.list_prompts(),
        )
    assert [page.next_cursor for page in pages] == [None] * 4
