"""What a server shows a client that asks for its lists alone, which leaves nothing in a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp_types.version import LATEST_HANDSHAKE_VERSION, SUPPORTED_PROTOCOL_VERSIONS

from .. import __version__
from .findings import Finding, fail, ok, warn

Reply = Mapping[str, Any]
Ask = Callable[[str, Mapping[str, Any]], Reply]
"""Sends one request and gives its result; raises RequestRefused, or what its transport raises."""

HELLO: Final[Mapping[str, Any]] = {
    "protocolVersion": LATEST_HANDSHAKE_VERSION,
    "capabilities": {},
    "clientInfo": {"name": "deskbook-doctor", "version": __version__},
}
INITIALIZED: Final = "notifications/initialized"
_MOST_PAGES: Final = 20
_LISTS: Final = (
    ("tool", "tools", "tools/list", "tools", "name"),
    ("resource", "resources", "resources/list", "resources", "uri"),
    ("template", "resources", "resources/templates/list", "resourceTemplates", "uriTemplate"),
    ("prompt", "prompts", "prompts/list", "prompts", "name"),
)


class RequestRefused(Exception):
    """A server answered a request with an error of the protocol; the text is the server's."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a server said of itself: its name and version as claimed, the protocol, and what it offers."""

    server: str
    protocol: str
    offers: frozenset[str]


def greeting_of(result: Reply) -> Greeting | None:
    """What the answer to `initialize` says; None when it is no such answer."""
    protocol, info, offers = (result.get(key) for key in ("protocolVersion", "serverInfo", "capabilities"))
    if not isinstance(protocol, str) or not isinstance(info, Mapping) or not isinstance(offers, Mapping):
        return None
    return Greeting(f"{info.get('name')} {info.get('version')}", protocol, frozenset(map(str, offers)))


def check_protocol(name: str, greeting: Greeting) -> Iterator[Finding]:
    """Whether the server speaks a protocol that is known here."""
    if greeting.protocol not in SUPPORTED_PROTOCOL_VERSIONS:
        yield warn(
            name,
            f"it speaks protocol {greeting.protocol}, which this Deskbook does not know",
            "Use the same version of Deskbook on both sides.",
        )


def check_lists(name: str, greeting: Greeting, ask: Ask) -> Iterator[Finding]:
    """What the client sees: the number and names of tools, resources, templates and prompts."""
    told = []
    tools = 0
    for noun, capability, method, key, label in _LISTS:
        if capability not in greeting.offers:
            continue
        try:
            names = _names(ask, method, key, label)
        except RequestRefused as error:
            yield fail(name, f"{method} was refused: {error}", "See the server's log for the cause.")
            return
        tools += len(names) if capability == "tools" else 0
        count = f"{len(names)} {noun}{'' if len(names) == 1 else 's'}"
        told.append(f"{count}: {', '.join(names)}" if names else f"no {noun}s")
    if tools:
        yield ok(name, "; ".join(told))
    else:
        yield fail(
            name, "no tools", "Give the agent a profile that allows something ([agents.NAME] profile)."
        )


def _names(ask: Ask, method: str, key: str, label: str) -> list[str]:
    names: list[str] = []
    parameters: Mapping[str, Any] = {}
    for _ in range(_MOST_PAGES):
        page = ask(method, parameters)
        listed = page.get(key)
        items = listed if isinstance(listed, list) else []
        names += [str(item.get(label)) for item in items if isinstance(item, Mapping)]
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):
            break
        parameters = {"cursor": cursor}
    return names
