"""Identifiers: a short prefix that names the kind, then 65 bits in Crockford's base 32.

All 65 bits of a session's and a ledger's id are random. Of what an index holds by its id, such as entries and
memories, the first 30 bits count on from a random place, for each process its own, and 35 are random: what is written
together then lies together in the index, where wholly random ids would change a page of it each. No clock goes into
an id, so that in a run none tells the machine's time.
"""

from __future__ import annotations

import os
import re
import secrets
from itertools import count
from types import MappingProxyType
from typing import Final

from .lifecycle import DECISION, LESSON, MEMORY, ORDER_ACTION, PROPOSAL, RISK_NOTE, THESIS

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_LENGTH = 13
_PLACE_BITS = 30
_RANDOM_BITS = 5 * _LENGTH - _PLACE_BITS

PREFIXES: Final = MappingProxyType(
    {
        MEMORY: "mem",
        PROPOSAL: "prop",
        RISK_NOTE: "risk",
        DECISION: "dec",
        LESSON: "les",
        THESIS: "ths",
        ORDER_ACTION: "act",
    }
)
EVENT, RETRIEVAL, SESSION, STORE = "ev", "ret", "ses", "store"
IMPORT, KEPT, PUBLICATION = "imp", "kept", "pub"
_PLACED = frozenset({*PREFIXES.values(), EVENT, RETRIEVAL, KEPT})

MEMORY_ID: Final = re.compile(rf"\b(?:{'|'.join(PREFIXES.values())})_[{_ALPHABET}]{{{_LENGTH}}}\b")


class _Places:
    """Counts on from a random place."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self._count = count(secrets.randbits(_PLACE_BITS))

    def next(self) -> int:
        return next(self._count) % (1 << _PLACE_BITS)


_places = _Places()
os.register_at_fork(after_in_child=_places.begin)  # a child must not count on from where its parent is


def new_id(prefix: str) -> str:
    """A fresh identifier such as `ths_0c4m2k8v7zq1d`."""
    if prefix in _PLACED:
        number = _places.next() << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
    else:
        number = secrets.randbits(5 * _LENGTH)
    pairs = "".join(_PAIRS[(number >> shift) & 1023] for shift in (50, 40, 30, 20, 10, 0))
    return f"{prefix}_{_ALPHABET[number >> 60]}{pairs}"
