"""What tools/list publishes: schemas every framework converts, hints that are true, all in one page."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from server.permissions import PROFILES

if TYPE_CHECKING:
    from conftest import InMemoryDesk, OpenDesk

pytestmark = pytest.mark.anyio

NINE_OF_LUMIBOT = {
    "remember", "search_memory", "remember_proposal", "remember_risk_note", "remember_decision",
    "remember_lesson", "open_thesis", "update_thesis", "close_thesis",
}  # fmt: skip
ORDERS = {"record_order_intent", "record_order_outcome", "list_unreconciled_orders"}
OUTCOMES = {"validate_lesson", "report_positions"}
OURS = (
    NINE_OF_LUMIBOT | {"get_memory", "get_memory_state", "resolve_memory", "flag_memory"} | ORDERS | OUTCOMES
)
READING = {"search_memory", "get_memory", "get_memory_state", "list_unreconciled_orders"}

# The arguments the issue fixes, required ones with a star.
ARGUMENTS = {
    "remember": "text* category tags symbol supersedes review_by expires_at idempotency_key",
    "remember_proposal": "text* symbol action tags review_by expires_at idempotency_key",
    "remember_risk_note": "text* symbol tags review_by expires_at idempotency_key",
    "remember_decision": "text* action* symbol evidence tags thesis_id retrieval_id idempotency_key",
    "remember_lesson": "text* symbol tags outcome review_by expires_at idempotency_key",
    "open_thesis": "text* symbol direction horizon target invalidation review_by expires_at tags "
    "idempotency_key",
    "update_thesis": "thesis_id* text* symbol direction horizon target invalidation review_by tags "
    "expected_version idempotency_key",
    "close_thesis": "thesis_id* result pnl return_pct exit_price note expected_version idempotency_key",
    "get_memory": "memory_id* as_of cursor response_format",
    "get_memory_state": "as_of",
    "resolve_memory": "memory_id* status* note expected_version idempotency_key",
    "flag_memory": "memory_id* reason* other_id note idempotency_key",
    "search_memory": "query kind symbol status tags agent since until as_of include_expired limit cursor order "
    "response_format",
    "record_order_intent": "operation* reason* symbol side quantity order_type limit_price stop_price time_in_force "
    "legs client_order_id thesis_id decision_id previous_action_id public_reason evidence snapshot idempotency_key",
    "record_order_outcome": "action_id* certainty* broker_order_id filled_quantity average_price error_type "
    "idempotency_key",
    "list_unreconciled_orders": "symbol as_of limit",
    "validate_lesson": "lesson_id* verdict* outcome_ids* note idempotency_key",
    "report_positions": "positions* idempotency_key",
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


async def test_the_clock_of_a_run_is_a_tool_of_its_harness_with_a_plain_schema_and_true_hints(
    open_desk: OpenDesk, era: str
) -> None:
    config = '[agents.h]\nprofile = "harness"\nclock = { mode = "simulated", run = "r" }'
    (tool,) = [each for each in await listed(open_desk(config, "h"), era) if each["name"] == "advance_clock"]
    schema = tool["inputSchema"]
    assert (list(schema["properties"]), schema["required"]) == (["now"], ["now"])
    assert property_faults(schema["properties"]["now"]) == []
    assert tool["annotations"] == {
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }


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


# Bytes of the whole list as sent, titles and annotations included. 12,000 held for the tools of memory alone;
# with the order tools a trader's list is bound by its tokens (test_budgets), and this is what that comes to.
LIST_BYTES = {"researcher": 8_000, "harness": 8_000, "reviewer": 8_400, "auditor": 3_000}


@pytest.mark.parametrize("profile", PROFILES)
async def test_the_whole_list_fits_one_small_page_p193(open_desk: OpenDesk, era: str, profile: str) -> None:
    tools = await listed(open_desk(f'[agents.a]\nprofile = "{profile}"'), era)
    assert len(json.dumps(tools, separators=(",", ":")).encode()) < LIST_BYTES.get(profile, 16_500)


async def test_descriptions_of_the_order_tools_say_what_the_desk_rests_on(desk: InMemoryDesk) -> None:
    tools = {tool["name"]: tool for tool in await listed(desk, "modern")}
    intent = tools["record_order_intent"]
    asked = intent["inputSchema"]["properties"]["reason"]["description"]
    assert "600 to 2,500 characters" in asked
    for part in ("dated evidence", "sizing", "risks", "invalidation"):
        assert part in asked
    assert "before the broker is called" in intent["description"]
    assert "a decision summary, not hidden reasoning" in intent["description"]
    outcome = tools["record_order_outcome"]
    assert "A failed write leaves the order standing" in outcome["description"]
    assert "again with the same idempotency_key" in outcome["description"]
    told = outcome["inputSchema"]["properties"]["certainty"]["description"]
    assert "timeout is unknown" in told
    assert "acknowledgement is no fill" in told


async def test_no_output_schema_is_published_that_an_error_could_miss_p197(
    desk: InMemoryDesk, era: str
) -> None:
    assert all("outputSchema" not in tool for tool in await listed(desk, era))
