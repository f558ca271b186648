"""The real server over pipes, in raw frames: what no SDK client would send, bursts, and a held write lock."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from store import Book
from store.audit import verify
from store.entry import Entry
from store.rows import EntryFilter

if TYPE_CHECKING:
    from conftest import PipedDesk, StartDesk

RAW = '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s","arguments":%s%s}}\n'
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
Entries = Callable[[], list[Entry]]
HoldLock = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def serve(start_serve: StartDesk, era: str) -> PipedDesk:
    """One person's server that has said hello in one era."""
    desk = start_serve()
    desk.open(era)
    return desk


@pytest.fixture
def entries(tmp_path: Path) -> Entries:
    """All entries of the default ledger."""

    def read() -> list[Entry]:
        book = Book.open(tmp_path / "root", "default", create=False)
        try:
            return book.log(EntryFilter(limit=1_000_000))
        finally:
            book.close()

    return read


@pytest.fixture
def hold_write_lock(tmp_path: Path) -> HoldLock:
    """Hold the lock that writers of all processes take, as a writer stopped in its commit does."""

    @contextmanager
    def hold() -> Iterator[None]:
        with (tmp_path / "root" / "default" / "memory.sqlite.lock").open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    return hold


def raw_call(era: str, number: int, tool: str, arguments: str) -> bytes:
    meta = f',"_meta":{json.dumps(ENVELOPE)}' if era == "modern" else ""
    return (RAW % (number, tool, arguments, meta)).encode("utf-8", "surrogatepass")


def body(reply: dict[str, Any]) -> dict[str, Any]:
    """The body of a served call, text and structure checked to say the same."""
    result = reply["result"]
    assert result["isError"] is False, result
    assert json.loads(result["content"][0]["text"], parse_constant=pytest.fail) == result["structuredContent"]
    return dict(result["structuredContent"])


def told(reply: dict[str, Any]) -> dict[str, Any]:
    result = reply["result"]
    assert result["isError"] is True
    assert "structuredContent" not in result
    return dict(json.loads(result["content"][0]["text"], parse_constant=pytest.fail))


# Tool, raw JSON of its arguments, the field that the refusal names.
NOT_STRICT = [
    ("remember", '{"text":"a\\u0000b"}', "text"),
    ("remember", '{"text":"a\\ud800b"}', "text"),
    ("remember", '{"text":"x","tags":["\\udc00"]}', "tags[0]"),
    ("remember", '{"text":NaN}', "text"),
    ("search_memory", '{"limit":Infinity}', "limit"),
    ("search_memory", '{"limit":-Infinity}', "limit"),
    ("search_memory", '{"limit":1e999}', "limit"),
    ("search_memory", '{"limit":' + "9" * 5_000 + "}", "limit"),
    ("remember_decision", '{"text":"x","action":"buy","evidence":{"sharpe":NaN}}', "evidence.sharpe"),
    ("remember_decision", '{"text":"x","action":"buy","evidence":"{\\"r\\":1e999}"}', "evidence.r"),
    ("close_thesis", '{"thesis_id":"ths_0","pnl":Infinity}', "pnl"),
    ("remember", '{"text":"x","unknown\\ud800":1}', "unknown?"),
    ("remember", '{"text":' + "[" * 40 + "]" * 40 + "}", "text" + "[0]" * 33),
]


def test_what_strict_json_cannot_carry_is_refused_by_its_field_and_stores_nothing_p051(
    serve: PipedDesk, era: str, entries: Entries
) -> None:
    serve.send(serve.tool(era, 0, "remember", text="before"))
    body(serve.reply(0))
    for number, (tool, arguments, field) in enumerate(NOT_STRICT, start=1):
        before = len(entries())
        serve.send(raw_call(era, number, tool, arguments))
        refusal = told(serve.reply(number))
        assert (refusal["code"], refusal["field"], refusal["stored"]) == ("invalid_input", field, "no"), (
            arguments
        )
        assert {entry.event_type for entry in entries()[before:]} <= {"call.failed"}
        serve.send(serve.tool(era, "next", "search_memory", query="before"))
        assert body(serve.reply("next"))["total"] == 1


def test_endless_nesting_is_refused_under_its_id_and_the_server_lives_on(serve: PipedDesk, era: str) -> None:
    serve.send(raw_call(era, 1, "remember", '{"text":' + "[" * 10_000 + "]" * 10_000 + "}"))
    assert serve.reply(1)["error"]["code"] == -32600
    serve.send(serve.tool(era, 2, "remember", text="after"))
    body(serve.reply(2))


