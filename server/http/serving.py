"""The life of an HTTP server: where it listens, how it is told to end, and how it ends.

On SIGTERM or SIGINT nobody is let in any more, what was begun is answered, streams are ended, and the process exits
with code 0; a second signal exits at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import anyio
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from store.errors import ConfigError

from ..addresses import is_loopback
from ..app import DeskServer
from ..identity import Identity
from ..sdk import lowlevel
from ..sections import HttpSettings
from ..tokens import Tokens
from .bodies import Bodies
from .callers import Callers
from .endpoints import Endpoints, current
from .gate import Gate
from .lines import PatientProtocol
from .names import Names
from .sessions import Sessions

logger = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 2.5
"""How long calls in flight have to be answered once the server is told to end; then they are given up."""

GIVEN_UP_SECONDS: Final = 0.5
"""How long the answers of calls that were given up have to go out."""

CLOSE_SECONDS: Final = 0.5
"""How long streams have to end once they were told to."""

CONNECTION_SECONDS: Final = 1
KEPT_SECONDS: Final = 75
"""How long a connection without a request stays open: longer than clients keep theirs. Otherwise one would now and
then send a request into a line that is just being closed, and not know what became of it."""

BUSY_LOOK_SECONDS: Final = 0.02
BACKLOG: Final = 128
SPARE_FILES: Final = 128
"""Files that connections leave to ledgers and logs."""
MOST_HEADER_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Listening:
    """What to listen on and whom to serve there; `launched` is who everybody is where no token was ever made."""

    http: HttpSettings
    tokens: Tokens
    identities: dict[str, Identity]
    launched: Identity | None


def check_listening(listening: Listening) -> None:
    """Refuse what would be open to others than this machine by mistake; raises ConfigError."""
    http, tokens = listening.http, listening.tokens
    check_tls(http)
    if is_loopback(http.host):
        return
    if not tokens.usable:
        raise ConfigError(
            f"http.host is {http.host}, which others can reach, and no token is in force.",
            field="http.host",
            hint="Make one with `deskbook token new AGENT`, or listen on 127.0.0.1.",
        )
    if not http.allowed_hosts:
        raise ConfigError(
            f"http.host is {http.host}, which others can reach, and http.allowed_hosts is empty.",
            field="http.allowed_hosts",
            hint='Name the hosts that clients connect to, such as allowed_hosts = ["desk.example"].',
        )


def check_tls(http: HttpSettings) -> None:
    """Raise ConfigError unless certificate and key, where they are named, can be read and belong together."""
    if http.tls_cert is None and http.tls_key is None:
        return
    if http.tls_cert is None or http.tls_key is None:
        missing = "http.tls_key" if http.tls_key is None else "http.tls_cert"
        raise ConfigError(
            f"{missing} is missing; TLS needs both.", field=missing, hint="Name both files, or none."
        )
    for key, file in (("http.tls_cert", http.tls_cert), ("http.tls_key", http.tls_key)):
        try:
            file.read_bytes()
        except OSError as fault:
            raise ConfigError(
                f"{key} is {file}, which cannot be read: {fault.strerror}.",
                field=key,
                hint="Name a PEM file.",
            ) from None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(http.tls_cert, http.tls_key, password="")
    except (ssl.SSLError, ValueError) as fault:
        reason = getattr(fault, "reason", None) or "not what was expected"
        raise ConfigError(
            f"{http.tls_cert} and {http.tls_key} are no certificate and its key: {reason}.",
            field="http.tls_cert",
            hint="Name two PEM files: the certificate with its chain, and its key without a passphrase.",
        ) from None


def bind(http: HttpSettings) -> socket.socket:
    """The socket to listen on; raises ConfigError where the address cannot be had."""
    host = http.host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, http.port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as fault:
        reason = getattr(fault, "strerror", None) or "it is no name of a host"
        raise ConfigError(
            f"http.host {host} cannot be used: {reason}.",
            field="http.host",
            hint="Name an address of this machine.",
        ) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as fault:
        listener.close()
        reason = os.strerror(fault.errno) if isinstance(fault, OSError) and fault.errno else str(fault)
        raise ConfigError(
            f"Port {http.port} on {host} cannot be had: {reason}.",
            field="http.port",
            hint="Another server may run there; end it, or choose another --port.",
        ) from None
    return listener


async def serve_http(
    server: DeskServer, listening: Listening, listener: socket.socket, *, announce: Callable[[str], None]
) -> None:
    """Serve until a signal asks to stop; `announce` is told the address once clients can connect."""
    http = listening.http
    callers = Callers(listening.tokens, listening.identities, listening.launched)
    sessions = Sessions(http.max_sessions, http.session_idle_timeout, callers.welcome)
    manager = StreamableHTTPSessionManager(
        lowlevel(server),
        session_idle_timeout=None,
        max_sessions=None,
        max_request_body_size=http.max_body_bytes,
    )
    endpoints = Endpoints(server, manager, sessions, http.max_body_bytes)
    names = Names(http.allowed_hosts, http.allowed_origins)
    gate = Gate(names, callers, endpoints.table(), endpoints.health, Bodies(http.max_body_bytes))
    web = _Web(gate, http)
    asked = anyio.Event()

    async def end_when_asked() -> None:
        await asked.wait()
        gate.end()
        logger.info("ending; calls in flight have %s s", ANSWER_SECONDS)
        await _idle(endpoints, ANSWER_SECONDS)
        if server.give_up():
            await _idle(endpoints, GIVEN_UP_SECONDS)
        await sessions.end_all()
        await gate.close(CLOSE_SECONDS)
        web.should_exit = True

    async with manager.run(), anyio.create_task_group() as tasks:
        with _heeded_signals(asked):
            tasks.start_soon(sessions.watch)
            tasks.start_soon(end_when_asked)
            web.on_started = lambda: announce(_address(listener, http))
            await web.serve([listener])
        tasks.cancel_scope.cancel()


async def _idle(endpoints: Endpoints, patience: float) -> None:
    """Wait until every call is answered, for so many seconds at most."""
    with anyio.move_on_after(patience):
        while endpoints.busy():  # noqa: ASYNC110 - many parts are busy, and only the end asks
            await anyio.sleep(BUSY_LOOK_SECONDS)


class _Web(uvicorn.Server):
    """uvicorn, with the signals left to us: it would kill the process with the signal it caught once it had ended."""

    on_started: Callable[[], None]

    def __init__(self, app: Gate, http: HttpSettings) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=PatientProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=BACKLOG,
                timeout_graceful_shutdown=CONNECTION_SECONDS,
                timeout_keep_alive=KEPT_SECONDS,
                h11_max_incomplete_event_size=MOST_HEADER_BYTES,
                ssl_certfile=http.tls_cert,
                ssl_keyfile=http.tls_key,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Catch none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        self.on_started()


@contextmanager
def _heeded_signals(asked: anyio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def heed(signum: int) -> None:
        if asked.is_set():
            os._exit(128 + signum)
        asked.set()

    heeded = [signal.SIGTERM, signal.SIGINT]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        heeded.append(signal.SIGHUP)
    for signum in heeded:
        loop.add_signal_handler(signum, heed, signum)
    try:
        yield
    finally:
        for signum in heeded:
            loop.remove_signal_handler(signum)


def _address(listener: socket.socket, http: HttpSettings) -> str:
    host, port = listener.getsockname()[:2]
    scheme = "http" if http.tls_cert is None else "https"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def raise_open_files() -> None:
    """Let this process hold as many connections as the system allows it, and no more than that.

    The usual soft limit is 1,024 open files.
    """
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - absent on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and (hard == resource.RLIM_INFINITY or soft < hard):
        soft = 65_536 if hard == resource.RLIM_INFINITY else hard
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft != resource.RLIM_INFINITY:
        PatientProtocol.most = max(SPARE_FILES, soft - SPARE_FILES)


__all__ = ["Listening", "bind", "check_listening", "current", "raise_open_files", "serve_http"]
