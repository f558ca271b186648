"""The trader's alarm: a rule that writes an order down before it reads memory, and heeds the warning for it.

A search would change nothing about whether the position is closed. The journal does not block such an order; it
warns that the thesis behind the position was not looked at, and the trader looks at it before it calls the broker.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from .book import read_position
from .broker import Broker, Holding
from .closing import update
from .market import MarketView
from .orders import Wish, journal, record, send, settle
from .reasons import alarm_reason
from .strategy import Turn, ask

ALARM = Decimal("0.055")  # the share of its price that a position may lose between open and close


def sound_alarm(view: MarketView, broker: Broker) -> Turn:
    """Close every position that lost too much today."""
    for symbol, holding in broker.holdings().items():
        bar = view.today(symbol)
        fall = (bar.open - bar.close) / bar.open * (1 if holding.shares > 0 else -1)
        if fall >= ALARM:
            yield from _close(view, broker, symbol, holding, fall)


def _close(view: MarketView, broker: Broker, symbol: str, holding: Holding, fall: Decimal) -> Turn:
    wish = Wish(
        view=view,
        purpose="alarm",
        symbol=symbol,
        direction="long" if holding.shares > 0 else "short",
        shares=abs(holding.shares),
        reason=alarm_reason(view, symbol, holding, fall),
        public_reason="Alarm: the day's loss was too large.",
        evidence={"day": view.day, "fall": round(fall, 4), "shares": holding.shares},
    )
    intent = yield from journal(wish)
    found = yield from ask("search_memory", query="", kind="thesis", symbol=symbol, status="open", limit=1)
    if not found["hits"]:
        yield from send(broker, wish, intent["action_id"])
        return
    thesis = (yield from ask("get_memory", memory_id=found["hits"][0]["id"]))["memory"]
    position = (yield from settle(view, read_position(thesis["text"]))).position
    if position.order is not None:
        # The thesis tells of an order at the broker, which a second one would double.
        yield from record(intent["action_id"], "not_sent", error_type="another order waits")
        return
    order, said = yield from send(broker, wish, intent["action_id"])
    remark = f"alarm: the day lost {fall:.1%}" + ("" if order is not None else f", but {said}")
    position = replace(position, order=order).remarked(view.day, remark)
    yield from update(thesis, position)
