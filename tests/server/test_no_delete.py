"""No agent deletes: no tool, no argument and no profile leads to it, and taking something back is one more entry."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from server.permissions import PROFILES, Action

if TYPE_CHECKING:
    from conftest import InMemoryDesk, OpenDesk

pytestmark = pytest.mark.anyio

TABLE = runpy.run_path(str(Path(__file__).parents[1] / "fixtures" / "permission_matrix.py"))
CASES = [*TABLE["EXPECTED"], "everything"]
EVERYTHING = f"[profiles.everything]\nallow = {json.dumps([action.value for action in Action])}\n"
DESTROYING = ("delete", "forget", "remove", "erase", "purge", "drop", "clear", "wipe", "truncate", "redact")
GUESSES = (
    "forget",
    "delete",
    "delete_memory",
    "forget_memory",
    "memory_delete",
    "remove_memory",
    "clear_memory",
    "redact_memory",
)
FOR_PEOPLE = ("redact_memory",)
"""What a person alone does: who asks for it as a tool is refused, and that is an entry."""

BACK_DOORS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("remember", {"text": "t", "kind": "delete"}),
    ("remember", {"text": "t", "event_type": "memory.deleted"}),
    ("remember", {"text": "t", "delete": True}),
    ("search_memory", {"kind": "delete"}),
    ("resolve_memory", {"status": "deleted"}),
    ("resolve_memory", {"status": "retired", "kind": "delete"}),
    ("flag_memory", {"reason": "delete"}),
    ("update_thesis", {"text": ""}),
)


def opened(open_desk: OpenDesk, case: str) -> InMemoryDesk:
    profile, _, read_only = case.partition(", ")
    agent = f'[agents.a]\nprofile = "{profile}"\nread_only = {str(bool(read_only)).lower()}\n'
    writer = '[agents.writer]\nprofile = "solo"\n'
    return open_desk(TABLE["CUSTOM"] + EVERYTHING + writer + agent, "a")


@pytest.mark.parametrize("case", CASES)
async def test_no_profile_is_shown_or_given_a_tool_that_destroys(
    open_desk: OpenDesk, era: str, case: str
) -> None:
    """P209."""
    desk = opened(open_desk, case)
    writer = open_desk((desk.root.parent / "desk0.toml").read_text(), "writer")
    async with writer.client(era) as client:
        note = await writer.call(client, "remember", text="stays")
    before = writer.entries()
    async with desk.client(era) as client:
        tools = (await client.list_tools()).tools
        assert not [tool.name for tool in tools if any(word in tool.name for word in DESTROYING)]
        assert [tool.name for tool in tools if tool.annotations and tool.annotations.destructive_hint] == []
        for name in GUESSES:
            for arguments in ({}, {"memory_id": note["id"]}):
                told = await desk.refused(client, name, **arguments)
                assert told["code"] == ("permission_denied" if name in FOR_PEOPLE else "not_found")
                assert told["stored"] == "no"
    after = desk.entries()
    assert after[: len(before)] == before
    added = [entry.event_type for entry in after[len(before) :]]
    assert added == ["session.started", "permission.denied"]


async def test_no_argument_of_a_tool_deletes(open_desk: OpenDesk, era: str) -> None:
    """P209: kind='delete' and its like are refused with the argument named, and nothing changes."""
    desk = opened(open_desk, "everything")
    async with desk.client(era) as client:
        note = (await desk.call(client, "remember", text="stays"))["id"]
        thesis = (await desk.call(client, "open_thesis", text="stays open"))["id"]
        ids = {"memory_id": note, "thesis_id": thesis}
        needs = {
            tool.name: tool.input_schema.get("required", ()) for tool in (await client.list_tools()).tools
        }
        for tool, arguments in BACK_DOORS:
            given = {name: ids[name] for name in needs[tool] if name in ids} | arguments
            told = await desk.refused(client, tool, **given)
            assert (told["code"], told["stored"]) == ("invalid_input", "no"), (tool, arguments)
            assert told["field"] in arguments
        for name, text in ((note, "stays"), (thesis, "stays open")):
            shown = (await desk.call(client, "get_memory", memory_id=name))["memory"]
            assert (shown["text"], shown["version"]) == (text, 1)


@pytest.mark.parametrize("status", ["retired", "withdrawn"])
async def test_taking_a_memory_back_is_an_entry_and_the_memory_stays_readable(
    desk: InMemoryDesk, era: str, status: str
) -> None:
    """P209: a retraction adds to the ledger; what was said before is still there, byte for byte."""
    async with desk.client(era) as client:
        tool = "remember_proposal" if status == "withdrawn" else "remember"
        note = await desk.call(client, tool, text="sold too early")
        before = desk.entries()
        await desk.call(client, "resolve_memory", memory_id=note["id"], status=status, note="wrong fund")
        after = desk.entries()
        assert after[: len(before)] == before
        (added,) = after[len(before) :]
        assert (added.event_type, added.subject_id) == ("memory.status_changed", note["id"])
        assert json.loads(added.content)["status"] == status
        shown = await desk.call(client, "get_memory", memory_id=note["id"])
        assert (shown["memory"]["text"], shown["memory"]["status"]) == ("sold too early", status)
        assert len(shown["history"]) == 2
        found = await desk.call(client, "search_memory", query="sold early", status=status)
        assert [hit["id"] for hit in found["hits"]] == [note["id"]]


def test_the_profiles_that_are_tried_are_all_there_are() -> None:
    assert set(CASES) >= set(PROFILES)
