"""No agent alone makes a lesson validated: every path is tried through the real tools, and the honest one works."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from server.permissions import PROFILES, Action

if TYPE_CHECKING:
    from conftest import InMemoryDesk, OpenDesk
    from mcp import Client

pytestmark = pytest.mark.anyio

ALL = PROFILES["researcher"].actions | PROFILES["trader"].actions | PROFILES["solo"].actions
CONFIG = """
[agents.researcher]
profile = "researcher"
[agents.trader]
profile = "trader"
[agents.solo]
profile = "solo"
[agents.maximal]
profile = "maximal"
[agents.judge]
profile = "judge"
[agents.other]
profile = "solo"
[agents.harness]
profile = "harness"
[agents.foreign]
profile = "harness"
strategy = "foreign"
[agents.tester]
profile = "{profile}"
clock = {{ mode = "simulated", run = "test-1", inherit = "live" }}
[agents.tester-harness]
profile = "harness"
clock = {{ mode = "simulated", run = "test-1", inherit = "live" }}
[profiles.maximal]
allow = [{actions}]
[profiles.judge]
allow = ["validate_lesson", "lesson", "search", "get", "state", "resolve", "flag"]
""".format(profile="solo", actions=", ".join(f'"{action.value}"' for action in sorted(ALL)))
AGENTS = ("researcher", "trader", "solo", "maximal", "judge")
REASON = "AAPL closed above its 50 day mean on 2026-03-02; half a position, out below 181.20. " * 3
NOW = {"deskbook/now": "2030-03-02T15:00:00Z"}


class Schemer:
    """An agent that tries everything its tools take; refusals are part of the game."""

    def __init__(self, client: Client, meta: dict[str, Any] | None = None) -> None:
        self.client = client
        self.meta = meta

    async def tries(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The body, of a reply or of a refusal."""
        result = await self.client.call_tool(tool, arguments, meta=self.meta)  # type: ignore[arg-type]
        return dict(json.loads(result.content[0].text))  # type: ignore[union-attr]

    async def own_outcomes(self) -> list[str]:
        """Event ids of all that an agent can make happen: fills, answers, thesis closes, observations, positions."""
        intent = await self.tries(
            "record_order_intent", operation="submit", reason=REASON, symbol="AAPL", side="buy", quantity="10"
        )
        action = intent.get("action_id", "act_0000000000000")
        thesis = await self.tries("open_thesis", text="AAPL rises.", symbol="AAPL", invalidation="150")
        made = [
            intent,
            thesis,
            await self.tries("record_order_outcome", action_id=action, certainty="acknowledged"),
            await self.tries(
                "record_order_outcome", action_id=action, certainty="filled", filled_quantity="10"
            ),
            await self.tries(
                "report_positions",
                positions='[{"symbol": "AAPL", "quantity": "10", "average_cost": "1", "last_price": "2"}]',
            ),
            await self.tries(
                "close_thesis", thesis_id=thesis.get("id", "ths_0"), result="win", return_pct="50"
            ),
            await self.tries("remember", text="outcome observed: a win", tags='["observed"]'),
        ]
        return [body["event_id"] for body in made if "event_id" in body]


def _events(desk: InMemoryDesk, *kinds: str, run: str | None = None) -> list[str]:
    return [entry.event_id for entry in desk.entries(run=run) if not kinds or entry.event_type in kinds]


def _validated(desk: InMemoryDesk, run: str | None = None) -> list[str]:
    return [
        entry.subject_id
        for entry in desk.entries("lesson.judged", run=run)
        if json.loads(entry.content)["status"] == "validated"
    ]


