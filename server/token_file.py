"""The file that says which bearer tokens there are: `<root>/tokens.json`, a hash of each and never a token.

`private_file` says how it is read and written, and when it is not used.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from store.clock import LAST_INSTANT

from . import private_file
from .private_file import Mark, Words, damaged, mark_of, parse_private, read_private, write_private
from .sections import Name, Section

__all__ = ["FILE", "Mark", "TokenRecord", "held", "lock_path", "mark_of", "read_records", "write_records"]

FILE: Final = "tokens.json"
LOCK: Final = "tokens.lock"
VERSION: Final = 1
WORDS: Final = Words(
    name="token file",
    refused="no token is accepted",
    look="Then look with `deskbook token list` whether every token in it is one that you made.",
    mend="Put back a copy, or move it away and make new tokens with `deskbook token new AGENT`.",
)

Instant = Annotated[int, Field(ge=0, le=LAST_INSTANT)]


class TokenRecord(Section):
    """What is kept of one token; times in microseconds since the epoch, UTC, and `sha256` of the whole token."""

    id: Annotated[str, Field(pattern=r"^[a-z2-7]{10,32}$")]
    agent: Name
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", repr=False)]
    created: Instant
    expires: Instant | None
    revoked: Instant | None
    read_only: bool
    label: Name | None


class _Contents(Section):
    version: int
    tokens: tuple[TokenRecord, ...]


def lock_path(path: Path) -> Path:
    """The lock beside a token file; it stays for good once a token was made."""
    return path.with_name(LOCK)


def read_records(path: Path) -> tuple[TokenRecord, ...]:
    """The tokens in the file; none where there is no file.

    Raises StoreError for a link, for what is no file and for one that others may read or write, StoreDamaged
    for what cannot be read as one, SchemaTooNew for one of a newer version.
    """
    raw = read_private(path, WORDS)
    if raw is None:
        return ()
    records = parse_private(path, raw, _Contents, VERSION, WORDS).tokens
    if len({record.id for record in records}) != len(records):
        raise damaged(path, WORDS)
    return records


def held(path: Path) -> AbstractContextManager[None]:
    """Hold the lock under which the file may change, as `private_file.held` says."""
    return private_file.held(path, lock_path(path), WORDS)


def write_records(path: Path, records: tuple[TokenRecord, ...]) -> None:
    """Replace the file durably; the lock must be held. Raises StoreFull or StoreReadOnly, and nothing changed."""
    contents = _Contents(version=VERSION, tokens=records)
    write_private(path, contents.model_dump_json(indent=1).encode() + b"\n")
