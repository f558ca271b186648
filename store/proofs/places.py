"""Where checkpoints are kept, outside the store: a folder with every note, or one file with the newest.

A folder holds `<store id>/<size>.note` for each checkpoint of a ledger and `<store id>/latest`, a copy of the
newest. Notes are never overwritten. What lies there is verified each time before more is signed. `ledgers` says
which ledger was signed at which place last, so that one put in its place is not taken for a new one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..errors import Conflict, DeskbookError, InvalidInput
from .checkpoint import ORIGIN, Signed, open_checkpoint
from .files import held, read_small, write_whole
from .note import Verifier

LATEST = "latest"
LEDGERS = "ledgers"
_NOTE = re.compile(r"([1-9][0-9]{0,15})\.note")


class Place(Protocol):
    """Somewhere notes are put."""

    @property
    def path(self) -> Path:
        """The folder or file, as it was named."""
        ...

    def last(self, origin: str, known: Sequence[Verifier]) -> tuple[str, Signed] | None:
        """The newest checkpoint of the ledger with that origin; raises Conflict when it does not verify."""
        ...

    def put(self, signed: Signed) -> None:
        """Keep a checkpoint durably; one that is there already is left alone."""
        ...


@dataclass(frozen=True, slots=True)
class NoteFolder:
    """A folder with every note of any number of ledgers."""

    path: Path

    def last(self, origin: str, known: Sequence[Verifier]) -> tuple[str, Signed] | None:
        """The checkpoint of the largest size; see Place."""
        sizes = self._sizes(origin)
        return self._verified(origin, sizes[-1], known) if sizes else None

    def covering(self, origin: str, sequence: int, known: Sequence[Verifier]) -> Signed | None:
        """The newest checkpoint if it covers the entry of that sequence."""
        found = self.last(origin, known)
        return found[1] if found and found[1].checkpoint.size >= sequence else None

    def all(self, origin: str, known: Sequence[Verifier]) -> list[tuple[str, Signed]]:
        """Every checkpoint of a ledger, the smallest size first."""
        return [self._verified(origin, size, known) for size in self._sizes(origin)]

    def put(self, signed: Signed) -> None:
        """Add `<size>.note` unless it is there, and make `latest` a copy of it; the folder is held meanwhile."""
        with self.held(signed.checkpoint.origin):
            self.put_held(signed)

    def put_held(self, signed: Signed) -> None:
        """The same for who holds the folder already."""
        folder = self._of(signed.checkpoint.origin)
        raw = signed.note.encode()
        try:
            write_whole(folder / f"{signed.checkpoint.size}.note", raw, replace=False)
        except FileExistsError:
            raw = read_small(folder / f"{signed.checkpoint.size}.note")
        write_whole(folder / LATEST, raw)

    def signed_at(self, ledger: Path) -> str | None:
        """The origin of the ledger that was signed last at a ledger file's place; None when none was."""
        try:
            return read_small(self._mark(ledger)).decode("utf-8", "replace").split("\n")[0]
        except FileNotFoundError:
            return None

    def note_place(self, ledger: Path, origin: str) -> None:
        """Keep which ledger is signed at a ledger file's place."""
        if self.signed_at(ledger) != origin:
            write_whole(self._mark(ledger), f"{origin}\n{ledger}\n".encode("utf-8", "surrogateescape"))

    def _mark(self, ledger: Path) -> Path:
        return (
            self.path
            / LEDGERS
            / hashlib.sha256(str(ledger.resolve()).encode("utf-8", "surrogateescape")).hexdigest()
        )

    @contextmanager
    def held(self, origin: str) -> Iterator[None]:
        """Hold a ledger's notes while one is signed, against other commands that would sign too."""
        with held(self._of(origin)):
            yield

    def _of(self, origin: str) -> Path:
        return self.path / origin.removeprefix(ORIGIN)

    def _sizes(self, origin: str) -> list[int]:
        folder = self._of(origin)
        if not folder.is_dir():
            return []
        return sorted(int(found[1]) for file in folder.iterdir() if (found := _NOTE.fullmatch(file.name)))

    def _verified(self, origin: str, size: int, known: Sequence[Verifier]) -> tuple[str, Signed]:
        file = self._of(origin) / f"{size}.note"
        name, signed = _verified(file, known)
        if (signed.checkpoint.origin, signed.checkpoint.size) != (origin, size):
            raise _untrusted(file, "It is the note of another ledger or size.")
        return name, signed


@dataclass(frozen=True, slots=True)
class NoteFile:
    """One file with the newest note of one ledger."""

    path: Path

    def last(self, origin: str, known: Sequence[Verifier]) -> tuple[str, Signed] | None:  # noqa: ARG002
        """The checkpoint in the file; see Place. Another ledger's is given too: it is not to be overwritten."""
        return _verified(self.path, known) if self.path.exists() else None

    def put(self, signed: Signed) -> None:
        """Replace the note in the file."""
        write_whole(self.path, signed.note.encode())


def place_at(path: Path) -> NoteFolder | NoteFile:
    """A folder where one lies or the name ends in no suffix, else a file."""
    if path.is_dir() or (not path.exists() and not path.suffix):
        return NoteFolder(path)
    return NoteFile(path)


def _verified(file: Path, known: Sequence[Verifier]) -> tuple[str, Signed]:
    try:
        return str(file), open_checkpoint(read_small(file), known)
    except InvalidInput as fault:
        raise _untrusted(file, fault.message) from None
    except FileNotFoundError:
        raise _untrusted(file, "It is gone.") from None


def _untrusted(file: Path, why: str) -> DeskbookError:
    return Conflict(
        f"What was signed before cannot be trusted. {why} Nothing was signed.",
        hint="Put the note back as it was, or name another place.",
        where=file,
    )
