"""What a backup must be, as it is written beside it and read again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from ..errors import NotFound, StoreDamaged
from .portrait import Portrait

FORMAT = "deskbook-backup"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup must be: its file's size in bytes and SHA-256, and the portrait of the ledger in it.

    `made_at` is an ISO time in UTC.
    """

    file: str
    size_bytes: int
    sha256: str
    made_at: str
    product: str
    portrait: Portrait

    def to_json(self) -> str:
        """The manifest as it is written."""
        return (
            json.dumps({"format": FORMAT, "version": VERSION} | asdict(self), ensure_ascii=False, indent=1)
            + "\n"
        )


_MANIFEST = TypeAdapter(Manifest)


def manifest_path(backup: Path) -> Path:
    """Where a backup's manifest lies."""
    return backup.with_name(backup.name + ".json")


def read_manifest(backup: Path) -> Manifest:
    """A backup's manifest.

    Raises NotFound without backup or manifest, StoreDamaged for a manifest that is not one.
    """
    place = manifest_path(backup)
    for file in (backup, place):
        if not file.is_file():
            raise NotFound(
                f"There is no file {file}.", hint="A backup is a file with its manifest, .json, beside it."
            )
    try:
        return _manifest_of(place.read_bytes())
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise StoreDamaged(
            "The backup's manifest cannot be read.", hint="Use another backup.", where=place
        ) from None


def _manifest_of(written: bytes) -> Manifest:
    """The manifest in its JSON; raises ValueError, KeyError or TypeError for any other."""
    told = json.loads(written)
    if (told["format"], told["version"]) != (FORMAT, VERSION):
        raise ValueError("another format or version")
    return _MANIFEST.validate_json(written, strict=True)
