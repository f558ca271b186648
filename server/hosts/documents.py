"""A host's file as text: its entry read, put in and taken out, in whichever format the host keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import json_text, toml_text
from .entries import agents_of_inputs, entry_of, needs_input, own_input, refers_to_input, token_of
from .launch import Http, Launch
from .table import Host


def standing(text: str, host: Host, name: str) -> Any:
    """What stands under that name among the host's servers, or None; raises UnreadableText."""
    return _read(text, host, (*host.path, name))


def sharing(text: str, host: Host, variable: str, name: str) -> list[str]:
    """The entries beside the one of that name that take a token from the same variable; raises UnreadableText."""
    servers = _read(text, host, host.path)
    listed = servers.items() if isinstance(servers, Mapping) else ()
    return [
        str(other)
        for other, entry in listed
        if other != name and isinstance(entry, Mapping) and token_of(host, entry)[0] == variable
    ]


def installed(text: str, host: Host, launch: Launch, name: str) -> str:
    """The text with the entry, and with what the host has to ask for where that is not asked for yet.

    Raises ConfigError as `entry_of` does, UnreadableText and UneditableText.
    """
    entry = entry_of(host, launch, name)
    if host.format == "toml":
        return toml_text.with_table(text, host.path, name, entry)
    before = agents_of_inputs(standing(text, host, name), name)
    if host.inputs is not None and isinstance(launch, Http) and needs_input(host, launch):
        asked = own_input(host, name, launch.agent)
        if not _asks(text, host.inputs.key, asked["id"]):
            text = json_text.with_item(text, host.inputs.key, asked)
    return _without_inputs(json_text.with_member(text, host.path, name, entry), host, name, before)


def uninstalled(text: str, host: Host, name: str) -> str:
    """The text without the entry, and without the input that came with it unless something else refers to it.

    Raises UnreadableText and UneditableText.
    """
    if host.format == "toml":
        return toml_text.without_table(text, host.path, name)
    before = agents_of_inputs(standing(text, host, name), name)
    return _without_inputs(json_text.without_member(text, host.path, name), host, name, before)


def snippet(host: Host, launch: Launch, name: str) -> str:
    """A whole file that holds the entry and nothing else."""
    return installed("", host, launch, name)


def _read(text: str, host: Host, path: tuple[str, ...]) -> Any:
    return (toml_text if host.format == "toml" else json_text).read(text, path)


def _asks(text: str, key: str, input_id: str) -> bool:
    listed: Any = json_text.read(text, (key,))
    items: list[Any] = listed if isinstance(listed, list) else []
    return any(isinstance(item, dict) and item.get("id") == input_id for item in items)


def _without_inputs(text: str, host: Host, name: str, agents: Iterable[str]) -> str:
    """The text without the inputs of that entry for these agents that came with it and nothing refers to."""
    if host.inputs is None:
        return text
    for agent in agents:
        own = own_input(host, name, agent)
        listed = json_text.read(text, (host.inputs.key,))
        if (
            isinstance(listed, list)
            and own in listed
            and not refers_to_input(json_text.read(text, ()), own["id"])
        ):
            text = json_text.without_item(text, host.inputs.key, own)
    return text
