"""Orders through the real server: config in the reference, a ledger that fails, a second process, a killed one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from store import Book, Caller
from store.commands import IntendOrder, RecordOutcome
from store.engines.sqlite import SqliteEngine
from store.errors import StoreFull

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import OpenDesk

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIG = """
[desk]
revision = "abc123"
deployment = "paper-1"
[clock]
timezone = "America/New_York"
[agents.ann]
profile = "solo"
[agents.link]
profile = "harness"
"""
# Opens the ledger anew for each id on its input and says of which types its entries are.
READER = """
import sys
from pathlib import Path
from store import Book
for line in sys.stdin:
    book = Book.open(Path(sys.argv[1]), "default", create=False)
    print(",".join(entry.event_type for entry in book.show(line.strip())), flush=True)
    book.close()
"""
# Journals one intent, says its id and never comes to the outcome.
TRADER = """
import sys
from pathlib import Path
from store import Book, Caller
from store.commands import IntendOrder
book = Book.open(Path(sys.argv[1]), "default")
terms = {"symbol": "AAPL", "side": "buy", "quantity": "1", "client_order_id": "c-1"}
order = IntendOrder(operation="submit", reason="x" * 200, **terms)
print(book.execute(Caller("ann", "trader", "s", "tool"), order, idempotency_key="k").id, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Start a Python program with the root as its argument; it is killed when the test ends."""
    started: list[subprocess.Popen[str]] = []

    def run(program: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "root")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, cwd="/", env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        )  # fmt: skip
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.anyio
async def test_the_reference_carries_what_the_config_says_of_the_desk(
    open_desk: OpenDesk, reason: str
) -> None:
    desk = open_desk(CONFIG, "ann")
    async with desk.client() as client:
        body = await desk.call(
            client,
            "record_order_intent",
            meta={"deskbook/model_call_id": "call-1"},
            operation="submit", reason=reason, symbol="AAPL", side="buy", quantity=10,
            legs=None, evidence='{"close": "187.30"}', public_reason="RSI 70",
        )  # fmt: skip
    named = ("revision", "deployment", "agent", "model_call_id", "operation", "run")
    assert [body[name] for name in named] == ["abc123", "paper-1", "ann", "call-1", "submit", None]
    (content,) = desk.contents("order_action.recorded")
    assert (content["revision"], content["deployment"]) == ("abc123", "paper-1")


@pytest.mark.anyio
async def test_without_a_config_the_reference_says_that_nothing_is_known(
    open_desk: OpenDesk, reason: str
) -> None:
    desk = open_desk()
    async with desk.client() as client:
        order = {"operation": "submit", "reason": reason, "symbol": "AAPL", "side": "buy", "quantity": "1"}
        body = await desk.call(client, "record_order_intent", **order)
    assert body["revision"] is body["deployment"] is None


@pytest.mark.anyio
@pytest.mark.parametrize("fault", [StoreFull("no space"), RuntimeError("broken")])
async def test_a_failed_outcome_write_leaves_the_order_and_the_same_key_records_it_once(
    open_desk: OpenDesk, reason: str, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    desk = open_desk(CONFIG, "link")

    def fails(*_: Any, **__: Any) -> Any:
        raise fault

    async with desk.client() as client:
        order = {"operation": "submit", "reason": reason, "symbol": "AAPL", "side": "buy", "quantity": "1"}
        action = (await desk.call(client, "record_order_intent", **order))["action_id"]
        outcome = {"action_id": action, "certainty": "acknowledged", "idempotency_key": "k"}
        with monkeypatch.context() as broken:
            broken.setattr(SqliteEngine, "write", fails)
            told = await desk.refused(client, "record_order_outcome", **outcome)
        assert "the order itself stands" in told["hint"]
        assert "same idempotency_key" in told["hint"]
        (row,) = (await desk.call(client, "list_unreconciled_orders"))["orders"]
        assert (row["action_id"], row["status"]) == (action, "intent")
        first = await desk.call(client, "record_order_outcome", **outcome)
        assert await desk.call(client, "record_order_outcome", **outcome) == first
    assert len(desk.entries("order.outcome")) == len(desk.entries("order.submitted")) == 1


@pytest.mark.anyio
async def test_the_time_zone_of_the_config_makes_the_strategy_day(open_desk: OpenDesk) -> None:
    desk = open_desk(CONFIG, "link")
    trader = open_desk(CONFIG, "ann")
    async with desk.client() as client, trader.client() as second:
        await trader.call(second, "open_thesis", text="AAPL rises.", symbol="AAPL")
        await desk.call(client, "report_positions", positions='[{"symbol": "AAPL", "quantity": 1}]')
        state = await trader.call(second, "get_memory_state")
    assert state["positions_reported_at"][-6:] in ("-04:00", "-05:00")
    (content,) = desk.contents("thesis.outcome_observed")
    assert content["day"] == state["positions_reported_at"][:10]


@pytest.mark.anyio
async def test_what_every_write_tool_says_is_stored_a_second_process_reads(
    open_desk: OpenDesk, reason: str, start: Callable[[str], subprocess.Popen[str]]
) -> None:
    """P114"""
    desk, link = open_desk(CONFIG, "ann"), open_desk(CONFIG, "link")
    reader = start(READER)
    assert reader.stdin is not None
    assert reader.stdout is not None
    seen: dict[str, str] = {}
    async with desk.client() as client, link.client() as harness:

        async def write(tool: str, **arguments: Any) -> dict[str, Any]:
            served, by = (
                (link, harness) if tool in ("report_positions", "record_order_outcome") else (desk, client)
            )
            body = await served.call(by, tool, **arguments)
            for name in (body["event_id"], *([body["id"]] if body["kind"] != "positions" else [])):
                reader.stdin.write(f"{name}\n")
                reader.stdin.flush()
                seen[tool] = reader.stdout.readline().strip()
                assert seen[tool], f"{tool} said {name}, which is not there"
            return body

        note = await write("remember", text="A note.")
        await write("remember_proposal", text="Buy AAPL.")
        await write("remember_risk_note", text="Earnings on Thursday.")
        lesson = await write("remember_lesson", text="Breakouts hold.")
        thesis = await write("open_thesis", text="AAPL rises.", symbol="AAPL")
        await write("update_thesis", thesis_id=thesis["id"], text="AAPL rises still.")
        await write("remember_decision", text="Buy.", action="buy", thesis_id=thesis["id"])
        order = await write(
            "record_order_intent", operation="submit", reason=reason, symbol="AAPL", side="buy", quantity="1"
        )
        await write("record_order_outcome", action_id=order["id"], certainty="acknowledged")
        fill = await write("record_order_outcome", action_id=order["id"], certainty="filled")
        await write("report_positions", positions='[{"symbol": "AAPL", "quantity": 1}]')
        await write(
            "validate_lesson", lesson_id=lesson["id"], verdict="supports", outcome_ids=[fill["event_id"]]
        )
        await write("flag_memory", memory_id=note["id"], reason="stale")
        await write("resolve_memory", memory_id=note["id"], status="retired")
        await write("close_thesis", thesis_id=thesis["id"], result="win")
    assert len(seen) == 14
    assert seen["close_thesis"].endswith("thesis.closed")
    assert seen["record_order_outcome"].endswith("order.outcome")


def test_an_intent_whose_process_was_killed_is_pending_and_replayed_once(
    tmp_path: Path, start: Callable[[str], subprocess.Popen[str]]
) -> None:
    """P125"""
    killed = start(TRADER)
    assert killed.stdout is not None
    action = killed.stdout.readline().strip()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    book = Book.open(tmp_path / "root", "default", create=False)
    try:
        ann, link = (
            Caller("ann", "trader", "s", "tool"),
            Caller("link", "harness", "t", "tool", observer=True),
        )
        (row,) = book.unreconciled(ann, None, 10).body["orders"]
        assert (row["action_id"], row["status"]) == (action, "intent")
        order = IntendOrder(
            operation="submit",
            reason="x" * 200,
            symbol="AAPL",
            side="buy",
            quantity="1",
            client_order_id="c-1",
        )
        assert book.execute(ann, order, idempotency_key="k").id == action
        assert book.execute(ann, order).id == action
        outcome = RecordOutcome(action_id=action, certainty="unknown", error_type="restart")
        assert book.execute(link, outcome).sequence == book.execute(link, outcome).sequence
        (row,) = book.unreconciled(ann, None, 10).body["orders"]
        assert row["status"] == "unknown"
    finally:
        book.close()


def test_explain_prints_one_trade_as_text_and_as_json(floor: Any, tmp_path: Path) -> None:
    order = floor.submit(reason="r\x1b[31med\n" + "x" * 200).id
    floor.fill(order)
    floor.book.close()

    def explain(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "server", "explain", *words, "--root", str(tmp_path)], capture_output=True,
            text=True, check=False, cwd="/", env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        )  # fmt: skip

    text, as_json = explain(order), explain(order, "--json")
    assert (text.returncode, as_json.returncode) == (0, 0)
    body = json.loads(as_json.stdout)
    assert [step["event"] for step in body["steps"]].count("order.outcome") == 2
    assert len(text.stdout.strip().splitlines()) == 1 + len(body["steps"])
    assert "\x1b" not in text.stdout + as_json.stdout
    for hostile in ("act_0000000000000", "../../etc/passwd", "%"):
        gone = explain(hostile)
        assert gone.returncode == 1
        assert "Traceback" not in gone.stderr
