"""Which memories are past the time that content is kept for, and which of those are still needed."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ..engines.base import Snapshot
from ..lifecycle import DECISION, ORDER_ACTION, THESIS
from ..rows import Version

_ACTS = (ORDER_ACTION, DECISION, THESIS)
_LINKS = ("decision_id", "thesis_id", "previous_action_id", "submit_action_id")
_WORKING = ("open", "partially_filled")


def past_retention(snapshot: Snapshot, before: int) -> tuple[list[str], list[str]]:
    """The memories that nothing was written about since an instant: those that may go, and those still needed.

    Needed are open theses, order actions that are not reconciled or whose order works, what acted on anything that is
    held, and what those name.
    """
    head = snapshot.head()
    cut = head.sequence if head else 0
    held = _held(snapshot, cut)
    old = [snapshot.version(name, cut) for name, _ in snapshot.unchanged_since(before)]
    versions = [version for version in old if version is not None]
    needed = {version.memory_id for version in versions if _is_needed(version, held)}
    needed |= _named_by_the_needed(snapshot, cut, held)
    return (
        [version.memory_id for version in versions if version.memory_id not in needed],
        [version.memory_id for version in versions if version.memory_id in needed],
    )


def _held(snapshot: Snapshot, cut: int) -> frozenset[str]:
    report = snapshot.holdings(cut)
    return frozenset(row["symbol"] for row in json.loads(report.positions)) if report else frozenset()


def _is_needed(version: Version, held: frozenset[str]) -> bool:
    if version.kind == THESIS and version.status == "open":
        return True
    if version.kind == ORDER_ACTION and (
        version.status in ("intent", "unknown") or version.details.get("order", {}).get("status") in _WORKING
    ):
        return True
    touched = {version.symbol, *version.details.get("touches", ())}
    return version.kind in _ACTS and not held.isdisjoint(touched)


def _named_by_the_needed(snapshot: Snapshot, cut: int, held: frozenset[str]) -> set[str]:
    """What is named by anything needed, old or new, and by what that names."""
    found: set[str] = set()
    waiting = [version for version in _acts(snapshot, cut) if _is_needed(version, held)]
    while waiting:
        version = waiting.pop()
        for name in _links(version):
            if name not in found:
                found.add(name)
                named = snapshot.version(name, cut)
                waiting += [named] if named is not None else []
    return found


def _acts(snapshot: Snapshot, cut: int) -> Iterable[Version]:
    for kind in _ACTS:
        yield from snapshot.all_of_kind(kind, cut)


def _links(version: Version) -> list[str]:
    return [str(version.details[name]) for name in _LINKS if version.details.get(name)]
