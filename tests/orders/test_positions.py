"""Positions as reported: what is held, how each open thesis stands by it, and when one is invalidated."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from store.commands import CloseThesis, ReportPositions, UpdateThesis
from store.errors import InvalidInput

DAY = 24 * 3_600 * 1_000_000
NEW_YORK = ZoneInfo("America/New_York")


def us(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1_000_000)


def row(symbol: str = "AAPL", quantity: Any = "10", **more: Any) -> dict[str, Any]:
    return {"symbol": symbol, "quantity": quantity, **more}


# What is held.


def test_cash_is_no_holding_and_zero_is_flat(floor: Any) -> None:
    written = floor.report(
        row("AAPL", "10"),
        row("MSFT", "0"),
        row("TSLA", "-0.000"),
        row("USD", "52300.10", asset_type="cash"),
        row("EUR", "10", asset_type="Currency"),
        row("USD", "3", asset_type="forex"),
        row("VMFXX", "5", asset_type="money_market"),
        row("EUR/USD", "1000", asset_type="forex"),
        row("BTC/USD", "-0.5", asset_type="crypto"),
    )
    assert written.extra["held"] == ["AAPL", "EUR/USD", "BTC/USD"]
    assert written.extra["left_out"] == ["MSFT", "TSLA", "USD", "EUR", "USD", "VMFXX"]
    assert floor.state()["held_symbols"] == ["AAPL", "EUR/USD", "BTC/USD"]


def test_what_a_later_report_leaves_out_is_flat(floor: Any) -> None:
    floor.hold("AAPL", "MSFT")
    floor.hold("MSFT")
    assert floor.state()["held_symbols"] == ["MSFT"]
    floor.report()
    assert floor.state()["held_symbols"] == []


def test_a_missing_price_is_missing_and_not_zero(floor: Any) -> None:
    floor.thesis()
    floor.report(row())
    (report,) = floor.told("positions.reported")
    assert report["positions"] == [{"symbol": "AAPL", "quantity": "10"}]
    (observed,) = floor.told("thesis.outcome_observed")
    assert observed.keys() == {"day", "standing", "quantity"}


def test_numbers_are_kept_exactly_as_given(floor: Any) -> None:
    floor.report(row("A", "0.123456789012345678", last_price=0.1, market_value=1e3), row("B", 7))
    rows = floor.told("positions.reported")[0]["positions"]
    assert rows[0] == {
        "symbol": "A", "quantity": "0.123456789012345678", "last_price": "0.1", "market_value": "1000.0",
    }  # fmt: skip
    assert rows[1]["quantity"] == "7"


@pytest.mark.parametrize(
    ("positions", "field"),
    [
        (None, "positions"),
        ({}, "positions"),
        ("AAPL", "positions"),
        ([row()] * 2_001, "positions"),
        (["AAPL"], "positions[0]"),
        ([row(), row("MSFT"), row()], "positions"),
        ([row("AAPL", "0"), row("aapl", "5")], "positions"),
        ([row("BRK.B"), row("brk-b")], "positions"),
        ([row(), {"quantity": "1"}], "positions[1].symbol"),
        ([row(5)], "positions[0].symbol"),
        ([row("  ")], "positions[0].symbol"),
        ([row("A\x00B")], "positions[0].symbol"),
        ([row("A\ud800")], "positions[0].symbol"),
        ([{"symbol": "AAPL"}], "positions[0].quantity"),
        ([row(quantity=None)], "positions[0].quantity"),
        ([row(quantity=float("nan"))], "positions[0].quantity"),
        ([row(quantity="NaN")], "positions[0].quantity"),
        ([row(quantity="Infinity")], "positions[0].quantity"),
        ([row(quantity=True)], "positions[0].quantity"),
        ([row(quantity="50%")], "positions[0].quantity"),
        ([row(quantity=[1])], "positions[0].quantity"),
        ([row(last_price=float("inf"))], "positions[0].last_price"),
        ([row(average_cost="ten")], "positions[0].average_cost"),
        ([row(market_value="1e99")], "positions[0].market_value"),
        ([row(asset_type=["cash"])], "positions[0].asset_type"),
        ([row(asset_type="x" * 41)], "positions[0].asset_type"),
        ([row(price="1")], "positions[0]"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_path(floor: Any, positions: Any, field: str) -> None:
    assert floor.refuses(InvalidInput, ReportPositions(positions=positions), "broker-link").field == field


def test_a_report_says_whose_word_it_is(floor: Any) -> None:
    floor.hold("AAPL", agent="ann")
    assert floor.state()["positions_standing"] == "claim"
    floor.hold("AAPL")
    assert floor.state()["positions_standing"] == "observed"


# The state.


def test_before_any_report_the_state_says_that_nothing_was_reported(floor: Any) -> None:
    floor.thesis()
    state = floor.state()
    assert (state["held_symbols"], state["positions_reason"]) == ([], "no positions reported")


def test_an_open_thesis_never_makes_the_state_say_that_something_is_held(floor: Any) -> None:
    """P095: the thesis stands open, named as one without a holding, with the time of the report that says so."""
    thesis = floor.thesis("SOL/USD", text="Still holding SOL.").id
    floor.report(row("SOL/USD", "5"))
    assert floor.state()["current_position_rationales"][0]["memory_id"] == thesis
    floor.report(row("SOL/USD", "0"))
    state = floor.state()
    assert state["held_symbols"] == state["current_position_rationales"] == []
    assert state["theses_without_holding"] == [thesis]
    assert state["positions_reported_at"]
    assert [item["status"] for item in state["open_theses"]] == ["open"]


def test_every_holding_without_a_thesis_and_every_thesis_without_a_holding_is_named(floor: Any) -> None:
    held = [f"S{at}" for at in range(30)]
    floor.hold(*held)
    explained = floor.thesis("S20").id
    idle = [floor.thesis(f"T{at}").id for at in range(12)]
    state = floor.state()
    assert state["holdings_without_thesis"] == [symbol for symbol in held if symbol != "S20"]
    assert sorted(state["theses_without_holding"]) == sorted(idle)
    assert explained not in state["theses_without_holding"]
    assert state["counts"]["held_symbols"] == 30


@pytest.mark.parametrize("cap", [2_000, 4_000, 16_000])
def test_hundreds_of_long_holdings_stay_within_the_cap(floor: Any, cap: int) -> None:
    floor.report(*(row(f"日本{'X' * 50}{at}") for at in range(300)))
    for at in range(60):
        floor.thesis(f"T{at}", text="word " * 300)
    reply = floor.book.state(floor.caller(), state_chars=cap)
    assert len(reply.text) <= cap
    assert reply.body["counts"]["held_symbols"] == 300


# Observations.


def test_a_held_thesis_is_observed_once_a_strategy_day(floor: Any) -> None:
    floor.thesis()
    for _ in range(3):
        floor.hold("AAPL")
    floor.seat.clock.us += DAY
    floor.hold("AAPL")
    days = [content["day"] for content in floor.told("thesis.outcome_observed")]
    assert days == ["2026-03-02", "2026-03-03"]


@pytest.mark.parametrize(
    ("times", "days"),
    [
        # Midnight of the desk, not of UTC.
        (["2026-03-03T04:59:59+00:00", "2026-03-03T05:00:01+00:00"], ["2026-03-02", "2026-03-03"]),
        # The clocks go forward on 8 March, so that midnight comes an hour earlier in UTC from the 9th on.
        (["2026-03-08T05:30:00+00:00", "2026-03-09T03:59:00+00:00", "2026-03-09T04:00:00+00:00"],
         ["2026-03-08", "2026-03-09"]),
        # And back on 1 November: a day of 25 hours is one day.
        (["2026-11-01T04:00:00+00:00", "2026-11-02T04:59:00+00:00", "2026-11-02T05:00:00+00:00"],
         ["2026-11-01", "2026-11-02"]),
    ],
)  # fmt: skip
def test_a_strategy_day_is_one_of_the_desks_time_zone(
    floor_at: Any, times: list[str], days: list[str]
) -> None:
    floor = floor_at(zone=NEW_YORK)
    floor.seat.clock.us = us("2026-03-01T12:00:00+00:00")
    floor.thesis()
    for time in times:
        floor.seat.clock.us = us(time) - 1_000
        floor.hold("AAPL")
    assert [content["day"] for content in floor.told("thesis.outcome_observed")] == days


@pytest.mark.parametrize("claim_first", [True, False])
def test_a_claimed_observation_keeps_no_observed_one_out(floor: Any, claim_first: bool) -> None:
    floor.thesis()
    for agent in ("ann", "broker-link", "ann", "broker-link") if claim_first else ("broker-link", "ann"):
        floor.hold("AAPL", agent=agent)
    standings = [content["standing"] for content in floor.told("thesis.outcome_observed")]
    assert standings == (["claim", "observed"] if claim_first else ["observed"])


@pytest.mark.parametrize(
    ("quantity", "cost", "last", "expected"),
    [
        ("10", "100", "110", "10.0000"),
        ("10", "100", "90", "-10.0000"),
        ("-10", "100", "90", "10.0000"),
        ("-10", "100", "110", "-10.0000"),
        ("10", "100", "100", "0.0000"),
        ("-10", "100", "100", "0.0000"),
        ("1", "3", "1", "-66.6667"),
        ("1", "0.0000000000000000000001", "1e25", "9" * 48 + "00.0000"),
        ("10", "0", "5", None),
        ("10", None, "5", None),
        ("10", "5", None, None),
    ],
)
def test_the_unrealised_return_follows_the_side(
    floor: Any, quantity: str, cost: str | None, last: str | None, expected: str | None
) -> None:
    floor.thesis()
    floor.report(row(quantity=quantity, average_cost=cost, last_price=last))
    told = floor.told("thesis.outcome_observed")[0].get("unrealised_return_pct")
    if expected is not None and len(expected) > 40:
        assert told is not None
        assert len(told) > 40
    else:
        assert told == expected


def test_only_open_theses_on_held_symbols_are_observed(floor: Any) -> None:
    floor.thesis("MSFT")
    floor.thesis(None)
    closed = floor.thesis("AAPL").id
    floor.do(CloseThesis(thesis_id=closed, result="win"))
    floor.hold("AAPL")
    assert floor.told("thesis.outcome_observed") == []


# Invalidation.


@pytest.mark.parametrize(
    ("direction", "quantity", "last", "reached"),
    [
        ("long", "10", "150.01", False),
        ("long", "10", "150", True),
        ("long", "10", "149", True),
        ("long", "-10", "149", True),
        ("short", "-10", "149.99", False),
        ("short", "-10", "150", True),
        ("short", "10", "151", True),
        (None, "10", "149", True),
        (None, "10", "151", False),
        (None, "-10", "151", True),
        (None, "-10", "149", False),
        ("neutral", "-10", "151", True),
        ("neutral", "10", "149", True),
        ("long", "10", None, False),
    ],
)
@pytest.mark.parametrize("price", ["150", "$150", " 150.00 "])
def test_an_invalidation_price_is_reached_from_the_side_of_the_thesis(
    floor: Any, direction: str | None, quantity: str, last: str | None, reached: bool, price: str
) -> None:
    thesis = floor.thesis(direction=direction, invalidation=price).id
    floor.report(row(quantity=quantity, last_price=last))
    warned = floor.warned("thesis_invalidation_reached")
    assert [content["related"] for content in warned] == ([[thesis]] if reached else [])


@pytest.mark.parametrize("terms", ["2026-02-30", "2026-13-45", "NaN", "Infinity", "sNaN", "²", ""])
def test_an_invalidation_that_is_neither_price_nor_date_warns_of_nothing_and_spoils_no_report(
    floor: Any, terms: str
) -> None:
    floor.thesis(invalidation=terms or None)
    floor.report(row(last_price="1"))
    assert floor.warned() == []


UNWATCHED = "invalidation names no single price or date, so nobody watches it."


@pytest.mark.parametrize("direction", ["long", "short"])
@pytest.mark.parametrize(
    ("terms", "price", "side"),
    [
        ("a close below 205", "205", "below"),
        ("a close over 25.97", "25.97", "above"),
        ("below 205", "205", "below"),
        ("Close < $205", "205", "below"),
        ("close <=205", "205", "below"),
        ("close > 30", "30", "above"),
        ("above 30", "30", "above"),
        ("Falls under 1,205.50.", "1205.50", "below"),
        ("beneath 0.0045 USDT", "0.0045", "below"),
        ("205 or less", "205", "below"),
        ("loses 205", "205", "below"),
        ("breaks down through 205", "205", "below"),
        ("breaks out at 30", "30", "above"),
        ("it exceeds €30", "30", "above"),
        ("205.00 USD", "205", None),
        ("stop 205", "205", None),
        ("AAPL closes at 205", "205", None),
    ],
)
def test_a_text_with_one_price_is_watched_from_the_side_it_says_else_from_the_thesis(
    floor: Any, terms: str, price: str, side: str | None, direction: str
) -> None:
    written = floor.thesis(direction=direction, invalidation=terms)
    assert written.warnings == ()
    above = side == "above" or (side is None and direction == "short")
    off, on = (Decimal("0.99"), Decimal("1.01")) if above else (Decimal("1.01"), Decimal("0.99"))
    floor.report(row(last_price=str(Decimal(price) * off)))
    assert floor.warned() == []
    floor.report(row(last_price=str(Decimal(price) * on)))
    (content,) = floor.warned("thesis_invalidation_reached")
    assert content["related"] == [written.id]


@pytest.mark.parametrize(
    "terms",
    [
        "below 205 or above 300",
        "below its 50 day mean",
        "a close under the 200-day average",
        "fails to close above 205",
        "RSI below 30",
        "falls 10 percent",
        "falls 10%",
        "guidance for 2027 is cut",
        "earnings miss in 2026",
        "below 205 by 2026-06-01",
        "below the low of 2026-02-20",
        "a new product",
        "2026-02-30",
    ],
)
def test_an_invalidation_that_nobody_watches_is_said_to_its_author(floor: Any, terms: str) -> None:
    thesis = floor.thesis(invalidation=terms)
    assert thesis.warnings == (UNWATCHED,)
    assert floor.told("thesis.opened")[-1]["notices"] == [UNWATCHED]
    again = floor.do(UpdateThesis(thesis_id=thesis.id, text="Again.", invalidation=terms))
    assert again.warnings == (UNWATCHED,)
    assert floor.do(UpdateThesis(thesis_id=thesis.id, text="Kept as it was.")).warnings == ()
    for last in ("0.01", "100000"):
        floor.report(row(last_price=last))
    assert floor.warned() == []


def test_a_later_date_inside_a_text_is_watched(floor: Any) -> None:
    thesis = floor.thesis(invalidation="no approval by 2026-03-03")
    assert thesis.warnings == ()
    floor.hold("AAPL")
    assert floor.warned() == []
    floor.seat.clock.us += DAY
    floor.hold("AAPL")
    assert [content["related"] for content in floor.warned()] == [[thesis.id]]


def test_a_review_date_in_the_past_is_said_to_its_author(floor: Any) -> None:
    past, later = floor.seat.clock.us - DAY, floor.seat.clock.us + DAY
    thesis = floor.thesis(review_by=past)
    assert thesis.warnings == ("review_by lies in the past, so the thesis is due for review at once.",)
    assert floor.do(UpdateThesis(thesis_id=thesis.id, text="Later.", review_by=later)).warnings == ()
    again = floor.do(UpdateThesis(thesis_id=thesis.id, text="Earlier.", review_by=past))
    assert again.warnings == thesis.warnings


@pytest.mark.parametrize("held", [True, False])
def test_an_invalidation_date_is_one_of_the_desks_time_zone(floor_at: Any, held: bool) -> None:
    floor = floor_at(zone=NEW_YORK)
    floor.thesis(invalidation="2026-03-10")
    for time, reached in (("2026-03-10T03:59:59+00:00", 0), ("2026-03-10T04:00:00+00:00", 1)):
        floor.seat.clock.us = us(time) - 1_000
        floor.hold("AAPL" if held else "MSFT")
        assert len(floor.warned("thesis_invalidation_reached")) == reached


def test_a_thesis_is_warned_of_once_until_it_is_updated_and_shown_before_the_next_order(floor: Any) -> None:
    thesis = floor.thesis(direction="long", invalidation="150").id
    for last in ("149", "148", "147"):
        floor.report(row(last_price=last))
    (shown,) = floor.state()["warnings"]
    assert (shown["code"], shown["memory_id"]) == ("thesis_invalidation_reached", thesis)
    assert "149 reached 150" in shown["message"]
    floor.do(UpdateThesis(thesis_id=thesis, text="Wider.", invalidation="140"))
    assert floor.state()["warnings"] == []
    floor.report(row(last_price="147"))
    assert len(floor.warned()) == 1
    floor.report(row(last_price="139"))
    assert len(floor.warned()) == 2
    floor.do(CloseThesis(thesis_id=thesis, result="loss"))
    assert floor.state()["warnings"] == []
