"""What one call may see: the ledger as it stood at a cut, and below it what a run inherits from live.

Every reading goes through a view, so the cut and the inheritance are applied in one place. A memory read from
the inherited live ledger carries `source` "live"; nothing else tells the two apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple

from .engines.base import Snapshot
from .entry import Entry
from .lifecycle import ENDED, HIDDEN
from .policy import Policy
from .rows import Caution, Filter, Flag, Holdings, Said, Version
from .symbols import Symbols
from .vectors.base import Vectors, Wanted

LIVE = "live"
_WORDLESS = frozenset({"memory.delivered", "memory.repeated", "memory.flagged", "review.approved"})


@dataclass(frozen=True, slots=True)
class Layer:
    """One ledger of a view, as it stood after the entry `cut`; `source` is None for the call's own ledger."""

    snapshot: Snapshot
    cut: int
    source: str | None = None
    vectors: Vectors | None = None
    watermark: int = 0
    """The last entry up to which vectors are looked at."""

    def mark(self, version: Version) -> Version:
        """The version with its source."""
        return version if self.source is None else replace(version, source=self.source)


class Place(NamedTuple):
    """Where a version stands in a view: its layer's index and the entry that created it."""

    layer: int
    sequence_from: int


class Alike(NamedTuple):
    """A version whose text is like a query in meaning, and the cosine of the two."""

    place: Place
    cosine: float


