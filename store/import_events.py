"""Imports from other systems, as contents of entries."""

from __future__ import annotations

from typing import Any, Literal

from .event_parts import Event, Imported, Strings


class ImportBegun(Event):
    """Someone began to bring in what another system kept; the files are what was read, each with its SHA-256."""

    type: Literal["import.begun"] = "import.begun"
    system: str
    versions: Strings
    origin: str
    strategies: Strings
    files: tuple[dict[str, Any], ...]
    rows: int


class ImportKept(Event):
    """An entry of the source that has no kind here, kept to be read; it counts as no order and no outcome."""

    type: Literal["import.kept"] = "import.kept"
    text: str
    imported: Imported


class ImportEnded(Event):
    """All of the source is in the ledger: what this import added, and what is wrong in the source."""

    type: Literal["import.ended"] = "import.ended"
    added: dict[str, int]
    defects: dict[str, Any]
