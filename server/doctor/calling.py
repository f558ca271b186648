"""A running HTTP server, checked the way a client reaches it: name, port, TLS, health, greeting, lists."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote

import httpx2

from ..tokens import LONGEST, SHORTEST
from .findings import Finding, fail, ok, warn
from .seen import HELLO, INITIALIZED, check_lists, check_protocol, greeting_of
from .statuses import NAME, Sent, explained
from .web import SECONDS, Address, Answer, Credential, Web

_VISIBLE: Final = re.compile(rf"[!-~]{{{SHORTEST},{LONGEST}}}")
_SELF_SIGNED: Final = frozenset({18, 19})
_EXPIRED: Final = 10
_OTHER_NAMES: Final = frozenset({62, 64})


def check_url(url: str, token: Credential) -> Iterator[Finding]:
    """Call the server at `url` and tell what a client with that token sees."""
    address = Address.of(url)
    unusable = _why_no_token(token.value)
    if unusable is not None:
        yield fail("token", f"{token.source} {unusable}", "Put the token alone into it, as it was printed.")
        return
    unreachable = _reach(address)
    if unreachable is not None:
        yield unreachable
        return
    yield ok("connect", f"{address.host} port {address.port} answers")
    if token.value and address.scheme == "http" and not _is_of_here(address):
        yield warn(
            "token",
            "the token goes over the network unencrypted",
            "Use https: name [http] tls_cert and tls_key, or put a proxy with TLS before the server.",
        )
    try:
        with Web(address, token.value) as web:
            yield from _call(web, Sent(address, token))
    except httpx2.TimeoutException:
        yield fail(NAME, f"no answer within {SECONDS:g} s", "Look at the server's log; it may be stuck.")
    except httpx2.HTTPError as error:
        yield _no_http(address, error)


def _why_no_token(token: str | None) -> str | None:
    if not token or _VISIBLE.fullmatch(token):
        return None
    if token.casefold().startswith("bearer "):
        return "begins with the word Bearer, which clients put there themselves"
    if not token.isascii() or any(not " " < character <= "~" for character in token):
        return "holds blanks, line ends or other characters that no token has"
    return f"holds {len(token)} characters; a token has {SHORTEST} to {LONGEST:,}"


def _reach(address: Address) -> Finding | None:
    """What is wrong with name, port or TLS; None when nothing is."""
    try:
        socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return fail(
            "connect", f"the name {address.host} leads nowhere", "Check its spelling, or use an address."
        )
    try:
        connection = socket.create_connection((address.host, address.port), SECONDS)
    except ConnectionRefusedError:
        return fail(
            "connect",
            f"{address.host} port {address.port} refuses connections: no server listens there",
            "Start it (`deskbook serve --transport http`), or use the port it says it listens on.",
        )
    except TimeoutError:
        return fail(
            "connect",
            f"{address.host} port {address.port} does not answer",
            "A firewall may be in between, or the machine is off.",
        )
    except OSError as error:
        return fail(
            "connect",
            f"{address.host} port {address.port} cannot be reached: {os.strerror(error.errno or 0)}",
            "Check the address and the network.",
        )
    with connection:
        if address.scheme == "http":
            return None
        try:
            ssl.create_default_context().wrap_socket(connection, server_hostname=address.host).close()
        except ssl.SSLCertVerificationError as error:
            return _bad_certificate(address, error)
        except OSError:
            return _no_tls(address)
    return None


def _is_of_here(address: Address) -> bool:
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    return all(ipaddress.ip_address(str(at[0]).partition("%")[0]).is_loopback for *_, at in found)


def _bad_certificate(address: Address, error: ssl.SSLCertVerificationError) -> Finding:
    if error.verify_code in _SELF_SIGNED:
        return fail(
            "tls",
            "the server's certificate is signed by itself or by nobody whom this machine trusts",
            "Let clients trust it: SSL_CERT_FILE names the file for Python and this command, NODE_EXTRA_CA_CERTS "
            "for hosts that run on Node; or use a certificate of a public authority.",
        )
    if error.verify_code == _EXPIRED:
        return fail("tls", "the server's certificate has expired", "Renew it, then start the server again.")
    if error.verify_code in _OTHER_NAMES:
        return fail(
            "tls",
            f"the server's certificate is not for the name {address.host}",
            "Use the name that stands in the certificate, or have one made for this name.",
        )
    return fail(
        "tls",
        f"the server's certificate is not trusted: {error.verify_message}",
        "[http] tls_cert must hold the whole chain, and its authority must be one that clients trust.",
    )


def _no_tls(address: Address) -> Finding:
    return fail(
        "tls",
        "the server does not speak TLS on this port",
        f"Use http:// instead of https:// ({address.with_scheme('http')}), or have it speak TLS: [http] tls_cert "
        "and tls_key.",
    )


def _speaks_tls(address: Address) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((address.host, address.port), SECONDS) as connection:
            context.wrap_socket(connection, server_hostname=address.host).close()
    except OSError:
        return False
    return True


def _no_http(address: Address, error: httpx2.HTTPError) -> Finding:
    if address.scheme == "http" and _speaks_tls(address):
        return fail(
            NAME,
            "the server speaks TLS on this port, and was spoken to without",
            f"Use https:// instead of http:// ({address.with_scheme('https')}).",
        )
    return fail(
        NAME,
        f"what answers there does not speak HTTP ({type(error).__name__})",
        "Another program has this port; check the port that the server says it listens on.",
    )


def _call(web: Web, sent: Sent) -> Iterator[Finding]:
    health = web.get(sent.address.beside("healthz"))
    state = (health.message or {}).get("status")
    if state == "ok":
        yield ok("health", "the server says that all is well")
    elif state == "degraded":
        ailing = (health.message or {}).get("degraded")
        parts = ", ".join(map(str, ailing)) if isinstance(ailing, list) else "a part"
        yield fail(
            "health",
            f"the server says that it cannot serve: {parts}",
            "Run `deskbook doctor` on its machine.",
        )
    began = time.monotonic()
    answer = web.post("initialize", HELLO)
    took = (time.monotonic() - began) * 1000
    if answer.status != 200:
        yield _with_right_path(web, sent, answer) or explained(answer, sent)
        return
    message = answer.message or {}
    result = message.get("result")
    greeting = greeting_of(result) if isinstance(result, Mapping) else None
    if greeting is None:
        yield fail(
            NAME,
            "something answers, but not in MCP",
            f"Check host, port and path; Deskbook serves MCP at {sent.address.at('/mcp')}.",
        )
        return
    as_whom = f"the token in {sent.token.source}" if sent.token.value else "no token"
    agent = answer.headers.get("deskbook-agent")
    served = f"answered as {unquote(agent)}" if agent else "answered"
    yield ok(NAME, f"{greeting.server} {served} in {took:,.0f} ms to {as_whom}, protocol {greeting.protocol}")
    yield from check_protocol(NAME, greeting)
    web.begin(answer.headers.get("mcp-session-id"), greeting.protocol)
    try:
        web.post(INITIALIZED, {}, note=True)
        yield from check_lists("sees", greeting, web.ask)
    except httpx2.HTTPError as error:
        yield fail(
            "sees", f"the connection broke ({type(error).__name__})", "See the server's log for the cause."
        )
    finally:
        web.leave()


def _with_right_path(web: Web, sent: Sent, answer: Answer) -> Finding | None:
    """For a path that is not there, the one where the server does serve MCP, if it is the usual one."""
    right = sent.address.at("/mcp")
    if answer.status != 404 or sent.address.url == right:
        return None
    there = web.get(right, with_token=True)
    if there.status in (404, 405) or there.status >= 500 or 300 <= there.status < 400:
        return None
    if not there.told and not there.headers.get("content-type", "").startswith("application/json"):
        return None
    plain = explained(answer, sent)
    return fail(NAME, plain.found, f"Use {right}: MCP is served there.")
