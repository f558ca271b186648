"""What stays of an entry whose content is taken away: its structure, and never a text.

The table is a list of what is allowed. What it does not name is left out, or where an entry of that type must have
it, there and empty. So a field that comes new is taken away until somebody names it here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ..commands import ACTIONS
from ..terms import count_terms, index_text

Content = Mapping[str, Any]
Rule = Callable[[Any], Any]

_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,4})?")
_TICKER = re.compile(r"[A-Z0-9][A-Z0-9./=^:_-]{0,20}")
_WORD = re.compile(r"[a-z]{1,12}(_[a-z]{1,12}){0,3}")


def _same(value: Any) -> Any:
    """An id, a number, a time or a word of the product's own."""
    return value


def _decimal(value: Any) -> Any:
    return value if isinstance(value, str) and _NUMBER.fullmatch(value) else None


def _word(value: Any) -> Any:
    """A word that a writer chooses from a list."""
    return value if isinstance(value, str) and _WORD.fullmatch(value) else None


def _action(value: Any) -> Any:
    """What a decision or a proposal was to do, a word of the product's own."""
    return value if value in ACTIONS else None


def _action_or_blank(value: Any) -> str:
    return _action(value) or ""


def _blank(_value: Any) -> str:
    return ""


def _empty(_value: Any) -> list[Any]:
    return []


def _parts(allowed: Mapping[str, Rule]) -> Rule:
    """Those parts of an object that are allowed."""

    def keep(value: Any) -> Any:
        return _allowed(value, allowed) if isinstance(value, dict) else None

    return keep


def _each(allowed: Mapping[str, Rule]) -> Rule:
    keep = _parts(allowed)

    def keep_all(values: Any) -> Any:
        return [keep(value) for value in values if isinstance(value, dict)]

    return keep_all


def _ticker(value: Any) -> Any:
    return value if isinstance(value, str) and _TICKER.fullmatch(value) else None


def _nothing(_value: Any) -> dict[str, Any]:
    return {}


def _fields(rule: Rule, names: str) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


# By these an import that is made again knows what it has brought in already.
_IMPORTED: Final = _parts(
    _fields(
        _same,
        "system import_id source_id source_type source_subject source_sequence source_at source_recorded_at agent"
        " model_call_id retrieval_id follows",
    )
)
_FILTERS: Final = _parts(_fields(_same, "kind status since until expired") | {"symbol": _ticker})
_LEGS: Final = _each(
    {"symbol": _ticker} | _fields(_decimal, "quantity ratio price") | _fields(_word, "side action")
)
_POSITIONS: Final = _each(
    _fields(_same, "symbol quantity")
    | _fields(_decimal, "average_cost last_price market_value")
    | _fields(_word, "asset_type")
)
_RECORDED: Final = (
    _fields(_blank, "text")
    | _fields(_empty, "tags notices")
    | _fields(_same, "review_by expires_at review_state pending_until retrievals redacted alike")
    | {"imported": _IMPORTED}
)
_IDS_OF_ORDER: Final = "client_order_id thesis_id decision_id previous_action_id submit_action_id"