async def _judge_by(agent: Schemer, lesson: str, names: list[str]) -> list[dict[str, Any]]:
    """Each name alone, then all of them together, under both verdicts and under repeated keys."""
    calls = [
        {"outcome_ids": [name], "verdict": verdict} | ({"idempotency_key": key} if key else {})
        for name in names
        for verdict in ("supports", "contradicts")
        for key in (None, f"key-{verdict}", f"key-{verdict}")
    ]
    told = [await agent.tries("validate_lesson", lesson_id=lesson, **call) for call in calls]
    told.append(
        await agent.tries(
            "validate_lesson", lesson_id=lesson, verdict="supports", outcome_ids=names[:50] or [""]
        )
    )
    return told


def test_no_agent_profile_observes_or_signs_off() -> None:
    assert not ALL & {Action.OBSERVE, Action.SIGN_OFF, Action.APPROVE, Action.RESOLVE_ANY}


@pytest.mark.parametrize("name", AGENTS)
async def test_an_agent_alone_never_makes_a_lesson_validated(open_desk: OpenDesk, name: str) -> None:
    desk = open_desk(CONFIG, name)
    foreign = open_desk(CONFIG, "foreign")
    async with desk.client() as client, foreign.client() as elsewhere:
        agent, stranger = Schemer(client), Schemer(elsewhere)
        # The other strategy's outcomes are observed, but they are another ledger's.
        foreign_ids = await stranger.own_outcomes()
        before = await agent.own_outcomes()
        claimed = '{"status": "validated", "standing": "observed", "result": "win"}'
        lesson = await agent.tries(
            "remember_lesson",
            text="status: validated. Breakouts hold.",
            outcome=claimed,
            tags='["validated"]',
        )
        assert lesson["status"] == "proposed"
        own = lesson["id"]
        after = await agent.own_outcomes()
        everything = [*before, *after, *_events(desk), *foreign_ids]
        forged = [
            "ev_0000000000000",
            own,
            "",
            " ",
            "null",
            "*",
            "ev_%",
            '{"standing": "observed"}',
            "1",
            "a" * 500,
        ]
        for body in await _judge_by(agent, own, everything + forged):
            assert body["code"] in ("permission_denied", "not_found", "invalid_input", "idempotency_conflict")
        for extra in (
            {"status": "validated"},
            {"standing": "observed"},
            {"confidence": 1.0},
            {"agent": "harness"},
        ):
            for tool, arguments in (
                ("remember_lesson", {"text": "Breakouts hold."}),
                ("validate_lesson", {"lesson_id": own, "verdict": "supports", "outcome_ids": everything[:1]}),
            ):
                assert (await agent.tries(tool, **arguments, **extra))["code"] in (
                    "invalid_input",
                    "permission_denied",
                )
        for status in ("validated", "proposed", "VALIDATED", "retired validated"):
            refused = await agent.tries("resolve_memory", memory_id=own, status=status)
            assert refused["code"] in ("invalid_input", "illegal_transition", "permission_denied")
        await agent.tries("flag_memory", memory_id=own, reason="other", note="validated: please mark it so")
        await agent.tries("remember", text="The lesson is validated.", supersedes=own)
        await agent.tries("update_thesis", thesis_id=own, text="validated")
        await agent.tries("close_thesis", thesis_id=own, result="validated")
        state = await agent.tries("get_memory_state")
        assert state["validated_lessons"] == []
        assert (await agent.tries("get_memory", memory_id=own))["memory"]["status"] == "proposed"
    assert _validated(desk) == []
    assert desk.entries("lesson.judged") == []


@pytest.mark.parametrize("name", ["trader", "solo", "maximal"])
async def test_two_agents_together_are_no_harness(open_desk: OpenDesk, name: str) -> None:
    desk, accomplice = open_desk(CONFIG, name), open_desk(CONFIG, "other")
    async with desk.client() as client, accomplice.client() as second:
        agent, friend = Schemer(client), Schemer(second)
        lesson = (await agent.tries("remember_lesson", text="Breakouts hold."))["id"]
        outcomes = [*await friend.own_outcomes(), *await agent.own_outcomes()]
        for judge in (agent, friend):
            await _judge_by(judge, lesson, outcomes)
    assert desk.entries("lesson.judged") == []


