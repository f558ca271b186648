"""Dated aliases: which instrument a spelling means on a date, and which rows of a ledger belong to an instrument.

A column keeps what was said, in one spelling (`normalise_symbol`), and an alias is only applied when a question is
asked. So an alias that is added, corrected or removed counts for old entries too, and nothing has to be rewritten.

An alias holds for an entry by its effective date, from its `from` up to, and not including, its `until`. One with
an end is a change of name: its target is read as on the day of the change, when META meant what FB had meant. One
without an end is another spelling (BTCUSD for BTC/USD): its target is read as on the entry's own date.

With `FB = { to = "META", until = "2022-06-09" }`:

| asked | on | rows found |
|---|---|---|
| META | 2023 | those of META on any date, those of FB before 2022-06-09 |
| FB | 2019 (as of) | the same: on that date FB was META |
| FB | 2025 | those of FB from 2022-06-09 on: another company, and nothing of META |

A future's year of one digit is such a dated spelling by itself: /ESZ6 is /ESZ26 from 2018 to 2027, /ESZ16 before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from ..clock import SECOND, format_instant
from ..errors import ConfigError, InvalidInput
from .near import other_readings
from .spelling import normalise_symbol

_SHORT_YEAR = re.compile(r"(/[A-Z0-9]+[FGHJKMNQUVXZ])([0-9])")
_FULL_YEAR = re.compile(r"(/[A-Z0-9]+[FGHJKMNQUVXZ])([0-9]{2})")
_CENTURY: Final = 1970
"""A year of two digits lies in the hundred years from here on."""
_YEARS_AHEAD: Final = 8
"""A year of one digit means the year from the last one to the eighth after the entry's that ends in it."""


@dataclass(frozen=True, slots=True)
class Line:
    """Rows with this `symbol` whose effective_at lies in [from_us, until_us): microseconds UTC, None for no bound."""

    symbol: str
    until_us: int | None = None
    from_us: int | None = None

    def holds(self, at: int | None) -> bool:
        """Whether `at` lies within; an unknown date (None) lies only within what has no bound."""
        if at is None:
            return self.from_us is None and self.until_us is None
        return (self.from_us is None or self.from_us <= at) and (self.until_us is None or at < self.until_us)

    def within(self, symbol: str, other: Line) -> Line | None:
        """The rows of `symbol` at the times of both lines; None when they share none."""
        starts = [us for us in (self.from_us, other.from_us) if us is not None]
        ends = [us for us in (self.until_us, other.until_us) if us is not None]
        start, end = max(starts, default=None), min(ends, default=None)
        return None if start is not None and end is not None and start >= end else Line(symbol, end, start)


@dataclass(frozen=True, slots=True)
class Alias:
    """`name` means `to` from `from_us` up to, not including, `until_us`: microseconds UTC, None for no bound."""

    name: str
    to: str
    until_us: int | None = None
    from_us: int | None = None

    @property
    def span(self) -> Line:
        """The rows that the alias is about."""
        return Line(self.name, self.until_us, self.from_us)


