"""A host's file as text: its entry read, put in and taken out, in whichever format the host keeps it."""

from __future__ import annotations

from typing import Any

from . import json_text, toml_text
from .entries import entry_of, needs_input, own_input, refers_to_input
from .launch import Launch
from .table import Host


def standing(text: str, host: Host, name: str) -> Any:
    """What stands under that name among the host's servers, or None; raises UnreadableText."""
    read = toml_text.read if host.format == "toml" else json_text.read
    return read(text, (*host.path, name))


def installed(text: str, host: Host, launch: Launch, name: str) -> str:
    """The text with the entry, and with what the host has to ask for where that is not asked for yet.

    Raises ConfigError as `entry_of` does, UnreadableText and UneditableText.
    """
    entry = entry_of(host, launch, name)
    if host.format == "toml":
        return toml_text.with_table(text, host.path, name, entry)
    if host.inputs is None or not needs_input(host, launch):
        return _without_input(json_text.with_member(text, host.path, name, entry), host, name)
    asked = own_input(host, name)
    if not _asks(text, host.inputs.key, asked["id"]):
        text = json_text.with_item(text, host.inputs.key, asked)
    return json_text.with_member(text, host.path, name, entry)


def uninstalled(text: str, host: Host, name: str) -> str:
    """The text without the entry, and without the input that came with it unless something else refers to it.

    Raises UnreadableText and UneditableText.
    """
    if host.format == "toml":
        return toml_text.without_table(text, host.path, name)
    return _without_input(json_text.without_member(text, host.path, name), host, name)


def snippet(host: Host, launch: Launch, name: str) -> str:
    """A whole file that holds the entry and nothing else."""
    return installed("", host, launch, name)


def _asks(text: str, key: str, input_id: str) -> bool:
    listed: Any = json_text.read(text, (key,))
    items: list[Any] = listed if isinstance(listed, list) else []
    return any(isinstance(item, dict) and item.get("id") == input_id for item in items)


def _without_input(text: str, host: Host, name: str) -> str:
    """The text without the input of that entry, if it is the one that came with it and nothing refers to it."""
    if host.inputs is None:
        return text
    own = own_input(host, name)
    listed = json_text.read(text, (host.inputs.key,))
    if (
        not isinstance(listed, list)
        or own not in listed
        or refers_to_input(json_text.read(text, ()), own["id"])
    ):
        return text
    return json_text.without_item(text, host.inputs.key, own)
