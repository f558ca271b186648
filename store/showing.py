"""One memory whole: its text in pages where it is long, its details, and its history."""

from __future__ import annotations

from typing import Any

from .entry import Entry
from .render import NOTICE, Renderer, as_text
from .rows import Filter, Version
from .search import cursor

HISTORY_SHOWN = 50
SHOWN = "memory.delivered"


def show_memory(
    renderer: Renderer, version: Version, history: list[Entry], place: cursor.Place, reply_chars: int
) -> dict[str, Any]:
    """The body of a reply of at most `reply_chars` characters; its cursor leads to the rest of the text.

    The first page carries the newest history that fits, later pages the text alone.
    """
    # Showings are entries about the memory too, but no part of what became of it: many would crowd that out.
    history = [entry for entry in history if entry.event_type != SHOWN]
    chunk = max(1, reply_chars // 2)
    while True:
        body = _page(renderer, version, history if place.offset == 0 else [], place, chunk)
        while len(as_text(body)) > reply_chars and body["history"]:
            body["history"].pop(0)
        if len(as_text(body)) <= reply_chars or chunk <= 64:
            break
        chunk //= 2
    body["truncated"] = (
        body["cursor"] is not None
        or len(body["history"]) < body["history_total"]
        or "details_truncated" in body["memory"]
    )
    return body


def _page(
    renderer: Renderer, version: Version, history: list[Entry], place: cursor.Place, chunk: int
) -> dict[str, Any]:
    end = place.offset + chunk
    memory = renderer.detailed(version, place.at, chunk)
    memory["text"] = version.text[place.offset : end]
    memory.pop("text_truncated", None)
    onward = cursor.encode(cursor.Place(place.cut, place.at, end), version.memory_id, Filter())
    return {
        "notice": NOTICE,
        "memory": memory,
        "truncated": False,
        "cursor": onward if end < len(version.text) else None,
        "history_total": len(history),
        "history": [renderer.history(entry) for entry in history[-HISTORY_SHOWN:]],
    }
