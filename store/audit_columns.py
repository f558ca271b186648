"""What an entry's columns must be, and how a leaf is hashed.

Written down a second time on purpose, from docs/ledger.md and with none of the code that writes entries.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

COLUMNS = (
    "sequence event_id event_type subject_type subject_id kind symbol effective_at recorded_at strategy run_id"
    " agent profile session_id model_call_id retrieval_id tool arguments_sha256 idempotency_key content"
    " content_salt content_sha256 leaf_sha256 chain_sha256 schema_version"
).split()
_NUMBERS = {"sequence", "effective_at", "recorded_at", "schema_version"}
_BYTES = {"arguments_sha256", "content_salt", "content_sha256", "leaf_sha256", "chain_sha256"}
_MAY_BE_ABSENT = {
    "kind",
    "symbol",
    "run_id",
    "session_id",
    "model_call_id",
    "retrieval_id",
    "tool",
    "arguments_sha256",
    "idempotency_key",
}
_OUTSIDE_LEAF = {"content", "content_salt", "leaf_sha256", "chain_sha256"}
_IN_LEAF = sorted(set(COLUMNS) - _OUTSIDE_LEAF)

READ = (*_IN_LEAF, "content", "content_salt", "leaf_sha256", "chain_sha256")
"""The columns in the order in which entries are read here: first those of the leaf, as canonical JSON has them."""

_HASHED = len(_IN_LEAF)
_ESCAPED = bytes(range(0x20)) + b'"\\'  # what JSON does not write as it is

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """What entries have in common whose columns are of the same types."""

    misfits: tuple[str, ...]
    """Columns of a type that they cannot have."""
    template: str
    """What is hashed for the leaf, with `%s` for a value and `%.0s`, which is nothing, for one that is null."""
    escaped: int
    """How many characters of the template JSON would escape: its quotes, and the zero before it."""


class Shapes:
    """The shapes that were met; a ledger has few."""

    def __init__(self) -> None:
        self._known: dict[tuple[type, ...], Shape] = {}
        self._last: tuple[tuple[type, ...], Shape] | None = None

    def of(self, row: Values) -> Shape:
        """The shape of an entry's columns in the order of READ."""
        types = tuple(map(type, row))
        if self._last is not None and self._last[0] == types:  # cheaper than to look it up
            return self._last[1]
        shape = self._known.get(types)
        if shape is None:
            shape = self._known[types] = _shape(row)
        self._last = types, shape
        return shape


def _shape(row: Values) -> Shape:
    named = dict(zip(READ, row, strict=True))
    misfits = tuple(name for name in COLUMNS if not fits(name, named[name]))
    parts = []
    for name in _IN_LEAF:
        place = "null%.0s" if named[name] is None else "%s" if name in _NUMBERS else '"%s"'
        parts.append(f'"{name}":{place}')
    template = "\0{" + ",".join(parts) + "}"
    return Shape(misfits, template, sum(template.count(chr(byte)) for byte in _ESCAPED))


def fits(name: str, value: Any) -> bool:
    """Whether a value is of its column's type, which SQLite does not check again when it reads."""
    if value is None:
        return name in _MAY_BE_ABSENT
    return isinstance(value, int if name in _NUMBERS else bytes if name in _BYTES else str)


def leaf_of(row: Values, shape: Shape) -> bytes:
    """The leaf hash of an entry's columns in the order of READ, none of them a misfit (docs/ledger.md)."""
    agent, arguments, content_sha256 = row[:3]
    hexed = None if arguments is None else arguments.hex()
    values = (agent, hexed, content_sha256.hex()) + row[3:_HASHED]  # noqa: RUF005 - twice as fast as unpacking
    written = (shape.template % values).encode()
    # When nothing in the values would have been escaped, this is what `_canonical` writes.
    if len(written) - len(written.translate(None, _ESCAPED)) != shape.escaped:
        written = _canonical(row)
    return sha256(written).digest()


def _canonical(row: Values) -> bytes:
    covered = {
        name: value.hex() if isinstance(value, bytes) else value
        for name, value in zip(_IN_LEAF, row, strict=False)
    }
    # With ASCII keys and only text, integers and null as values this is RFC 8785.
    text = json.dumps(covered, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return b"\x00" + text.encode()
