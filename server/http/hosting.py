"""Running one HTTP server until it ends; importing this imports the SDK and the web server, which takes a while."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

import anyio

from ..app import DeskServer
from ..sdk import drop_idle_tracing, log_to_stderr
from ..settings import Settings
from ..stdio import exit_despite_threads
from .endpoints import current
from .serving import Listening, bind, check_listening, raise_open_files, serve_http

logger = logging.getLogger(__name__)
QUIET = ("uvicorn", "sse_starlette")


def host_http(settings: Settings, listening: Listening, *, announce: Callable[[str], None]) -> None:
    """Serve agents over HTTP until a signal asks to stop; `announce` is told the address.

    Raises ConfigError for what cannot be listened on, or would be open to others by mistake.
    """
    level = logging.getLevelNamesMapping()[settings.log.level]
    log_to_stderr(level, timed=True)
    for name in QUIET:  # they tell of every request and stream
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    check_listening(listening)
    listener = bind(listening.http)
    raise_open_files()
    server = DeskServer(settings, current.get)
    drop_idle_tracing(server)
    try:
        anyio.run(partial(serve_http, server, listening, listener, announce=announce))
    finally:
        server.drain()
        logger.info("ended; every ledger is closed")
    exit_despite_threads()