def test_huge_text_is_kept_whole_or_refused_with_cap_and_size_p053(
    serve: PipedDesk, era: str, entries: Entries
) -> None:
    for size in (100_000, 100_001, 1_000_000, 10_000_000):
        serve.send(serve.tool(era, size, "remember", text="x" * size))
        reply = serve.reply(size)
        if size <= 100_000:
            body(reply)
            assert json.loads(entries()[-1].content)["text"] == "x" * size
        elif "error" in reply:
            assert reply["error"]["data"]["received"] > size > reply["error"]["data"]["limit"]
        else:
            message = told(reply)["message"]
            assert str(size) in message
            assert "100000" in message
        serve.send(serve.tool(era, "next", "remember", text="after"))
        body(serve.reply("next"))
    with open(f"/proc/{serve.process.pid}/status", encoding="ascii") as status:  # noqa: PTH123
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    assert peak < 300_000  # KiB


def test_twenty_five_calls_in_one_burst_get_twenty_five_right_answers_p001(
    serve: PipedDesk, era: str, entries: Entries, tmp_path: Path
) -> None:
    burst = [
        *(("remember", f"note{n}") for n in range(10)),
        *(("remember_lesson", f"lesson{n}") for n in range(5)),
        *(("open_thesis", f"thesis{n}") for n in range(5)),
        *(("remember_risk_note", f"risk{n}") for n in range(5)),
    ]
    serve.send(
        *(serve.tool(era, n, tool, text=f"{token}x", symbol=f"S{n}") for n, (tool, token) in enumerate(burst))
    )
    answers = {n: body(serve.reply(n)) for n in range(len(burst))}
    written = {entry.sequence: entry for entry in entries()}
    for n, (tool, token) in enumerate(burst):
        entry = written[answers[n]["sequence"]]
        assert json.loads(entry.content)["text"] == f"{token}x"
        assert (entry.event_id, entry.tool, entry.symbol) == (answers[n]["event_id"], tool, f"S{n}")
        assert answers[n]["warnings"] == []
        serve.send(serve.tool(era, 100 + n, "search_memory", query=f"{token}x"))
        (hit,) = body(serve.reply(100 + n))["hits"]
        assert hit["id"] == answers[n]["id"]
    sequences = [entry.sequence for entry in entries()]
    assert sequences == list(range(1, len(sequences) + 1))
    serve.close_input()
    assert serve.wait() == 0
    assert verify(tmp_path / "root" / "default" / "memory.sqlite", "default", None).sound


def test_sixty_parallel_writes_over_one_session_are_sixty_memories_p167(
    serve: PipedDesk, era: str, entries: Entries, tmp_path: Path
) -> None:
    serve.send(*(serve.tool(era, n, "remember", text=f"parallel {n}") for n in range(60)))
    answers = {n: body(serve.reply(n)) for n in range(60)}
    texts = {entry.subject_id: json.loads(entry.content).get("text") for entry in entries()}
    assert {n: texts[answer["id"]] for n, answer in answers.items()} == {
        n: f"parallel {n}" for n in range(60)
    }
    assert len({answer["sequence"] for answer in answers.values()}) == 60
    assert verify(tmp_path / "root" / "default" / "memory.sqlite", "default", None).sound


def test_a_held_write_lock_holds_up_no_reading_and_no_list_p165(
    serve: PipedDesk, era: str, hold_write_lock: HoldLock
) -> None:
    """Ordered by events, not by clock: every reading is answered while the write still waits."""
    serve.send(serve.tool(era, 1, "remember", text="before"))
    note = body(serve.reply(1))
    with hold_write_lock():
        serve.send(serve.tool(era, "write", "remember", text="waits"))
        for n in range(30):  # more than there are threads for readings, had they to queue behind writers
            serve.send(serve.tool(era, f"more{n}", "remember", text=f"waits {n}"))
        serve.send(
            serve.request(era, "list", "tools/list"),
            serve.tool(era, "state", "get_memory_state"),
            serve.tool(era, "get", "get_memory", memory_id=note["id"]),
            serve.request(era, "resource", "resources/read", uri="memory://state"),
        )
        if era == "handshake":
            serve.send(serve.request(era, "ping", "ping"))
            assert "result" in serve.reply("ping")
        assert len(serve.reply("list")["result"]["tools"]) == 18
        assert body(serve.reply("state"))["recorded"] is False
        assert body(serve.reply("get"))["recorded"] is False
        assert "contents" in serve.reply("resource")["result"]
        assert not [message for message in serve.unclaimed if message.get("id") == "write"]
    assert body(serve.reply("write"))["kind"] == "memory"
    for n in range(30):
        body(serve.reply(f"more{n}"))
    serve.send(serve.tool(era, 2, "get_memory_state"))
    assert body(serve.reply(2))["recorded"] is True


