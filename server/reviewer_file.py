"""The file that says who may review: `<root>/reviewers.json`, with hashes alone, and how often proving it failed.

`private_file` says how it is read and written, and when it is not used. A passphrase is something a person chose, so
its hash is slow and salted; a reviewer token is 256 random bits, which nobody guesses at any speed.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import unicodedata
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from store.clock import LAST_INSTANT

from . import private_file
from .private_file import Words, damaged, parse_private, read_private, write_private
from .sections import Name, Section

FILE: Final = "reviewers.json"
LOCK: Final = "reviewers.lock"
VERSION: Final = 1
WORDS: Final = Words(
    name="reviewer file",
    refused="nobody can review",
    look="Then look with `deskbook reviewer list` whether every name in it is one that you added.",
    mend="Put back a copy, or move it away and begin anew with `deskbook reviewer add NAME`.",
)
COST: Final = 32_768
BLOCK: Final = 8
LANES: Final = 1
_SALT_BYTES, _HASH_BYTES = 16, 32
_ROOM: Final = 2**20

Instant = Annotated[int, Field(ge=0, le=LAST_INSTANT)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Passphrase(Section):
    """What is kept of a passphrase: scrypt (RFC 7914) of it with the parameters and the salt that stand here."""

    n: Literal[16_384, 32_768, 65_536, 131_072]
    r: Literal[8]
    p: Literal[1, 2, 3, 4]
    salt: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", repr=False)]
    scrypt: Annotated[Sha256, Field(repr=False)]


class Reviewer(Section):
    """A person who may review, and what they prove it by: a passphrase, a reviewer token, or either."""

    name: Name
    created: Instant
    passphrase: Passphrase | None
    token_sha256: Annotated[Sha256 | None, Field(repr=False)]


class Reviewers(Section):
    """The whole file; times in microseconds since the epoch, UTC.

    `failures` are the last times that a passphrase was wrong, `closed_until` when the next may be tried.
    """

    version: int = VERSION
    reviewers: tuple[Reviewer, ...] = ()
    failures: tuple[Instant, ...] = ()
    closed_until: Instant | None = None


def reviewer_path(root: Path) -> Path:
    """The reviewer file below a root. No strategy's folder has its name: a "." in one is encoded."""
    return root / FILE


def read_reviewers(path: Path) -> Reviewers:
    """What the file says; nobody where there is no file.

    Raises StoreError where it cannot be trusted: a link, open to others, damaged, or of a newer version.
    """
    raw = read_private(path, WORDS)
    if raw is None:
        return Reviewers()
    found = parse_private(path, raw, Reviewers, VERSION, WORDS)
    names = {reviewer.name for reviewer in found.reviewers}
    provable = all(each.passphrase or each.token_sha256 for each in found.reviewers)
    if len(names) != len(found.reviewers) or not provable:
        raise damaged(path, WORDS)
    return found


def held(path: Path) -> AbstractContextManager[None]:
    """Hold the lock under which the file may change, as `private_file.held` says."""
    return private_file.held(path, path.with_name(LOCK), WORDS)


def write_reviewers(path: Path, found: Reviewers) -> None:
    """Replace the file durably; the lock must be held. Raises StoreFull or StoreReadOnly, and nothing changed."""
    write_private(path, found.model_dump_json(indent=1).encode() + b"\n")


def hashed(passphrase: str) -> Passphrase:
    """What to keep of a passphrase, under a salt of its own."""
    salt = secrets.token_bytes(_SALT_BYTES)
    return Passphrase(
        n=COST, r=BLOCK, p=LANES, salt=salt.hex(), scrypt=_scrypt(passphrase, salt, COST, BLOCK, LANES).hex()
    )


def opens(kept: Passphrase | None, passphrase: str) -> bool:
    """Whether it is the passphrase that was kept. It takes as long where none was, so that time tells no names."""
    against = _NOBODY if kept is None else kept
    found = _scrypt(passphrase, bytes.fromhex(against.salt), against.n, against.r, against.p)
    same = hmac.compare_digest(found.hex(), against.scrypt)
    return same and kept is not None


def token_hash(token: str) -> str:
    """What is kept of a reviewer token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _scrypt(passphrase: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    # One spelling of what a keyboard may send in two: an accented letter whole, or in its parts.
    typed = unicodedata.normalize("NFKC", passphrase).encode("utf-8", "surrogatepass")
    room = 128 * r * (n + p) + _ROOM
    return hashlib.scrypt(typed, salt=salt, n=n, r=r, p=p, maxmem=room, dklen=_HASH_BYTES)


_NOBODY: Final = Passphrase(
    n=COST, r=BLOCK, p=LANES, salt=secrets.token_hex(_SALT_BYTES), scrypt=secrets.token_hex(_HASH_BYTES)
)
