"""The proof that one entry stands in a signed ledger: one readable JSON file, checked without Deskbook.

It holds the entry's hashed columns, its times in words, its content as text for people and as the exact bytes
that were hashed with their salt, and, line by line, a C2SP tlog-proof (c2sp.org/tlog-proof): index, audit path
and the signed checkpoint verbatim. The file has one spelling only, so a changed byte never goes unnoticed.
`check_proof.py` beside this module is the same check with the standard library and `cryptography` alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..canonical import content_hash, leaf_hash
from ..clock import format_instant
from ..entry import HASHED, Entry, is_blank
from ..errors import InvalidInput
from .checkpoint import Signed, open_checkpoint
from .note import Verifier, from_base64, to_base64
from .tree import HASH_BYTES, root_by_path

FORMAT = "deskbook-proof/1"
TLOG_PROOF = "c2sp.org/tlog-proof@v1"
MOST_BYTES = 16 * 2**20
SALT_BYTES = 16
_PARTS = ["format", "entry", "times", "content", "content_as_hashed", "content_salt", "tlog_proof"]
_CONTENT = ("content", "content_as_hashed", "content_salt")
_TIMES = ("effective_at", "recorded_at")
# Written down as ranges: what Python takes for printable changes with the version of Unicode it knows.
_UNSEEN = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_INDEX = re.compile(r"index (0|[1-9][0-9]{0,15})")


@dataclass(frozen=True, slots=True)
class Proven:
    """What a proof that holds says: the entry's hashed columns, and the checkpoint that covers it."""

    columns: dict[str, Any]
    signed: Signed


def write_proof(entry: Entry, path: Sequence[bytes], signed: Signed) -> str:
    """The text of the proof file for an entry, given its audit path in the signed tree.

    Of one whose content was taken away it proves the rest, and holds null for content and salt.
    """
    gone = is_blank(entry)
    columns = {name: getattr(entry, name) for name in HASHED}
    plain = {name: value.hex() if isinstance(value, bytes) else value for name, value in columns.items()}
    tlog = [
        TLOG_PROOF,
        f"index {entry.sequence - 1}",
        *map(to_base64, path),
        "",
        *signed.note.split("\n")[:-1],
    ]
    return _spelled(
        {
            "format": FORMAT,
            "entry": plain,
            "times": {name: format_instant(getattr(entry, name)) for name in _TIMES},
            "content": None if gone else json.loads(entry.content),
            "content_as_hashed": None if gone else entry.content,
            "content_salt": None if gone else entry.content_salt.hex(),
            "tlog_proof": tlog,
        }
    )


def read_proof(raw: bytes, known: Iterable[Verifier]) -> Proven:
    """Check a proof file against public keys; raises InvalidInput that says what does not hold."""
    told = _parsed(raw)
    try:
        columns, lines = told["entry"], told["tlog_proof"]
        if any(told[name] is not None for name in _CONTENT):
            _check_content(told)
        if _spelled(told["times"]) != _spelled({name: format_instant(columns[name]) for name in _TIMES}):
            raise _bad("the times shown are not those of the entry")
        if list(columns) != list(HASHED):
            raise _bad("the entry does not have the columns of a ledger's entry")
        index, path, note = _taken_apart(lines)
        leaf = leaf_hash(columns)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        raise _bad("a part of it is missing or of another kind") from None
    if type(columns["sequence"]) is not int or columns["sequence"] != index + 1:
        raise _bad("the entry's sequence is not its place in the tree")
    signed = open_checkpoint(note.encode(), known)
    try:
        root = root_by_path(leaf, index, signed.checkpoint.size, path)
    except ValueError as fault:
        raise _bad(str(fault)) from None
    if root != signed.checkpoint.root:
        raise _bad("the path does not lead from the entry to the signed root")
    return Proven(columns, signed)


def _check_content(told: dict[str, Any]) -> None:
    """Raise InvalidInput unless the content is what the entry's hash covers; other parts raise what they do."""
    content, salt = told["content_as_hashed"], bytes.fromhex(told["content_salt"])
    if len(salt) != SALT_BYTES or salt.hex() != told["content_salt"]:
        raise _bad(f"the salt is not {SALT_BYTES} bytes in hex")
    if content_hash(salt, content.encode()).hex() != told["entry"]["content_sha256"]:
        raise _bad("the content is not what the entry's hash covers")
    if _spelled(json.loads(content)) != _spelled(told["content"]):
        raise _bad("the content shown is not the content that was hashed")


def _parsed(raw: bytes) -> dict[str, Any]:
    if len(raw) > MOST_BYTES:
        raise _bad("the file is too long")
    try:
        text = raw.decode("utf-8")
        told = json.loads(text)
        same = isinstance(told, dict) and _spelled(told) == text
    except (ValueError, RecursionError):
        raise _bad("the file is not JSON") from None
    if not same or told.get("format") != FORMAT:
        raise _bad(f"the file is not spelled as a {FORMAT} file is")
    if list(told) != _PARTS:
        raise _bad("a part of it is missing, or there is more than a proof holds")
    return dict(told)


def _taken_apart(lines: list[str]) -> tuple[int, list[bytes], str]:
    """Index, audit path and note of the lines of a tlog-proof; raises InvalidInput or ValueError."""
    gap = lines.index("")
    found = _INDEX.fullmatch(lines[1])
    if lines[0] != TLOG_PROOF or found is None or any("\n" in line for line in lines):
        raise _bad(f"it holds no {TLOG_PROOF}")
    path = [from_base64(line) for line in lines[2:gap]]
    hashes = [hash_ for hash_ in path if hash_ is not None and len(hash_) == HASH_BYTES]
    if len(hashes) != len(path):
        raise _bad("the path holds what is no SHA-256 hash")
    return int(found[1]), hashes, "\n".join(lines[gap + 1 :]) + "\n"


def _spelled(value: Any) -> str:
    """The one spelling of a value: parts in their order, two spaces deep, and nothing that drives a terminal."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _bad(why: str) -> InvalidInput:
    return InvalidInput(f"The proof does not hold: {why}.", hint="`deskbook prove ID` writes one.")
