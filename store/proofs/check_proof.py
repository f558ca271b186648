"""Check a Deskbook proof without Deskbook: python check_proof.py PROOF --key KEY

PROOF is the file that `deskbook prove` wrote. KEY is the public key of whoever signs the ledger's checkpoints,
such as deskbook+1f2e3d4c+AZ..., or a file that holds it; take it from its owner and not from where the proof
came. Needs Python 3.9 or later and the package `cryptography`. Exit code 0: the proof holds; 1: it does not.
"""

import argparse
import base64
import hashlib
import json
import re
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

PARTS = ["format", "entry", "times", "content", "content_as_hashed", "content_salt", "tlog_proof"]
COLUMNS = (
    "sequence event_id event_type subject_type subject_id kind symbol effective_at recorded_at strategy run_id"
    " agent profile session_id model_call_id retrieval_id tool arguments_sha256 idempotency_key content_sha256"
    " schema_version"
).split()
UNSEEN = "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
SIGNATURE = "— [^ +\n]+ [A-Za-z0-9+/]+={0,2}"


def _need(condition: object, why: str) -> None:
    if not condition:
        raise ValueError(why)


def _sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def _spelled(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    return re.sub(UNSEEN, lambda found: json.dumps(found[0])[1:-1], text)


def _unbase64(text: str) -> bytes:
    raw = base64.b64decode(text, validate=True)
    _need(base64.b64encode(raw).decode() == text, "base64 is not in its one spelling")
    return raw


def _in_words(microseconds: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=microseconds)  # noqa: UP017
    return moment.replace(tzinfo=None).isoformat() + "Z"


def _checkpoint(note: str, key: str) -> tuple[str, int, bytes, str]:
    """Origin, size and root of a C2SP checkpoint, and the name of the key, whose signature is verified first."""
    name, key_id, public = key.split("+", 2)
    typed = _unbase64(public)
    _need(len(typed) == 33 and typed[0] == 1, "the key is no Ed25519 key")
    identity = _sha256(name.encode(), b"\n", typed)[:4]
    _need(identity.hex() == key_id, "the key's id does not belong to it")
    text, gap, signatures = note.rpartition("\n\n")
    lines = signatures[:-1].split("\n")
    _need(
        gap and signatures.endswith("\n") and not re.search("[\x00-\x09\x0b-\x1f]", note), "the note is odd"
    )
    _need(all(re.fullmatch(SIGNATURE, line) for line in lines), "the note holds what is no signature")
    parts = [(line.split(" ")[1], _unbase64(line.split(" ")[2])) for line in lines]
    ours = [signature[4:] for signer, signature in parts if (signer, signature[:4]) == (name, identity)]
    _need(len(ours) == 1, f"it is not signed, once, by {name!a}")
    Ed25519PublicKey.from_public_bytes(typed[1:]).verify(ours[0], f"{text}\n".encode())
    origin, size, root = text.split("\n")
    _need(re.fullmatch("deskbook/store_[0-9a-z]{13}", origin), "the note is of no Deskbook ledger")
    _need(re.fullmatch("0|[1-9][0-9]{0,15}", size), "the note's size is no number")
    return origin, int(size), _unbase64(root), name


def _root(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """The root to which the path leads from the leaf (RFC 9162, section 2.1.3.2)."""
    _need(0 <= index < size, "the note does not cover the entry")
    place, last, root = index, size - 1, leaf
    for sibling in path:
        _need(last and len(sibling) == 32, "the path is too long, or holds what is no SHA-256 hash")
        if place & 1 or place == last:
            root = _sha256(b"\x01", sibling, root)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            root = _sha256(b"\x01", root, sibling)
        place, last = place >> 1, last >> 1
    _need(not last, "the path is too short")
    return root


def _content(proof: dict[str, Any]) -> str:
    """What is to be said of the entry's content, which must be what its hash covers, or not be in the file at all."""
    content, salted = proof["content_as_hashed"], proof["content_salt"]
    if content is None and salted is None and proof["content"] is None:
        return "Its content is not in the file: it was taken away from the ledger, or left out. The rest is proven."
    salt = bytes.fromhex(salted)
    _need(len(salt) == 16 and salt.hex() == salted, "the salt is not 16 bytes in hex")
    told = _sha256(salt, content.encode()).hex()
    _need(told == proof["entry"]["content_sha256"], "the content is not what the entry's hash covers")
    _need(
        _spelled(json.loads(content)) == _spelled(proof["content"]),
        "the content shown is not what was hashed",
    )
    return "Its content in the file is what was stored."


def check(raw: bytes, key: str) -> str:
    """What the proof proves, in words; raises when it does not hold."""
    proof = json.loads(raw)
    _need(_spelled(proof).encode() == raw and list(proof) == PARTS, "the file is not spelled as a proof is")
    entry, lines = proof["entry"], proof["tlog_proof"]
    _need(proof["format"] == "deskbook-proof/1" and list(entry) == COLUMNS, "the file is of another format")
    words = _content(proof)
    times = {name: _in_words(entry[name]) for name in ("effective_at", "recorded_at")}
    _need(_spelled(proof["times"]) == _spelled(times), "the times shown are not those of the entry")
    columns = json.dumps(entry, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    leaf, gap, index = _sha256(b"\x00", columns.encode()), lines.index(""), entry["sequence"] - 1
    head = ["c2sp.org/tlog-proof@v1", f"index {index}"]
    _need(
        lines[:2] == head and not any("\n" in line for line in lines), "the tlog-proof is not of this entry"
    )
    origin, size, root, name = _checkpoint("\n".join([*lines[gap + 1 :], ""]), key)
    found = _root(leaf, index, size, [_unbase64(line) for line in lines[2:gap]])
    _need(found == root, "the path does not lead from the entry to the signed root")
    run = "" if entry["run_id"] is None else f", run {entry['run_id']!a}"
    return (
        f"The proof holds.\nEntry {entry['event_id']!a}, {entry['event_type']!a} about {entry['subject_id']!a}, was"
        f" written by agent {entry['agent']!a} (profile {entry['profile']!a}) at {times['recorded_at']}, effective"
        f" {times['effective_at']}, to strategy {entry['strategy']!a}{run}.\nIt is number {index + 1} of {size}"
        f" under a note of {origin} that {name!a} signed. {words}\n"
    )


def main() -> int:
    """Check what the command line names; gives the exit code."""
    parser = argparse.ArgumentParser(description="Check a Deskbook proof without Deskbook.")
    parser.add_argument("proof", help="the file that `deskbook prove` wrote")
    parser.add_argument("--key", required=True, help="the signer's public key, or a file that holds it")
    given = parser.parse_args()
    try:
        whole = re.fullmatch(r"[^\s+]+\+[0-9a-f]{8}\+[A-Za-z0-9+/=]+", given.key)
        key = given.key if whole else Path(given.key).read_text("utf-8").strip()
        sys.stdout.write(check(Path(given.proof).read_bytes(), key))
    except InvalidSignature:
        sys.stdout.write("The proof does not hold: the note is not what the key signed.\n")
    except Exception as fault:  # noqa: BLE001 - whatever a forged file makes of the code above, it does not hold
        sys.stdout.write(f"The proof does not hold: {str(fault)!a} ({type(fault).__name__}).\n")
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
