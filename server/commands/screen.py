"""Printing for people: what others wrote is shown so that it cannot drive the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import tzinfo
from typing import Any

import typer

from store.clock import LAST_INSTANT, format_instant
from store.entry import Entry

from .. import printable
from .gists import gist

_TIMES = frozenset(
    "review_by expires_at as_of since until previous observed source_at source_recorded_at pending_until at"
    " reviewed_at edited_at renewed_at signed_off_at closed_at".split()
)
_HOLD_TIMES = frozenset({"filters", "imported", "proposed"})

plain = printable.plain


def one_line(text: str, longest: int = 100) -> str:
    """Text on one line of at most `longest` characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def entry_line(entry: Entry, zone: tzinfo | None = None) -> str:
    """One entry on one line: sequence, time in `zone`, who, what, about what, and the gist of its content."""
    parts = [
        f"{entry.sequence:>6}",
        format_instant(entry.effective_at, zone),
        one_line(entry.agent),
        one_line(entry.event_type),
        one_line(entry.subject_id),
        one_line(entry.symbol or "-"),
        one_line(_gist_of(entry, zone)),
    ]
    return "  ".join(parts).rstrip()


def _gist_of(entry: Entry, zone: tzinfo | None) -> str:
    """The gist, or the content as it stands where someone has tampered with it: that is what one looks for."""
    try:
        return gist(entry.event_type, json.loads(entry.content), lambda us: format_instant(us, zone))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return entry.content


def _content_of(entry: Entry) -> Any:
    try:
        return json.loads(entry.content)
    except ValueError:
        return entry.content


def entry_record(entry: Entry) -> dict[str, Any]:
    """An entry as JSON values for programs: hashes in hex, its times as ISO 8601 in UTC, content decoded."""
    record: dict[str, Any] = {
        name: value.hex() if isinstance(value, bytes) else value for name, value in asdict(entry).items()
    }
    record["content"] = _content_of(entry)
    record["effective_at"] = format_instant(entry.effective_at)
    record["recorded_at"] = format_instant(entry.recorded_at)
    return record


def entry_told(entry: Entry, zone: tzinfo | None) -> dict[str, Any]:
    """An entry as JSON values for a person: as `entry_record`, and every time as ISO 8601 in `zone`."""
    record = entry_record(entry)
    record["effective_at"] = format_instant(entry.effective_at, zone)
    record["recorded_at"] = format_instant(entry.recorded_at, zone)
    if isinstance(record["content"], dict):
        record["content"] = timed(record["content"], zone)
    return record


def timed(values: Mapping[str, Any], zone: tzinfo | None) -> dict[str, Any]:
    """What a content or the details of a memory say, their times as ISO 8601 in `zone`; an author's JSON as it is."""
    return {name: _value_timed(name, value, zone) for name, value in values.items()}


def _value_timed(name: str, value: Any, zone: tzinfo | None) -> Any:
    if name in _HOLD_TIMES and isinstance(value, dict):
        return timed(value, zone)
    return format_instant(value, zone) if _is_time(name, value) else value


def _is_time(name: str, value: object) -> bool:
    return name in _TIMES and type(value) is int and abs(value) <= LAST_INSTANT


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines whose columns stand one below the other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def say(text: str = "") -> None:
    """Print one line."""
    typer.echo(text)


def _unwatched(_done: int, _total: int) -> None:
    """Nobody watches."""


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr where a person watches; nothing otherwise. Tell it done and total."""
    if not sys.stderr.isatty():
        yield _unwatched
        return
    # rich takes 60 ms to import, which no other command should pay.
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
