"""How far a verification that was broken off had come, kept outside the store until one comes to its end."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from platformdirs import user_cache_path

from store.audit_mark import Mark
from store.files import write_whole


class MarkFile:
    """The mark of one ledger; whoever can write here can also make `verify --resume` pass over entries."""

    def __init__(self, ledger: Path) -> None:
        name = hashlib.sha256(str(ledger).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self._path = user_cache_path("deskbook") / "verify" / f"{name}.json"

    def read(self) -> Mark | None:
        """The mark that was kept, None for none that can be read."""
        try:
            return Mark(**json.loads(self._path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def keep(self, mark: Mark) -> None:
        """Keep a mark, if there is a place to."""
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self._path, json.dumps(asdict(mark)))

    def forget(self) -> None:
        """The verification came to its end."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
