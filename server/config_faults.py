"""What is wrong with a configuration, said so that its author can mend it.

Every sentence names `section.key` (or the flag or variable that set it), what was found and what is
allowed. Values that could be secrets are never shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from store.errors import ConfigError

from .near_miss import near_miss
from .section_values import FAULT, NAME
from .sections import Sections

_SHOWN = 5
_SECRET_WORDS = frozenset({"token", "secret", "password", "passwd", "credential", "bearer", "authorization"})
_SECRET_KEYS = frozenset({"key", "apikey", "accesskey", "privatekey", "auth"})
_NEVER_SHOWN = ("_env", "url", "endpoint")
_TABLE = "a table"
KeyPath = tuple[int | str, ...]


def config_error(error: ValidationError, origins: Mapping[str, str], source: str | None) -> ConfigError:
    """Turn what pydantic found into one ConfigError of a line a fault, at most five of them.

    `origins` names the flag or variable that set a key, `source` the config file.
    """
    faults = error.errors(include_url=False)
    lines = [_sentence(fault["loc"], fault, origins) for fault in faults[:_SHOWN]]
    if len(faults) > _SHOWN:
        lines.append(f"and {len(faults) - _SHOWN} more.")
    first = dotted(faults[0]["loc"])
    place = f"Correct it in {source}." if source else None
    return ConfigError("\n".join(lines), field=first, hint=None if first in origins else place)


def unknown_section(name: str) -> ConfigError:
    """Return the error for a top-level table or key that Deskbook does not know."""
    return ConfigError(_unknown((name,)), field=name, hint=f"Sections: {', '.join(Sections.model_fields)}.")


def dotted(path: Sequence[int | str]) -> str:
    """Write a path into the config as TOML would, for example `agents.trader.clock.mode`."""
    text = ""
    for part in path:
        if part == "[key]":
            continue
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + (part if _bare(part) else json.dumps(part[:80]))
    return text


def shown(value: object) -> str:
    """Write a value as TOML would, cut at 60 characters."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, (list, tuple)):
        return "a list"
    text = json.dumps(value, ensure_ascii=True) if isinstance(value, (str, bool, int, float)) else str(value)
    return text if len(text) <= 60 else text[:60] + "..."


def _sentence(path: KeyPath, fault: Mapping[str, Any], origins: Mapping[str, str]) -> str:
    key = dotted(path)
    name = origins.get(key, key)
    kind = fault["type"]
    if kind == "extra_forbidden":
        return _unknown(path)
    if path[-1] == "[key]":
        return f"{dotted(path[:-2])} has a name that {fault['msg']}."
    if kind == "missing":
        return f"{name} is missing; allowed: {_allowed(path)}."
    if kind == FAULT:
        return f"{name} {fault['msg']}."
    if str(path[-1]).endswith(_NEVER_SHOWN):
        return f"{name} has a value that is not shown here; allowed: {_allowed(path)}."
    return f"{name} is {shown(fault['input'])}; allowed: {_allowed(path)}."


def _allowed(path: KeyPath) -> str:
    if path[0] in {"agent", "run"}:
        return NAME
    _, description = _walk(path)
    return f"a table [{dotted(path)}]" if description == _TABLE else description


def _walk(path: KeyPath) -> tuple[type[BaseModel] | None, str]:
    """Return the model of the table at `path`, None for a plain value, and what is allowed there."""
    model: type[BaseModel] | None = Sections
    description = _TABLE
    free_name = False
    for part in path:
        if free_name:
            free_name, description = False, _TABLE
        elif model is None:
            description = f"text, in {description}" if isinstance(part, int) else "text"
        elif part in model.model_fields:
            field = model.model_fields[str(part)]
            description = field.description or _TABLE
            model = _inner_model(field)
            free_name = model is not None and model is not field.annotation
    return model, description


def _inner_model(field: FieldInfo) -> type[BaseModel] | None:
    for candidate in (field.annotation, *get_args(field.annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _unknown(path: KeyPath) -> str:
    key, name = dotted(path), str(path[-1])
    if _secret(name):
        return f"{key} would put a secret into the file, which takes none; {_secret_advice(path)}."
    table = _walk(path[:-1])[0] or Sections
    close = near_miss(name, table.model_fields)
    meant = _elsewhere(name) or (dotted((*path[:-1], close)) if close else None)
    if meant:
        return f'{key} is not a key of Deskbook (did you mean "{meant}"?).'
    within = f"[{dotted(path[:-1])}]" if len(path) > 1 else "the file"
    return f"{key} is not a key of Deskbook; {within} takes: {', '.join(table.model_fields)}."


def _elsewhere(key: str) -> str | None:
    sections = Sections.model_fields.items()
    models = ((name, _inner_model(field)) for name, field in sections if name not in {"agents", "profiles"})
    return _first(f"{name}.{key}" for name, model in models if model and key in model.model_fields)


def _first(names: Iterable[str]) -> str | None:
    return next(iter(names), None)


def _secret(key: str) -> bool:
    words = key.casefold().replace("-", "_").split("_")
    return not _SECRET_WORDS.isdisjoint(words) or "".join(words) in _SECRET_KEYS or words[-1] == "key"


def _secret_advice(path: KeyPath) -> str:
    advice = "put it into an environment variable and name that variable"
    if path[0] in {"publish", "checkpoint"}:
        return f'{advice}: {path[0]}.key_env = "DESKBOOK_{str(path[0]).upper()}_KEY"'
    if path[0] == "agents" and len(path) > 2:
        return f'{advice}: {dotted((*path[:2], "token_env"))} = "DESKBOOK_AGENT_TOKEN"'
    named = "agents.NAME.token_env, publish.key_env and checkpoint.key_env"
    return f"the keys that name an environment variable are {named}"


def _bare(part: str) -> bool:
    return part.isascii() and part.replace("-", "").replace("_", "").isalnum()
