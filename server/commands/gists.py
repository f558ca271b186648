"""What a person looks for in an entry: one line for each event type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from store.explain import GONE

from .wording import counted

Content = Mapping[str, Any]
Clock = Callable[[int], str]
_QUERY_CHARS = 40

_NAMED: Mapping[str, Sequence[str]] = {
    "genesis": ("product",),
    "session.started": ("transport", "client_name", "client_version", "token_id"),
    "thesis.closed": ("result", "pnl", "return_pct", "note"),
    "memory.status_changed": ("status", "replaced_by", "note"),
    "memory.flagged": ("reason", "other_id", "note"),
    "call.failed": ("code", "field"),
    "review.approved": ("note",),
    "review.rejected": ("reason",),
    "review.signed_off": ("note",),
    "review.settled": ("resolution", "supersedes", "policy", "scope", "note"),
    "publication.ended": ("outcome", "post_id", "http_status", "error_type"),
}
_TERMS = ("operation", "side", "quantity", "order_type")
_PRICES = ("limit_price", "stop_price")


def gist(event_type: str, content: Content, clock: Clock) -> str:
    """The line for an entry's content; `clock` writes microseconds as a time.

    Raises what a look into tampered content raises: ValueError, TypeError, KeyError, AttributeError.
    """
    return _told(event_type, content, clock) + _origin(content, clock)


def _told(event_type: str, content: Content, clock: Clock) -> str:
    tell = _TOLD.get(event_type)
    if tell is not None:
        return tell(content, clock)
    if content.get("redacted") is not None:
        return f"{content.get('action') or ''} {GONE}".strip()
    told = [str(content[name]) for name in _NAMED.get(event_type, ("text",)) if content.get(name) is not None]
    if content.get("count", 1) > 1:
        told.append(f"{content['count']} times")
    return ", ".join(told)


def _origin(content: Content, clock: Clock) -> str:
    """Where an imported entry comes from."""
    block = content.get("imported")
    if block is None:
        return ""
    at = f", of {clock(block['source_at'])}" if "source_at" in block else ""
    by = f" by {block['agent']}" if "agent" in block else ""
    return f" (imported{at}{by})"


def filters_of(content: Content, clock: Clock) -> str:
    """What a search was narrowed to, such as `symbol=AAPL kind=thesis`; empty where it was not."""
    told = []
    for name, value in content["filters"].items():
        if isinstance(value, list):
            told += [f"{name}={one}" for one in value]
        else:
            told.append(f"{name}={clock(value) if type(value) is int else value}")
    return " ".join(told)


def _retrieved(content: Content, clock: Clock) -> str:
    asked = " ".join(content["query"].split()) or ("(the newest)" if content["mode"] == "recent" else GONE)
    narrowed = filters_of(content, clock)
    if narrowed and len(asked) > _QUERY_CHARS:
        asked = asked[: _QUERY_CHARS - 1] + "…"
    found = f"{len(content['selected'])} of {content['total']} handed over for: {asked}"
    return f"{found} ({narrowed})" if narrowed else found


def _delivered(content: Content, _clock: Clock) -> str:
    surface = "state, " if content["surface"] == "state" else ""
    return f"{surface}{counted(len(content['shown']), 'memory', 'memories')} shown"


def _intended(content: Content, _clock: Clock) -> str:
    terms = [str(content[name]) for name in _TERMS if content.get(name) is not None]
    terms += [f"{name.removesuffix('_price')} {content[name]}" for name in _PRICES if content.get(name)]
    # A limit order says its type and its price alike: `limit 222.00`, not `limit limit 222.00`.
    if content.get("order_type") == "limit" and content.get("limit_price"):
        terms.remove("limit")
    if content.get("legs"):
        terms.append(counted(len(content["legs"]), "leg", "legs"))
    return f"{' '.join(terms)}: {content['text'] or GONE}"


def _outcome(content: Content, _clock: Clock) -> str:
    told = [f"{content['certainty']} ({content['standing']})"]
    if content.get("filled_quantity"):
        price = f" at {content['average_price']}" if content.get("average_price") else ""
        told.append(f"{content['filled_quantity']} filled{price}")
    if content.get("error_type"):
        told.append(content["error_type"])
    if content.get("broker_order_id"):
        told.append(f"broker's id {content['broker_order_id']}")
    return ", ".join([*told, f"was {content['previous']}"])


def _submitted(content: Content, _clock: Clock) -> str:
    own, brokers = content.get("client_order_id"), content.get("broker_order_id")
    told = [f"opened by {content['action_id']}"]
    told += [f"own id {own}"] if own else []
    told += [f"broker's id {brokers}"] if brokers else []
    return ", ".join(told)


def _positions(content: Content, _clock: Clock) -> str:
    held = [f"{row['symbol']} {row['quantity']}" for row in content["positions"]]
    return f"{len(held)} held ({content['standing']}){': ' if held else ''}{', '.join(held)}"


def _observed(content: Content, _clock: Clock) -> str:
    told = [f"{content['day']} ({content['standing']}): {content['quantity']} held"]
    if content.get("last_price"):
        told.append(f"last price {content['last_price']}")
    if content.get("unrealised_return_pct"):
        told.append(f"unrealised {content['unrealised_return_pct']} %")
    return ", ".join(told)


def _judged(content: Content, _clock: Clock) -> str:
    outcomes = counted(len(content["outcome_ids"]), "outcome", "outcomes")
    tally = f"{content['supports']} for, {content['contradicts']} against"
    note = f": {content['note']}" if content.get("note") else ""
    moved = content["previous"] != content["status"]
    status = f"{content['previous']} to {content['status']}" if moved else f"stays {content['status']}"
    return f"{outcomes} {content['verdict']}, {tally}, {status}{note}"


def _ended(content: Content, _clock: Clock) -> str:
    added = ", ".join(f"{count} {name}" for name, count in content["added"].items()) or "nothing"
    found = sum(each["total"] for each in content["defects"].values())
    return f"added {added}; {counted(found, 'defect', 'defects')} in the source"


def _renewed(content: Content, clock: Clock) -> str:
    told = [f"holds until {clock(content['review_by'])}"] if content.get("review_by") else []
    told += [f"expires at {clock(content['expires_at'])}"] if content.get("expires_at") else []
    return ", ".join([*told, *([content["note"]] if content.get("note") else [])])


def _warned(content: Content, _clock: Clock) -> str:
    """The message, which may begin with the code of the warning."""
    code, message = str(content["code"]), str(content["message"]) or GONE
    return message if message.startswith(f"{code}:") else f"{code}: {message}"


def _begun(content: Content, _clock: Clock) -> str:
    told = [content["action_id"]] if content.get("action_id") else []
    told += [f"tried before as {content['reconciled']}"] if content.get("reconciled") else []
    return ", ".join([*told, content["body"] or GONE])


def _redacted(content: Content, _clock: Clock) -> str:
    again = " again" if content.get("again") else ""
    covered = counted(len(content["covered"]), "entry", "entries")
    return f"took the content of {covered} away{again}: {content['reason']}"


_TOLD: Mapping[str, Callable[[Content, Clock], str]] = {
    "memory.retrieved": _retrieved,
    "memory.delivered": _delivered,
    "permission.denied": lambda content, _: f"refused {counted(content.get('count', 1), 'time', 'times')}",
    "clock.anomaly": lambda content, clock: (
        f"the clock read {clock(content['observed'])} after {clock(content['previous'])}"
    ),
    "clock.advanced": lambda content, clock: f"moved on from {clock(content['previous'])}",
    "order_action.recorded": _intended,
    "order.outcome": _outcome,
    "order.submitted": _submitted,
    "positions.reported": _positions,
    "thesis.outcome_observed": _observed,
    "warning": _warned,
    "lesson.judged": _judged,
    "publication.begun": _begun,
    "memory.repeated": lambda content, _: f"said again, {counted(content['count'], 'time', 'times')} by now",
    "review.renewed": _renewed,
    "memory.redacted": _redacted,
    "import.begun": lambda content, _: f"{counted(content['rows'], 'row', 'rows')} of {content['system']}",
    "import.ended": _ended,
}
