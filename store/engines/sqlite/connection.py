"""Connections to a ledger file with the measured settings.

WAL, synchronous=FULL by default, no mmap, background checkpoints. SQLite 3.7.0 to 3.51.2 can corrupt a WAL
file that several connections write (the WAL-reset fault), so such a version is refused.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import apsw

from ...errors import StoreError

Durability = Literal["full", "normal"]
Access = Literal["write", "read", "immutable", "alone"]

_FIRST_SAFE = (3, 51, 3)
_CACHE_KIB = {"write": 65_536, "read": 16_384, "immutable": 16_384, "alone": 16_384}
_PARAMETERS = {"immutable": "?immutable=1", "alone": "?vfs=unix-none"}
_SETTINGS = {
    "mmap_size": 0,
    "trusted_schema": 0,
    "cell_size_check": 1,
    "journal_size_limit": 64 * 2**20,
    "recursive_triggers": 1,
}
_READ_BUSY_MS = 2_000


def check_sqlite_version(version: str = apsw.sqlite_lib_version()) -> None:
    """Raise StoreError when the SQLite library has the WAL-reset fault."""
    if tuple(int(part) for part in version.split(".")[:3]) < _FIRST_SAFE:
        raise StoreError(
            f"SQLite {version} can corrupt a ledger that several processes write.",
            hint="Install apsw 3.51.3 or newer; it brings its own SQLite.",
        )


def reading_access(path: Path) -> Access:
    """How the file can be read: beside writers, or, where nothing may be written, with what lies there.

    A log without its shared index has no writer now; SQLite then keeps the index in memory ("alone").
    """
    log, index = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    if os.access(path.parent, os.W_OK) and os.access(path, os.W_OK):
        return "read"
    if not log.exists():
        return "immutable"
    return "read" if index.exists() else "alone"


def connect(path: Path, access: Access, durability: Durability = "full") -> apsw.Connection:
    """Open an existing file; never creates one."""
    check_sqlite_version()
    name = f"file:{quote(str(path))}"
    flags = apsw.SQLITE_OPEN_URI
    if access == "write":
        flags |= apsw.SQLITE_OPEN_READWRITE
    else:
        flags |= apsw.SQLITE_OPEN_READONLY
        name += _PARAMETERS.get(access, "")
    connection = apsw.Connection(name, flags=flags)
    connection.set_busy_timeout(_READ_BUSY_MS)
    if access == "alone":
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    # One by one: a statement after one that returns a row would wait for that row to be fetched.
    for name, value in _SETTINGS.items():
        connection.pragma(name, value)
    connection.pragma("cache_size", -_CACHE_KIB[access])
    connection.pragma("synchronous", durability)
    return connection
