"""Whether a ledger holds what its checkpoints signed: the RFC 6962 tree a second time, for `audit` alone.

Nothing here is shared with `store.proofs`, which makes the checkpoints: a fault there cannot hide itself here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """What a checkpoint says, its signature verified: `root` over the first `size` leaves of a ledger."""

    name: str
    origin: str
    size: int
    root: bytes
    signed_by: str


@dataclass(frozen=True, slots=True)
class Checked:
    """Whether the ledger holds what one checkpoint signed, and what is wrong when it does not."""

    name: str
    origin: str
    size: int
    signed_by: str
    fault: str | None


class Roots:
    """The roots of a growing tree, kept at the sizes that are asked for (RFC 6962, section 2.1)."""

    def __init__(self, sizes: Iterable[int]) -> None:
        self._wanted = frozenset(sizes)
        self._levels: list[bytes | None] = []
        self.size = 0
        self.found: dict[int, bytes] = {0: hashlib.sha256(b"").digest()}

    def add(self, leaf: bytes) -> None:
        """Append a leaf: a binary counter whose digits are the complete subtrees."""
        self.size += 1
        if not self._wanted:
            return
        level, carried = 0, leaf
        while level < len(self._levels) and (left := self._levels[level]) is not None:
            carried, self._levels[level] = hashlib.sha256(b"\x01" + left + carried).digest(), None
            level += 1
        if level == len(self._levels):
            self._levels.append(None)
        self._levels[level] = carried
        if self.size in self._wanted:
            self.found[self.size] = self._root()

    def _root(self) -> bytes:
        smallest, *larger = [digit for digit in self._levels if digit is not None]
        for digit in larger:
            smallest = hashlib.sha256(b"\x01" + digit + smallest).digest()
        return smallest


def checked(claims: Sequence[Claim], store_id: str | None, roots: Roots, entries: int) -> tuple[Checked, ...]:
    """Hold every claim against the roots of the ledger's own leaves, of which there are `entries`."""
    same = [claim.size for claim in claims if roots.found.get(claim.size) == claim.root]

    def fault(claim: Claim) -> str | None:
        if claim.origin != f"deskbook/{store_id}":
            return (
                f"checkpoint {claim.name} is of {claim.origin}, and this ledger is deskbook/{store_id}:"
                " another ledger stands here"
            )
        if claim.size > entries:
            return (
                f"checkpoint {claim.name}: a tail of {claim.size - entries} entries was cut off:"
                f" {claim.signed_by} signed {claim.size}, and {entries} are here"
            )
        if claim.size not in roots.found:
            return (
                f"checkpoint {claim.name} was not compared: too much else is wrong before entry {claim.size}"
            )
        if claim.size in same and roots.found[claim.size] == claim.root:
            return None
        agreed = max((size for size in same if size < claim.size), default=0)
        return (
            f"checkpoint {claim.name}: the ledger was rewritten: entries {agreed + 1} to {claim.size} are not"
            f" those that {claim.signed_by} signed"
        )

    return tuple(Checked(c.name, c.origin, c.size, c.signed_by, fault(c)) for c in claims)
