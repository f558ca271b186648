"""Odd input through the real tools: it works exactly, or is refused by the name of its field, and nothing stays."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from server.arguments import published_schema
from server.permissions import SIMULATED_ONLY, TOOL_ACTIONS
from server.tools import TOOLS

LIVE_TOOLS = [name for name in TOOLS if TOOL_ACTIONS[name] not in SIMULATED_ONLY]

if TYPE_CHECKING:
    from conftest import InMemoryDesk

pytestmark = pytest.mark.anyio

DEEP = "[" * 10_000 + "]" * 10_000
BROKEN_LIST = "tags is not a list of texts."
MOST_TEXT = 100_000

# tool, arguments, the field that the refusal names, words of the message or hint
ORDER = {"operation": "submit", "reason": "r" * 200, "symbol": "AAPL", "side": "buy", "quantity": "1"}
REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    # text that cannot be kept exactly
    ("remember", {"text": "a\x00b"}, "text", "NUL"),
    ("remember", {"text": "a\ud800b"}, "text", "lone surrogate"),
    ("remember", {"text": "x", "category": "\udfff"}, "category", "lone surrogate"),
    ("remember", {"text": "x", "tags": ["ok", "\x00"]}, "tags[1]", "NUL"),
    ("remember", {"text": "x", "tags": '["\\ud800"]'}, "tags[0]", "lone surrogate"),
    ("remember", {"text": "x", "symbol": "AA\u200bPL"}, "symbol", "U+200B"),
    ("search_memory", {"query": "a\x00b"}, "query", "NUL"),
    ("search_memory", {"query": "\ud800"}, "query", "lone surrogate"),
    ("remember_decision", {"text": "x", "action": "buy", "evidence": '{"a":"\\u0000"}'}, "evidence.a", "NUL"),
    # blank, missing, too large (P053, P057)
    ("remember", {"text": ""}, "text", "blank"),
    ("remember", {"text": " \t\n"}, "text", "blank"),
    ("remember", {"text": None}, "text", "missing"),
    ("remember", {}, "text", "missing"),
    ("remember_decision", {"text": "x"}, "action", "missing"),
    ("remember_decision", {"text": "x", "action": ""}, "action", "buy, sell"),
    ("update_thesis", {"text": "x"}, "thesis_id", "missing"),
    ("remember", {"text": "x" * (MOST_TEXT + 1)}, "text", "100001 characters; at most 100000"),
    ("open_thesis", {"text": "x" * (MOST_TEXT + 1)}, "text", "100001 characters; at most 100000"),
    ("search_memory", {"query": "x" * 10_001}, "query", "10001 characters; at most 10000"),
    ("remember", {"text": "x", "tags": [f"t{n}" for n in range(10_000)]}, "tags", "10000 tags; at most 50"),
    ("remember", {"text": "x", "tags": ["x" * 65]}, "tags[0]", "1 to 64"),
    ("remember", {"text": "x", "tags": ["a" + " " * 100_000 + "b"]}, "tags[0]", "1 to 64"),
    ("remember", {"text": "x", "symbol": "A" + " " * 100_000 + "B"}, "symbol", "at most 64"),
    ("remember", {"text": "x", "symbol": "A" * 65}, "symbol", "at most 64"),
    ("remember", {"text": "x", "idempotency_key": "k" * 129}, "idempotency_key", "128"),
    ("remember", {"text": "x", "idempotency_key": "a\nb"}, "idempotency_key", "control"),
    ("remember_decision", {"text": "x", "action": "buy", "evidence": json.dumps({"a": "x" * 64_001})},
     "evidence", "at most 64000"),
    # numbers outside JSON (P051)
    ("remember_decision", {"text": "x", "action": "buy", "evidence": '{"sharpe":NaN}'},
     "evidence.sharpe", "nan"),
    ("remember_decision", {"text": "x", "action": "buy", "evidence": '{"r":[1,Infinity]}'},
     "evidence.r[1]", "inf"),
    ("remember_decision", {"text": "x", "action": "buy", "evidence": '{"r":1e999}'}, "evidence.r", "inf"),
    ("remember_lesson", {"text": "x", "outcome": '{"r":-1e999}'}, "outcome.r", "-inf"),
    ("remember_lesson", {"text": "x", "outcome": f'{{"r":{10**20}}}'}, "outcome.r", "2**53"),
    ("remember_lesson", {"text": "x", "outcome": '{"r":' + "9" * 5_000 + "}"}, "outcome", "not valid JSON"),
    ("close_thesis", {"thesis_id": "ths_0", "pnl": "Infinity"}, "thesis_id", "no thesis"),
    ("search_memory", {"limit": 10**400}, "limit", "2**53"),
    ("search_memory", {"limit": -(10**30)}, "limit", "2**53"),
    # JSON text
    ("remember_decision", {"text": "x", "action": "buy", "evidence": "{broken"}, "evidence", "not valid JSON"),
    ("remember_decision", {"text": "x", "action": "buy", "evidence": '{"a":1,"a":2}'}, "evidence", "twice"),
    ("remember_decision", {"text": "x", "action": "buy", "evidence": DEEP}, "evidence", "not valid JSON"),
    ("remember_decision", {"text": "x", "action": "buy", "evidence": "[" * 40 + "]" * 40},
     "evidence" + "[0]" * 33, "32 levels"),
    ("remember_decision", {"text": "x", "action": "buy", "evidence": "5"}, "evidence", "object or list"),
    ("remember_decision", {"text": "x", "action": "buy", "evidence": 5}, "evidence", "must be a string"),
    ("remember", {"text": "x", "tags": DEEP}, "tags", BROKEN_LIST),
    ("remember", {"text": "x", "tags": [[["deep"]]]}, "tags[0]", "not a list of texts"),
    # lists and numbers as text (P187)
    ("remember", {"text": "x", "tags": "[broken"}, "tags", '["earnings", "momentum"]'),
    ("remember", {"text": "x", "tags": "[1, 2]"}, "tags[0]", "not a list of texts"),
    ("remember", {"text": "x", "tags": {"a": 1}}, "tags", BROKEN_LIST),
    ("remember", {"text": "x", "tags": 7}, "tags", BROKEN_LIST),
    ("remember", {"text": "x", "tags": True}, "tags", BROKEN_LIST),
    ("search_memory", {"limit": "five"}, "limit", "must be an integer"),
    ("search_memory", {"limit": "--5"}, "limit", "must be an integer"),
    ("search_memory", {"limit": 2.5}, "limit", "must be an integer"),
    ("search_memory", {"limit": True}, "limit", "must be an integer"),
    ("search_memory", {"limit": [5]}, "limit", "must be an integer"),
    ("search_memory", {"limit": 0}, "limit", "1 and 50"),
    ("search_memory", {"limit": 51}, "limit", "1 and 50"),
    ("remember", {"text": ["x"]}, "text", "must be a string"),
    ("remember", {"text": {"x": 1}}, "text", "must be a string"),
    ("remember", {"text": True}, "text", "must be a string"),
    ("remember", {"text": "x", "supersedes": 5}, "supersedes", "must be a string"),
    ("remember", {"text": "x", "review_by": 20260302}, "review_by", "must be a string"),
    ("remember", {"text": "x", "review_by": "tomorrow"}, "review_by", "not a date and time"),
    ("remember", {"text": "x", "review_by": "2026-03-02T10:00:00"}, "review_by", "no offset"),
    ("remember", {"text": "x", "expires_at": "2001-01-01T00:00:00Z"}, "expires_at", "past"),
    ("get_memory", {"memory_id": 5}, "memory_id", "must be a string"),
    ("get_memory", {"memory_id": ""}, "memory_id", "1 to 128"),
    ("get_memory", {"memory_id": "../../etc/passwd"}, "memory_id", "no memory"),
    ("search_memory", {"since": "2026-03-02T00:00:00Z", "until": "2026-03-01T00:00:00Z"}, "since", "after until"),
    # orders, in form
    ("list_unreconciled_orders", {"limit": 0}, "limit", "1 and 50"),
    ("list_unreconciled_orders", {"limit": 51}, "limit", "1 and 50"),
    ("record_order_intent", {"operation": "submit", "reason": " x "}, "reason", "600 to 2,500"),
    ("record_order_intent", {**ORDER, "quantity": None}, "quantity", "missing"),
    ("record_order_intent", {**ORDER, "quantity": "0"}, "quantity", "greater than zero"),
    ("record_order_intent", {**ORDER, "side": "long"}, "side", "buy, sell"),
    ("record_order_intent", {**ORDER, "order_type": "limit"}, "limit_price", "missing"),
    ("record_order_intent", {**ORDER, "evidence": "[1]"}, "evidence", "JSON object"),
    ("record_order_intent", {**ORDER, "legs": "{}"}, "legs", "list"),
    ("record_order_intent", {**ORDER, "operation": "cancel"}, "previous_action_id", "client_order_id"),
    ("record_order_intent", {**ORDER, "operation": "replace"}, "operation", "submit, modify, cancel"),
    ("record_order_intent", {**ORDER, "qty": "1"}, "qty", "did you mean 'quantity'?"),
    ("record_order_intent", {**ORDER, "tif": "day"}, "tif", "did you mean 'time_in_force'?"),
    ("record_order_intent", {"rationale": "r"}, "rationale", "did you mean 'reason'?"),
    ("record_order_outcome", {"status": "filled"}, "status", "did you mean 'certainty'?"),
    ("record_order_outcome", {"order_id": "b-1"}, "order_id", "did you mean"),
    ("report_positions", {"holdings": []}, "holdings", "did you mean 'positions'?"),
    ("validate_lesson", {"outcomes": []}, "outcomes", "did you mean 'outcome_ids'?"),
    ("record_order_outcome", {"action_id": "act_0", "certainty": "banana"}, "certainty", "acknowledged"),
    ("record_order_outcome", {"action_id": "act_0", "certainty": "filled"}, "action_id", "no memory"),
    ("report_positions", {"positions": "AAPL"}, "positions", "JSON"),
    ("report_positions", {"positions": [{"symbol": "AAPL"}]}, "positions[0].quantity", "missing"),
    ("validate_lesson", {"lesson_id": "les_0", "verdict": "supports", "outcome_ids": []}, "lesson_id", "no memory"),
    # words of a list (P043)
    ("search_memory", {"kind": "lessons"}, "kind", "memory, proposal, risk_note, decision, lesson, thesis"),
    ("search_memory", {"kind": ["lesson", "decision"]}, "kind", "lesson"),
    ("search_memory", {"status": "OPENED"}, "status", "open, closed"),
    ("search_memory", {"response_format": "full"}, "response_format", "concise, detailed"),
    ("remember_decision", {"text": "x", "action": "yolo"}, "action", "buy, sell, hold"),
    # cursors that are not ours
    ("search_memory", {"cursor": "not a cursor"}, "cursor", "not one that a search returned"),
    ("search_memory", {"cursor": "W0luZmluaXR5LDAsMCwieCJd"}, "cursor", "not one that a search returned"),
    ("search_memory", {"cursor": "目"}, "cursor", "not one that a search returned"),
    # unknown arguments, by what models call them (P189)
    ("search_memory", {"ticker": "AAPL"}, "ticker", "did you mean 'symbol'?"),
    ("search_memory", {"symbols": ["AAPL"]}, "symbols", "did you mean 'symbol'?"),
    ("search_memory", {"max_results": 5}, "max_results", "did you mean 'limit'?"),
    ("search_memory", {"as_of_date": "2026-01-01"}, "as_of_date", "did you mean 'as_of'?"),
    ("search_memory", {"qurey": "x"}, "qurey", "did you mean 'query'?"),
    ("remember", {"content": "x"}, "content", "did you mean 'text'?"),
    ("remember", {"text": "x", "tag": ["a"]}, "tag", "did you mean 'tags'?"),
    ("remember", {"text": "x", "zzzzzz": 1}, "zzzzzz", "This tool takes: text"),
    ("remember", {"text": "x", "zzzzzz": None}, "zzzzzz", "This tool takes: text"),
    ("remember", {"text": "x", "a\x1b[2J" + "b" * 500: 1}, "a?[2J" + "b" * 59, "Unknown argument"),
    ("remember", {"text": "x", "kind": "decision"}, "kind", "Unknown argument"),
    ("remember", {"text": "x", "agent_name": "pm"}, "agent_name", "Unknown argument"),
    ("remember", {"text": "x", "now": "2020-01-01T00:00:00Z"}, "now", "Unknown argument"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "arguments", "field", "words"), REFUSED, ids=[f"{c[0]}-{c[2][:24]}-{c[3][:16]}" for c in REFUSED]
)
async def test_odd_input_is_refused_by_its_field_and_nothing_but_the_failure_is_stored(
    desk: InMemoryDesk, era: str, tool: str, arguments: dict[str, Any], field: str, words: str
) -> None:
    """P043, P051, P053, P057, P187, P189."""
    async with desk.client(era) as client:
        await desk.call(client, "remember", text="what stood before")
        before = desk.entries()
        told = await desk.refused(client, tool, **arguments)
        assert told["field"] == field
        assert words in told["message"] + told["hint"]
        assert told["stored"] == "no"
        assert len(json.dumps(told)) < 2_000
        added = desk.entries()[len(before) :]
        wanted = ["call.failed"] if TOOLS[tool].changes else []
        assert [entry.event_type for entry in added] == wanted
        for entry in added:
            # The argument as the tool calls it; what the caller made up stands in no ledger.
            head = re.split(r"[.\[]", field, maxsplit=1)[0]
            known = {"field": head} if head in published_schema(TOOLS[tool].arguments)["properties"] else {}
            content = {"tool": tool, "code": told["code"], "count": 1} | known
            assert json.loads(entry.content) == content
        assert (await desk.call(client, "search_memory", query="stood before"))["total"] == 1


async def test_exactly_the_most_text_is_kept_whole(desk: InMemoryDesk, era: str) -> None:
    async with desk.client(era) as client:
        text = "目" * (MOST_TEXT - 6) + " end 💹"
        assert len(text) == MOST_TEXT
        written = await desk.call(client, "remember", text=text)
        (entry,) = desk.entries("memory.recorded")
        assert json.loads(entry.content)["text"] == text
        found, cursor = "", None
        while True:
            page = await desk.call(client, "get_memory", memory_id=written["id"], cursor=cursor)
            found += page["memory"]["text"]
            cursor = page["cursor"]
            if cursor is None:
                break
        assert found == text


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ('["a","b"]', ["a", "b"]), ("a,b", ["a", "b"]), ("a", ["a"]), (" a , b ", ["a", "b"]),
        (["A", "a "], ["a"]), ("null", []), ("None", []), ("", []), ("[]", []), ([], []), (None, []),
        ("[]x", None), ('"a"', ["a"]), ("'a', \"b\"", ["a", "b"]),
    ],
)  # fmt: skip
async def test_tags_are_read_however_they_are_sent_p187(
    desk: InMemoryDesk, era: str, sent: object, kept: list[str] | None
) -> None:
    async with desk.client(era) as client:
        if kept is None:
            assert (await desk.refused(client, "remember", text="x", tags=sent))["field"] == "tags"
            return
        written = await desk.call(client, "remember", text="x", tags=sent)
        shown = await desk.call(client, "get_memory", memory_id=written["id"])
        assert shown["memory"]["tags"] == kept


async def test_numbers_lists_and_objects_sent_as_text_mean_the_same_p187(
    desk: InMemoryDesk, era: str
) -> None:
    async with desk.client(era) as client:
        for number in range(7):
            await desk.call(client, "remember", text=f"note {number}", supersedes="null", expires_at="")
        for five in ("5", " 5 ", "+5", 5, 5.0):
            assert len((await desk.call(client, "search_memory", limit=five))["hits"]) == 5
        for ten in ("null", None, ""):
            assert len((await desk.call(client, "search_memory", limit=ten))["hits"]) == 7
        for sent in ('{"k":1,"l":[2.5]}', {"k": 1, "l": [2.5]}):
            written = await desk.call(client, "remember_decision", text="d", action=" BUY ", evidence=sent)
            shown = (await desk.call(client, "get_memory", memory_id=written["id"]))["memory"]["details"]
            assert shown["action"] == "buy"
            assert shown["evidence"] == {"k": 1, "l": [2.5]}
        thesis = await desk.call(client, "open_thesis", text="t", target=190.5, direction="null")
        await desk.call(client, "update_thesis", thesis_id=thesis["id"], text="u", expected_version="1")
        closed = await desk.call(client, "close_thesis", thesis_id=thesis["id"], pnl=12.5, return_pct="3.40")
        shown = (await desk.call(client, "get_memory", memory_id=closed["id"]))["memory"]["details"]
        assert shown["outcome"] == {"pnl": "12.5", "return_pct": "3.40"}
        assert shown["target"] == "190.5"


async def test_words_are_read_in_any_case_with_spaces_p043(desk: InMemoryDesk, era: str) -> None:
    async with desk.client(era) as client:
        await desk.call(client, "open_thesis", text="t", symbol="AAPL")
        found = await desk.call(client, "search_memory", status="OPEN ", kind=" Thesis", symbol=" aapl ")
        assert found["total"] == 1


async def test_keys_that_hosts_inject_are_stripped_from_every_tool(desk: InMemoryDesk, era: str) -> None:
    async with desk.client(era) as client:
        written = await desk.call(client, "remember", text="x", task_progress="- [x] step")
        await desk.call(client, "search_memory", query="x", task_progress=["- [ ] step"])
        assert "step" not in json.dumps(await desk.call(client, "get_memory", memory_id=written["id"]))


@pytest.mark.parametrize("tool", LIVE_TOOLS)
async def test_null_for_every_optional_is_the_same_as_leaving_it_away(
    desk: InMemoryDesk, era: str, tool: str
) -> None:
    schema = published_schema(TOOLS[tool].arguments)
    optional = dict.fromkeys(schema["properties"].keys() - set(schema.get("required", ())))
    async with desk.client(era) as client:
        thesis = await desk.call(client, "open_thesis", text="t")
        note = await desk.call(client, "remember", text="n")
        required = {
            "text": "w", "action": "buy", "thesis_id": thesis["id"], "memory_id": note["id"],
            "status": "retired", "reason": "stale",
        }  # fmt: skip
        order = {"operation": "cancel", "reason": "r" * 200, "client_order_id": "c-1"}
        action = await desk.call(client, "record_order_intent", **order)
        lesson = await desk.call(client, "remember_lesson", text="l")
        required |= {
            "record_order_intent": {"operation": "submit", "reason": "r" * 200},
            "record_order_outcome": {"action_id": action["id"], "certainty": "unknown"},
            "validate_lesson": {"lesson_id": lesson["id"], "verdict": "supports", "outcome_ids": ["ev_0"]},
            "report_positions": {"positions": "[]"},
        }.get(tool, {})
        given = {name: required[name] for name in schema.get("required", ())}
        if tool in (
            "record_order_intent",
            "validate_lesson",
        ):  # these need more than what is required in form
            refusal = await desk.refused(client, tool, **given, **optional)
            assert refusal == await desk.refused(client, tool, **given)
            assert refusal["field"] == {"record_order_intent": "symbol"}.get(tool, "outcome_ids[0]")
            return
        assert await desk.call(client, tool, **given, **optional)


async def test_wrong_types_for_every_argument_of_every_tool_are_served_or_refused_by_name(
    hurried_desk: InMemoryDesk, era: str
) -> None:
    desk = hurried_desk
    odd: list[Any] = [
        True, 0, -1, 2.5, 1e308, "", "x", "null", [], ["x"], [None], [[]], {}, {"x": None}, {"": ""}, [{}],
        "\u202e", "\x7f", "[1", '{"a":', 2**53, 2**64,
    ]  # fmt: skip
    required = {"text": "w", "action": "buy", "thesis_id": "ths_0", "memory_id": "mem_0", "status": "retired"}
    refused = served = 0
    async with desk.client(era) as client:
        for name, tool in ((name, TOOLS[name]) for name in LIVE_TOOLS):
            schema = published_schema(tool.arguments)
            given = {key: required.get(key, "stale") for key in schema.get("required", ())}
            for argument in schema["properties"]:
                for value in odd:
                    result = await client.call_tool(name, {**given, argument: value})
                    if not result.is_error:
                        desk.body(result)
                        served += 1
                        continue
                    told = desk.error(result)
                    assert told["code"] in ("invalid_input", "not_found"), (name, argument, value, told)
                    top = told["field"].partition("[")[0].partition(".")[0]
                    assert top == argument or top in given, (name, argument, value, told)
                    refused += 1
    assert refused > 500
    assert served > 200


async def test_the_word_null_for_anything_optional_means_that_it_is_absent_p187(
    desk: InMemoryDesk, era: str
) -> None:
    async with desk.client(era) as client:
        thesis = await desk.call(client, "open_thesis", text="t")
        note = await desk.call(client, "remember", text="n")
        required = {
            "text": "w", "action": "buy", "thesis_id": thesis["id"], "memory_id": note["id"],
            "status": "retired", "reason": "stale",
        }  # fmt: skip
        for word in ("null", "None", " none ", ""):
            await desk.call(client, "search_memory", query="nothing", symbol=word, agent=word, kind=word)
        for tool in ("remember", "remember_proposal", "remember_risk_note", "remember_lesson",
                     "remember_decision", "open_thesis", "update_thesis", "flag_memory", "close_thesis"):  # fmt: skip
            schema = published_schema(TOOLS[tool].arguments)
            given = {name: required[name] for name in schema["required"]}
            absent = dict.fromkeys(schema["properties"].keys() - given.keys(), "null")
            await desk.call(client, tool, **given, **absent)
            if tool != "close_thesis":  # no key was taken, so another call is another entry
                await desk.call(
                    client, tool, **given | {"text": "other"} if "text" in given else given, **absent
                )
    for entry in desk.entries()[2:]:
        assert (entry.symbol, entry.idempotency_key) == (None, None)
        if (
            entry.event_type != "memory.retrieved"
        ):  # what was handed over is JSON and may hold a null of its own
            assert "null" not in entry.content.lower()
    assert {json.dumps(content["filters"]) for content in desk.contents("memory.retrieved")} == {"{}"}


async def test_the_same_key_and_arguments_are_stored_once_in_whatever_form_they_come(
    desk: InMemoryDesk, era: str
) -> None:
    async with desk.client(era) as client:
        key = {"idempotency_key": "k1"}
        first = await desk.call(client, "remember", text="x", tags=["a", "b"], symbol="AAPL", **key)
        assert await desk.call(client, "remember", text="x", tags="a,b", symbol="AAPL", **key) == first
        assert await desk.call(client, "remember", text="x", tags='["a","b"]', symbol="AAPL", **key) == first
        told = await desk.refused(client, "remember", text="y", **key)
        assert (told["code"], told["field"], told["stored"]) == (
            "idempotency_conflict",
            "idempotency_key",
            "no",
        )
        other = await desk.call(client, "remember_risk_note", text="x", **key)  # the key belongs to one tool
        assert other["id"] != first["id"]
    assert len(desk.entries("memory.recorded")) == 1


@pytest.mark.parametrize(
    "ticker", ["NULL", "NONE", "NAN", "NA", "INF", "TRUE", "F", "T", "A", "IT", "ON", "ALL", "NOW"]
)
async def test_a_word_like_ticker_is_kept_and_found_as_the_ticker_it_is_p069(
    desk: InMemoryDesk, era: str, ticker: str
) -> None:
    async with desk.client(era) as client:
        await desk.call(client, "remember", text="of another", symbol="AAPL")
        written = await desk.call(client, "remember", text="word-like", symbol=ticker)
        found = await desk.call(client, "search_memory", symbol=ticker)
        assert [(hit["id"], hit["symbol"]) for hit in found["hits"]] == [(written["id"], ticker)]
