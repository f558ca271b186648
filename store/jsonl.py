"""A ledger as lines of JSON: a header, then one entry a line with every column, exactly.

Each line is canonical JSON (RFC 8785) of `entry.COLUMNS`: hashes and salts are lower-case hex, times integer
microseconds, absent values null, and `content` is the text that was hashed. So a line is proven as
docs/ledger.md shows.
Both directions hold one entry in memory at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from .canonical import ZERO_CHAIN
from .entry import COLUMNS, Entry
from .errors import DeskbookError, ForeignFile, SchemaTooNew, StoreDamaged
from .events import Genesis
from .ledger import check_next
from .rows import Head

FORMAT = "deskbook-jsonl"
VERSION = 1
LINE_BYTES = 64 * 2**20
"""The longest line that is read."""
_BYTES = frozenset({"arguments_sha256", "content_salt", "content_sha256", "leaf_sha256", "chain_sha256"})
_NUMBERS = frozenset({"sequence", "effective_at", "recorded_at", "schema_version"})
_MAY_BE_ABSENT = frozenset(
    "kind symbol run_id session_id model_call_id retrieval_id tool arguments_sha256 idempotency_key".split()
)


def header_of(genesis: Genesis, head: Head) -> dict[str, Any]:
    """What the first line says of a ledger whose last written entry is `head`."""
    return {
        "store_id": genesis.store_id,
        "strategy": genesis.strategy,
        "run": genesis.run,
        "head": {"sequence": head.sequence, "chain_sha256": head.chain_sha256.hex()},
    }


def write_jsonl(
    entries: Iterable[Entry],
    header: Mapping[str, Any],
    out: BinaryIO,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write a header and entries in order of sequence; gives the number of entries.

    `header` is what `header_of` gives; format and version are added. `progress` is told each sequence. What the
    entries end with has to be the header's `head`, or the reader takes the file for one that was cut off.
    """
    out.write(_line(dict(header) | {"format": FORMAT, "version": VERSION}))
    count = 0
    for entry in entries:
        out.write(line_of(entry))
        count += 1
        if progress is not None:
            progress(entry.sequence)
    return count


def line_of(entry: Entry) -> bytes:
    """One entry as a line, its end included."""
    columns = {name: getattr(entry, name) for name in COLUMNS}
    return _line({name: v.hex() if isinstance(v, bytes) else v for name, v in columns.items()})


def read_jsonl(source: BinaryIO) -> tuple[dict[str, Any], Iterator[Entry]]:
    """The header, and the entries as they are read, each proven with all before it.

    Raises ForeignFile for what is no such file and SchemaTooNew for a newer one's; the iterator raises StoreDamaged
    that names the line for an entry that was changed, put in, left out or moved, for a line in any other spelling
    than the one that was written, and for a file that was cut off.
    """
    header = _header(source)
    return header, _entries(source, header)


def _entries(source: BinaryIO, header: dict[str, Any]) -> Iterator[Entry]:
    sequence, chain, number = 0, ZERO_CHAIN, 1
    while raw := source.readline(LINE_BYTES + 1):
        number += 1
        entry = _entry(raw, number)
        try:
            check_next(entry, sequence, chain)
        except DeskbookError as fault:
            raise _at(number, fault.message) from None
        if (entry.strategy, entry.run_id) != (header["strategy"], header["run"]):
            raise _at(number, "The entry belongs to another strategy or run than the header.")
        if sequence == 0 and not _binds(entry, header):
            raise _at(number, "The first entry is not the genesis that the header names.")
        sequence, chain = entry.sequence, entry.chain_sha256
        yield entry
    if {"sequence": sequence, "chain_sha256": chain.hex()} != header["head"]:
        raise _at(
            number, f"The file ends after entry {sequence}, and its header says it holds {_told(header)}."
        )


def _header(source: BinaryIO) -> dict[str, Any]:
    raw = source.readline(LINE_BYTES + 1)
    header = _object(raw)
    if header is None or header.get("format") != FORMAT:
        raise ForeignFile(
            "The file does not begin with the header of a Deskbook export.",
            hint="Name a file that `deskbook export --format jsonl` wrote.",
        )
    version = header.get("version")
    if type(version) is not int or version > VERSION:
        raise SchemaTooNew(
            f"The file has version {version!r} of the format; this Deskbook knows {VERSION}.",
            hint="Upgrade Deskbook; nothing was imported.",
        )
    head = header.get("head")
    texts = [header.get("store_id"), header.get("strategy")]
    whole = isinstance(head, dict) and type(head.get("sequence")) is int and "chain_sha256" in head
    if not (
        whole
        and all(isinstance(text, str) for text in texts)
        and isinstance(header.get("run", 0), str | None)
    ):
        raise ForeignFile("The file's header is not whole.", hint="Take the export again.")
    return header


def _entry(raw: bytes, number: int) -> Entry:
    if len(raw) > LINE_BYTES:
        raise _at(number, f"The line is longer than {LINE_BYTES} bytes.")
    if not raw.endswith(b"\n"):
        raise _at(number, "The line was cut off.")
    columns = _object(raw)
    if columns is None or columns.keys() != set(COLUMNS):
        raise _at(number, "The line is no entry with exactly the columns of a ledger.")
    try:
        entry = Entry(**{name: _value(name, columns[name]) for name in COLUMNS})
        same = line_of(entry) == raw
    except ValueError:
        raise _at(number, "The line holds a value that its column cannot.") from None
    if not same:
        raise _at(number, "The line is not spelt as it was written.")
    return entry


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _value(name: str, value: Any) -> Any:
    if value is None and name in _MAY_BE_ABSENT:
        return None
    if type(value) is not (int if name in _NUMBERS else str):
        raise ValueError(name)
    return bytes.fromhex(str(value)) if name in _BYTES else value


def _binds(entry: Entry, header: dict[str, Any]) -> bool:
    return entry.event_type == "genesis" and entry.subject_id == header["store_id"]


def _told(header: dict[str, Any]) -> str:
    return f"{header['head']['sequence']} entries"


def _at(number: int, what: str) -> StoreDamaged:
    return StoreDamaged(f"Line {number}: {what}", hint="Take the export again; nothing of it is trusted.")


def _line(values: dict[str, Any]) -> bytes:
    # With ASCII names and only text, integers and null as values this is RFC 8785.
    return json.dumps(values, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