async def test_outcomes_cross_neither_from_live_into_a_run_nor_back(open_desk: OpenDesk) -> None:
    live, live_harness = open_desk(CONFIG, "trader"), open_desk(CONFIG, "harness")
    run, run_harness = open_desk(CONFIG, "tester"), open_desk(CONFIG, "tester-harness")
    async with live.client() as a, live_harness.client() as b, run.client() as c, run_harness.client() as d:
        trader, harness = Schemer(a), Schemer(b)
        tester, tester_harness = Schemer(c, NOW), Schemer(d, NOW)
        lesson = (await trader.tries("remember_lesson", text="Breakouts hold."))["id"]
        await harness.own_outcomes()
        observed_live = _events(live, "order.outcome")
        tested = (await tester.tries("remember_lesson", text="Breakouts hold in tests."))["id"]
        await tester_harness.own_outcomes()
        observed_in_run = _events(run, "order.outcome", run="test-1")
        assert len(observed_live) == len(observed_in_run) == 2
        for body in await _judge_by(trader, lesson, observed_in_run):
            assert body["code"] in ("not_found", "idempotency_conflict")
        for body in await _judge_by(tester, tested, observed_live):
            assert body["code"] in ("not_found", "idempotency_conflict")
        # A lesson that a run inherits is read there and never judged, whatever the run observed.
        for body in await _judge_by(tester, lesson, observed_in_run):
            assert body["code"] == "inherited"
        own = await tester.tries(
            "validate_lesson", lesson_id=tested, verdict="supports", outcome_ids=observed_in_run[-1:]
        )
        assert own["status"] == "validated"
    assert _validated(live) == []
    assert _validated(run, "test-1") == [tested]


async def test_what_a_harness_observed_lets_a_trader_validate(open_desk: OpenDesk) -> None:
    trader_desk, harness_desk = open_desk(CONFIG, "trader"), open_desk(CONFIG, "harness")
    async with trader_desk.client() as first, harness_desk.client() as second:
        trader, harness = Schemer(first), Schemer(second)
        lesson = (await trader.tries("remember_lesson", text="Breakouts hold."))["id"]
        order = await trader.tries(
            "record_order_intent", operation="submit", reason=REASON, symbol="AAPL", side="buy", quantity="10"
        )
        # The trader's own claim of the fill comes first and keeps nobody from observing it.
        for certainty in ("acknowledged", "filled"):
            claim = await trader.tries(
                "record_order_outcome", action_id=order["action_id"], certainty=certainty
            )
        fill = await harness.tries("record_order_outcome", action_id=order["action_id"], certainty="filled")
        assert fill["event_id"] != claim["event_id"]
        named = {"lesson_id": lesson, "verdict": "supports"}
        refused = await trader.tries("validate_lesson", **named, outcome_ids=[claim["event_id"]])
        assert (refused["code"], refused["field"]) == ("permission_denied", "outcome_ids[0]")
        assert "flag_memory" in refused["hint"]
        mixed = await trader.tries(
            "validate_lesson", **named, outcome_ids=[fill["event_id"], claim["event_id"]]
        )
        assert mixed["field"] == "outcome_ids[1]"
        judged = await trader.tries("validate_lesson", **named, outcome_ids=[fill["event_id"]])
        assert judged["status"] == "validated"
        (hit,) = (await trader.tries("search_memory", query="breakouts"))["hits"]
        assert hit["tally"] == {"supports": 1, "contradicts": 0}
        (shown,) = (await trader.tries("get_memory_state"))["validated_lessons"]
        assert shown["tally"] == {"supports": 1, "contradicts": 0}
        again = await trader.tries("validate_lesson", **named, outcome_ids=[fill["event_id"]])
        assert (again["code"], again["field"]) == ("invalid_input", "outcome_ids[0]")
