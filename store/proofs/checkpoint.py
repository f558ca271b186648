"""Checkpoints: how many entries a ledger has and the root over them, as C2SP tlog-checkpoint defines it.

The text of the note is three lines: origin, size, root in base64. The origin is `deskbook/` and the store id
of the ledger's genesis entry, which binds strategy and run: it tells ledgers apart and gives no name away. No
extension lines are written and none are accepted, because nobody could check them against the ledger. One key
signs the notes of many ledgers, so its name is not the origin, as the format only recommends it to be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..canonical import MAX_SAFE_INTEGER
from ..errors import InvalidInput
from .note import Signer, Verifier, from_base64, open_note, to_base64
from .tree import HASH_BYTES

ORIGIN = "deskbook/"
_STORE = re.compile(r"deskbook/store_[0-9a-z]{13}")
_SIZE = re.compile(r"0|[1-9][0-9]{0,15}")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of one ledger: its origin, how many entries, and the root of the tree over their leaves."""

    origin: str
    size: int
    root: bytes

    def text(self) -> str:
        """The text that is signed."""
        return f"{self.origin}\n{self.size}\n{to_base64(self.root)}\n"

    def sign(self, signer: Signer) -> str:
        """The signed note."""
        return signer.sign(self.text())


@dataclass(frozen=True, slots=True)
class Signed:
    """A checkpoint whose signature was verified: the note as it was read, and whose keys signed it."""

    checkpoint: Checkpoint
    note: str
    signed_by: tuple[Verifier, ...]

    @property
    def names(self) -> str:
        """The names of the keys that signed it."""
        return ", ".join(key.name for key in self.signed_by)


def origin_of(store_id: str) -> str:
    """The origin of the ledger with that store id."""
    return f"{ORIGIN}{store_id}"


def open_checkpoint(raw: bytes, known: Iterable[Verifier]) -> Signed:
    """Read a checkpoint and verify its signature by a key that is known.

    Raises InvalidInput when the note is malformed, not signed by such a key, or no checkpoint of a Deskbook ledger.
    """
    note = open_note(raw, known)
    return Signed(_read(note.text), raw.decode(), note.signed_by)


def _read(text: str) -> Checkpoint:
    lines = text.split("\n")
    if len(lines) != 4 or lines[3]:
        raise _bad("three lines are expected: origin, size and root")
    origin, size, root = lines[0], lines[1], from_base64(lines[2])
    if not _STORE.fullmatch(origin):
        raise _bad("its origin is no Deskbook ledger's")
    if not _SIZE.fullmatch(size) or int(size) > MAX_SAFE_INTEGER:
        raise _bad("its size is no number of entries")
    if root is None or len(root) != HASH_BYTES:
        raise _bad("its root is no SHA-256 hash")
    return Checkpoint(origin, int(size), root)


def _bad(why: str) -> InvalidInput:
    return InvalidInput(
        f"The note is no checkpoint: {why}.", hint="`deskbook checkpoint` prints one of this ledger."
    )
