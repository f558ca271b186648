"""Printing for people: what others wrote is shown so that it cannot drive the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import typer

from store.clock import format_instant
from store.entry import Entry

_KEPT = {"\n", "\t"}
_GISTS = {
    "genesis": ("product",),
    "session.started": ("transport", "client_name", "client_version"),
    "thesis.closed": ("result", "pnl", "return_pct", "note"),
    "memory.status_changed": ("status", "replaced_by", "note"),
    "memory.flagged": ("reason", "other_id", "note"),
    "call.failed": ("code", "field"),
    "permission.denied": (),
    "clock.anomaly": (),
}


def plain(text: str) -> str:
    """Text without control and formatting characters, which are shown as escapes."""
    return "".join(
        character if character.isprintable() or character in _KEPT else _escape(ord(character))
        for character in text
    )


def _escape(point: int) -> str:
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"


def one_line(text: str, longest: int = 100) -> str:
    """Text on one line of at most `longest` characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def entry_line(entry: Entry) -> str:
    """One entry on one line: sequence, time, who, what, about what, and the gist of its content."""
    parts = [
        f"{entry.sequence:>6}",
        format_instant(entry.effective_at),
        one_line(entry.agent),
        one_line(entry.event_type),
        one_line(entry.subject_id),
        one_line(entry.symbol or "-"),
        one_line(_gist_of(entry)),
    ]
    return "  ".join(parts).rstrip()


def _gist_of(entry: Entry) -> str:
    """The gist, or the content as it stands where someone has tampered with it: that is what one looks for."""
    try:
        return _gist(entry.event_type, json.loads(entry.content))
    except (ValueError, TypeError, KeyError, AttributeError):
        return entry.content


def _content_of(entry: Entry) -> Any:
    try:
        return json.loads(entry.content)
    except ValueError:
        return entry.content


def _gist(event_type: str, content: dict[str, Any]) -> str:
    """What a person looks for in an entry of this type."""
    if event_type == "memory.retrieved":
        asked = content["query"].strip() or "(the newest)"
        return f"{len(content['selected'])} of {content['total']} handed over for: {asked}"
    if event_type == "memory.delivered":
        return f"{len(content['shown'])} memories shown"
    named = _GISTS.get(event_type, ("text",))
    told = [str(content[name]) for name in named if content.get(name) is not None]
    if content.get("count", 1) > 1:
        told.append(f"{content['count']} times")
    return ", ".join(told)


def entry_record(entry: Entry) -> dict[str, Any]:
    """An entry as JSON values: hashes in hex, times as ISO 8601, content decoded."""
    record: dict[str, Any] = {
        name: value.hex() if isinstance(value, bytes) else value for name, value in asdict(entry).items()
    }
    record["content"] = _content_of(entry)
    record["effective_at"] = format_instant(entry.effective_at)
    record["recorded_at"] = format_instant(entry.recorded_at)
    return record


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
