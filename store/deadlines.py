"""Connections whose every step ends by the time a request has to be done, however slowly the other side sends."""

from __future__ import annotations

import ssl
import threading
import time
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:  # takes a tenth of a second to import, which only who has an address to call should pay
    from httpcore2 import ConnectionPool, NetworkBackend


class Deadline(threading.local):
    """When this thread's request has to be done, by the monotonic clock, and whether any of it was sent."""

    until = 0.0
    sent = False

    def begin(self, seconds: float) -> None:
        """A request begins that may take so long."""
        self.until = time.monotonic() + seconds
        self.sent = False

    def left(self) -> float:
        """The seconds left; raises TimeoutError when there are none."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class _Timed:
    """The network, or a connection, whose every step ends by the deadline."""

    def __init__(self, inner: Any, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def connect_tcp(self, **options: Any) -> _Timed:
        options["timeout"] = self._deadline.left()
        return _Timed(self._inner.connect_tcp(**options), self._deadline)

    def start_tls(self, **options: Any) -> _Timed:
        options["timeout"] = self._deadline.left()
        return _Timed(self._inner.start_tls(**options), self._deadline)

    def read(self, size: int, **_: Any) -> bytes:
        return cast("bytes", self._inner.read(size, timeout=self._deadline.left()))

    def write(self, content: bytes, **_: Any) -> None:
        left = self._deadline.left()
        self._deadline.sent = True
        self._inner.write(content, timeout=left)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def timed_pool(deadline: Deadline, *, tls: bool, most: int, idle_seconds: float) -> ConnectionPool:
    """Connections to call an address with, at most `most`, kept open unused for `idle_seconds`.

    Proxies that the environment names are not used; SSL_CERT_FILE is. Raises OSError where its file cannot be read.
    """
    import httpcore2  # noqa: PLC0415 - see above

    return httpcore2.ConnectionPool(
        ssl_context=httpcore2.default_ssl_context() if tls else None,
        max_connections=most,
        keepalive_expiry=idle_seconds,
        network_backend=cast("NetworkBackend", _Timed(httpcore2.SyncBackend(), deadline)),
    )


def untrusted(fault: BaseException) -> bool:
    """Whether a connection failed because of a certificate that this machine does not trust."""
    cause: BaseException | None = fault
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__context__  # the pool takes the cause away
    return cause is not None
