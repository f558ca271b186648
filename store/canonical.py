"""Canonical bytes (RFC 8785, JSON Canonicalization Scheme) and the hashes built on them.

content_sha256 = SHA-256(salt || canonical content)
leaf_sha256    = SHA-256(0x00 || canonical(every column but content, content_salt, leaf and chain))
chain_sha256   = SHA-256(0x01 || previous chain || leaf), the previous chain of the genesis entry being 32
zero bytes. The 0x00 and 0x01 prefixes keep leaves and nodes apart as in RFC 6962.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any

import rfc8785

from .errors import InvalidInput

ZERO_CHAIN = bytes(32)
MAX_SAFE_INTEGER = 2**53 - 1
MAX_DEPTH = 32
_KEY_SHOWN = 40
_PATH_SHOWN = 120

_UNSAFE_TEXT = re.compile("[\x00\ud800-\udfff]")
_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":")
).encode


def canonical(value: Any) -> bytes:
    """The RFC 8785 encoding of a JSON value; floats are written as ECMAScript writes them."""
    if _plain(value):
        try:
            return _encode(value).encode()
        except UnicodeEncodeError:  # a lone surrogate, which is told of below
            pass
    return rfc8785.dumps(value)


def _plain(value: Any) -> bool:
    """Whether Python's own encoder gives the bytes of RFC 8785, which it does several times as fast.

    It does for text, safe integers, true, false and null, and for lists and objects of them: strings are escaped
    alike. Floats are written otherwise, and keys beyond ASCII may be sorted otherwise.
    """
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is int:
        return bool(-MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER)
    if kind is dict:
        for key in value:
            if type(key) is not str or not key.isascii():
                return False
        value = value.values()
    elif kind is not tuple and kind is not list:
        return False
    for item in value:  # noqa: SIM110 - a generator would cost a second frame for each level
        if type(item) is not str and not _plain(item):
            return False
    return True


def content_hash(salt: bytes, content: bytes) -> bytes:
    """Hash of canonical content under the entry's own salt."""
    return hashlib.sha256(salt + content).digest()


def leaf_hash(columns: Mapping[str, Any]) -> bytes:
    """Hash of an entry's columns; raw hashes are written as lower-case hex, absent values as null."""
    plain = {name: value.hex() if isinstance(value, bytes) else value for name, value in columns.items()}
    # ASCII names, and only text, integers and null as values: see _plain.
    return hashlib.sha256(b"\x00" + _encode(plain).encode()).digest()


def chain_hash(previous: bytes, leaf: bytes) -> bytes:
    """Hash that ties a leaf to every entry before it."""
    return hashlib.sha256(b"\x01" + previous + leaf).digest()


def check_text(text: str, *, field: str) -> str:
    """Return `text` unchanged, or raise InvalidInput when it holds NUL or a lone surrogate."""
    bad = _UNSAFE_TEXT.search(text)
    if bad is None:
        return text
    what = "a NUL character" if bad.group() == "\x00" else "a lone surrogate, which is half a character"
    raise InvalidInput(
        f"{field} holds {what} at position {bad.start()}.",
        field=field,
        hint="Send it without that character.",
    )


def check_json(value: Any, *, field: str, depth: int = 0) -> Any:
    """Return a JSON value unchanged, or raise InvalidInput naming the path of what cannot be kept exactly.

    Refused: NaN and Infinity, integers beyond 2**53 - 1, NUL and lone surrogates, nesting over 32 levels.
    """
    if depth > MAX_DEPTH:
        raise InvalidInput(
            f"{field} is nested more than {MAX_DEPTH} levels deep.", field=field, hint="Flatten it."
        )
    if isinstance(value, str):
        check_text(value, field=field)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(
                f"{field} is {value}, which JSON cannot carry.",
                field=field,
                hint="Leave it out or send null.",
            )
    elif isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise InvalidInput(
                f"{field} is an integer beyond 2**53 - 1.", field=field, hint="Send it as a decimal string."
            )
    elif isinstance(value, Mapping):
        for key, item in value.items():
            check_text(key, field=f"{field} (a key)")
            check_json(item, field=_below(field, key), depth=depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            check_json(item, field=f"{field}[{index}]", depth=depth + 1)
    return value


def _below(field: str, key: str) -> str:
    """The path of a key, fit for a message: short and printable whatever the key holds."""
    shown = "".join(character if character.isprintable() else "?" for character in key[:_KEY_SHOWN])
    path = f"{field}.{shown}"
    return path if len(path) <= _PATH_SHOWN else field


def parse_json_text(text: str, *, field: str, example: str) -> Any:
    """Read JSON text strictly: duplicate keys, NaN and Infinity are refused by path."""

    def no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise InvalidInput(f"{field} names a key twice.", field=field, hint=f"For example {example}.")
        return found

    try:
        value = json.loads(text, object_pairs_hook=no_repeats)
    except (ValueError, RecursionError):
        raise InvalidInput(
            f"{field} is not valid JSON text.", field=field, hint=f"For example {example}."
        ) from None
    return check_json(value, field=field)