@dataclass(frozen=True, slots=True)
class View:
    """The layers a call sees, its own first, at the instant `at` (microseconds since the epoch, UTC).

    A strategy day is a date in `zone`, None being UTC; `symbols` says which spellings are one instrument.
    """

    layers: tuple[Layer, ...]
    at: int
    zone: tzinfo | None = None
    symbols: Symbols = field(default_factory=Symbols)
    in_run: bool = False
    policy: Policy = field(default_factory=Policy)
    reader: str | None = None
    """The agent that is shown something: of what waits or was rejected it sees its own alone. None sees all."""

    @property
    def cut(self) -> int:
        """The cut in the call's own ledger."""
        return self.layers[0].cut

    @property
    def inherited_cut(self) -> int | None:
        """The cut in the inherited ledger, None when nothing is inherited."""
        return self.layers[1].cut if len(self.layers) > 1 else None

    def instrument(self, symbol: str, at: int | None = None) -> str:
        """The instrument that a column's symbol names at an instant, by default the view's own."""
        return self.symbols.normalise(symbol, self.at if at is None else at) or symbol

    def spellings(self, symbol: str) -> tuple[str, ...]:
        """Every column that may name the instrument."""
        return tuple(dict.fromkeys(line.symbol for line in self.symbols.lines(symbol, self.at)))

    def _lined(self, conditions: Filter) -> Filter:
        if conditions.symbol is None or conditions.lines:
            return conditions
        return replace(conditions, lines=self.symbols.lines(conditions.symbol, self.at))

    def totals(self) -> tuple[int, int]:
        """How many memories stand, and the terms of their first versions together."""
        found = [layer.snapshot.totals(layer.cut) for layer in self.layers]
        return sum(memories for memories, _ in found), sum(terms for _, terms in found)

    def version(self, memory_id: str) -> Version | None:
        """A memory's standing version."""
        place = self.place(memory_id)
        return None if place is None else self.version_at(place)

    def place(self, memory_id: str) -> Place | None:
        """Where a memory's standing version is."""
        for index, layer in enumerate(self.layers):
            found = layer.snapshot.version(memory_id, layer.cut)
            if found is not None and self._may_see(found):
                return Place(index, found.sequence_from)
        return None

    def _may_see(self, version: Version) -> bool:
        return version.review_state not in HIDDEN or self.reader in (None, version.agent)

    def version_at(self, place: Place) -> Version | None:
        """The version at a place of this view."""
        layer = self.layers[place.layer]
        found = layer.snapshot.version_at(place.sequence_from)
        return None if found is None else layer.mark(found)

    def standing(self, places: Iterable[Place]) -> dict[Place, Version]:
        """Those of the versions that stand, by their places."""
        asked = list(places)
        return {
            Place(index, version.sequence_from): layer.mark(version)
            for index, layer in enumerate(self.layers)
            for version, stands in layer.snapshot.versions_at(
                [place.sequence_from for place in asked if place.layer == index], layer.cut
            )
            if stands
        }

    def history(self, memory_id: str) -> list[Entry]:
        """All entries about a memory, oldest first, without the wordings that the reader may not see."""
        return [
            entry
            for layer in self.layers
            for entry in layer.snapshot.history(memory_id, layer.cut)
            if self._may_read(layer, entry)
        ]

    def _may_read(self, layer: Layer, entry: Entry) -> bool:
        if self.reader is None or entry.subject_type != "memory" or entry.event_type in _WORDLESS:
            return True
        version = layer.snapshot.version_at(entry.sequence)
        if version is None:
            return True
        proposed = version.details.get("proposed")
        if entry.event_type == "thesis.updated" and proposed is not None:
            return self.reader in (proposed["by"], version.agent)
        return self._may_see(version)

    def versions(self, conditions: Filter, *, limit: int) -> list[Version]:
        """Standing versions that meet the conditions, newest first."""
        conditions = self._lined(conditions)
        return self._newest(
            lambda layer: layer.snapshot.versions(conditions, layer.cut, self.at, limit=limit), limit
        )

    def count_versions(self, conditions: Filter) -> int:
        """How many versions `versions` would give without a limit."""
        conditions = self._lined(conditions)
        return sum(layer.snapshot.count_versions(conditions, layer.cut, self.at) for layer in self.layers)

    def changed_by(self, agent: str, *, limit: int) -> list[Version]:
        """The versions an agent wrote, newest first."""
        return self._newest(lambda layer: layer.snapshot.changed_by(agent, layer.cut, limit=limit), limit)

    def due(self, *, limit: int) -> list[Version]:
        """Open theses and lessons past their review date, earliest first."""
        return self._merged(
            lambda layer: layer.snapshot.due(layer.cut, self.at, limit=limit),
            lambda version: version.stale_at or 0,
            limit,
        )

    def flags(self, *, limit: int) -> list[Flag]:
        """Flags on memories in use, newest first."""
        found = (layer.snapshot.flags(layer.cut, limit=limit) for layer in self.layers)
        return list(islice(merge(*found, key=lambda flag: -flag.effective_at), limit))

    def conflicts(self, memory_ids: Iterable[str]) -> dict[str, list[tuple[Flag, Version]]]:
        """For each memory the open conflicts that it is in, with the other memory, where both are in use."""
        wanted = tuple(dict.fromkeys(memory_ids))
        found: dict[str, list[tuple[Flag, Version]]] = {}
        flags = [flag for layer in self.layers for flag in layer.snapshot.flags_on(wanted, layer.cut)]
        for flag in flags:
            if flag.reason != "conflicting" or flag.other_id is None:
                continue
            for one, other in ((flag.memory_id, flag.other_id), (flag.other_id, flag.memory_id)):
                version = self.version(other) if one in wanted else None
                told = found.setdefault(one, []) if one in wanted else []
                if any(each.memory_id == other for _, each in told):
                    continue
                if version is not None and version.review_state not in HIDDEN and version.status not in ENDED:
                    told.append((flag, version))
        return found

    def said(self, symbol: str | None, words: Iterable[str], *, limit: int) -> list[Said]:
        """What a new memory is held against: the newest in use on its instrument or, without one, with its words."""
        found: list[Said] = []
        for layer in self.layers:
            snapshot = layer.snapshot
            if symbol is not None:
                for name in self.spellings(symbol) or (symbol,):
                    found += snapshot.said_on(name, layer.cut, self.at, limit=limit)
                continue
            places = {
                sequence
                for word in words
                for sequence, _ in snapshot.match(word, Filter(), layer.cut, self.at, limit=limit)
            }
            newest = sorted(places, reverse=True)[:limit]
            found += snapshot.said_at(newest, layer.cut, self.at)
        return found[:limit]

    def count_due(self) -> int:
        """How many versions `due` would give without a limit."""
        return sum(layer.snapshot.count_due(layer.cut, self.at) for layer in self.layers)

    def count_flags(self) -> int:
        """How many flags `flags` would give without a limit."""
        return sum(layer.snapshot.count_flags(layer.cut) for layer in self.layers)

    def holdings(self) -> Holdings | None:
        """The latest report of positions in the call's own ledger."""
        return self.layers[0].snapshot.holdings(self.cut)

    def unreconciled(self, symbol: str | None, *, limit: int) -> list[Version]:
        """Order actions of the call's own ledger whose outcome is not known, oldest first."""
        spellings = None if symbol is None else self.spellings(symbol)
        return self.layers[0].snapshot.unreconciled(spellings, self.cut, limit=limit)

    def submit_of(self, client_order_id: str) -> str | None:
        """The action id of the first submit under a client order id in the call's own ledger."""
        return self.layers[0].snapshot.submit_of(client_order_id, self.cut)

    def cautions(self, *, limit: int) -> list[Caution]:
        """Warnings of the call's own ledger on theses that stand as they did then, newest first."""
        return self.layers[0].snapshot.cautions(self.cut, limit=limit)

    def match(
        self, term: str, conditions: Filter, *, limit: int, symbols: tuple[str, ...] = ()
    ) -> list[tuple[int, int, int]]:
        """Standing versions that hold a term or are about one of the symbols, newest first in each layer.

        Each is its layer, its sequence, and how many terms its text has.
        """
        conditions = self._lined(conditions)
        return [
            (index, sequence, terms)
            for index, layer in enumerate(self.layers)
            for sequence, terms in layer.snapshot.match(
                term, conditions, layer.cut, self.at, limit=limit, symbols=symbols
            )
        ]

    def holding(self, term: str, places: Iterable[Place], *, symbols: tuple[str, ...] = ()) -> list[Place]:
        """Those of the versions that hold a term or are about one of the symbols."""
        asked = list(places)
        return [
            Place(index, sequence)
            for index, layer in enumerate(self.layers)
            for sequence in layer.snapshot.holding(
                term, [place.sequence_from for place in asked if place.layer == index], symbols=symbols
            )
        ]

    def count_matches(
        self, term: str, conditions: Filter, *, most: int, symbols: tuple[str, ...] = ()
    ) -> int:
        """About how many versions `match` finds, counted up to `most` in each layer and estimated beyond."""
        conditions = self._lined(conditions)
        return sum(
            layer.snapshot.count_matches(term, conditions, layer.cut, most=most, symbols=symbols)
            for layer in self.layers
        )

    def containing(self, literal: str, conditions: Filter, *, scan: int) -> list[Place]:
        """Standing versions whose text holds a literal, among the `scan` newest of each layer."""
        conditions = self._lined(conditions)
        return [
            Place(index, sequence)
            for index, layer in enumerate(self.layers)
            for sequence in layer.snapshot.containing(literal, conditions, layer.cut, self.at, scan=scan)
        ]

    def alike(self, vector: Any, conditions: Filter, *, limit: int) -> list[Alike]:
        """Versions nearest to a query's vector, nearest first, the newer and the own layer first among equals.

        The vectors are a cache that may lag behind: what is found must be looked up before it is shown.
        """
        conditions = self._lined(conditions)
        found = [
            Alike(Place(index, near.sequence), near.cosine)
            for index, layer in enumerate(self.layers)
            if layer.vectors is not None
            for near in layer.vectors.nearest(
                vector, Wanted(conditions, layer.cut, self.at, layer.watermark), limit
            )
        ]
        return sorted(found, key=lambda near: (-near.cosine, near.place.layer, -near.place.sequence_from))[
            :limit
        ]

    def cosines(self, vector: Any, places: Iterable[Place]) -> dict[Place, float]:
        """The cosine of each place's text to a query's vector, where it has vectors."""
        asked = list(places)
        found: dict[Place, float] = {}
        for index, layer in enumerate(self.layers):
            sequences = [place.sequence_from for place in asked if place.layer == index]
            if layer.vectors is not None and sequences:
                wanted = Wanted(Filter(), layer.cut, self.at, layer.watermark)
                told = layer.vectors.similarities(vector, wanted, sequences)
                found |= {Place(index, sequence): cosine for sequence, cosine in told.items()}
        return found

    def holds_symbol(self, symbol: str) -> bool:
        """Whether any memory is about the instrument, under any of its spellings, whatever became of it."""
        spellings = self.spellings(symbol) or (symbol,)
        return any(layer.snapshot.has_symbol(each, layer.cut) for layer in self.layers for each in spellings)

    def _newest(self, read: Callable[[Layer], Iterable[Version]], limit: int) -> list[Version]:
        return self._merged(read, lambda version: -version.effective_at, limit)

    def _merged(
        self, read: Callable[[Layer], Iterable[Version]], key: Callable[[Version], int], limit: int
    ) -> list[Version]:
        """The layers' versions in one order, the own ledger's first among equals.

        Each layer keeps its order, which is that of its entries: sorting by time would tear it up where a live
        clock stepped back, and pages, whose limits differ, would repeat some versions and never show others.
        """
        found = ([layer.mark(version) for version in read(layer)] for layer in self.layers)
        return list(islice(merge(*found, key=key), limit))


def as_on_the_first_page(layers: tuple[Layer, ...], watermarks: tuple[int, ...]) -> tuple[Layer, ...]:
    """The layers with no vectors that have come since a search began, so that its pages fit together."""
    if len(watermarks) != len(layers):
        return layers
    return tuple(
        replace(layer, watermark=min(layer.watermark, mark))
        for layer, mark in zip(layers, watermarks, strict=True)
    )
