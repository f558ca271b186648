"""The entry of a server in a host's file, made from the host's template; and whether an entry is one of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

from store.errors import ConfigError

from .launch import Http, Launch
from .table import Host, Slot

DEFAULT_URL: Final = "http://127.0.0.1:8765/mcp"
_OWN_NAME: Final = "deskbook"
_ADDRESSES: Final = ("url", "httpUrl", "serverUrl")
_ABSENT: Final = object()

VARIABLE: Final = re.compile(r"\$?\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
"""How hosts refer to a variable: its name, and what stands for it when it is empty."""

Entry = dict[str, Any]


def entry_of(host: Host, launch: Launch, name: str) -> Entry:
    """The entry as the host reads it; it refers to a token and never holds one.

    Raises ConfigError where the host's file takes no servers over HTTP, or cannot refer to a token.
    """
    if not isinstance(launch, Http):
        return filled(host.stdio, host, launch, name)
    if host.http is None:
        raise ConfigError(
            f"The file of {host.title} takes only servers that it starts itself.",
            field="--transport",
            hint=f"Install it with --transport stdio. A remote server is added in {host.elsewhere}.",
        )
    if launch.variable is not None and host.reference is None:
        raise ConfigError(
            f"The file of {host.title} cannot refer to a token in the environment, and a token is never written out.",
            field="--transport",
            hint="Use --transport stdio, or --no-token for an open server on this machine.",
        )
    return filled(host.http, host, launch, name)


def needs_input(host: Host, launch: Launch) -> bool:
    """Say whether the entry refers to something that the host has to ask a person for."""
    return host.inputs is not None and isinstance(launch, Http) and launch.variable is not None


def own_input(host: Host, name: str, agent: str) -> Entry:
    """The item that `install` adds to the host's inputs for that entry and agent; empty for a host without.

    It is another one for every agent: a host remembers what it was told under an id, also when the entry changes.
    """
    return {} if host.inputs is None else filled(host.inputs.item, host, Http("", None, agent), name)


def agents_of_inputs(entry: object, name: str) -> list[str]:
    """The agents whose inputs, added by `install` for an entry of that name, the entry refers to."""
    told = json.dumps(entry, ensure_ascii=False, default=str)
    return re.findall(rf"\$\{{input:{re.escape(name)}-([a-z0-9_]+)-token\}}", told)


def token_of(host: Host, entry: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The variable that the entry refers to for its token; else the token itself, where it is written out."""
    for key, slot in (host.http or {}).items():
        if slot is Slot.VARIABLE and isinstance(entry.get(key), str):
            return entry[key], None
    headers = entry.get("headers")
    sent = headers.get("Authorization") if isinstance(headers, Mapping) else None
    if not isinstance(sent, str):
        return None, None
    found = VARIABLE.search(sent)
    if found is not None:
        return found[1], None
    return None, None if "${" in sent else sent.removeprefix("Bearer ").strip()


def filled(template: Mapping[str, object], host: Host, launch: Launch, name: str) -> Entry:
    """The template with its slots filled; what has nothing to stand in it is left out."""
    slots = _slots(host, launch, name)
    entry: Entry = {}
    for key, wanted in template.items():
        if isinstance(wanted, Mapping):
            value: object = filled(wanted, host, launch, name) or _ABSENT
        else:
            value = slots.get(wanted, _ABSENT) if isinstance(wanted, Slot) else wanted
        if value is not _ABSENT:
            entry[key] = value
    return entry


def _slots(host: Host, launch: Launch, name: str) -> dict[Slot, object]:
    if not isinstance(launch, Http):
        arguments = list(launch.arguments)
        return {
            Slot.COMMAND: launch.command,
            Slot.ARGUMENTS: arguments,
            Slot.COMMAND_LINE: [launch.command, *arguments],
        }
    given: dict[Slot, object] = {
        Slot.URL: launch.url,
        Slot.INPUT_ID: _input_id(name, launch.agent),
        Slot.INPUT_TEXT: f"The bearer token of {launch.agent} for {name}",
    }
    if launch.variable is not None and host.reference is not None:
        given[Slot.VARIABLE] = launch.variable
        given[Slot.BEARER] = "Bearer " + host.reference.format(
            variable=launch.variable, input=_input_id(name, launch.agent)
        )
    return given


def _input_id(name: str, agent: str) -> str:
    # The agent's word holds no hyphen, so no two pairs of entry and agent share an id.
    return f"{name}-{agent}-token"


def refers_to_input(value: object, input_id: str) -> bool:
    """Say whether `${input:ID}` stands anywhere in what a file holds."""
    return f"${{input:{input_id}}}" in json.dumps(value, ensure_ascii=False, default=str)


def is_ours(entry: object) -> bool:
    """Say whether an entry starts or calls a server of ours, as far as it shows."""
    if not isinstance(entry, Mapping):
        return False
    command, arguments = entry.get("command"), entry.get("args")
    words = [*_texts(command), *_texts(arguments)]
    if words:
        return _starts_ours(words)
    addresses = [entry[key] for key in _ADDRESSES if isinstance(entry.get(key), str)]
    told = json.dumps(dict(entry), ensure_ascii=False, default=str).casefold()
    return bool(addresses) and (DEFAULT_URL in addresses or _OWN_NAME in told)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []


def _starts_ours(words: list[str]) -> bool:
    program = PurePath(words[0].replace("\\", "/")).stem
    return (program == _OWN_NAME and "serve" in words[1:]) or words[1:4] == ["-m", "server", "serve"]
