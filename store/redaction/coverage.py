"""What an id covers: the entries about it, the copies that the system made of them, and who else says the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..engines.base import Snapshot
from ..entry import Entry
from ..errors import InvalidInput, NotFound
from ..events import Recorded, event_types
from ..ledger import event_of
from ..projection import CHANGES
from .kept import can_be_redacted, says

QUOTE_CHARS = 20
"""A shorter text is no quotation: too much would hold it by chance."""

SAID = ("text", "note", "reason", "public_reason", "horizon", "target", "invalidation", "scope")
COPIES = frozenset({"memory.retrieved", "warning", "memory.repeated"})
"""What the system writes itself; where it repeats a text it is a copy, and no word of somebody else's."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose content is to go: entries by sequence, and the memories whose text they brought."""

    name: str
    about: str
    """The id that its entries are about."""
    subject_type: str
    kind: str | None
    symbol: str | None
    entries: tuple[int, ...]
    memories: tuple[str, ...]
    texts: tuple[str, ...]
    """What they say in words of their own."""


@dataclass(slots=True)
class Coverage:
    """What goes: sequences with their event types. `quotes` say the same in words of their own and stay."""

    covered: dict[int, str] = field(default_factory=dict)
    quotes: dict[int, str] = field(default_factory=dict)
    """Sequence and subject of what quotes a text whole."""
    beyond: dict[int, str] = field(default_factory=dict)
    """Sequence and event type of what holds it and cannot be redacted."""

    def counts(self) -> dict[str, int]:
        """How many entries of each event type, in the order of the events' page."""
        found = Counter(self.covered.values())
        return {name: found[name] for name in event_types() if found[name]}


def subject_of(snapshot: Snapshot, name: str) -> Subject:
    """What the id of a memory, search or entry, or a sequence, names; raises NotFound, or InvalidInput for others."""
    single = _single(snapshot, name)
    head = snapshot.head()
    found = [single] if single else snapshot.history(name, head.sequence if head else 0)
    if not found:
        raise NotFound(f"Nothing in this ledger has the id {name}.", hint="`deskbook log` lists the entries.")
    able = [entry for entry in found if can_be_redacted(entry.event_type)]
    if not able:
        raise InvalidInput(
            f"{name} names nothing that holds a text: {', '.join(dict.fromkeys(e.event_type for e in found))}.",
            field="ID",
            hint="Name a memory, a search, or an entry that holds one; docs/redaction.md lists what never can go.",
        )
    first = able[0]
    return Subject(
        name=name,
        about=first.subject_id,
        subject_type=first.subject_type,
        kind=first.kind,
        symbol=first.symbol,
        entries=tuple(entry.sequence for entry in able),
        memories=tuple(dict.fromkeys(entry.subject_id for entry in able if _brings_text(entry))),
        texts=tuple(dict.fromkeys(text for entry in able for text in _said(entry))),
    )


def holders_of(snapshot: Snapshot, text: str) -> Coverage:
    """Every entry whose content holds a text literally."""
    found = Coverage()
    for sequence, event_type, _ in snapshot.saying(written_forms([text])):
        (found.covered if can_be_redacted(event_type) else found.beyond)[sequence] = event_type
    return found


def covered_by(
    snapshot: Snapshot, subjects: Iterable[Subject], *, with_quotes: bool, look_for_quotes: bool = True
) -> Coverage:
    """What goes with the subjects: their entries, the searches that met their memories, and copies of their texts."""
    found = Coverage()
    told = list(subjects)
    for subject in told:
        for sequence in subject.entries:
            _add(snapshot, found, sequence)
    texts = {text: None for subject in told for text in subject.texts} if look_for_quotes else {}
    memories = {name: None for subject in told for name in subject.memories}
    _add_copies(snapshot, found, memories, texts, with_quotes=with_quotes)
    return found


def inherited(
    snapshot: Snapshot, memories: Iterable[str], texts: Iterable[str], *, with_quotes: bool
) -> Coverage:
    """What a run's ledger holds of memories of the live ledger that it was shown, and of their texts."""
    found = Coverage()
    _add_copies(snapshot, found, memories, texts, with_quotes=with_quotes)
    return found


def _add_copies(
    snapshot: Snapshot, found: Coverage, memories: Iterable[str], texts: Iterable[str], *, with_quotes: bool
) -> None:
    for sequence in snapshot.searched(tuple(memories)):
        _add(snapshot, found, sequence)
    quotations = [text for text in texts if len(text) >= QUOTE_CHARS]
    for sequence, event_type, subject_id in snapshot.saying(written_forms(quotations)):
        if sequence in found.covered:
            continue
        if event_type in COPIES or (with_quotes and can_be_redacted(event_type)):
            found.covered[sequence] = event_type
        elif can_be_redacted(event_type):
            found.quotes[sequence] = subject_id
        else:
            found.beyond[sequence] = event_type


def merged(parts: Iterable[Coverage]) -> Coverage:
    """Everything that any of them covers."""
    whole = Coverage()
    for part in parts:
        whole.covered |= part.covered
        whole.quotes |= part.quotes
        whole.beyond |= part.beyond
    whole.quotes = {at: name for at, name in whole.quotes.items() if at not in whole.covered}
    return whole


def written_forms(texts: Iterable[str]) -> tuple[str, ...]:
    """How texts stand in contents: as JSON has them, and in the text of a reply once more as JSON."""
    forms: dict[str, None] = {}
    for text in texts:
        once = _escaped(text)
        forms |= dict.fromkeys((once, _escaped(once)))
    return tuple(forms)


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _single(snapshot: Snapshot, name: str) -> Entry | None:
    if name.isascii() and name.isdigit() and len(name) < 16:
        return snapshot.entry(int(name))
    return snapshot.entry_of_event(name)


def _brings_text(entry: Entry) -> bool:
    return isinstance(event_of(entry), (Recorded, *CHANGES))


def _said(entry: Entry) -> list[str]:
    content = json.loads(entry.content)
    told = [content.get(name) for name in SAID if says(entry.event_type, name)]
    return [text for text in told if isinstance(text, str) and text.strip()]


def _add(snapshot: Snapshot, found: Coverage, sequence: int) -> None:
    """Add an entry unless its content is gone already."""
    entry = snapshot.raw_entry(sequence)
    if entry is not None and entry.content and can_be_redacted(entry.event_type):
        found.covered[sequence] = entry.event_type
