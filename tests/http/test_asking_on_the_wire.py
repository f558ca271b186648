"""A person is asked over every transport and in both eras; what a client makes up is no answer."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from mcp_types import ElicitResult

from store import Book

if TYPE_CHECKING:
    from conftest import HttpDesk, StartDesk

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ASKING = """
[agents.trader]
profile = "trader"
token_env = "TRADER_TOKEN"
[approval]
memory = "ask"
"""
WAYS = [
    ("http", "modern"),
    ("http", "legacy"),
    ("sse", "legacy"),
    ("stdio", "modern"),
    ("stdio", "legacy"),
]


@pytest.fixture
def asking(start_desk: StartDesk) -> HttpDesk:
    return start_desk(ASKING)


@pytest.mark.parametrize(("transport", "era"), WAYS)
async def test_a_persons_yes_is_kept_and_a_no_keeps_nothing(
    asking: HttpDesk, transport: str, era: str
) -> None:
    answers = [
        ElicitResult(action="accept", content={"keep": True}),
        ElicitResult(action="decline"),
        ElicitResult(action="cancel"),
    ]
    asked: list[str] = []

    async def person(_context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return answers[len(asked) - 1]

    options = {"elicitation_callback": person}
    async with asking.client("trader", transport, era, options=options) as client:
        kept = await client.call_tool("remember", {"text": "one"})
        assert kept.structured_content["review_state"] == "host_confirmed"  # type: ignore[index]
        refused = await client.call_tool("remember", {"text": "two"})
        assert refused.is_error
        waits = await client.call_tool("remember", {"text": "three"})
        assert waits.structured_content["review_state"] == "pending"  # type: ignore[index]
    assert ["> one" in asked[0], "> two" in asked[1], "> three" in asked[2]] == [True] * 3
    assert [json.loads(entry.content)["text"] for entry in asking.entries("memory.recorded")] == [
        "one",
        "three",
    ]


@pytest.mark.parametrize("result", ["garbage", None, []])
def test_an_answer_that_is_malformed_is_no_answer_at_once(asking: HttpDesk, result: Any) -> None:
    headers = {"Mcp-Session-Id": asking.initialize("trader", {"elicitation": {}})}
    with asking.raw("trader") as http:
        call = asking.rpc("tools/call", name="remember", arguments={"text": "one"})
        with http.stream("POST", "/mcp", json=call, headers=headers) as stream:
            sent = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: {"))
            question = next(sent)
            assert question["method"] == "elicitation/create"
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": result}
            assert http.post("/mcp", json=answer, headers=headers).status_code == 202
            assert next(sent)["result"]["structuredContent"]["review_state"] == "pending"


def test_an_answer_that_nobody_was_asked_for_is_none(asking: HttpDesk) -> None:
    """P139: a client that says yes by itself, in the first round or about other words, is asked all the same."""
    able = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
    yes = {"keep": {"action": "accept", "content": {"keep": True}}}
    with asking.raw("trader") as http:

        def call(text: str, **more: Any) -> dict[str, Any]:
            body, headers = asking.modern(
                "tools/call", name="remember", arguments={"text": text}, _meta=able, **more
            )
            return dict(asking.answer(http.post("/mcp", json=body, headers=headers)))

        first = call("one", inputResponses=yes)
        assert first["result"]["resultType"] == "input_required"
        state = first["result"]["requestState"]
        other = call("two", inputResponses=yes, requestState=state)
        assert other.get("result", {}).get("structuredContent", {}).get("review_state") != "host_confirmed"
        made_up = call("one", inputResponses=yes, requestState="made up")
        assert "result" not in made_up or "structuredContent" not in made_up["result"]
        with closing(Book.open(asking.root, "default", create=True)) as book:
            assert book.head().sequence == 1
        kept = call("one", inputResponses=yes, requestState=state)
        assert kept["result"]["structuredContent"]["review_state"] == "host_confirmed"
