"""Notes and checkpoints are C2SP's: the published examples verify, and whatever bends the format is refused."""

from __future__ import annotations

import base64

import pytest

from store.errors import InvalidInput
from store.proofs.checkpoint import Checkpoint, open_checkpoint
from store.proofs.note import MOST_BYTES, Signer, open_note, read_signer, read_verifier

# The example of c2sp.org/signed-note.
C2SP_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
C2SP_NOTE = """This is an example message.

— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=
"""
# The examples of Go's golang.org/x/mod/sumdb/note.
GO_SECRET = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_NOTE = """If you think cryptography is the answer to your problem,
then you don't know what your problem is.

— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=
"""
GO_SECOND_KEY = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
GO_SECOND_LINE = (
    "— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n"
    "2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n"
)
STATE = Checkpoint("deskbook/store_0123456789abc", 42, bytes(range(32)))


@pytest.mark.parametrize(
    ("key", "note"), [(C2SP_KEY, C2SP_NOTE), (GO_KEY, GO_NOTE), (GO_KEY, GO_NOTE + GO_SECOND_LINE)]
)
def test_the_published_examples_verify(key: str, note: str) -> None:
    verifier = read_verifier(key)
    assert str(verifier) == key
    opened = open_note(note.encode(), [verifier])
    assert opened.text == note.partition("\n\n")[0] + "\n"
    assert opened.signed_by == (verifier,)


def test_two_known_keys_are_both_named() -> None:
    known = [read_verifier(GO_SECOND_KEY), read_verifier(GO_KEY)]
    assert open_note((GO_NOTE + GO_SECOND_LINE).encode(), known).signed_by == (known[1], known[0])


def test_the_published_private_key_signs_the_published_note() -> None:
    signer = read_signer(GO_SECRET)
    assert str(signer.verifier) == GO_KEY
    assert signer.secret() == GO_SECRET
    assert signer.sign(GO_NOTE.partition("\n\n")[0] + "\n") == GO_NOTE


def test_a_private_key_shows_itself_nowhere() -> None:
    signer = read_signer(GO_SECRET)
    secret = GO_SECRET.rpartition("+")[2]
    assert secret not in repr(signer) + str(signer)
    with pytest.raises(InvalidInput) as refused:
        read_signer(GO_SECRET[:-1])
    assert secret[:10] not in str(refused.value) + str(refused.value.hint)


@pytest.mark.parametrize(
    "note",
    [
        GO_NOTE.replace("problem,", "problem;"),
        GO_NOTE.replace("— ", "- "),
        GO_NOTE.replace("—", "–"),
        GO_NOTE.replace("\n", "\r\n"),
        GO_NOTE.replace("\n\n", "\n"),
        GO_NOTE.replace("\n\n", "\n\n\n"),
        GO_NOTE[:-1],
        GO_NOTE + "\n",
        GO_NOTE + "x\n",
        GO_NOTE + GO_NOTE.partition("\n\n")[2],
        GO_NOTE.replace("AM=\n", "AN=\n"),
        GO_NOTE.replace("AM=\n", "AM\n"),
        GO_NOTE.replace("AM=\n", "AM= \n"),
        GO_NOTE.replace("PeterNeumann", "PeterNeumann "),
        GO_NOTE.replace("PeterNeumann", "Peter+Neumann"),
        GO_NOTE.replace("x08go", "x08gO"),
        GO_NOTE.replace("then", "then\t"),
        GO_NOTE.replace("then", "then\x00"),
        "\ufeff" + GO_NOTE,
        "\n\n" + GO_NOTE,
        GO_NOTE.partition("\n\n")[0] + "\n\n",
        GO_NOTE.partition("\n\n")[2],
        "",
        "\n",
        "\n\n\n",
    ],
)
def test_a_bent_note_is_refused(note: str) -> None:
    with pytest.raises(InvalidInput):
        open_note(note.encode(), [read_verifier(GO_KEY)])


def test_what_is_no_text_and_what_is_too_long_is_refused() -> None:
    key = read_verifier(GO_KEY)
    for raw in (
        GO_NOTE.encode() + b"\xff\n",
        GO_NOTE.encode("utf-16"),
        b"x\n" * MOST_BYTES + GO_NOTE.encode(),
    ):
        with pytest.raises(InvalidInput):
            open_note(raw, [key])


