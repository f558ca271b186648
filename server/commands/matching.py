"""The entries that `log` is asked for; with a symbol, the searches that were narrowed to it too."""

from __future__ import annotations

import json
from dataclasses import replace

from store import Book
from store.entry import Entry
from store.rows import EntryFilter

RETRIEVED = "memory.retrieved"
PAGE = 500


def matching(book: Book, wanted: EntryFilter, as_of: int | None) -> list[Entry]:
    """Entries that meet the conditions, in the order and up to the limit these name.

    An entry of a search carries no symbol, because it is about no single instrument: its filters say which one.
    """
    found = book.log(wanted, as_of)
    if wanted.symbol is None or wanted.kind is not None or wanted.event_type not in (None, RETRIEVED):
        return found
    both = {entry.sequence: entry for entry in (*found, *_searches(book, wanted, as_of))}
    ordered = sorted(both.values(), key=lambda entry: entry.sequence, reverse=wanted.newest_first)
    return ordered[: wanted.limit]


def _searches(book: Book, wanted: EntryFilter, as_of: int | None) -> list[Entry]:
    conditions = replace(wanted, symbol=None, event_type=RETRIEVED, limit=PAGE)
    found: list[Entry] = []
    while len(found) < wanted.limit and (page := book.log(conditions, as_of)):
        found += [entry for entry in page if _is_narrowed_to(entry, wanted.symbol)]
        last = page[-1].sequence
        conditions = (
            replace(conditions, until_sequence=last - 1)
            if wanted.newest_first
            else replace(conditions, after=last)
        )
    return found


def _is_narrowed_to(entry: Entry, symbol: str | None) -> bool:
    """Whether a search was; one that someone has tampered with was not."""
    try:
        return bool(json.loads(entry.content)["filters"].get("symbol") == symbol)
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
