"""Secrets that only their label gives away, such as `password: ...`: which labels there are, and when a value fits.

A label alone says little ("password protected", "the token is down 12%"), so each has its own idea of a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from .shapes import is_random

_PASSWORD = r"(?:password|passphrase|passcode|passwd|passwort|kennwort|pwd)"  # noqa: S105 - a label, not a value
_KEY = (
    r"(?:(?:api|access|secret|client|consumer|signing|private|encryption|webhook)[ _-]?(?:key"
    r"|secret)(?:[ _-]?id)?"
    r"|secret|(?:access|auth|refresh|session|bearer|id|api|bot)[ _-]?token|credentials?)"
)
_LABEL = re.compile(
    rf"(?<![A-Za-z])(?:(?P<password>{_PASSWORD})|(?P<key>{_KEY})|(?P<token>token))(?![A-Za-z])"
    r"(?:\\{0,2}[\"'`]\]?|\))?(?:\s{1,2}(?:for|of|to|at)(?:\s[\w.-]{1,30}){1,3}?)?"
    r"(?P<sign>\s{0,3}(?:[:=]{1,2}>?|->|：)\s{0,3}|\s{1,3}(?:is|was|ist|lautet)(?:\s?:)?\s{1,3})"
    r"\\{0,2}(?:(?P<quote>[\"'`])(?P<quoted>[^\"'`\n]{1,200})(?P=quote)|(?P<value>[^\s\"'`,;]{4,200}))",
    re.IGNORECASE | re.ASCII,
)
_MARKS = ("pass", "pwd", "kennwort", "secret", "token", "credential")
_KEY_MARKS = ("api", "access", "client", "consumer", "signing", "private", "encryption", "webhook")
_HEADER = re.compile(
    r"\bauthorization[\"']?\s{0,2}[:=]\s{0,2}[\"']?(?:(?:basic|bearer|token|digest"
    r"|apikey)\s{1,2})?(?P<value>[\w.~+/=:-]{8,2000})",
    re.IGNORECASE | re.ASCII,
)
_BEARER = re.compile(r"\bbearer\s{1,2}(?P<value>[\w.~+/=-]{8,2000})", re.IGNORECASE | re.ASCII)
_IN_ADDRESS = re.compile(r"://[^\s/:@]{0,100}:(?P<value>[^\s/@]{1,200})@")
_SEED = re.compile(
    r"\b(?:seed|recovery|mnemonic|backup)(?:[ _-](?:phrase|words|seed))?\s{0,2}(?::|=|is)\s{0,2}[\"'`]?"
    r"(?P<value>[a-z]{3,8}(?:[ ,]{1,2}[a-z]{3,8}){11,23})\b",
    re.IGNORECASE | re.ASCII,
)
_PASSPHRASE = re.compile(
    r"\bpassphrase\s{0,2}[:=]\s{0,2}(?P<value>[A-Za-z0-9]{2,20}(?:["
    r" -][A-Za-z0-9]{2,20}){3,12})(?=[.\s]{0,3}(?:\n|$))",
    re.IGNORECASE | re.ASCII,
)
_PLACEHOLDER = re.compile(
    r"[*•.?_-]+|x{3,}|\[masked.*|\$\{?[A-Z_]+\}?|<.*>?|\{\{?.*|%\(.*|(?:your|my)[_-].*|(?:env"
    r"|os\.|vault|keyring|secrets)[:./(].*"
    r"|(?:none|null|true|false|required|missing|unset|changed|expired|rotated|reset|protected|redacted|masked"
    r"|password|secret|token|example|optional|forgotten|wrong|invalid|unknown|stored|kept"
    r"|same|unchanged|updated)\W*",
    re.IGNORECASE,
)
"""What stands where a secret would, and is none."""
_PUBLIC = re.compile(
    r"0x[0-9a-f]{40}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:mem|prop|risk|dec|les|ths"
    r"|act|ev|ret|ses|store)_\w+"
    r"|\d{4}-\d\d-\d\d\S*|[\d.,:%+$€-]+[kmb%]?",
    re.IGNORECASE,
)
"""Addresses of tokens, UUIDs, our own ids, dates and numbers."""


def labelled(text: str, lowered: str) -> Iterator[tuple[str, int, int]]:
    """What each value is and where it stands; `lowered` is the same text in small letters."""
    if any(mark in lowered for mark in _MARKS) or (
        "key" in lowered and any(mark in lowered for mark in _KEY_MARKS)
    ):
        yield from _by_label(text)
    for what, mark, pattern, fits in _OTHERS:
        if mark in lowered:
            for found in pattern.finditer(text):
                if fits(found["value"]):
                    yield what, *found.span("value")


def _by_label(text: str) -> Iterator[tuple[str, int, int]]:
    for found in _LABEL.finditer(text):
        which = found.lastgroup and next(name for name in ("password", "key", "token") if found[name])
        part = "quoted" if found["quote"] else "value"
        value = found[part].rstrip(".!?)]}>") if part == "value" else found[part]
        start = found.start(part)
        if not value or _PLACEHOLDER.fullmatch(value):
            continue
        quoted, signed = part == "quoted", found["sign"].strip().lower() in _SIGNS
        ends = text[start + len(value) : start + len(value) + 2].strip(".!?)]}\"'`") in _ENDS
        if _FITS[str(which)](value, quoted, signed, ends):
            yield _WHATS[str(which)], start, start + len(value)


def _password(value: str, quoted: bool, signed: bool, ends: bool) -> bool:
    """Whatever is quoted or stands alone after the sign; in the midst of a sentence only what nobody writes there."""
    if quoted:
        return signed or len(value) >= 6
    if signed and ends and len(value) >= 5:
        return True
    return len(value) >= 6 and (
        is_random(value, least=6) or re.search(r"\w[!#$^&*@]|\d{4}", value) is not None
    )


def _key(value: str, quoted: bool, signed: bool, ends: bool) -> bool:
    if _PUBLIC.fullmatch(value) and not _UUID.fullmatch(value):
        return False
    if " " in value:
        return False  # words, however quoted
    return len(value) >= 8 and (is_random(value) or _UUID.fullmatch(value) is not None or (quoted and signed))


def _token(value: str, quoted: bool, signed: bool, ends: bool) -> bool:
    """`token` alone is a coin more often than a credential."""
    return len(value) >= 12 and not _PUBLIC.fullmatch(value) and is_random(value, least=12)


def _header_value(value: str) -> bool:
    return is_random(value) or value.endswith("=")


def _bearer_value(value: str) -> bool:
    return value.startswith("eyJ") or (is_random(value, least=12) and not _PUBLIC.fullmatch(value))


def _address_value(value: str) -> bool:
    # What is all digits is a port before an @ in a path.
    return not _PLACEHOLDER.fullmatch(value) and not (value.isdigit() and len(value) <= 5)


def _always(value: str) -> bool:
    return True


_SIGNS = frozenset({":", "=", "==", ":=", "=>", "->", "：", ":=>", "is:", "is :"})
_ENDS = frozenset({"", ",", ";", ",\n", ";\n", "|", "\n"})
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_FITS: Final[dict[str, Callable[[str, bool, bool, bool], bool]]] = {
    "password": _password,
    "key": _key,
    "token": _token,
}
_WHATS: Final = {"password": "a password", "key": "an API key", "token": "an access token"}
_OTHERS: Final[tuple[tuple[str, str, re.Pattern[str], Callable[[str], bool]], ...]] = (
    ("an access token", "authorization", _HEADER, _header_value),
    ("an access token", "bearer", _BEARER, _bearer_value),
    ("a password", "://", _IN_ADDRESS, _address_value),
    ("a password", "passphrase", _PASSPHRASE, _always),
    ("a seed phrase", "seed", _SEED, _always),
    ("a seed phrase", "recovery", _SEED, _always),
    ("a seed phrase", "mnemonic", _SEED, _always),
)
