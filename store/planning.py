"""What every command's plan rests on: the plan itself, and the look-ups and refusals that handlers share.

A handler runs inside the transaction that will hold its entries, so what it reads cannot change before they are
written. The first draft of a plan is the one the caller is answered about.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

from .caller import Caller
from .commands import Command
from .engines.base import Transaction
from .entry import Entry
from .errors import AlreadyClosed, Inherited, InvalidInput, NotFound, PermissionDenied, VersionConflict
from .event_parts import Event
from .inputs import identifier
from .ledger import Draft
from .lifecycle import ORDER_ACTION, THESIS
from .rows import Filter, Version
from .view import View

SHOWN = 5
TICKER = re.compile(r"[A-Z0-9][A-Z0-9./=^:_-]{0,20}")


@dataclass(frozen=True, slots=True)
class Plan:
    """The drafts to append, or the entry that already says the same and what its repeat must be told."""

    drafts: tuple[Draft, ...] = ()
    standing: Entry | None = None
    before: tuple[Draft, ...] = ()
    """Drafts that stand before the first, such as the end of what it replaces."""
    warnings: tuple[str, ...] = ()
    then: Callable[[Entry], list[Draft]] | None = None
    """Drafts that follow from the first one's entry, once that has its place."""


@singledispatch
def plan(command: Command, transaction: Transaction, caller: Caller, view: View) -> Plan:
    """The entries a command leads to.

    Raises the InvalidInput, NotFound, Conflict or PermissionDenied that fits.
    """
    raise TypeError(f"no handler for {type(command).__name__}")


def about(
    memory: Version,
    event: Event,
    *,
    symbol: str | None = None,
) -> Draft:
    """The draft of an entry about a memory, which keeps its kind and, unless another is given, its symbol."""
    return Draft(event, "memory", memory.memory_id, memory.kind, symbol or memory.symbol)


def one_of(value: str | None, allowed: tuple[str, ...], *, field: str) -> str | None:
    """The listed word that is meant, spaces and capitals aside; None when blank, InvalidInput when unknown."""
    if value is None or not value.strip():
        return None
    plain = value.strip().lower()
    if plain not in allowed:
        raise InvalidInput(
            f"{field} is not a known value.", field=field, hint=f"One of {', '.join(allowed)}."
        )
    return plain


def existing(view: View, memory_id: str, *, field: str) -> Version:
    """The standing memory of an id; NotFound names the field."""
    found = view.version(identifier(memory_id, field=field))
    if found is None:
        raise NotFound(
            f"{field} names no memory of this ledger.", field=field, hint="Find the id with search_memory."
        )
    return found


def own(view: View, caller: Caller, memory_id: str, *, field: str, any_author: bool = False) -> Version:
    """A memory that the caller wrote in this ledger; PermissionDenied for another's."""
    found = existing(view, memory_id, field=field)
    refuse_inherited(found, field=field)
    if found.agent != caller.agent and not any_author:
        raise PermissionDenied(
            f"{found.memory_id} was written by {found.agent}; only its author may end it.",
            field=field,
            hint="Use flag_memory to ask a person to look at it.",
        )
    return found


def recorded_search(transaction: Transaction, retrieval_id: str) -> str:
    """The id of a recorded search."""
    found = transaction.retrieval(identifier(retrieval_id, field="retrieval_id"))
    if found is None:
        raise NotFound(
            "retrieval_id names no search of this ledger.",
            field="retrieval_id",
            hint="Use the retrieval_id that search_memory returned, or leave it out.",
        )
    return found.retrieval_id


def thesis_of(view: View, thesis_id: str) -> Version:
    """The standing thesis of an id; NotFound lists what is open."""
    found = view.version(identifier(thesis_id, field="thesis_id"))
    if found is not None and found.kind == THESIS:
        return found
    standing = view.versions(Filter(kind=THESIS, status="open"), limit=SHOWN)
    named = ", ".join(f"{thesis.memory_id} ({_ticker(thesis)})" for thesis in standing)
    what = (
        f"thesis_id names a {found.kind}, not a thesis."
        if found
        else "thesis_id names no thesis of this ledger."
    )
    raise NotFound(
        what,
        field="thesis_id",
        hint=f"Open theses: {named}." if named else "No thesis is open; open_thesis makes one.",
    )


def _ticker(thesis: Version) -> str:
    """The symbol where it looks like one: an error is the server's word and carries no sentence of an agent's."""
    if thesis.symbol is None:
        return "no symbol"
    return thesis.symbol if TICKER.fullmatch(thesis.symbol) else "another symbol"


def action_of(view: View, action_id: str, *, field: str) -> Version:
    """The standing order action of an id; NotFound says where ids come from."""
    found = existing(view, action_id, field=field)
    if found.kind != ORDER_ACTION:
        raise NotFound(
            f"{field} names a {found.kind}, not an order action.",
            field=field,
            hint="Use the action_id that record_order_intent returned; list_unreconciled_orders names the open ones.",
        )
    return found


def refuse_inherited(memory: Version, *, field: str) -> None:
    """Raise Inherited when a run would change what belongs to the live ledger."""
    if memory.source is not None:
        raise Inherited(
            f"{memory.memory_id} belongs to the {memory.source} ledger, which a run can read but never change.",
            field=field,
            hint="Write a memory of the run's own that names it.",
        )


def refuse_closed(thesis: Version) -> None:
    """Raise AlreadyClosed when the thesis is closed."""
    if thesis.status == "closed":
        raise AlreadyClosed(
            f"{thesis.memory_id} was closed by {thesis.details['closed_by']}"
            f" at sequence {thesis.sequence_from}.",
            field="thesis_id",
            hint="Open a new one with open_thesis and name this one; a post-mortem fits remember_lesson.",
        )


def check_version(memory: Version, expected: int | None) -> None:
    """Raise VersionConflict when the caller expected another version."""
    if expected is not None and expected != memory.version:
        raise VersionConflict(
            f"{memory.memory_id} is at version {memory.version}, not {expected}.",
            field="expected_version",
            hint="Read it with get_memory, then send the change again with the current version.",
        )
