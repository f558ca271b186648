"""Signed notes with Ed25519 keys, as C2SP signed-note v1.0.0 defines them (c2sp.org/signed-note).

A note is text that ends in a newline, an empty line, and signature lines `— name base64(key id || signature)`.
Keys are written as Go's sumdb writes them: `name+id+base64(0x01 || public key)` and `PRIVATE+KEY+name+id+...`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ..errors import InvalidInput

ED25519 = b"\x01"
KEY_NAME = "deskbook"
MOST_BYTES = 256 * 1024
MOST_SIGNATURES = 64
MOST_NAME_CHARS = 128
_SIGNATURE_BYTES = 64
_PRIVATE = "PRIVATE+KEY+"
_LINE = re.compile(r"— ([^ \n]+) ([A-Za-z0-9+/]+={0,2})")
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f]")


@dataclass(frozen=True, slots=True)
class Verifier:
    """A public key with its name; text of it is safe to give away."""

    name: str
    public: bytes

    @property
    def key_id(self) -> bytes:
        """The first four bytes of SHA-256(name || 0x0A || 0x01 || public key)."""
        return hashlib.sha256(self.name.encode() + b"\n" + ED25519 + self.public).digest()[:4]

    def __str__(self) -> str:
        """The verifier key, `name+hex+base64`."""
        return f"{self.name}+{self.key_id.hex()}+{to_base64(ED25519 + self.public)}"

    def accepts(self, text: bytes, signature: bytes) -> bool:
        """Whether the signature is this key's over the text (RFC 8032)."""
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, text)
        except (InvalidSignature, ValueError):
            return False
        return True


class Signer:
    """A private key with its name; it shows itself nowhere but through `secret`."""

    def __init__(self, name: str, seed: bytes) -> None:
        """Take the 32 bytes of a private key; raises InvalidInput for a name that a note cannot carry."""
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self._seed = seed
        self.verifier = Verifier(check_key_name(name), self._key.public_key().public_bytes_raw())

    @classmethod
    def fresh(cls, name: str) -> Signer:
        """A new key of the system's randomness."""
        return cls(name, Ed25519PrivateKey.generate().private_bytes_raw())

    def __repr__(self) -> str:
        return f"Signer({self.verifier})"

    def secret(self) -> str:
        """The one line that a key file holds."""
        who = self.verifier
        return f"{_PRIVATE}{who.name}+{who.key_id.hex()}+{to_base64(ED25519 + self._seed)}"

    def sign(self, text: str) -> str:
        """The note of a text, which must end in a newline and hold no other control character."""
        if not text.endswith("\n") or _CONTROL.search(text):
            raise ValueError("a note's text ends in a newline and holds no control characters")
        signature = self._key.sign(text.encode())
        return f"{text}\n— {self.verifier.name} {to_base64(self.verifier.key_id + signature)}\n"


@dataclass(frozen=True, slots=True)
class Note:
    """A note whose signature was verified: its text, and whose keys signed it."""

    text: str
    signed_by: tuple[Verifier, ...]


def open_note(raw: bytes, known: Iterable[Verifier]) -> Note:
    """Read a note and verify it; signatures of keys that are not known are passed over, as the format asks.

    Raises InvalidInput when it is malformed, when a known key's signature does not verify or comes twice, and
    when no known key signed it.
    """
    text, lines = _taken_apart(raw)
    keys = {(key.name, key.key_id): key for key in known}
    signed_by: list[Verifier] = []
    for line in lines:
        found = _LINE.fullmatch(line)
        blob = from_base64(found[2]) if found else None
        if found is None or blob is None or len(blob) < 5 or not _is_key_name(found[1]):
            raise _bad("has a line after its text that is no signature")
        key = keys.get((found[1], blob[:4]))
        if key is None:
            continue
        if key in signed_by:
            raise _bad(f"carries two signatures of {key.name}")
        if len(blob) != 4 + _SIGNATURE_BYTES or not key.accepts(text.encode(), blob[4:]):
            raise _bad(f"is not what {key.name} signed: the signature does not fit the text")
        signed_by.append(key)
    if not signed_by:
        names = ", ".join(sorted({key.name for key in keys.values()})) or "nobody"
        raise _bad(f"is not signed by a key that is trusted here ({names})")
    return Note(text, tuple(signed_by))


def read_verifier(line: str) -> Verifier:
    """Read a verifier key, `name+hex+base64`; raises InvalidInput for anything else."""
    name, identity, key = _three_parts(line.strip())
    verifier = Verifier(name, key)
    if verifier.key_id.hex() != identity:
        raise _bad_key("its id does not belong to its name and key")
    return verifier


def read_signer(line: str) -> Signer:
    """Read a private key's line, `PRIVATE+KEY+name+hex+base64`; raises InvalidInput, which never shows it."""
    line = line.strip()
    if not line.startswith(_PRIVATE):
        raise _bad_key("a private key begins with PRIVATE+KEY+")
    name, identity, seed = _three_parts(line.removeprefix(_PRIVATE))
    signer = Signer(name, seed)
    if signer.verifier.key_id.hex() != identity:
        raise _bad_key("its id does not belong to its name and key")
    return signer


def check_key_name(name: str) -> str:
    """Return a key's name unchanged; raises InvalidInput for one that a note cannot carry."""
    if not _is_key_name(name):
        raise InvalidInput(
            f"A key's name has 1 to {MOST_NAME_CHARS} characters and neither spaces nor `+`.",
            field="--name",
            hint="For example desk.example.com/checkpoints.",
        )
    return name


def to_base64(raw: bytes) -> str:
    """Standard base64 (RFC 4648, section 4), padded."""
    return base64.b64encode(raw).decode()


def from_base64(text: str) -> bytes | None:
    """The bytes of base64 in its one canonical spelling, None for anything else."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if to_base64(raw) == text else None


def _taken_apart(raw: bytes) -> tuple[str, list[str]]:
    """Text and signature lines: the last empty line lies between them."""
    if len(raw) > MOST_BYTES:
        raise _bad(f"is longer than {MOST_BYTES:,} bytes")
    try:
        whole = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise _bad("is not UTF-8") from None
    if _CONTROL.search(whole):
        raise _bad("holds a control character")
    text, divided, signatures = whole.rpartition("\n\n")
    if not divided or not text or not signatures.endswith("\n"):
        raise _bad("is no signed note: text, an empty line and signatures are expected")
    lines = signatures[:-1].split("\n")
    if len(lines) > MOST_SIGNATURES:
        raise _bad(f"has more than {MOST_SIGNATURES} signatures")
    return text + "\n", lines


def _three_parts(line: str) -> tuple[str, str, bytes]:
    parts = line.split("+", 2)
    if len(parts) != 3 or not _is_key_name(parts[0]) or not re.fullmatch("[0-9a-f]{8}", parts[1]):
        raise _bad_key("it is not of the form name+id+key")
    key = from_base64(parts[2])
    if key is None or len(key) != 33 or key[:1] != ED25519:
        raise _bad_key("it is no Ed25519 key")
    return parts[0], parts[1], key[1:]


def _is_key_name(name: str) -> bool:
    return (
        0 < len(name) <= MOST_NAME_CHARS
        and "+" not in name
        and all(character.isprintable() and not character.isspace() for character in name)
    )


def _bad(what: str) -> InvalidInput:
    return InvalidInput(f"The note {what}.", hint="Take it from where it was first published.")


def _bad_key(why: str) -> InvalidInput:
    return InvalidInput(
        f"That is no checkpoint key: {why}.",
        hint="`deskbook checkpoint --new-key` makes one and prints its public key.",
    )