KEPT: Final[Mapping[str, Mapping[str, Rule]]] = MappingProxyType(
    {
        "session.started": _fields(_same, "transport protocol_version token_id"),
        "memory.recorded": _RECORDED | _fields(_same, "supersedes"),
        "proposal.recorded": _RECORDED | _fields(_action, "action"),
        "risk_note.recorded": _RECORDED,
        "decision.recorded": _RECORDED | _fields(_action_or_blank, "action") | _fields(_same, "thesis_id"),
        "lesson.recorded": _RECORDED,
        "thesis.opened": _RECORDED,
        "thesis.updated": _fields(_blank, "text")
        | _fields(_empty, "notices")
        | _fields(_same, "review_by review_state pending_until alike redacted symbol")
        | {"imported": _IMPORTED},
        "thesis.closed": _fields(_empty, "notices")
        | _fields(_decimal, "pnl return_pct exit_price")
        | _fields(_same, "redacted")
        | {"imported": _IMPORTED},
        "memory.status_changed": _fields(_same, "status previous replaced_by"),
        "memory.flagged": _fields(_same, "reason other_id"),
        "memory.repeated": _fields(_same, "count") | _fields(_empty, "notices"),
        "memory.retrieved": _fields(_blank, "query rendered")
        | _fields(_same, "mode order as_of cut inherited_cut model watermark inherited_watermark total")
        | _fields(_same, "candidates selected")
        | {"filters": _FILTERS, "imported": _IMPORTED},
        "order_action.recorded": _RECORDED
        | _fields(_same, f"operation touches revision deployment reason_sha256 {_IDS_OF_ORDER}")
        | _fields(_word, "side order_type time_in_force")
        | _fields(_decimal, "quantity limit_price stop_price")
        # Without the salt nobody can try texts against the hash.
        | _fields(_blank, "reason_salt")
        | {"legs": _LEGS},
        "order.outcome": _fields(_same, "certainty previous standing order_status broker_order_id")
        | _fields(_decimal, "filled_quantity average_price")
        | _fields(_empty, "notices"),
        "positions.reported": _fields(_same, "standing")
        | _fields(_empty, "left_out")
        | {"positions": _POSITIONS},
        "warning": _fields(_same, "code symbol action_id related retrieved_instead")
        | _fields(_blank, "message"),
        "lesson.judged": _fields(_same, "verdict outcome_ids previous status supports contradicts"),
        "import.begun": _fields(_same, "system rows origin") | _fields(_empty, "versions strategies files"),
        "import.kept": _fields(_blank, "text") | {"imported": _IMPORTED},
        "import.ended": {"added": _same, "defects": _nothing},
        "review.approved": _fields(_same, "shown_sha256"),
        "review.rejected": _fields(_same, "shown_sha256") | _fields(_blank, "reason"),
        "review.edited": _fields(_same, "shown_sha256 redacted settles") | _fields(_blank, "text"),
        "review.signed_off": _fields(_same, "shown_sha256 previous"),
        "review.renewed": _fields(_same, "shown_sha256 review_by expires_at settles"),
        "review.settled": _fields(_same, "flag also resolution supersedes contradicts policy"),
        "publication.begun": _fields(_blank, "endpoint body")
        | _fields(
            _same, "action_id marketplace_listing_id community_publication_id parent_post_id reconciled"
        ),
    }
)
"""For each event type what stays of each field; a field that it does not name goes."""

WITHOUT_TEXT: Final = frozenset(
    "genesis memory.delivered permission.denied call.failed clock.anomaly clock.advanced order.submitted"
    " thesis.outcome_observed memory.redacted publication.ended".split()
)
"""Event types that hold no text of anybody's, or say what was done; they cannot be redacted."""

_TERMS_OF: Final = frozenset(name for name, rules in KEPT.items() if "redacted" in rules)
"""Those whose content says how many terms its text had, once it is gone: counts and ranks rest on it."""


def can_be_redacted(event_type: str) -> bool:
    """Whether the content of entries of this type may be taken away."""
    return event_type in KEPT


def kept_of(event_type: str, content: Content) -> dict[str, Any]:
    """What stays of a content; it is lawful for its type and holds no text."""
    kept = _allowed(content, KEPT[event_type])
    if event_type in _TERMS_OF:
        kept["redacted"] = count_terms(index_text(str(content.get("text", ""))))
    return kept


def says(event_type: str, field: str) -> bool:
    """Whether a field of such a content holds words of somebody's own, which do not stay."""
    return KEPT.get(event_type, {}).get(field) is not _same


def _allowed(content: Content, rules: Mapping[str, Rule]) -> dict[str, Any]:
    kept = {name: rule(content[name]) for name, rule in rules.items() if name in content}
    return {name: value for name, value in kept.items() if value is not None}
