"""What of a source is in the ledger, under which ids here; read from the ledger, so that any import can go on."""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Iterable

from ...entry import Entry

TOOL = "import lumibot"
SEARCH = "memory.searched"
"""The type given to the source's retrievals, which have none there."""
_KEPT = "import.kept"


class Known:
    """Ids of the source and where they went. A child sees what its parent knows and keeps its own until merged."""

    def __init__(self) -> None:
        self.memories: ChainMap[str, str] = ChainMap()
        """The memory here that a memory there became last."""
        self.kept: ChainMap[str, str] = ChainMap()
        """The subject here under which entries about a thing there are kept that is no memory here."""
        self.retrievals: ChainMap[str, str] = ChainMap()
        self.events: ChainMap[str, tuple[str, int]] = ChainMap()
        """The memory that a row of the source was about, and its entry's sequence here."""
        self.sequence = 0
        self.origins: frozenset[str] = frozenset()
        self.open_import: str | None = None
        """The import that was begun last, while it has not ended."""
        self.others = 0
        """Entries that no import wrote, the genesis entry aside."""

    def child(self) -> Known:
        """A layer above, whose additions can be thrown away."""
        above = Known()
        above.memories, above.kept = self.memories.new_child(), self.kept.new_child()
        above.retrievals, above.events = self.retrievals.new_child(), self.events.new_child()
        above.sequence, above.origins = self.sequence, self.origins
        above.open_import, above.others = self.open_import, self.others
        return above

    def merge(self, child: Known) -> None:
        """Take over what a child learned."""
        self.memories.update(child.memories.maps[0])
        self.kept.update(child.kept.maps[0])
        self.retrievals.update(child.retrievals.maps[0])
        self.events.update(child.events.maps[0])
        self.sequence, self.origins = child.sequence, child.origins
        self.open_import, self.others = child.open_import, child.others

    def holds(self, event_type: str, source_id: str) -> bool:
        """Whether a row of the source is in the ledger."""
        return _key(event_type, source_id) in self.events

    def event(self, source_id: str) -> tuple[str, int] | None:
        """The memory an event of the source was about, and its entry's sequence here."""
        return self.events.get(_key("", source_id))

    def learn(self, entries: Iterable[Entry]) -> None:
        """Take in entries, in order of sequence."""
        for entry in entries:
            self.sequence = entry.sequence
            if entry.tool == TOOL:
                self._learn(entry)
            elif entry.event_type not in {"genesis", "clock.anomaly"}:
                self.others += 1

    def _learn(self, entry: Entry) -> None:
        content = json.loads(entry.content)
        if entry.event_type == "import.begun":
            self.origins |= {content["origin"]}
            self.open_import = entry.subject_id
        elif entry.event_type == "import.ended":
            self.open_import = None
        block = content.get("imported")
        if block is None:
            return
        self.events[_key(block.get("source_type", ""), block["source_id"])] = (
            entry.subject_id,
            entry.sequence,
        )
        subject = block.get("source_subject")
        if entry.event_type == "memory.retrieved":
            self.retrievals[block["source_id"]] = entry.subject_id
        elif entry.event_type != _KEPT and subject is not None:
            self.memories[subject] = entry.subject_id
        elif entry.subject_type == "import" and subject is not None:
            self.kept[subject] = entry.subject_id


def _key(event_type: str, source_id: str) -> str:
    """Events and retrievals have ids of their own, which nobody keeps apart in a source that was tampered with."""
    return f"{'search' if event_type == SEARCH else 'event'}:{source_id}"
