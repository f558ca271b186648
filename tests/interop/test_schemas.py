"""Every tool of every profile passes through the strict conversions of other frameworks and loses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from server.permissions import PROFILES, TOOL_ACTIONS

if TYPE_CHECKING:
    from conftest import Convert, InMemoryDesk, OpenDesk

Tools = list[dict[str, Any]]


async def _listed(desk: InMemoryDesk) -> Tools:
    async with desk.client() as client:
        tools = (await client.list_tools()).tools
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]


@pytest.fixture
def tools(open_desk: OpenDesk) -> Tools:
    """Every tool that some profile is shown, live or in a run."""
    shown: dict[str, dict[str, Any]] = {}
    for profile in PROFILES:
        for clock in ("", 'clock = { mode = "simulated", run = "r" }'):
            desk = open_desk(f'[agents.a]\nprofile = "{profile}"\n{clock}', "a")
            for tool in anyio.run(_listed, desk):
                assert shown.setdefault(tool["name"], tool) == tool
    assert shown.keys() == TOOL_ACTIONS.keys()
    return list(shown.values())


def outline(schema: dict[str, Any]) -> dict[str, Any]:
    """What a model must not lose: each argument's type, words and description, and which are required."""
    return {
        "required": sorted(schema.get("required") or ()),
        "properties": {
            name: (shape["type"].lower(), shape.get("enum"), shape.get("description"), items(shape))
            for name, shape in schema["properties"].items()
        },
    }


def items(shape: dict[str, Any]) -> str | None:
    kind = shape.get("items", {}).get("type")
    return kind.lower() if kind else None


def unwrapped(shape: dict[str, Any]) -> dict[str, Any]:
    """An optional argument as pydantic writes it, without the null it adds."""
    (kind,) = [choice for choice in shape.get("anyOf", [{}]) if choice != {"type": "null"}]
    return shape | kind


def strict_faults(schema: dict[str, Any]) -> list[str]:
    """What strict mode refuses, as its documentation has it: open objects, and arguments not required."""
    faults = []
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            faults.append("is open")
        if set(schema.get("required", ())) != set(properties):
            faults.append("does not require everything")
        faults += [f"{name} {fault}" for name, shape in properties.items() for fault in strict_faults(shape)]
    known = {"type", "properties", "required", "additionalProperties", "items", "enum", "description"}
    return faults + [f"says {key}" for key in schema.keys() - known]


@pytest.mark.interop
def test_openai_agents_makes_every_tool_strict_and_falls_back_on_none(tools: Tools, convert: Convert) -> None:
    made = convert("openai_agents", "strict_openai", tools)
    for tool in tools:
        assert made[tool["name"]]["strict"] is True, tool["name"]
        strict = made[tool["name"]]["schema"]
        assert strict_faults(strict) == [], tool["name"]
        kept = outline(strict)["properties"]
        assert kept == outline(tool["inputSchema"])["properties"]


@pytest.mark.interop
def test_google_genai_carries_every_keyword_of_every_tool(tools: Tools, convert: Convert) -> None:
    made = convert("google_genai", "strict_genai", tools)
    for tool in tools:
        assert [outline(schema) for schema in made[tool["name"]]] == [outline(tool["inputSchema"])] * 3


@pytest.mark.interop
def test_llama_index_makes_a_model_of_every_tool(tools: Tools, convert: Convert) -> None:
    made = convert("llama_index_client", "strict_llama_index", tools)
    for tool in tools:
        model = made[tool["name"]]
        assert "$defs" not in model
        named = {name: unwrapped(shape) for name, shape in model["properties"].items()}
        assert outline(model | {"properties": named}) == outline(tool["inputSchema"])


@pytest.mark.interop_more
def test_google_adk_declares_every_tool_whole(tools: Tools, convert: Convert) -> None:
    made = convert("adk_client", "strict_adk", tools)
    for tool in tools:
        assert [outline(schema) for schema in made[tool["name"]]] == [outline(tool["inputSchema"])] * 2
