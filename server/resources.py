"""What can be read by address: the state, and single memories and theses. Names are short and stable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from store import Book, Caller
from store.errors import NotFound
from store.lifecycle import THESIS

from .sections import LimitSettings

STATE_URI: Final = "memory://state"
MEMORY_URI: Final = "memory://memory/{id}"
THESIS_URI: Final = "memory://thesis/{id}"
MIME: Final = "application/json"


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """One resource or template as clients see it."""

    uri: str
    name: str
    title: str
    description: str


RESOURCES: Final = (
    ResourceSpec(
        STATE_URI, "state", "Memory state", "Open theses, validated lessons, reviews due, recent entries."
    ),
)
TEMPLATES: Final = (
    ResourceSpec(MEMORY_URI, "memory", "A memory", "One memory with its history."),
    ResourceSpec(THESIS_URI, "thesis", "A thesis", "One thesis with its history."),
)


def template_of(uri: str) -> str | None:
    """The resource or template a URI belongs to; None for any other URI."""
    if uri == STATE_URI:
        return STATE_URI
    for template in (MEMORY_URI, THESIS_URI):
        prefix = template.removesuffix("{id}")
        if uri.startswith(prefix) and len(uri) > len(prefix):
            return template
    return None


def reader_of(uri: str, template: str, limits: LimitSettings) -> Callable[[Book, Caller], str]:
    """What reading the URI does in a worker thread: the JSON text of the resource."""
    if template == STATE_URI:
        return lambda book, caller: book.state(caller, state_chars=limits.state_chars).text
    memory_id = uri.removeprefix(template.removesuffix("{id}"))

    kind = THESIS if template == THESIS_URI else None
    return lambda book, caller: book.get(caller, memory_id, kind=kind, reply_chars=limits.reply_chars).text


def unknown_resource() -> NotFound:
    """The error for a URI that is none of ours."""
    return NotFound(
        "There is no such resource.",
        field="uri",
        hint=f"Read {STATE_URI}, {MEMORY_URI} or {THESIS_URI}.",
    )