def test_a_note_of_nobody_known_is_refused_and_sixteen_strangers_are_passed_over() -> None:
    with pytest.raises(InvalidInput, match="trusted"):
        open_note(GO_NOTE.encode(), [read_verifier(C2SP_KEY)])
    with pytest.raises(InvalidInput, match="nobody"):
        open_note(GO_NOTE.encode(), [])
    text = GO_NOTE.partition("\n\n")[0] + "\n"
    strangers = "".join(
        Signer(f"witness{n}.example", bytes([n]) * 32).sign(text).rpartition("\n\n")[2] for n in range(16)
    )
    head, _, tail = GO_NOTE.rpartition("\n\n")
    assert open_note(f"{head}\n\n{strangers}{tail}".encode(), [read_verifier(GO_KEY)]).text == text


def test_a_key_of_the_same_name_is_another_key() -> None:
    forger = Signer("PeterNeumann", bytes(32))
    text = GO_NOTE.partition("\n\n")[0] + "\n"
    with pytest.raises(InvalidInput, match="trusted"):
        open_note(forger.sign(text).encode(), [read_verifier(GO_KEY)])
    signature = base64.b64decode(forger.sign(text).rpartition(" ")[2])
    posed = base64.b64encode(read_verifier(GO_KEY).key_id + signature[4:]).decode()
    with pytest.raises(InvalidInput, match="not what PeterNeumann signed"):
        open_note(f"{text}\n— PeterNeumann {posed}\n".encode(), [read_verifier(GO_KEY)])


@pytest.mark.parametrize(
    "key",
    [
        GO_KEY[:-1],
        GO_KEY.replace("c74f20a3", "c74f20a4"),
        GO_KEY.replace("c74f20a3", "C74F20A3"),
        GO_KEY.replace("PeterNeumann", "Peter Neumann"),
        GO_KEY.replace("PeterNeumann", ""),
        GO_KEY.replace("+AR", "+BB"),
        GO_SECRET,
        "deskbook",
        "",
        "+".join(["x" * 200, "c74f20a3", "AA=="]),
    ],
)
def test_a_bent_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput):
        read_verifier(key)


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\u00a0b", "a\u200bb", "a\nb", "x" * 129])
def test_a_name_that_a_note_cannot_carry_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="name"):
        Signer(name, bytes(32))


def test_a_checkpoint_is_three_lines_and_reads_back(signer: Signer) -> None:
    note = STATE.sign(signer)
    assert note.split("\n")[:4] == [
        "deskbook/store_0123456789abc",
        "42",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "",
    ]
    found = open_checkpoint(note.encode(), [signer.verifier])
    assert (found.checkpoint, found.note, found.names) == (STATE, note, "desk.example/one")


@pytest.mark.parametrize(
    "text",
    [
        STATE.text().replace("\n42\n", "\n042\n"),
        STATE.text().replace("\n42\n", "\n+42\n"),
        STATE.text().replace("\n42\n", "\n-42\n"),
        STATE.text().replace("\n42\n", "\n4_2\n"),
        STATE.text().replace("\n42\n", "\n42 \n"),
        STATE.text().replace("\n42\n", "\n٤٢\n"),
        STATE.text().replace("\n42\n", "\n42.0\n"),
        STATE.text().replace("\n42\n", f"\n{2**53}\n"),
        STATE.text().replace("\n42\n", f"\n{'9' * 5000}\n"),
        STATE.text().replace("deskbook/", "desk/"),
        STATE.text().replace("store_", "store-"),
        STATE.text().replace("=\n", "\n"),
        STATE.text().replace("AAEC", "AA"),
        STATE.text() + "extension\n",
        STATE.text().replace("\n42\n", "\n"),
        "hello\n",
    ],
)
def test_a_signed_text_that_is_no_checkpoint_is_refused(signer: Signer, text: str) -> None:
    with pytest.raises(InvalidInput, match="no checkpoint"):
        open_checkpoint(signer.sign(text).encode(), [signer.verifier])
