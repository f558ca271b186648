"""The redaction register: what was ever taken away from a ledger, kept outside of the store like its checkpoints.

One file of JSON lines for each ledger, named by its store id; lines are only ever added. A backup from before a
redaction is restored without what was redacted, because this says so. No line holds a text but the reason.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from ..errors import StoreDamaged, StoreError
from ..paths import sync_folder

SUFFIX: Final = ".jsonl"
_STORE_ID: Final = re.compile(r"store_[0-9a-z]{13}")


@dataclass(frozen=True, slots=True)
class Line:
    """One entry that was redacted: its hash in hex and what stays of it; by whom, why, when (ISO 8601, UTC)."""

    sequence: int
    event_type: str
    content_sha256: str
    kept: dict[str, Any]
    subject_type: str
    subject_id: str
    reason: str
    by: str
    at: str


_LINE: Final = TypeAdapter(Line)


class Register:
    """The registers of all ledgers, in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def lines(self, store_id: str) -> list[Line]:
        """What was taken away from a ledger, in the order in which it was; empty where nothing ever was.

        Raises StoreDamaged for a register that cannot be read: nobody then knows what must stay away.
        """
        path = self._path(store_id)
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as fault:
            raise StoreError(
                f"The redaction register cannot be read: {os.strerror(fault.errno or 0)}.",
                hint="Make it readable; without it nobody knows what must stay away.",
                where=path,
            ) from None
        try:
            return [_LINE.validate_json(line) for line in _whole_lines(raw)]
        except ValidationError:
            raise StoreDamaged(
                "The redaction register holds a line that is none.",
                hint="Put the register back as it was; without it nobody knows what must stay away.",
                where=path,
            ) from None

    def check_writable(self, store_id: str) -> None:
        """Raise StoreError unless lines can be added."""
        with self._open(store_id):
            pass

    def add(self, store_id: str, lines: Iterable[Line]) -> None:
        """Add lines, durably; those that stand there already are left out. Raises StoreError if it cannot."""
        with self._open(store_id) as handle:
            known = {(line.sequence, line.content_sha256) for line in self.lines(store_id)}
            fresh = [line for line in lines if (line.sequence, line.content_sha256) not in known]
            written = "".join(
                json.dumps(asdict(line), ensure_ascii=False, sort_keys=True) + "\n" for line in fresh
            ).encode()
            while written:
                written = written[os.write(handle, written) :]
            os.fsync(handle)

    @contextmanager
    def _open(self, store_id: str) -> Iterator[int]:
        """The file, locked, at its end; what a line that was cut off left there is cut away."""
        path = self._path(store_id)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            handle = os.open(path, flags, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                raw = path.read_bytes()
                whole = raw.rfind(b"\n") + 1
                if whole < len(raw):
                    os.ftruncate(handle, whole)
                os.lseek(handle, whole, os.SEEK_SET)
                sync_folder(self._folder)
                yield handle
            finally:
                os.close(handle)
        except OSError as fault:
            raise StoreError(
                f"The redaction register cannot be written: {os.strerror(fault.errno or 0)}. Nothing was changed.",
                hint="Make its folder writable: without it a restored backup would bring the content back.",
                where=path,
            ) from None

    def _path(self, store_id: str) -> Path:
        if not _STORE_ID.fullmatch(store_id):
            raise StoreDamaged("The ledger's store id is none.", hint="Run `deskbook verify`.")
        return self._folder / f"{store_id}{SUFFIX}"


def _whole_lines(raw: bytes) -> list[bytes]:
    return raw[: raw.rfind(b"\n") + 1].splitlines()
