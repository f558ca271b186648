"""Masks secrets inside JSON: whole values under a name such as `password`, and parts of any other text."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from .secrets import mask, masked_as

_WHATS: Final = {
    "a password": "password passphrase passcode passwd pwd passwort credential credentials",
    "an API key": "apikey apisecret apikeyid secret secretkey clientsecret consumersecret signingkey encryptionkey",
    "an access token": "token accesstoken refreshtoken authtoken bearertoken sessiontoken idtoken apitoken bottoken"
    " authorization authorizationheader bearer cookie setcookie",
    "a private key": "privatekey seedphrase mnemonic recoveryphrase walletkey",
    "an account number": "accountnumber accountno acctno accountid iban routingnumber sortcode",
    "a card number": "cardnumber cvv cvc",
    "a social security number": "ssn socialsecuritynumber taxid",
}
SECRET_NAMES: Final = {name: what for what, names in _WHATS.items() for name in names.split()}
"""Names of values that are secret whatever they are, in small letters without signs."""

_BY_ENDING = tuple(
    name for name in SECRET_NAMES if len(name) >= 6 and name not in ("bearer", "cookie", "accountid")
)
_TICKER = re.compile(r"[A-Z]{2,6}(?:[-/][A-Z]{3,5})?")
_PATH_SHOWN, _KEY_SHOWN, _NAME_END, _MAX_DEPTH = 200, 40, 64, 64

Masked = tuple[tuple[str, str], ...]


def secret_name(key: str) -> str | None:
    """What a value of this name is, such as "a password"; None when the name tells nothing."""
    return _named(key[-_NAME_END:])


@lru_cache(maxsize=2_048)
def _named(key: str) -> str | None:
    if key.startswith("[masked"):
        return None
    plain = "".join(character for character in key.lower() if character.isalnum())
    if plain in SECRET_NAMES:
        return SECRET_NAMES[plain]
    return next((SECRET_NAMES[name] for name in _BY_ENDING if plain.endswith(name)), None)


def screen_json(value: Any, field: str = "evidence") -> tuple[Any, Masked]:
    """The value with its secrets masked, and for each its path, such as `evidence.legs[0].note`, and what it is.

    The value comes back itself when it holds none.
    """
    masked: list[tuple[str, str]] = []
    screened = _screen(value, field, None, masked, 0)
    return (screened if masked else value), tuple(masked)


def _screen(value: Any, path: str, named: str | None, masked: list[tuple[str, str]], depth: int) -> Any:
    if depth > _MAX_DEPTH or isinstance(value, bool) or value is None:
        return value
    if isinstance(value, dict):
        return _screen_object(value, path, named, masked, depth)
    if isinstance(value, list | tuple):
        items = [
            _screen(item, f"{path}[{index}]"[:_PATH_SHOWN], named, masked, depth + 1)
            for index, item in enumerate(value)
        ]
        return type(value)(items)
    if named is not None and _is_value(value, named):
        masked.append((path, named))
        return masked_as(named)
    if not isinstance(value, str):
        return value
    text, whats = mask(value)
    masked.extend((path, what) for what in whats)
    return text


def _screen_object(
    value: dict[Any, Any], path: str, named: str | None, masked: list[tuple[str, str]], depth: int
) -> dict[Any, Any]:
    screened: dict[Any, Any] = {}
    for key, item in value.items():
        name, whats = mask(key) if isinstance(key, str) else (key, ())
        below = _below(path, name)
        masked.extend((below, what) for what in whats)
        while name in screened:  # two keys that are one once masked
            name = f"{name} "
        own = secret_name(key) if isinstance(key, str) else None
        screened[name] = _screen(item, below, own or named, masked, depth + 1)
    return screened


def _is_value(value: Any, named: str) -> bool:
    if not isinstance(value, str):
        return isinstance(value, int | float)
    # A coin's ticker stands under `token`; what is masked already stays.
    coin = named == SECRET_NAMES["token"] and _TICKER.fullmatch(value) is not None
    return bool(value.strip()) and not coin and value != masked_as(named)


def _below(path: str, key: Any) -> str:
    shown = "".join(character if character.isprintable() else "?" for character in str(key)[:_KEY_SHOWN])
    return f"{path}.{shown}"[:_PATH_SHOWN]
