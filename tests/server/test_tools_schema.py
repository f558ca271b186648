"""What tools/list publishes: schemas every framework converts, hints that are true, all in one page."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

if TYPE_CHECKING:
    from conftest import InMemoryDesk

pytestmark = pytest.mark.anyio

NINE_OF_LUMIBOT = {
    "remember", "search_memory", "remember_proposal", "remember_risk_note", "remember_decision",
    "remember_lesson", "open_thesis", "update_thesis", "close_thesis",
}  # fmt: skip
OURS = NINE_OF_LUMIBOT | {"get_memory", "get_memory_state", "resolve_memory", "flag_memory"}
READING = {"search_memory", "get_memory", "get_memory_state"}

# The arguments the issue fixes, required ones with a star.
ARGUMENTS = {
    "remember": "text* category tags symbol supersedes review_by expires_at idempotency_key",
    "remember_proposal": "text* symbol action tags idempotency_key",
    "remember_risk_note": "text* symbol tags idempotency_key",
    "remember_decision": "text* action* symbol evidence tags thesis_id retrieval_id idempotency_key",
    "remember_lesson": "text* symbol tags outcome idempotency_key",
    "open_thesis": "text* symbol direction horizon target invalidation review_by tags idempotency_key",
    "update_thesis": "thesis_id* text* symbol direction horizon target invalidation review_by tags "
    "expected_version idempotency_key",
    "close_thesis": "thesis_id* result pnl return_pct exit_price note expected_version idempotency_key",
    "get_memory": "memory_id* as_of cursor",
    "get_memory_state": "as_of",
    "resolve_memory": "memory_id* status* note expected_version idempotency_key",
    "flag_memory": "memory_id* reason* other_id note idempotency_key",
    "search_memory": "query kind symbol status tags agent since until as_of limit cursor response_format",
}
TAKEN = {"type", "description", "enum", "items"}


async def listed(desk: InMemoryDesk, era: str) -> list[dict[str, Any]]:
    async with desk.client(era) as client:
        page = await client.list_tools()
    assert page.next_cursor is None
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]


def property_faults(schema: dict[str, Any]) -> list[str]:
    """What keeps one property from being in the subset that every framework converts."""
    faults = [f"takes {key}" for key in schema.keys() - TAKEN]
    if not schema.get("description"):
        faults.append("has no description")
    kind = schema.get("type")
    if kind not in ("string", "integer", "number", "boolean", "array"):
        faults.append(f"has type {kind}")
    if ("items" in schema) != (kind == "array") or schema.get("items", {"type": "string"}) != {
        "type": "string"
    }:
        faults.append("has items that are not plain strings")
    if "enum" in schema and (kind != "string" or not all(isinstance(word, str) for word in schema["enum"])):
        faults.append("has an enum that is not of strings")
    return faults


async def test_every_schema_stays_in_the_subset_that_every_framework_converts_p191(
    desk: InMemoryDesk, era: str
) -> None:
    for tool in await listed(desk, era):
        schema = tool["inputSchema"]
        Draft202012Validator.check_schema(schema)
        assert schema.keys() - {"required"} == {"type", "properties"}
        assert schema["type"] == "object"
        assert set(schema.get("required", ())) <= set(schema["properties"])
        for name, shape in schema["properties"].items():
            assert property_faults(shape) == [], f"{tool['name']}.{name}"


async def test_the_lint_finds_what_breaks_other_frameworks() -> None:
    told = {"description": "d"}
    for broken in (
        {"$ref": "#/$defs/x", **told},
        {"type": ["string", "null"], **told},
        {"anyOf": [{"type": "string"}, {"type": "null"}], **told},
        {"type": "object", **told},
        {"type": "string", "const": "a", **told},
        {"type": "string"},
        {"type": "integer", "enum": [1, 2], **told},
        {"type": "array", "items": {"type": ["string", "null"]}, **told},
        {"type": "array", **told},
    ):
        assert property_faults(broken), broken


async def test_names_arguments_and_required_ones_are_those_of_the_issue(desk: InMemoryDesk, era: str) -> None:
    tools = {tool["name"]: tool["inputSchema"] for tool in await listed(desk, era)}
    assert set(tools) == OURS == set(ARGUMENTS)
    for name, words in ARGUMENTS.items():
        assert re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name)
        assert list(tools[name]["properties"]) == [word.rstrip("*") for word in words.split()], name
        assert set(tools[name].get("required", ())) == {w[:-1] for w in words.split() if w.endswith("*")}


async def test_remember_takes_no_kind_and_no_agent_and_no_clock(desk: InMemoryDesk) -> None:
    for tool in await listed(desk, "modern"):
        taken = set(tool["inputSchema"]["properties"])
        assert not taken & {"now", "run", "strategy", "profile", "path", "file", "session_id"}, tool["name"]
        if tool["name"] != "search_memory":
            assert not taken & {"kind", "agent"}, tool["name"]


async def test_hints_and_titles_are_complete_and_true_p195(desk: InMemoryDesk, era: str) -> None:
    for tool in await listed(desk, era):
        reads = tool["name"] in READING
        assert tool["title"]
        assert tool["description"]
        assert tool["annotations"] == {
            "readOnlyHint": reads,
            "destructiveHint": False,
            "idempotentHint": reads,
            "openWorldHint": False,
        }


async def test_the_whole_list_fits_one_page_of_12_kilobytes_p193(desk: InMemoryDesk, era: str) -> None:
    tools = await listed(desk, era)
    assert len(json.dumps(tools, separators=(",", ":")).encode()) < 12_000


async def test_no_output_schema_is_published_that_an_error_could_miss_p197(
    desk: InMemoryDesk, era: str
) -> None:
    assert all("outputSchema" not in tool for tool in await listed(desk, era))
