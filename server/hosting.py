"""Running one server on a transport until it ends; importing this imports the SDK, which takes a while."""

from __future__ import annotations

import logging
from functools import partial

import anyio

from .app import DeskServer, launched
from .identity import Identity
from .pipes import Pipes
from .sdk import drop_idle_tracing, log_to_stderr
from .settings import Settings
from .stdio import exit_despite_threads, serve_stdio

STDIO = "stdio"


def host_stdio(settings: Settings, identity: Identity, pipes: Pipes) -> None:
    """Serve one agent on the claimed standard streams until the input ends or a signal asks to stop."""
    log_to_stderr(logging.getLevelNamesMapping()[settings.log.level])
    server = DeskServer(settings, launched(identity, STDIO))
    drop_idle_tracing(server)
    anyio.run(partial(serve_stdio, server, on_drain=server.drain, pipes=pipes))
    exit_despite_threads()
