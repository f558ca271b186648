"""10,000 altered proofs and notes: our verifier and the script that ships with a proof accept none of them."""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature

from store.entry import Entry
from store.errors import InvalidInput
from store.paths import ledger_path
from store.proofs import check_proof
from store.proofs.cache import TreeCache
from store.proofs.checkpoint import Checkpoint, Signed, open_checkpoint, origin_of
from store.proofs.inclusion import read_proof, write_proof
from store.proofs.note import Signer
from store.proofs.source import open_source

MUTATED = 10_000
AS_PROCESSES = 12
SIZES = (1, 2, 3, 17, 42, 61, 64)
LOOKALIKES = {
    "—": "-–―", " ": "\u00a0\u2002\t", "1": "１١", "0": "OО", "a": "а", "e": "е", "\n": "\r\u2028\x0b",
    "=": "﹦", "+": "＋", "/": "／",
}  # fmt: skip
Mutator = Callable[[random.Random, str, "Genuine"], str]


@dataclass(frozen=True)
class Genuine:
    """Proofs and notes of one ledger, and of another that the same key signed."""

    signer: Signer
    forger: Signer
    proofs: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def all(self) -> frozenset[str]:
        return frozenset((*self.proofs, *self.notes))


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory, more: Callable[..., None]) -> Genuine:
    root = tmp_path_factory.mktemp("genuine")
    signer, forger = Signer("deskbook", bytes(range(32))), Signer("deskbook", bytes(32))
    proofs: list[str] = []
    notes: list[str] = []
    for run in (None, "run-1"):
        more(root, 62, "default", run)
        where = (root, ledger_path(root, "default", run), "default", run)
        with open_source(*where) as source, TreeCache(None, source) as cache:
            for size in SIZES:
                state = Checkpoint(origin_of(source.store_id), size, cache.root(size))
                note = state.sign(signer)
                notes.append(note)
                signed = Signed(state, note, (signer.verifier,))
                for sequence in {1, size // 2, size} - {0}:
                    entry = source.entry(sequence)
                    assert isinstance(entry, Entry)
                    proofs.append(write_proof(entry, cache.path(sequence - 1, size), signed))
    return Genuine(signer, forger, tuple(proofs), tuple(notes))


def flip_bits(chance: random.Random, text: str, _: Genuine) -> str:
    raw = bytearray(text.encode())
    for _time in range(chance.choice((1, 1, 1, 2, 8))):
        raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
    return raw.decode("utf-8", "surrogateescape")


def drop_or_add(chance: random.Random, text: str, _: Genuine) -> str:
    at = chance.randrange(len(text))
    added = chance.choice(("", "", " ", "\n", "0", "A", "=", '"', ",", "{", "\x00", "\ufeff", "é", text[at]))
    return text[:at] + added + text[at + chance.choice((0, 1)) :]


def cut_short(chance: random.Random, text: str, _: Genuine) -> str:
    at = chance.randrange(len(text))
    return chance.choice((text[:at], text[at:], text[:at] + "\n", text + text[at:]))


def move_lines(chance: random.Random, text: str, _: Genuine) -> str:
    lines = text.split("\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    kind = chance.randrange(4)
    if kind == 0:
        lines[one], lines[other] = lines[other], lines[one]
    elif kind == 1:
        lines.insert(other, lines[one])
    elif kind == 2:
        del lines[one]
    else:
        lines[one] = lines[other]
    return "\n".join(lines)


def look_alike(chance: random.Random, text: str, _: Genuine) -> str:
    place = chance.choice([at for at, character in enumerate(text) if character in LOOKALIKES])
    if chance.random() < 0.1:
        return chance.choice((text.replace("\n", "\r\n"), "\ufeff" + text, text.swapcase(), text.upper()))
    return text[:place] + chance.choice(LOOKALIKES[text[place]]) + text[place + 1 :]


def bend_number(chance: random.Random, text: str, _: Genuine) -> str:
    """Index, size, sequence, time or version, a little or very different, or spelled another way."""
    numbers = [at for at, c in enumerate(text) if c.isdigit() and (at == 0 or not text[at - 1].isalnum())]
    start = chance.choice(numbers)
    stop = start
    while text[stop].isdigit():
        stop += 1
    value = int(text[start:stop])
    other = chance.choice(
        (value + 1, value - 1, -value, value * 2, value + 2**32, 2**63, f"0{value}", f"+{value}", f"{value}.0",
         f"{value}e0", f"{value} ", "", "true", "null", f'"{value}"')
    )  # fmt: skip
    return text[:start] + str(other) + text[stop:]


def sign_anew(chance: random.Random, text: str, genuine: Genuine) -> str:
    """Another signature: of another key of the same name, posing as ours, of another note, or of nothing."""
    lines = text.split("\n")
    at = next(n for n, line in enumerate(lines) if "— deskbook " in line)
    head, _, old = lines[at].rpartition(" ")
    raw = base64.b64decode(old.rstrip('"'))
    strange = genuine.forger.sign("x\n").rpartition(" ")[2].strip()
    other = chance.choice(genuine.notes).rpartition(" ")[2].strip()
    posing = base64.b64encode(raw[:4] + base64.b64decode(strange)[4:]).decode()
    cases = (strange, other, posing, base64.b64encode(raw[:-1]).decode(), base64.b64encode(raw + b"x").decode(),
             base64.b64encode(raw[:4] + bytes(64)).decode(), base64.b64encode(raw[:36] + bytes(32)).decode(),
             "", "A")  # fmt: skip
    lines[at] = f"{head} {chance.choice(cases)}" + ('"' if old.endswith('"') else "")
    return "\n".join(lines)


def forge_note(chance: random.Random, text: str, genuine: Genuine) -> str:
    """A note that the forger signed over a state of its own choice, whole in itself."""
    origin, size, root = text.split("\n")[:3]
    told = f"{origin}\n{int(size) + chance.randrange(3)}\n{root}\n"
    return genuine.forger.sign(told)


def proof_of_parts(chance: random.Random, text: str, genuine: Genuine) -> str:
    """One part of a proof is that of another proof, or altered in the way a reader might not notice."""
    proof, other = json.loads(text), json.loads(chance.choice(genuine.proofs))
    kind = chance.randrange(9)
    if kind == 0:
        part = chance.choice(list(proof))
        proof[part] = other[part]
    elif kind == 1:
        column = chance.choice(list(proof["entry"]))
        proof["entry"][column] = other["entry"][column]
    elif kind == 2:
        gap = proof["tlog_proof"].index("")
        path = proof["tlog_proof"][2:gap]
        chance.shuffle(path)
        proof["tlog_proof"][2:gap] = path
    elif kind == 3:
        proof["tlog_proof"] = [*proof["tlog_proof"][:2], *other["tlog_proof"][2:]]
    elif kind == 4:
        gap, gap2 = proof["tlog_proof"].index(""), other["tlog_proof"].index("")
        proof["tlog_proof"] = proof["tlog_proof"][:gap] + other["tlog_proof"][gap2:]
    elif kind == 5:
        salt, content = proof["content_salt"], proof["content_as_hashed"]
        proof["content_salt"] = salt + content[:1].encode().hex()
        proof["content_as_hashed"] = content[1:]
    elif kind == 6:
        proof["content_salt"] = chance.choice(
            (proof["content_salt"].upper(), " " + proof["content_salt"], "")
        )
    elif kind == 7:
        proof["content"] = chance.choice(
            ({}, None, dict(reversed(proof["content"].items())), [proof["content"]])
        )
    else:
        names = list(proof["entry"])
        chance.shuffle(names)
        proof["entry"] = {name: proof["entry"][name] for name in names}
    return check_proof._spelled(proof)


def spell_otherwise(chance: random.Random, text: str, _: Genuine) -> str:
    """The same JSON in another spelling, or with something more in it."""
    proof = json.loads(text)
    more = {**proof, "note": "checked"}
    twice = text.replace('"times"', '"format": "deskbook-proof/1",\n  "times"', 1)
    cases = (
        json.dumps(proof), json.dumps(proof, indent=1), json.dumps(proof, indent=2, sort_keys=True) + "\n",
        check_proof._spelled(more), twice, text + " ", text.replace("é", "e\u0301").replace("–", "-") + "\n",
        text.replace('"', "'", 2), check_proof._spelled([proof]), text.replace("null", "false", 1),
    )  # fmt: skip
    return chance.choice(cases)


ANYWHERE: tuple[Mutator, ...] = (
    flip_bits, drop_or_add, cut_short, move_lines, look_alike, bend_number, sign_anew,
)  # fmt: skip
OF_PROOFS: tuple[Mutator, ...] = (*ANYWHERE, proof_of_parts, proof_of_parts, spell_otherwise)
OF_NOTES: tuple[Mutator, ...] = (*ANYWHERE, forge_note)


def mutated(
    genuine: Genuine, originals: Sequence[str], mutators: Sequence[Mutator], count: int, seed: int
) -> list[tuple[str, bytes]]:
    """So many altered texts, each with how it came about; none is one that was really signed."""
    chance, found = random.Random(seed), []
    while len(found) < count:
        mutator = chance.choice(mutators)
        text = mutator(chance, chance.choice(originals), genuine)
        if text not in genuine.all:
            found.append((mutator.__name__, text.encode("utf-8", "surrogateescape")))
    return found


def holds(check: Callable[[], object]) -> bool:
    """Whether a check accepts; ours raise InvalidInput alone, whatever they are given."""
    try:
        check()
    except InvalidInput:
        return False
    return True


def script_holds(check: Callable[[], object]) -> bool:
    try:
        check()
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, InvalidSignature):
        return False
    return True


def test_what_was_not_altered_is_accepted_by_both(genuine: Genuine) -> None:
    known, key = [genuine.signer.verifier], str(genuine.signer.verifier)
    assert len(genuine.proofs) > 30
    for proof in genuine.proofs:
        assert read_proof(proof.encode(), known).signed.names == "deskbook"
        assert "The proof holds." in check_proof.check(proof.encode(), key)
    for note in genuine.notes:
        assert open_checkpoint(note.encode(), known).note == note
        assert check_proof._checkpoint(note, key)[3] == "deskbook"


def test_none_of_7000_altered_proofs_is_accepted(genuine: Genuine) -> None:
    known, key = [genuine.signer.verifier], str(genuine.signer.verifier)
    altered = mutated(genuine, genuine.proofs, OF_PROOFS, MUTATED * 7 // 10, 6)
    assert {name for name, _ in altered} == {mutator.__name__ for mutator in OF_PROOFS}
    accepted = [
        (name, raw)
        for name, raw in altered
        if holds(partial(read_proof, raw, known)) or script_holds(partial(check_proof.check, raw, key))
    ]
    assert accepted == []


def test_none_of_3000_altered_notes_is_accepted(genuine: Genuine) -> None:
    known, key = [genuine.signer.verifier], str(genuine.signer.verifier)
    altered = mutated(genuine, genuine.notes, OF_NOTES, MUTATED * 3 // 10, 7)
    assert {name for name, _ in altered} == {mutator.__name__ for mutator in OF_NOTES}
    accepted = [
        (name, raw)
        for name, raw in altered
        if holds(partial(open_checkpoint, raw, known))
        or script_holds(lambda raw=raw: check_proof._checkpoint(raw.decode(), key))  # type: ignore[misc]
    ]
    assert accepted == []


def test_a_proof_holds_under_the_right_key_alone(genuine: Genuine) -> None:
    raw, forger = genuine.proofs[5].encode(), genuine.forger.verifier
    assert not holds(lambda: read_proof(raw, [forger]))
    assert not script_holds(lambda: check_proof.check(raw, str(forger)))
    for key in ("", "deskbook", str(genuine.signer.verifier)[:-1], str(genuine.signer.verifier) + "A"):
        assert not script_holds(lambda key=key: check_proof.check(raw, key))  # type: ignore[misc]


def test_the_script_alone_exits_1_without_a_traceback_on_what_was_altered(
    genuine: Genuine, tmp_path: Path
) -> None:
    script = tmp_path / "check_proof.py"
    script.write_bytes(Path(check_proof.__file__).read_bytes())
    key = tmp_path / "desk.pub"
    key.write_text(f"{genuine.signer.verifier}\n")

    def run(raw: bytes, key_given: object) -> tuple[int, str, str]:
        (tmp_path / "proof.json").write_bytes(raw)
        done = subprocess.run(
            [sys.executable, "-I", "-W", "error", script, "proof.json", "--key", str(key_given)],
            cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    code, said, error = run(genuine.proofs[7].encode(), key)
    assert (code, error) == (0, "")
    assert "The proof holds." in said
    assert run(genuine.proofs[7].encode(), genuine.signer.verifier)[0] == 0
    assert run(genuine.proofs[7].encode(), genuine.forger.verifier)[0] == 1
    assert run(genuine.proofs[7].encode(), tmp_path / "absent.pub")[0] == 1
    samples = [raw for _, raw in mutated(genuine, genuine.proofs, OF_PROOFS, AS_PROCESSES, 8)]
    for raw in [*samples, b"", b"[" * 100_000, b'{"a":' * 3_000, b"\xff\xfe", b"null"]:
        code, said, error = run(raw, key)
        assert (code, error) == (1, ""), raw[:200]
        assert said.startswith("The proof does not hold: ")
