"""The same strategy, run as a backtest and as live under the same injected times, leaves the same entries.

Both sides are the shipped server as a process, spoken to over stdio by configs/harness.py. A backtest is told the
time; the live server reads a wall clock, which `live_server.py` replaces from outside by one the test sets.
Random ids, `recorded_at`, hashes and what names the ledger itself (its mode and run) are set aside; all else must
be equal: which entries, in which order, by whom, about what, their times and contents, and with them the exact
text of every search's reply.

Not covered, for it is real time on both sides: refused calls within one minute of the machine are summed.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

if TYPE_CHECKING:
    from types import ModuleType

    from conftest import Theatre

NEW_YORK = ZoneInfo("America/New_York")
# Closes around the end of summer time, and the hour that the clocks show twice, once each way.
TIMES = [
    datetime(2026, 10, 29, 16, tzinfo=NEW_YORK),
    datetime(2026, 10, 30, 16, tzinfo=NEW_YORK),
    datetime(2026, 11, 1, 1, 30, tzinfo=NEW_YORK),
    datetime(2026, 11, 1, 1, 30, fold=1, tzinfo=NEW_YORK),
    datetime(2026, 11, 2, 16, 0, 0, 123_456, tzinfo=NEW_YORK),
    datetime(2026, 11, 3, 16, tzinfo=NEW_YORK),
]
WORDS = "margin breakout earnings 日本 volatility drawdown café guidance dividend spread".split()
RECORDING_TRIES = 20
SYMBOLS = ["AAPL", "MSFT", "btc/usd", None]


class Script:
    """A strategy that makes random calls of every kind; its choices depend on its seed and the replies alone."""

    def __init__(self, refused: type[Exception], seed: int) -> None:
        self.refused = refused
        self.choose = random.Random(seed)
        self.known: dict[str, list[str]] = {}
        self.retrievals: list[str] = []
        self.replies: list[dict[str, Any]] = []
        self.turns = 0

    async def __call__(self, desk: Any) -> None:
        self.turns += 1
        for _ in range(self.choose.randint(8, 14)):
            await self.choose.choice(
                (self.note, self.note, self.search, self.thesis, self.settle, self.read)
            )(desk)
        if self.turns == 3:
            await self.fail(desk)
        await self.write(desk, "remember", text=f"Turn {self.turns} of {desk.now:%Y-%m-%d %H:%M} is over.")

    async def call(self, desk: Any, tool: str, **arguments: Any) -> dict[str, Any]:
        try:
            reply: dict[str, Any] = await desk.call(tool, **arguments)
            # A showing that a busy disk could not record in time is served and says so: then it is asked for again.
            for _ in range(RECORDING_TRIES):
                if reply.get("recorded", True):
                    break
                reply = await desk.call(tool, **arguments)
        except self.refused as told:
            reply = {"refused": str(told)}
        self.replies.append(reply)
        return reply

    async def write(self, desk: Any, tool: str, **arguments: Any) -> None:
        told = await self.call(desk, tool, **{name: given for name, given in arguments.items() if given})
        if "kind" in told:
            names = self.known.setdefault(told["kind"], [])
            names.extend([told["id"]] if told["id"] not in names else [])

    def words(self) -> str:
        return " ".join(self.choose.choices(WORDS, k=self.choose.randint(1, 5)))

    def one(self, kind: str) -> str | None:
        return self.choose.choice(self.known[kind]) if self.known.get(kind) else None

    async def note(self, desk: Any) -> None:
        tool = self.choose.choice(
            ("remember", "remember_proposal", "remember_risk_note", "remember_lesson", "remember_decision")
        )
        given: dict[str, Any] = {"text": self.words(), "symbol": self.choose.choice(SYMBOLS)}
        given["tags"] = self.choose.sample(WORDS, k=self.choose.randint(0, 2))
        if tool == "remember":
            given["supersedes"] = self.choose.choice((None, self.one("memory")))
            given["expires_at"] = self.choose.choice((None, (desk.now + timedelta(days=2)).isoformat()))
        if tool == "remember_decision":
            given |= {"action": "hold", "evidence": '{"close": 1.5}', "thesis_id": self.one("thesis")}
            given["retrieval_id"] = self.retrievals[-1] if self.retrievals else None
        if self.choose.random() < 0.2:
            given["idempotency_key"] = f"key-{len(self.replies)}"
            await self.write(desk, tool, **given)
        await self.write(desk, tool, **given)

    async def search(self, desk: Any) -> None:
        given: dict[str, Any] = {"query": self.choose.choice((self.words(), "")), "limit": 3}
        given["response_format"] = self.choose.choice(("concise", "detailed"))
        if self.choose.random() < 0.3:
            given["as_of"] = (desk.now - timedelta(hours=30)).isoformat()
        if self.choose.random() < 0.3:
            given["symbol"] = "AAPL"
        page = await self.call(desk, "search_memory", **given)
        self.retrievals.append(page["retrieval_id"])
        if page["cursor"]:
            await self.call(desk, "search_memory", **given, cursor=page["cursor"])

    async def thesis(self, desk: Any) -> None:
        held = self.one("thesis")
        if held is None or self.choose.random() < 0.4:
            review = (desk.now + timedelta(days=1)).isoformat()
            await self.write(desk, "open_thesis", text=self.words(), symbol="AAPL", review_by=review)
        elif self.choose.random() < 0.6:
            await self.write(desk, "update_thesis", thesis_id=held, text=self.words())
        else:
            await self.write(desk, "close_thesis", thesis_id=held, result="win", pnl="12.50")
            self.known["thesis"].remove(held)

    async def settle(self, desk: Any) -> None:
        kind = self.choose.choice(("proposal", "risk_note", "lesson", "memory"))
        named = self.one(kind)
        if named is None:
            return
        if self.choose.random() < 0.5:
            await self.write(desk, "flag_memory", memory_id=named, reason="stale", note=self.words())
            return
        status = {"proposal": "withdrawn", "risk_note": "resolved"}.get(kind, "retired")
        self.known[kind].remove(named)
        await self.call(desk, "resolve_memory", memory_id=named, status=status, note=self.words())

    async def read(self, desk: Any) -> None:
        named = self.one(self.choose.choice(("memory", "decision", "thesis")))
        early = {"as_of": (desk.now - timedelta(hours=1)).isoformat()} if self.choose.random() < 0.3 else {}
        if named is None:
            await self.call(desk, "get_memory_state", **early)
        else:
            await self.call(desk, "get_memory", memory_id=named, **early)

    async def fail(self, desk: Any) -> None:
        """One of each kind of refusal."""
        await self.call(desk, "update_thesis", thesis_id="ths_none", text="x")
        await self.call(desk, "remember", text="")
        await self.call(desk, "advance_clock", now=desk.now.isoformat())
        await self.call(desk, "search_memory", as_of="2026-10-29T16:00:00")


@pytest.mark.parametrize("seed", [1, 2])
def test_a_backtest_and_live_leave_the_same_entries_and_give_the_same_answers(
    theatre: Theatre, harness: ModuleType, seed: int
) -> None:
    told, moved, lived = (Script(harness.Refused, seed) for _ in range(3))
    in_live = theatre.live(lived, TIMES)
    in_run = theatre.backtest(told, TIMES)
    assert theatre.comparable(in_run) == theatre.comparable(in_live)
    assert theatre.spoken(told.replies) == theatre.spoken(lived.replies)
    by_advance_clock = theatre.backtest(moved, TIMES, moved=True)
    assert theatre.comparable(by_advance_clock) == theatre.comparable(in_live)
    assert theatre.spoken(moved.replies, counted=False) == theatre.spoken(lived.replies, counted=False)
    counts = Counter(entry.event_type for entry in in_live)
    assert len(counts) >= 14, counts
    assert counts["permission.denied"] == 1
    assert counts["call.failed"] >= 2
    assert counts["clock.anomaly"] == 0
    assert {entry.effective_at for entry in in_live} == {instant(now) for now in TIMES}
    assert {entry.run_id for entry in in_run} == {"run-1"}
    assert {entry.run_id for entry in in_live} == {None}


def instant(now: datetime) -> int:
    return (now - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def test_the_run_is_written_now_though_it_plays_then(theatre: Theatre, harness: ModuleType) -> None:
    in_run = theatre.backtest(Script(harness.Refused, 3), TIMES[:2])
    assert min(entry.recorded_at for entry in in_run) > max(entry.effective_at for entry in in_run)


def test_a_strategy_that_does_otherwise_live_is_told_apart(theatre: Theatre, harness: ModuleType) -> None:
    """The comparison itself: one word, one time and one call more are each seen."""

    async def said(desk: Any) -> None:
        await desk.call("remember", text="The market is open.")

    async def misheard(desk: Any) -> None:
        await desk.call("remember", text="The market is shut.")

    async def asked_too(desk: Any) -> None:
        await said(desk)
        await desk.call("search_memory", query="market")

    first = theatre.comparable(theatre.backtest(said, TIMES[:2]))
    later = [TIMES[0], TIMES[1] + timedelta(microseconds=1)]
    for strategy, times in ((misheard, TIMES[:2]), (said, later), (asked_too, TIMES[:2])):
        assert theatre.comparable(theatre.live(strategy, times)) != first
