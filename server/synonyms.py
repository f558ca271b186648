"""What models call our arguments elsewhere; offered as "did you mean", never accepted in silence."""

from __future__ import annotations

from collections.abc import Collection
from types import MappingProxyType
from typing import Final

from .near_miss import near_miss

_MEANING: Final = {
    "symbol": "ticker tickers symbols instrument instruments asset stock",
    "text": "content message body memory description fact value thesis lesson proposal summary rationale reason",
    "limit": "max_results top_k k n count num_results page_size size max_items",
    "as_of": "as_of_date asof date at time timestamp",
    "query": "q search question keywords search_query",
    "kind": "type kinds memory_type",
    "agent": "author agent_name agent_id user",
    "tags": "tag labels label keywords",
    "since": "from start start_date after",
    "until": "to end end_date before",
    "cursor": "page_token next_cursor page offset",
    "response_format": "format detail verbosity",
    "action": "decision side operation",
    "result": "outcome outcome_result",
    "note": "reason comment message text",
    "direction": "side position",
    "invalidation": "stop stop_loss invalid_if",
    "evidence": "data metadata facts",
    "supersedes": "replaces replace supersede",
    "memory_id": "id memory uri",
    "thesis_id": "id thesis",
    "other_id": "conflicts_with related_id",
    "expires_at": "expiry expires ttl valid_until",
    "review_by": "review_at review_date",
    "operation": "action op intent",
    "reason": "text rationale justification why",
    "quantity": "qty shares size units",
    "order_type": "type kind",
    "limit_price": "price limit",
    "stop_price": "stop trigger_price",
    "time_in_force": "tif duration",
    "client_order_id": "client_id order_id",
    "previous_action_id": "replaces parent_id original_action_id",
    "action_id": "id order_id intent_id memory_id",
    "certainty": "status outcome state result",
    "broker_order_id": "broker_id order_id exchange_order_id",
    "filled_quantity": "filled filled_qty quantity qty",
    "average_price": "price avg_price fill_price filled_avg_price",
    "error_type": "error error_code reason",
    "lesson_id": "id lesson memory_id",
    "outcome_ids": "outcomes event_ids outcome_id",
    "positions": "holdings portfolio",
}
SYNONYMS: Final = MappingProxyType({name: frozenset(words.split()) for name, words in _MEANING.items()})


def meant(word: str, known: Collection[str]) -> str | None:
    """The known argument that a word most likely stands for: a synonym of it, or spelled much like it."""
    plain = word.strip().lower()
    same = next((name for name in known if plain in SYNONYMS.get(name, ())), None)
    return same or near_miss(word, known)
