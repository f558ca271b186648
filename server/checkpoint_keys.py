"""Keys that sign checkpoints, and the public keys that are trusted here: files outside the store.

By default `checkpoint-keys/NAME.key` in the user's configuration folder, mode 0600, with the public key beside
it in NAME.pub and the notes in `notes`. `[checkpoint] key_env` may name a variable with the key's line instead.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from platformdirs import user_config_path

from store.errors import ConfigError, InvalidInput, StoreError
from store.proofs.files import PRIVATE, read_small, write_whole
from store.proofs.note import (
    KEY_NAME,
    Signer,
    Verifier,
    check_key_name,
    from_base64,
    read_signer,
    read_verifier,
)

from .settings import Settings

FOLDER: Final = "checkpoint-keys"
NOTES: Final = "notes"
REGISTERS: Final = "redactions"
_PRIVATE: Final = ".key"
_PUBLIC: Final = ".pub"


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Who signs, the public keys that are trusted, and the folder of the notes."""

    signer: Signer
    known: tuple[Verifier, ...]
    notes: Path


def key_folder() -> Path:
    """Where keys lie unless `--key` says otherwise."""
    return user_config_path("deskbook") / FOLDER


def register_folder() -> Path:
    """Where the redaction registers lie: with the checkpoints, outside of the store."""
    return key_folder() / REGISTERS


def key_file(key: Path | None, name: str | None) -> Path:
    """The file of the private key that is meant."""
    if key is not None:
        return key.absolute()
    return key_folder() / f"{check_key_name(name or KEY_NAME).replace('/', '_')}{_PRIVATE}"


def make_key(path: Path, name: str | None) -> Verifier:
    """Make a key pair, the public key beside the private one; raises ConfigError where a key lies."""
    signer = Signer.fresh(check_key_name(name or KEY_NAME))
    if path.with_suffix(_PUBLIC) == path:
        raise ConfigError(
            "A private key's file cannot end in .pub.", field="--key", hint="Name it desk.key, say."
        )
    public = path.with_suffix(_PUBLIC)
    for place in (path, public):
        if os.path.lexists(place):
            raise _standing_key(place)
    try:
        write_whole(path, signer.secret().encode() + b"\n", PRIVATE, replace=False)
        write_whole(public, f"{signer.verifier}\n".encode(), replace=False)
    except FileExistsError:
        raise _standing_key(path) from None
    return signer.verifier


def _standing_key(path: Path) -> ConfigError:
    return ConfigError(
        f"A key lies at {path} already; it is never overwritten.",
        field="--new-key",
        hint="Give the new key another --name, or name another file with --key.",
    )


def key_ring(
    settings: Settings, key: Path | None, name: str | None, environ: Mapping[str, str] = os.environ
) -> KeyRing:
    """The key that signs: `--key`, else the variable of `[checkpoint] key_env`, else the file of `--name`.

    Raises ConfigError where there is none, StoreError for a file that others may read, InvalidInput for one that
    holds no key.
    """
    path = key_file(key, name)
    variable = settings.checkpoint.key_env
    if key is None and name is None and variable is not None:
        signer = _from_variable(variable, environ)
        folder = key_folder()
    else:
        signer, folder = _from_file(path), path.parent
    known = dict.fromkeys([signer.verifier, *_public_keys(folder)])
    if len(known) > len(_public_keys(folder)):
        _keep_public(folder, signer.verifier)
    return KeyRing(signer, tuple(known), folder / NOTES)


def trusted_keys(
    settings: Settings, given: str | None, key: Path | None = None, environ: Mapping[str, str] = os.environ
) -> tuple[Verifier, ...]:
    """The public keys that may have signed a checkpoint: those given, or the desk's own.

    `given` is a verifier key or a file that holds some, one a line. Raises ConfigError where there is none.
    """
    if given is not None:
        return _given(given)
    known = list(_public_keys(key_folder() if key is None else key.absolute().parent))
    variable = settings.checkpoint.key_env
    if variable is not None and environ.get(variable):
        known.append(_from_variable(variable, environ).verifier)
    if not known:
        raise ConfigError(
            "There is no public key to check a checkpoint with.",
            field="--checkpoint-key",
            hint="Name the signer's public key, or a file that holds it. "
            "`deskbook checkpoint --new-key` makes a key of your own.",
        )
    return tuple(dict.fromkeys(known))


def refuse_inside(path: Path, root: Path, option: str) -> None:
    """Raise ConfigError for a place inside the store: who can rewrite the ledger could rewrite it too."""
    if path.resolve().is_relative_to(root.resolve()):
        raise ConfigError(
            f"{path} lies inside the store.",
            field=option,
            hint="Keys and checkpoints are worth nothing there: whoever rewrites the ledger rewrites them too. "
            "Name a place outside, best on another machine.",
        )


def _given(given: str) -> tuple[Verifier, ...]:
    try:
        return (read_verifier(given),)
    except InvalidInput:
        path = Path(given)
    try:
        lines = read_small(path).decode("utf-8").split("\n")
    except (FileNotFoundError, UnicodeDecodeError):
        raise ConfigError(
            f"{path.name} is neither a public key nor a file that holds one.",
            field="--checkpoint-key",
            hint="A public key reads name+id+key, as `deskbook checkpoint --new-key` prints it.",
        ) from None
    return tuple(read_verifier(line) for line in lines if line.strip())


def _keep_public(folder: Path, verifier: Verifier) -> None:
    """Keep the public key of a key that came from elsewhere, so that its notes are still known under the next one."""
    name = f"{verifier.name.replace('/', '_')}-{verifier.key_id.hex()}{_PUBLIC}"
    write_whole(folder / name, f"{verifier}\n".encode())


def _public_keys(folder: Path) -> tuple[Verifier, ...]:
    files = sorted(folder.glob(f"*{_PUBLIC}")) if folder.is_dir() else []
    found = []
    for file in files:
        try:
            found.append(read_verifier(read_small(file).decode("utf-8")))
        except (InvalidInput, UnicodeDecodeError):
            raise StoreError(
                "The file holds no public key of a checkpoint.",
                hint="Put the key back or move the file away.",
                where=file,
            ) from None
    return tuple(found)


def _from_variable(variable: str, environ: Mapping[str, str]) -> Signer:
    line = environ.get(variable, "").strip()
    if not line:
        raise ConfigError(
            f"{variable}, which [checkpoint] key_env names, is not set.",
            field="checkpoint.key_env",
            hint="Set it to the line of a key file, or to the 32 bytes of an Ed25519 key in base64.",
        )
    seed = from_base64(line)
    return Signer(KEY_NAME, seed) if seed is not None and len(seed) == 32 else read_signer(line)


def _from_file(path: Path) -> Signer:
    try:
        mode = path.stat().st_mode
        raw = read_small(path)
    except FileNotFoundError:
        raise ConfigError(
            f"There is no key at {path}.",
            field="--key",
            hint="Make one with `deskbook checkpoint --new-key`.",
        ) from None
    if mode & 0o077:
        raise StoreError(
            f"The key file is open to other users (mode {stat.S_IMODE(mode):04o}), so nothing is signed with it: "
            f"chmod 600 {shlex.quote(str(path))}",
            hint="If others could read it, make a new key.",
            where=path,
        )
    try:
        return read_signer(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise InvalidInput("The key file holds no key.", field="--key", hint="Name another.") from None
