"""Running one HTTP server until it ends; importing this imports the SDK and the web server, which takes a while."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

import anyio

from ..app import DeskServer
from ..sdk import drop_idle_tracing, log_to_stderr
from ..settings import Settings
from ..stdio import exit_despite_threads
from .endpoints import current
from .journal import Journal
from .serving import Listening, bind, check_listening, raise_open_files, serve_http

logger = logging.getLogger(__name__)
QUIET = ("uvicorn", "sse_starlette")
DRAIN_SECONDS: Final = 0.5
"""How long ledgers have to close once every call is answered."""


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
    journal = Journal()
    try:
        anyio.run(partial(serve_http, server, listening, listener, announce=announce))
    finally:
        whole = _drained(server)
        logger.info(
            "ended; %s", "every ledger is closed" if whole else "a ledger is still held by another process"
        )
        journal.close()
    if not whole:
        os._exit(0)
    exit_despite_threads()


def _drained(server: DeskServer) -> bool:
    """Write what is owed and close every ledger; false when that takes too long: another process may hold one."""
    draining = threading.Thread(target=server.drain, name="drain", daemon=True)
    draining.start()
    draining.join(DRAIN_SECONDS)
    return not draining.is_alive()