@dataclass(frozen=True, slots=True)
class Symbols:
    """The aliases of a configuration, in any spelling of their symbols; `Symbols()` knows none.

    Raises ConfigError for an alias with a blank symbol, for two that hold for one symbol on one date, and for those
    without an end that lead in a circle. One that says what the rules of spelling say already is left out.
    """

    aliases: tuple[Alias, ...] = ()
    _by_name: Mapping[str, tuple[Alias, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_name: dict[str, tuple[Alias, ...]] = {}
        for alias in dict.fromkeys(map(_in_one_spelling, self.aliases)):
            if alias.name != alias.to:
                by_name[alias.name] = (*by_name.get(alias.name, ()), alias)
        for name, several in by_name.items():
            by_name[name] = tuple(sorted(several, key=_start))
            _refuse_overlap(by_name[name])
        _refuse_circles(by_name)
        object.__setattr__(self, "_by_name", MappingProxyType(by_name))

    def normalise(self, given: str | None, at: int | None, *, field: str = "symbol") -> str | None:
        """The instrument that `given` means at `at`, the date of the entry or question; None when blank.

        `at` is in microseconds UTC. Two entries are about one instrument when this gives the same for each, by its
        symbol and effective date. For a column use `normalise_symbol`: what this gives is a name, not a spelling to
        be read again. With `at` None only aliases without any date hold. Raises InvalidInput as `normalise_symbol`.
        """
        symbol = normalise_symbol(given, field=field)
        return None if symbol is None else self._meant(symbol, at)

    def lines(self, asked: str | None, at: int | None, *, field: str = "symbol") -> tuple[Line, ...]:
        """The rows of the instrument that `asked` means at `at`, by column and effective date; () when blank.

        A row is in a line exactly when `normalise` of its column at its effective date is the instrument.
        """
        instrument = self.normalise(asked, at, field=field)
        if instrument is None:
            return ()
        found: dict[Line, None] = dict.fromkeys(self._changed_to(instrument))
        waiting = list(found)
        while waiting:
            line = waiting.pop()
            for alias in self._endless():
                held = alias.span.within(alias.name, line) if alias.to == line.symbol else None
                if held is not None and held not in found:
                    found[held] = None
                    waiting.append(held)
        return tuple(found)

    def similar(self, asked: str, at: int | None) -> tuple[str, ...]:
        """Other symbols that `asked` may have been meant for, to name when nothing was found; none is applied.

        What its aliases mean on other dates comes first, then readings that the rules leave alone: BTCUSD and
        BTC/USD, BRK.B and BRKB, ^VIX and VIX, ES and ES=F, VOD-L and VOD.L.
        """
        symbol = normalise_symbol(asked)
        if symbol is None:
            return ()
        elsewhen = [
            self._meant(alias.to, at if alias.until_us is None else alias.until_us)
            for alias in self._by_name.get(symbol, ())
            if not alias.span.holds(at)
        ]
        named = dict.fromkeys([*elsewhen, *other_readings(symbol)])
        meant = self._meant(symbol, at)
        return tuple(name for name in named if name != meant and self._meant(name, at) != meant)

    def _meant(self, symbol: str, at: int | None) -> str:
        """Ends: each change of name reads on at its later end, and aliases without an end make no circle."""
        while alias := next((one for one in self._by_name.get(symbol, ()) if one.span.holds(at)), None):
            symbol, at = alias.to, at if alias.until_us is None else alias.until_us
        return _year_in_full(symbol, at)

    def _changed_to(self, instrument: str) -> Iterator[Line]:
        """The instrument under its own name, and under each name that was changed, in the end, to it."""
        for line in _spellings(instrument):
            yield from self._unaliased(line)
        for alias in self._all():
            if alias.until_us is not None and self._meant(alias.to, alias.until_us) == instrument:
                yield alias.span

    def _unaliased(self, line: Line) -> Iterator[Line]:
        """The times of a line on which its symbol is no alias."""
        start: int | None = None
        for alias in self._by_name.get(line.symbol, ()):
            if alias.from_us is not None:
                held = line.within(line.symbol, Line(line.symbol, alias.from_us, start))
                if held is not None:
                    yield held
            if alias.until_us is None:
                return
            start = alias.until_us
        held = line.within(line.symbol, Line(line.symbol, None, start))
        if held is not None:
            yield held

    def _all(self) -> Iterator[Alias]:
        for several in self._by_name.values():
            yield from several

    def _endless(self) -> Iterator[Alias]:
        return (alias for alias in self._all() if alias.until_us is None)


def _in_one_spelling(alias: Alias) -> Alias:
    try:
        name, to = normalise_symbol(alias.name, field="alias"), normalise_symbol(alias.to, field="to")
    except InvalidInput as fault:
        raise ConfigError(
            f'The alias "{alias.name[:64]}" is not usable: {fault.message}', hint=fault.hint
        ) from None
    if name is None or to is None:
        raise ConfigError(f'The alias "{alias.name[:64]}" has a blank symbol.')
    if alias.from_us is not None and alias.until_us is not None and alias.from_us >= alias.until_us:
        raise ConfigError(f'The alias "{alias.name[:64]}" ends before it begins.')
    return Alias(name, to, alias.until_us, alias.from_us)


def _start(alias: Alias) -> tuple[bool, int]:
    return (alias.from_us is not None, alias.from_us or 0)


def _refuse_overlap(several: tuple[Alias, ...]) -> None:
    for earlier, later in pairwise(several):
        if earlier.until_us is None or later.from_us is None or later.from_us < earlier.until_us:
            since = "any date" if later.from_us is None else format_instant(later.from_us)
            raise ConfigError(
                f"The aliases of {earlier.name} lead to {earlier.to} and to {later.to} at once, from {since} on.",
                hint="Give each its own from and until.",
            )


def _refuse_circles(by_name: Mapping[str, Iterable[Alias]]) -> None:
    onward = {
        name: {alias.to for alias in several if alias.until_us is None} for name, several in by_name.items()
    }
    for name, first in onward.items():
        reached, waiting = set[str](), set(first)
        while waiting:
            symbol = waiting.pop()
            reached.add(symbol)
            waiting |= onward.get(symbol, set()) - reached
        if name in reached:
            raise ConfigError(
                f"The alias {name} leads back to itself.",
                hint="Name the symbol that stays, or give the change of name its until.",
            )


def _year_in_full(symbol: str, at: int | None) -> str:
    """A future with its year in two digits, where `at` tells the decade."""
    found = _SHORT_YEAR.fullmatch(symbol)
    if found is None or at is None:
        return symbol
    first = datetime.fromtimestamp(at // SECOND, UTC).year - 1
    year = first + (int(found[2]) - first) % 10
    return f"{found[1]}{year % 100:02d}" if _CENTURY <= year < _CENTURY + 100 else symbol


def _spellings(instrument: str) -> Iterator[Line]:
    yield Line(instrument)
    found = _FULL_YEAR.fullmatch(instrument)
    if found is not None:
        year = _CENTURY + (int(found[2]) - _CENTURY) % 100
        yield Line(f"{found[1]}{year % 10}", _new_year(year + 2), _new_year(year - _YEARS_AHEAD))


def _new_year(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * SECOND
