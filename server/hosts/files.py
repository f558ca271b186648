"""A host's file on disk, changed so that nothing is lost: a copy first, then the whole file replaced at once.

A link is followed and its target replaced, because a person's settings are often links into a folder of their own.
"""

from __future__ import annotations

import codecs
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from store.errors import ConfigError

from .faults import UneditableText, UnreadableText

_LIMIT: Final = 67_108_864
_TRIES: Final = 3
_PRIVATE: Final = (0o700, 0o600)
_ORDINARY: Final = (0o777, 0o666)  # what the umask leaves of it

Edit = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Changed:
    """What became of a file: the one written (None: it stood so already), its copy, and the folders made."""

    written: Path | None
    backup: Path | None = None
    made: tuple[Path, ...] = ()


class _Moved(Exception):
    """The file was changed by another program after it was read."""


def text_of(path: Path) -> str | None:
    """The text of a file without its byte order mark, or None where there is no file; raises ConfigError."""
    found = _bytes(path)
    return None if found is None else _decoded(found, path)[1]


def change(path: Path, edit: Edit, *, private: bool) -> Changed:
    """Replace the file's text by what `edit` makes of it; a missing file is the empty text.

    New files and folders are the user's alone when `private`. The edit is made again when another program wrote
    meanwhile. Raises ConfigError, and then the file stands as it did.
    """
    for _ in range(_TRIES):
        try:
            return _change_once(path, edit, private=private)
        except _Moved:
            continue
        except OSError as error:
            raise ConfigError(
                f"{path} cannot be written: {error.strerror}.",
                field="file",
                hint="Nothing was changed. Name another file with --file, or print the entry with --print.",
            ) from None
    raise ConfigError(
        f"{path} is changed by another program all the time.",
        field="file",
        hint="End the host, then try again.",
    )


def _change_once(path: Path, edit: Edit, *, private: bool) -> Changed:
    before = _bytes(path)
    mark, text = (b"", "") if before is None else _decoded(before, path)
    try:
        after = mark + edit(text).encode("utf-8")
    except UnreadableText as fault:
        raise _unreadable(path, fault) from None
    except UneditableText as fault:
        raise ConfigError(
            f"{path} cannot be edited safely: {fault}.",
            field="file",
            hint="Nothing was changed. Print the entry with --print and put it in by hand.",
        ) from None
    if after == (before or b""):
        return Changed(None)
    target = path.resolve()
    folder_mode, file_mode = _PRIVATE if private else _ORDINARY
    made = _made_folders(target.parent, folder_mode)
    standing = None if before is None else target.stat()
    if standing is not None and not os.access(target, os.W_OK):
        raise PermissionError(13, "it is read-only")
    spare = _written_beside(target, after, standing, file_mode)
    backup: Path | None = None
    try:
        if before is not None:
            backup = _backup(target, before, standing)
        _replace(target, spare, before)
    except BaseException:
        spare.unlink(missing_ok=True)
        if backup is not None:
            backup.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)
    return Changed(target, backup, tuple(made))


def _replace(target: Path, spare: Path, before: bytes | None) -> None:
    """Put the new file in the place of the old one, if that still holds what was read."""
    if _bytes(target) != before:
        raise _Moved
    spare.replace(target)


def _bytes(path: Path) -> bytes | None:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(f"{path} is not a file.", field="file", hint="Name a file with --file.")
        with path.open("rb") as file:
            found = file.read(_LIMIT + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.", field="file") from None
    if len(found) > _LIMIT:
        raise ConfigError(f"{path} is larger than {_LIMIT} bytes.", field="file")
    return found


def _decoded(found: bytes, path: Path) -> tuple[bytes, str]:
    mark = codecs.BOM_UTF8 if found.startswith(codecs.BOM_UTF8) else b""
    try:
        return mark, found[len(mark) :].decode("utf-8")
    except UnicodeDecodeError as error:
        line = found.count(b"\n", 0, error.start + len(mark)) + 1
        raise ConfigError(
            f"{path} is not UTF-8 at line {line}.", field="file", hint="Nothing was changed."
        ) from None


def _unreadable(path: Path, fault: UnreadableText) -> ConfigError:
    at = f" at line {fault.line}" if fault.line else ""
    at += f", column {fault.column}" if fault.line and fault.column else ""
    return ConfigError(
        f"{path} does not parse{at}: {fault.reason}.",
        field="file",
        hint="Nothing was changed. Mend the file first, or print the entry with --print.",
    )


def _made_folders(folder: Path, mode: int) -> list[Path]:
    missing = [one for one in reversed((folder, *folder.parents)) if not one.exists()]
    for one in missing:
        one.mkdir(mode=mode, exist_ok=True)
    return missing


def _written_beside(target: Path, content: bytes, standing: os.stat_result | None, mode: int) -> Path:
    """A new file in the target's folder, on the disk, with the target's owner and mode bits."""
    spare = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    _write_new(spare, content, mode if standing is None else 0o600)
    try:
        _take_after(spare, standing)
    except BaseException:
        spare.unlink(missing_ok=True)
        raise
    return spare


def _backup(target: Path, content: bytes, standing: os.stat_result | None) -> Path:
    """A copy beside the file under the first free number, as well guarded as the file."""
    number = 1
    while True:
        copy = target.with_name(f"{target.name}.bak-{number}")
        try:
            _write_new(copy, content, 0o600)
        except FileExistsError:
            number += 1
            continue
        _take_after(copy, standing)
        return copy


def _write_new(path: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _take_after(path: Path, standing: os.stat_result | None) -> None:
    if standing is None:
        return
    own = path.stat()
    if (own.st_uid, own.st_gid) != (standing.st_uid, standing.st_gid):
        # Only root may give a file away; anyone else gets one of their own, as an editor would.
        with suppress(PermissionError):
            os.chown(path, standing.st_uid, standing.st_gid)
    path.chmod(stat.S_IMODE(standing.st_mode))


def _sync_folder(folder: Path) -> None:
    # The new file stands already; some file systems cannot sync a folder.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
