"""Proof that a run was shown nothing from after its clock.

Every recorded search and showing is read again and held against the entries themselves, of the run and of the
live ledger it inherits: each version shown must have been written before it was shown, at a time not after the
clock, and the text handed over must say what that version said. Projections are not trusted; versions are
counted from the entries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from .clock import format_instant, parse_instant
from .engines.sqlite.connection import connect
from .errors import InvalidInput, NotFound
from .ids import MEMORY_ID
from .paths import ledger_path

VERSION_EVENTS = frozenset(
    "memory.recorded proposal.recorded risk_note.recorded decision.recorded lesson.recorded thesis.opened"
    " thesis.updated thesis.closed memory.status_changed order_action.recorded order.outcome lesson.judged".split()
)
SHOWINGS = ("memory.retrieved", "memory.delivered")
_MARK = "…"


@dataclass(frozen=True, slots=True)
class Leak:
    """Something shown that the clock did not allow: by which entry, and what."""

    sequence: int
    what: str


@dataclass(frozen=True, slots=True)
class LeakReport:
    """What was checked: searches, showings, versions shown, and what leaked."""

    run: str
    searches: int
    showings: int
    versions: int
    leaks: tuple[Leak, ...]


@dataclass(frozen=True, slots=True)
class _Version:
    sequence: int
    effective_at: int
    text: str


class _Source:
    """A ledger's memories as its entries alone tell them."""

    def __init__(self, path: Path) -> None:
        self.connection = connect(path, "read")
        self.connection.execute("BEGIN")

    def versions(self, memory_id: str) -> list[_Version]:
        text = ""
        found = []
        for sequence, event_type, effective_at, content in self.connection.execute(
            "SELECT sequence, event_type, effective_at, content FROM memory_events WHERE subject_id = ?"
            " ORDER BY sequence",
            (memory_id,),
        ):
            if event_type in VERSION_EVENTS:
                text = json.loads(content).get("text", text)
                found.append(_Version(sequence, effective_at, text))
        return found

    def close(self) -> None:
        self.connection.close()


def find_leaks(
    root: Path, strategy: str, run: str, progress: Callable[[int, int], None] | None = None
) -> LeakReport:
    """Check every recorded search and showing of a run; `progress` is told entries done and entries in all.

    Raises NotFound when there is no such run.
    """
    path = ledger_path(root, strategy, run)
    if not path.exists():
        raise NotFound("There is no run of that name.", field="run", hint="`deskbook run list` names them.")
    own = _Source(path)
    live_path = ledger_path(root, strategy, None)
    live = _Source(live_path) if live_path.exists() else None
    try:
        return _Check(run, own, live).report(progress)
    finally:
        own.close()
        if live is not None:
            live.close()


class _Check:
    def __init__(self, run: str, own: _Source, live: _Source | None) -> None:
        self._run = run
        self._own = own
        self._live = live
        self._leaks: list[Leak] = []
        self._versions = 0
        self._pinned = self._pin()

    def report(self, progress: Callable[[int, int], None] | None) -> LeakReport:
        counts = dict.fromkeys(SHOWINGS, 0)
        total = self._own.connection.execute("SELECT max(sequence) FROM memory_events").fetchone()
        for sequence, event_type, effective_at, content in self._showings():
            counts[event_type] += 1
            self._check(sequence, effective_at, json.loads(content))
            if progress is not None and total:
                progress(sequence, total[0])
        searches, showings = (counts[event_type] for event_type in SHOWINGS)
        return LeakReport(self._run, searches, showings, self._versions, tuple(self._leaks))

    def _pin(self) -> int:
        first = self._own.connection.execute(
            "SELECT content FROM memory_events WHERE sequence = 1"
        ).fetchone()
        return int(json.loads(first[0]).get("live_sequence", 0)) if first else 0

    def _showings(self) -> Iterator[tuple[int, str, int, str]]:
        rows: apsw.Cursor = self._own.connection.execute(
            "SELECT sequence, event_type, effective_at, content FROM memory_events WHERE event_type IN (?, ?)"
            " ORDER BY sequence",
            SHOWINGS,
        )
        yield from rows

    def _leak(self, sequence: int, what: str) -> None:
        self._leaks.append(Leak(sequence, what))

    def _check(self, sequence: int, effective_at: int, content: dict[str, Any]) -> None:
        clock = min(effective_at, content.get("as_of", effective_at))
        shown = content.get("selected", content.get("shown", []))
        for item in [*shown, *content.get("candidates", [])]:
            self._check_version(sequence, clock, item)
        if "rendered" in content:
            self._check_text(sequence, clock, content["rendered"], shown)

    def _check_version(self, sequence: int, clock: int, item: dict[str, Any]) -> None:
        self._versions += 1
        name = f"{item['id']} version {item['version']}"
        inherited = item.get("source") == "live"
        source = self._live if inherited else self._own
        versions = [] if source is None else source.versions(item["id"])
        if not 1 <= item["version"] <= len(versions):
            self._leak(sequence, f"{name} was shown, but no entry of the ledger wrote it")
            return
        version = versions[item["version"] - 1]
        if version.sequence > (self._pinned if inherited else sequence):
            self._leak(sequence, f"{name} was shown before its entry {version.sequence} stood")
        elif version.effective_at > clock:
            self._leak(
                sequence,
                f"{name} is of {format_instant(version.effective_at)}, after the clock {format_instant(clock)}",
            )

    def _check_text(self, sequence: int, clock: int, rendered: str, shown: list[dict[str, Any]]) -> None:
        """Hold the text handed over against the versions it claims to show."""
        selected = {item["id"]: item for item in shown}
        try:
            hits = {hit["id"]: hit for hit in json.loads(rendered)["hits"]}
        except (ValueError, KeyError, TypeError):
            self._leak(sequence, "the text handed over is no search reply")
            return
        for name in hits.keys() ^ selected.keys():
            self._leak(sequence, f"{name} stands in the text handed over or in the record, not in both")
        for name in hits.keys() & selected.keys():
            self._check_hit(sequence, clock, hits[name], selected[name])
        for name in {found.group() for found in MEMORY_ID.finditer(rendered)} - hits.keys():
            self._check_mention(sequence, clock, name)

    def _check_hit(self, sequence: int, clock: int, hit: dict[str, Any], item: dict[str, Any]) -> None:
        source = self._live if item.get("source") == "live" else self._own
        versions = [] if source is None else source.versions(item["id"])
        if item["version"] > len(versions):
            return
        text = str(hit.get("text", ""))
        whole = versions[item["version"] - 1].text
        if text != whole and not (text.endswith(_MARK) and whole.startswith(text.removesuffix(_MARK))):
            self._leak(sequence, f"the text shown of {item['id']} is not that of version {item['version']}")
        for field in ("effective_at", "created_at"):
            if field in hit and self._is_after(hit[field], clock):
                self._leak(sequence, f"{item['id']} was shown with {field} {hit[field]}, after the clock")

    def _check_mention(self, sequence: int, clock: int, name: str) -> None:
        """An id that stands in a text: what it names must not be younger than the clock."""
        for source in (self._own, self._live):
            versions = [] if source is None else source.versions(name)
            if versions and versions[0].effective_at > clock:
                self._leak(sequence, f"{name} is mentioned in the text handed over before it was written")

    def _is_after(self, text: str, clock: int) -> bool:
        try:
            return parse_instant(text, field="effective_at") > clock
        except InvalidInput:
            return True
