"""Identifiers: a short prefix that names the kind, then 65 random bits in Crockford's base 32."""

from __future__ import annotations

import re
import secrets
from types import MappingProxyType
from typing import Final

from .lifecycle import DECISION, LESSON, MEMORY, ORDER_ACTION, PROPOSAL, RISK_NOTE, THESIS

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LENGTH = 13

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
IMPORT, KEPT = "imp", "kept"

MEMORY_ID: Final = re.compile(rf"\b(?:{'|'.join(PREFIXES.values())})_[{_ALPHABET}]{{{_LENGTH}}}\b")


def new_id(prefix: str) -> str:
    """A fresh identifier such as `ths_0c4m2k8v7zq1d`."""
    number = secrets.randbits(5 * _LENGTH)
    return prefix + "_" + "".join(_ALPHABET[(number >> 5 * place) & 31] for place in range(_LENGTH))
