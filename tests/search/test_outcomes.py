"""How a reply counts what went well and what went wrong among the best hits."""

from __future__ import annotations

from typing import Any

import pytest

from store.commands import CloseThesis, OpenThesis


@pytest.mark.parametrize(
    ("closed", "counted"),
    [
        ({"pnl": "12.5"}, {"wins": 1, "losses": 0}),
        ({"return_pct": "-0.1"}, {"wins": 0, "losses": 1}),
        ({"result": "Take-profit"}, {"wins": 1, "losses": 0}),
        ({"result": "stopped out"}, {"wins": 0, "losses": 1}),
        ({"result": "target", "pnl": "-3"}, {"wins": 0, "losses": 1}),
        ({"pnl": "0"}, None),
        ({"result": "sold"}, None),
        ({}, None),
    ],
)
def test_a_closed_thesis_counts_as_what_it_says(
    seat: Any, closed: dict[str, str], counted: dict[str, int] | None
) -> None:
    seat.do(OpenThesis(text="breakout still open", symbol="AAPL"))
    made = seat.do(OpenThesis(text="breakout above the base", symbol="AAPL"))
    seat.do(CloseThesis(thesis_id=made.id, **closed))
    for asked in ("breakout", ""):
        assert seat.find(asked).get("outcomes") == counted