def test_a_search_that_cannot_be_recorded_is_refused_and_says_so(
    serve: PipedDesk, era: str, hold_write_lock: HoldLock, entries: Entries
) -> None:
    serve.send(serve.tool(era, 1, "remember", text="unicorn"))
    body(serve.reply(1))
    before = len(entries())
    with hold_write_lock():
        serve.send(serve.tool(era, 2, "search_memory", query="unicorn"))
        refusal = told(serve.reply(2))
    assert (refusal["code"], refusal["retryable"]) == ("not_recorded", True)
    assert "unicorn" not in json.dumps(refusal)
    serve.send(serve.tool(era, 3, "search_memory", query="unicorn"))
    assert body(serve.reply(3))["total"] == 1
    assert [entry.event_type for entry in entries()[before:]].count("memory.retrieved") == 1


def test_probes_of_a_host_leave_nothing_on_disk(start_serve: StartDesk, era: str, tmp_path: Path) -> None:
    desk = start_serve()
    desk.open(era)
    for n, method in enumerate(("tools/list", "resources/list", "resources/templates/list", "prompts/list")):
        desk.send(desk.request(era, n, method))
        assert "result" in desk.reply(n)
    desk.close_input()
    assert desk.wait() == 0
    assert not (tmp_path / "root").exists()


def test_no_network_is_used_at_start_nor_by_any_call(
    start_serve: StartDesk, era: str, tmp_path: Path
) -> None:
    """Invariant 12."""
    watched = tmp_path / "watched"
    watched.mkdir()
    (watched / "sitecustomize.py").write_text(
        "import os, sys\n"
        "def hook(event, arguments):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo', 'socket.sendto', 'socket.bind'):\n"
        "        os.write(2, f'NETWORK {event} {arguments}\\n'.encode())\n"
        "sys.addaudithook(hook)\n"
        "os.write(2, b'watching\\n')\n"
    )
    desk = start_serve(PYTHONPATH=f"{watched}{os.pathsep}{Path(__file__).resolve().parents[2]}")
    desk.open(era)
    desk.send(desk.request(era, 1, "tools/list"), desk.tool(era, 2, "remember", text="x"))
    desk.send(desk.tool(era, 3, "search_memory", query="x"))
    for number in (1, 2, 3):
        assert "result" in desk.reply(number)
    desk.close_input()
    assert desk.wait() == 0
    assert "watching" in desk.log()
    assert "NETWORK" not in desk.log()


def test_every_line_on_stdout_is_a_frame_at_level_debug_whatever_fails_p161(
    start_serve: StartDesk, era: str
) -> None:
    desk = start_serve("--log-level", "debug")
    desk.open(era)
    desk.send(
        desk.tool(era, 1, "remember", text="x"),
        desk.tool(era, 2, "remember", text=""),
        desk.tool(era, 3, "no_such_tool"),
        desk.request(era, 4, "resources/read", uri="memory://memory/none"),
        b"nonsense\n",
    )
    for number in (1, 2, 3, 4):
        desk.reply(number)
    desk.close_input()
    desk.rest()  # each line is parsed strictly as it is read
    assert desk.wait() == 0
    assert desk.lines
    assert "Traceback" not in desk.log()


def test_sums_of_refusals_are_written_when_the_input_ends(
    serve: PipedDesk, era: str, entries: Entries
) -> None:
    serve.send(*(serve.tool(era, n, "remember", text="") for n in range(5)))
    for n in range(5):
        told(serve.reply(n))
    serve.close_input()
    assert serve.wait() == 0
    counts = [json.loads(entry.content)["count"] for entry in entries() if entry.event_type == "call.failed"]
    assert counts == [1, 4]
