"""Addresses of HTTP servers: the one that a config serves at, and one that somebody wrote without its scheme."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

from .sections import HttpSettings

_NO_SCHEME: Final = re.compile(
    r"(?://)?((?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/-]*)?)"
)


def with_scheme(text: str) -> str | None:
    """The address with http:// in front, where nothing but that is missing; else None.

    What may be a secret is never taken for an address: it has no dot, port or path, or it has other characters.
    """
    found = _NO_SCHEME.fullmatch(text)
    if found is None:
        return None
    host, slash, _ = found[1].partition("/")
    if not (slash or "." in host or ":" in host or host.casefold() == "localhost"):
        return None
    return f"http://{found[1]}"


def served_at(http: HttpSettings) -> str | None:
    """The address at which clients reach the server of these settings; None where the port is left open.

    A server that others can reach is called by the first name it goes by, so that a certificate fits.
    """
    scheme = "http" if http.tls_cert is None else "https"
    host, port = http.host.strip("[]"), http.port or None
    if http.allowed_hosts and not is_loopback(host):
        named = urlsplit(f"//{http.allowed_hosts[0]}")
        host, port = named.hostname or host, named.port or port
    if port is None:
        return None
    return f"{scheme}://{_in_address(host)}:{port}/mcp"


def is_loopback(host: str) -> bool:
    """Whether a host to bind to can be reached from this machine alone."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.casefold() == "localhost"


def _in_address(host: str) -> str:
    try:
        numeric = ipaddress.ip_address(host)
    except ValueError:
        return host
    if numeric.is_unspecified:
        numeric = ipaddress.ip_address("127.0.0.1" if numeric.version == 4 else "::1")
    return f"[{numeric}]" if numeric.version == 6 else str(numeric)
