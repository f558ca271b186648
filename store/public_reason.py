"""Screens what an order may say in public: an unsafe text is left out, and why is said; no order is blocked.

It looks for account data, secrets and identifiers. It is a net with known meshes, not a proof: what it lets pass
still needs its author's judgement before it is published.
"""

from __future__ import annotations

import re
from typing import Final

from .ids import MEMORY_ID
from .limits import PUBLIC_REASON_BYTES

_UNSAFE: Final = (
    ("a memory id", MEMORY_ID),
    ("an id of this ledger", re.compile(r"\b(?:ev|ret|ses|store)_[0-9a-z]{13}\b")),
    (
        "a UUID",
        re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE),
    ),
    ("an e-mail address", re.compile(r"[\w.+-]+@[\w-]+\.\w")),
    ("a private key", re.compile(r"-----BEGIN")),
    (
        "a secret",
        re.compile(
            r"\b(?:sk|pk|rk|ghp|gho|xox[abp]|AKIA|ASIA|AIza|glpat|Bearer)[-_ ]?[A-Za-z0-9_\-]{12,}"
            r"|\b(?:api[ _-]?key|secret|password|passphrase|token)\b\s*(?:[:=]|is\b)",
            re.IGNORECASE,
        ),
    ),
    (
        "account data",
        re.compile(
            r"\b(?:account|acct|a/c|iban|routing|portfolio value|buying power|balance|equity)\b\W{0,3}[^.\n]{0,20}\d",
            re.IGNORECASE,
        ),
    ),
    ("an IBAN", re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}\b")),
    ("a long number", re.compile(r"(?<![\d.])\d(?:[ -]?\d){8,}(?![\d.])")),
    (
        "a long random text",
        re.compile(r"\b(?=[A-Za-z0-9_\-]*\d)(?=[A-Za-z0-9_\-]*[A-Za-z])[A-Za-z0-9_\-]{24,}\b"),
    ),
)


def screen(text: str | None) -> tuple[str | None, str | None]:
    """The text when it may stand, and why not when it may not; both None when there was none."""
    if text is None or not text.strip():
        return None, None
    size = len(text.strip().encode("utf-8", "surrogatepass"))
    if size > PUBLIC_REASON_BYTES:
        return (
            None,
            f"public_reason was left out: it has {size} bytes, at most {PUBLIC_REASON_BYTES} are allowed.",
        )
    if any(not character.isprintable() and character not in "\n\t" for character in text):
        return None, "public_reason was left out: it holds control characters."
    for what, pattern in _UNSAFE:
        if pattern.search(text):
            return None, f"public_reason was left out: it seems to hold {what}."
    return text.strip(), None
