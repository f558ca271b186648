"""Proof that a run was shown nothing from after its clock.

Every recorded search and showing is read again and held against the entries themselves, of the run and of the
live ledger it inherits: it must have read no further than its clock and its pin allowed, each version shown must
have stood there, and the text handed over must say what that version said. Projections are not trusted; cuts and
versions are counted from the entries.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from .clock import format_instant, parse_instant
from .engines.sqlite.connection import connect
from .engines.sqlite.faults import translate_opening
from .engines.sqlite.preparation import recognise
from .engines.sqlite.snapshot import SqliteSnapshot
from .errors import DeskbookError, ForeignFile, InvalidInput, NotFound, StoreDamaged
from .events import read_event
from .ids import MEMORY_ID
from .inheritance import holds
from .ledger import genesis_of
from .lifecycle import ORDER_STATUSES, first_status
from .paths import ledger_path, refuse_links
from .projection import Before, project
from .render import in_words, trust_word, unquoted
from .rows import Version

VERSION_EVENTS = frozenset(
    "memory.recorded proposal.recorded risk_note.recorded decision.recorded lesson.recorded thesis.opened"
    " thesis.updated thesis.closed memory.status_changed order_action.recorded order.outcome lesson.judged"
    " review.approved review.rejected review.edited review.signed_off review.renewed review.settled".split()
)
SHOWINGS = ("memory.retrieved", "memory.delivered")
_ALL = 2**62
_MARK = "…"
_REPLY = frozenset(
    {"notice", "retrieval_id", "total", "truncated", "cursor", "hits", "message", "semantic", "outcomes"}
)
_HIT_FACTS = (
    *("kind", "symbol", "agent", "profile", "tags", "imported", "source_at", "source_agent"),
    *("trust", "suspicious", "review_state"),
)
_DATED = frozenset({"effective_at", "created_at", "closed_at"})


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
    status: str
    row: Version


@dataclass(frozen=True, slots=True)
class _Bounds:
    """How far one showing may have read: its clock, and the last entry of the run and of live."""

    clock: int
    own: int
    live: int


class _Source:
    """A ledger's memories as its entries up to `last` alone tell them."""

    def __init__(self, path: Path, last: int | None = None) -> None:
        recognise(path)
        self.connection = connect(path, "read")
        self.connection.execute("BEGIN")
        self.snapshot = SqliteSnapshot(self.connection)
        self._latest, self._at = array("q"), array("q")
        self._last = 0
        for sequence, effective_at in self.connection.execute(
            "SELECT sequence, effective_at FROM memory_events WHERE ? IS NULL OR sequence <= ? ORDER BY sequence",
            (last, last),
        ):
            self._last = sequence
            if not self._latest or effective_at > self._latest[-1]:
                self._latest.append(effective_at)
                self._at.append(sequence)

    def cut_at(self, instant: int) -> int:
        """The last entry before the first one dated after the instant."""
        later = bisect_right(self._latest, instant)
        return self._at[later] - 1 if later < len(self._at) else self._last

    def versions(self, memory_id: str) -> list[_Version]:
        text = status = ""
        found: list[_Version] = []
        for entry in self.snapshot.history(memory_id, _ALL):
            if entry.event_type not in VERSION_EVENTS:
                continue
            said = json.loads(entry.content)
            text = said.get("text", text)
            status = _status_after(entry.event_type, entry.kind or "", said, status)
            before = Before(found[-1].row if found else None, 0, 0)
            rows = project(entry, read_event(entry.event_type, said), before)
            row = next(row for row in rows if isinstance(row, Version))
            found.append(_Version(entry.sequence, entry.effective_at, text, status, row))
        return found

    def close(self) -> None:
        self.connection.close()


