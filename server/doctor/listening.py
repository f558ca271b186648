"""Where the HTTP server would listen: its certificate and key, and the names by which others reach it."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from store.errors import ConfigError

from ..addresses import is_loopback
from .findings import Finding, fail, fault, ok, warn
from .subject import Subject

NAME = "http"


def check_listening(subject: Subject) -> Iterator[Finding]:
    """What keeps `serve --transport http` from listening as [http] says; nothing is told where it says nothing."""
    http = subject.settings.http
    if http.tls_cert is not None or http.tls_key is not None:
        from ..http.serving import check_tls  # noqa: PLC0415 - the web server; few desks need it

        try:
            check_tls(http)
        except ConfigError as error:
            yield fault(NAME, error)
        else:
            yield ok(NAME, f"TLS with {http.tls_cert}")
        if http.tls_key is not None:
            yield from _open_key(http.tls_key)
    if not http.allowed_hosts and not is_loopback(http.host):
        yield fail(
            NAME,
            f"http.host is {http.host}, which others can reach, and http.allowed_hosts is empty",
            'Name the hosts that clients connect to, such as allowed_hosts = ["desk.example"].',
        )


def _open_key(key: Path) -> Iterator[Finding]:
    try:
        found = key.stat()
    except OSError:
        return
    # A key of another owner is read by its group, and to take that away would shut the server out.
    mine = found.st_uid == os.geteuid()
    if found.st_mode & (0o077 if mine else 0o007):
        yield warn(
            NAME,
            f"http.tls_key {key} is open to other users (mode {stat.S_IMODE(found.st_mode):04o})",
            f"chmod {'600' if mine else 'o-rwx'} {shlex.quote(str(key))}",
        )
