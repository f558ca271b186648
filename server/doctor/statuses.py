"""What an HTTP answer that is no success means for whoever set the client up, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from .findings import Finding, fail
from .web import Address, Answer, Credential

NAME: Final = "initialize"


@dataclass(frozen=True, slots=True)
class Sent:
    """What was sent where, and with which token."""

    address: Address
    token: Credential


def explained(answer: Answer, sent: Sent) -> Finding:
    """The finding for an answer to `initialize` that is not 200."""
    said = answer.told.get("message")
    found, todo = _EXPLAINED.get(answer.status, _other)(answer, sent)
    return fail(NAME, f"{answer.status} {found}{f': {said}' if said else ''}", todo)


def _unauthorized(answer: Answer, sent: Sent) -> tuple[str, str]:
    told = answer.told
    said = told.get("message", "")
    if not sent.token.value:
        if sent.token.source is None:
            return "no token was sent", (
                "Name the variable that holds the agent's token (--token-env VAR); `deskbook token new AGENT` "
                "prints a new one."
            )
        return f"no token was sent, because {sent.token.source} is not set here", (
            f"Set {sent.token.source} to the agent's token; `deskbook token new AGENT` prints a new one."
        )
    found = f"the token in {sent.token.source} is refused"
    for word, todo in _REFUSED_TOKENS.items():
        if word in said:
            return found, todo
    return found, told.get(
        "hint"
    ) or "Ask whoever runs this server for a token; it does not look like Deskbook."


_REFUSED_TOKENS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "expired": "`deskbook token new AGENT` prints a new one; put that into the variable.",
        "revoked": "Somebody ended it on purpose; if that was a mistake, `deskbook token new AGENT` prints another.",
        "not known": "The server has no such token: it was made for another root, its agent is no longer in the "
        "config, or the variable holds something else. `deskbook token list` with the server's --config and --root "
        "shows which there are, `deskbook token new AGENT` prints a new one.",
        "no bearer token": "The variable holds something else than a token: what `deskbook token new AGENT` prints, "
        "and nothing before or after it.",
    }
)


def _forbidden(answer: Answer, sent: Sent) -> tuple[str, str]:
    return "the server knows the caller and will not serve it", answer.told.get("hint") or (
        "Ask whoever runs this server; it does not look like Deskbook."
    )


def _absent(answer: Answer, sent: Sent) -> tuple[str, str]:
    path = urlsplit(sent.address.url).path or "/"
    return f"nothing is served at the path {path}", answer.told.get("hint") or (
        "Deskbook serves MCP at the path /mcp; behind a proxy, at whatever path the proxy hands on to it."
    )


def _wrong_method(answer: Answer, sent: Sent) -> tuple[str, str]:
    if urlsplit(sent.address.url).path.rstrip("/").endswith("/sse"):
        return "/sse is for clients of the older HTTP+SSE transport", (
            f"Use {sent.address.beside('mcp')} with Streamable HTTP, or tell the client that its transport is sse."
        )
    return "the path takes no posted messages", (
        f"MCP is served at a path of its own, such as {sent.address.at('/mcp')}."
    )


def _too_large(answer: Answer, sent: Sent) -> tuple[str, str]:
    return "even a greeting is too large", (
        "Raise [http] max_body_bytes, or the limit of the proxy before the server."
    )


def _misdirected(answer: Answer, sent: Sent) -> tuple[str, str]:
    return "the server does not go by this host name", (
        f'Add it to the server\'s config: [http] allowed_hosts = ["{sent.address.host}"], then start it again; '
        "or use a name it goes by."
    )


def _overloaded(answer: Answer, sent: Sent) -> tuple[str, str]:
    return "the server has no room now", "Try again in a moment; if it stays so, look at [http] max_sessions."


def _moved(answer: Answer, sent: Sent) -> tuple[str, str]:
    target = answer.headers.get("location", "nowhere").partition("?")[0]
    return f"the server sends clients elsewhere: {target}", (
        "Give the client that address itself: many do not follow, or leave the token behind when they do."
    )


def _gateway(answer: Answer, sent: Sent) -> tuple[str, str]:
    return "a proxy answers, and reaches no server behind it", (
        "Start the server (`deskbook serve --transport http`), and check the proxy's address for it."
    )


def _other(answer: Answer, sent: Sent) -> tuple[str, str]:
    if answer.told:
        return "the greeting was refused", answer.told.get("hint", "The server's log has the cause.")
    return "what answers there is no MCP server", (
        f"Check host, port and path; Deskbook serves MCP at {sent.address.at('/mcp')}."
    )


_Explain = Callable[[Answer, Sent], tuple[str, str]]
_EXPLAINED: Final[Mapping[int, _Explain]] = MappingProxyType(
    {
        401: _unauthorized,
        403: _forbidden,
        404: _absent,
        405: _wrong_method,
        413: _too_large,
        421: _misdirected,
        429: _overloaded,
        502: _gateway,
        503: _overloaded,
        504: _gateway,
        **dict.fromkeys((301, 302, 303, 307, 308), _moved),
    }
)