def _facts(hit: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What a hit says of its memory besides text, status, version and dates."""
    yield from ((name, hit[name]) for name in _HIT_FACTS if name in hit)
    details = hit.get("details", {})
    told = details.items() if isinstance(details, dict) else [("details", details)]
    yield from ((name, value) for name, value in told if name not in _DATED)


def _said_by(row: Version, name: str, shown: Any) -> bool:
    """Whether a version says what was shown of it; a time may be in any zone, a long value is cut with a mark."""
    columns: dict[str, Any] = {
        "kind": row.kind,
        "symbol": row.symbol,
        "agent": row.agent,
        "profile": row.profile,
    }
    columns |= _origin(row, shown)
    columns |= {"trust": trust_word(row), "review_state": row.review_state}
    if shown is True:
        columns["suspicious"] = "suspicious" in row.details
    kept = columns.get(name, list(row.tags) if name == "tags" else row.details.get(name))
    if isinstance(kept, int) and isinstance(shown, str):
        try:
            return parse_instant(shown, field=name) == kept
        except InvalidInput:
            return False
    return _is_shown(kept, shown)


def _is_shown(kept: Any, shown: Any) -> bool:
    """Whether a value is what was kept, quoted or not and cut or not."""
    if not isinstance(shown, str):
        return any(shown == told for told in (kept, *(in_words(kept, every=each) for each in (True, False))))
    whole = kept if isinstance(kept, str) else json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
    return any(
        told == kept or (told.endswith(_MARK) and whole.startswith(told.removesuffix(_MARK)))
        for told in (shown, unquoted(shown))
    )


def _origin(row: Version, shown: Any) -> dict[str, Any]:
    """What a hit may say of an imported memory; the block itself stands in its details under the same name."""
    block = row.details.get("imported", {})
    told = {"source_at": block.get("source_at"), "source_agent": block.get("agent")}
    return told | {"imported": True} if block and shown is True else told


def _status_after(event_type: str, kind: str, said: dict[str, Any], status: str) -> str:
    if event_type == "thesis.closed":
        return "closed"
    if event_type == "review.signed_off":
        return "validated"
    if event_type in {"memory.status_changed", "lesson.judged"}:
        return str(said["status"])
    if event_type == "order.outcome" and said["certainty"] not in ORDER_STATUSES:
        return str(said["certainty"])
    return status or first_status(kind)


def find_leaks(
    root: Path, strategy: str, run: str, progress: Callable[[int, int], None] | None = None
) -> LeakReport:
    """Check every recorded search and showing of a run; `progress` is told entries done and entries in all.

    Raises NotFound when there is no such run, the StoreError that fits when a ledger cannot be read.
    """
    path = ledger_path(root, strategy, run)
    if not path.exists():
        raise NotFound("There is no run of that name.", field="run", hint="`deskbook run list` names them.")
    live_path = ledger_path(root, strategy, None)
    for each in (path, live_path):
        refuse_links(root, each)
    with ExitStack() as stack:
        try:
            own = stack.enter_context(closing(_Source(path)))
            pinned = _pinned(own)
            live = _inherited(stack, own, live_path, pinned)
            return _Check(run, own, live, pinned).report(progress)
        except apsw.Error as fault:
            known = translate_opening(fault)
            raise known if isinstance(known, DeskbookError) else _unreadable() from None


def _inherited(stack: ExitStack, own: _Source, live_path: Path, pinned: int) -> _Source | None:
    """The live ledger the run inherits; raises ForeignFile when it is gone or no longer what was pinned."""
    if not live_path.exists():
        if pinned:
            raise _unprovable()
        return None
    live = stack.enter_context(closing(_Source(live_path, pinned)))
    genesis = genesis_of(SqliteSnapshot(own.connection))
    if pinned and (genesis is None or not holds(SqliteSnapshot(live.connection), genesis)):
        raise _unprovable()
    return live


def _unprovable() -> ForeignFile:
    return ForeignFile(
        "The live ledger that this run inherits is gone or was replaced, so nothing can be proven of it.",
        hint="Restore that live ledger and ask again.",
    )


def _pinned(own: _Source) -> int:
    """How many entries of the live ledger the run may see, by its genesis."""
    first = own.connection.execute("SELECT content FROM memory_events WHERE sequence = 1").fetchone()
    try:
        return int(json.loads(first[0] if first else "").get("live_sequence", 0))
    except (ValueError, TypeError, AttributeError):
        raise _unreadable() from None


def _unreadable() -> StoreDamaged:
    return StoreDamaged(
        "The run's ledger cannot be read.", hint="`deskbook verify` says what is wrong with it."
    )


class _Check:
    def __init__(self, run: str, own: _Source, live: _Source | None, pinned: int) -> None:
        self._run = run
        self._own = own
        self._live = live
        self._pinned = pinned
        self._leaks: list[Leak] = []
        self._versions = 0

    def report(self, progress: Callable[[int, int], None] | None) -> LeakReport:
        counts = dict.fromkeys(SHOWINGS, 0)
        total = self._own.connection.execute("SELECT max(sequence) FROM memory_events").fetchone()
        for sequence, event_type, effective_at, content, taken_away in self._showings():
            counts[event_type] += 1
            try:
                self._check(sequence, effective_at, json.loads(content), taken_away=taken_away)
            except (ValueError, KeyError, TypeError, AttributeError):
                self._leak(sequence, "what was shown cannot be read from the record")
            if progress is not None and total:
                progress(sequence, total[0])
        searches, showings = (counts[event_type] for event_type in SHOWINGS)
        return LeakReport(self._run, searches, showings, self._versions, tuple(self._leaks))

    def _showings(self) -> Iterator[tuple[int, str, int, str, bool]]:
        """Every search and showing; of one whose content was taken away what stays of it, and that it was."""
        rows: apsw.Cursor = self._own.connection.execute(
            "SELECT sequence, event_type, effective_at, content FROM memory_events WHERE event_type IN (?, ?)"
            " ORDER BY sequence",
            SHOWINGS,
        )
        for *columns, content in rows:
            kept = None if content else self._own.snapshot.redaction_of(columns[0])
            yield (*columns, content, False) if kept is None else (*columns, kept.kept, True)

    def _leak(self, sequence: int, what: str) -> None:
        self._leaks.append(Leak(sequence, what))

    def _check(self, sequence: int, effective_at: int, content: dict[str, Any], *, taken_away: bool) -> None:
        bounds = self._bounds(sequence, effective_at, content)
        shown = content["selected"] if "selected" in content else content["shown"]
        for item in [*shown, *content.get("candidates", [])]:
            self._check_version(sequence, bounds, item)
        if "rendered" in content and not taken_away:
            self._check_text(sequence, bounds, content["rendered"], shown)

    def _bounds(self, sequence: int, effective_at: int, content: dict[str, Any]) -> _Bounds:
        """What a showing may have read; that it says it read more is a leak in itself."""
        clock = min(effective_at, content.get("as_of", effective_at))
        own = min(sequence - 1, self._own.cut_at(clock))
        live = min(self._pinned, self._live.cut_at(clock)) if self._live is not None else 0
        for allowed, read, ledger in (
            (own, content["cut"], "run"),
            (live, content.get("inherited_cut", 0), "live ledger"),
        ):
            if read > allowed:
                self._leak(
                    sequence,
                    f"the {ledger} was read up to its entry {read}, where the clock allowed {allowed}",
                )
        return _Bounds(clock, min(own, content["cut"]), min(live, content.get("inherited_cut", 0)))

    def _versions_of(self, item: dict[str, Any]) -> list[_Version]:
        source = self._live if item.get("source") == "live" else self._own
        return [] if source is None else source.versions(item["id"])

    def _check_version(self, sequence: int, bounds: _Bounds, item: dict[str, Any]) -> None:
        self._versions += 1
        name = f"{item['id']} version {item['version']}"
        versions = self._versions_of(item)
        if not 1 <= item["version"] <= len(versions):
            self._leak(sequence, f"{name} was shown, but no entry of the ledger wrote it")
            return
        version = versions[item["version"] - 1]
        if version.effective_at > bounds.clock:
            self._leak(
                sequence,
                f"{name} is of {format_instant(version.effective_at)}, after the clock"
                f" {format_instant(bounds.clock)}",
            )
        elif version.sequence > (bounds.live if item.get("source") == "live" else bounds.own):
            self._leak(sequence, f"{name} was shown where its entry {version.sequence} did not stand yet")

    def _check_text(self, sequence: int, bounds: _Bounds, rendered: str, shown: list[dict[str, Any]]) -> None:
        """Hold the text handed over against the versions it claims to show."""
        selected = {item["id"]: item for item in shown}
        try:
            reply = json.loads(rendered)
            hits = {hit["id"]: hit for hit in reply["hits"]}
        except (ValueError, KeyError, TypeError):
            self._leak(sequence, "the text handed over is no search reply")
            return
        if len(hits) != len(reply["hits"]):
            self._leak(sequence, "the text handed over shows one memory twice")
        for name in sorted(reply.keys() - _REPLY):
            self._leak(
                sequence, f"the text handed over says something under {name}, which no search reply has"
            )
        for name in sorted(hits.keys() ^ selected.keys()):
            self._leak(sequence, f"{name} stands in the text handed over or in the record, not in both")
        for name in sorted(hits.keys() & selected.keys()):
            self._check_hit(sequence, bounds.clock, hits[name], selected[name])
        for name in sorted({found.group() for found in MEMORY_ID.finditer(rendered)} - hits.keys()):
            self._check_mention(sequence, bounds, name)

    def _check_hit(self, sequence: int, clock: int, hit: dict[str, Any], item: dict[str, Any]) -> None:
        versions = self._versions_of(item)
        if not 1 <= item["version"] <= len(versions):
            return
        version = versions[item["version"] - 1]
        text = str(hit.get("text", ""))
        if hit.get("suspicious"):
            text = unquoted(text)
        if text != version.text and not (
            text.endswith(_MARK) and version.text.startswith(text.removesuffix(_MARK))
        ):
            self._leak(sequence, f"the text shown of {item['id']} is not that of version {item['version']}")
        told = (hit.get("status", version.status), hit.get("version", item["version"]))
        if told != (version.status, item["version"]):
            self._leak(
                sequence, f"{item['id']} was shown as {told[0]}, where version {item['version']} is not"
            )
        for name, shown in _facts(hit):
            if not _said_by(version.row, name, shown):
                self._leak(
                    sequence,
                    f"{item['id']} was shown with {name}, which version {item['version']} does not say",
                )
        dated = {**hit, **hit.get("details", {})}
        for field in _DATED & dated.keys():
            if self._is_after(dated[field], clock):
                self._leak(sequence, f"{item['id']} was shown with {field} {dated[field]}, after the clock")

    def _check_mention(self, sequence: int, bounds: _Bounds, name: str) -> None:
        """An id that stands in a text: what it names must have stood, and be no younger than the clock."""
        for source, last in ((self._own, bounds.own), (self._live, None)):
            first = source.versions(name)[:1] if source is not None else []
            if first and (
                first[0].effective_at > bounds.clock or (last is not None and first[0].sequence > last)
            ):
                self._leak(sequence, f"{name} is mentioned in the text handed over before it was written")

    def _is_after(self, text: str, clock: int) -> bool:
        try:
            return parse_instant(text, field="effective_at") > clock
        except InvalidInput:
            return True
