"""Sends one request, once, and says what is known of it then.

`refused`: nothing was sent, or the server said no. `unknown`: it may have been taken, and nobody said so. Redirects
and the proxies that the environment names are not followed; SSL_CERT_FILE is. Of what the server says only the id of
the post is repeated, once it is checked.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from store.deadlines import Deadline, timed_pool, untrusted
from store.errors import ConfigError
from store.names import name_fault
from store.review_events import PublicationEnded

from .request import Request

if TYPE_CHECKING:  # takes a tenth of a second to import, which no other command should pay
    from httpcore2 import Response

REPLY_BYTES: Final = 64 * 1024
ELSEWHERE: Final = frozenset({301, 302, 307, 308})
"""The redirects that ask for the same request at another address, so that nothing was done at this one."""

WHY: Final = {
    "not_connected": "the server could not be reached",
    "certificate": "the server's certificate is not one that this machine trusts",
    "timeout": "no answer came in time",
    "broken_off": "the connection broke off",
    "interrupted": "it was interrupted",
    "redirect": "the server answered with a redirect, which is not followed",
    "said_no": "the server said no",
    "failed": "the server failed",
    "unclear": "the server's answer does not say whether it took it",
    "too_large": "the server's answer is too large to be one",
    "no_post": "the server's answer names no post",
}
"""What each `error_type` means, for a person."""


class Sender:
    """Connections to one server; made before anything is recorded, so that what is wrong here is found first."""

    def __init__(self, *, tls: bool, seconds: float) -> None:
        """Make ready; raises ConfigError where the certificates to trust cannot be read."""
        self._deadline = Deadline()
        self._seconds = seconds
        try:
            self._pool = timed_pool(self._deadline, tls=tls, most=1, idle_seconds=0)
        except OSError:
            raise ConfigError(
                "The certificates to trust, which SSL_CERT_FILE or SSL_CERT_DIR names, cannot be read.",
                field="SSL_CERT_FILE",
                hint="Name a file of certificates in PEM, or unset it.",
            ) from None

    def send(self, request: Request) -> PublicationEnded:
        """Send it once; whatever goes wrong is told and never raised."""
        self._deadline.begin(self._seconds)
        try:
            return self._asked(request)
        except KeyboardInterrupt:
            return self._broken("interrupted")
        except Exception as fault:  # noqa: BLE001 - whatever it is, the ledger must say whether anything was sent
            return self._broken(_what(fault, sent=self._deadline.sent))

    def close(self) -> None:
        """Let the connection go."""
        self._pool.close()

    def _asked(self, request: Request) -> PublicationEnded:
        limits = {"timeout": {"pool": self._seconds}}  # the deadline sees to the other steps
        with self._pool.stream(
            "POST", request.url, headers=list(request.headers), content=request.content, extensions=limits
        ) as reply:
            status = reply.status
            if 200 <= status < 300:
                return _accepted(status, _read(reply), request.key)
        if status in ELSEWHERE:
            return PublicationEnded(outcome="refused", http_status=status, error_type="redirect")
        if 300 <= status < 400:
            return PublicationEnded(outcome="unknown", http_status=status, error_type="unclear")
        if 400 <= status < 500:
            return PublicationEnded(outcome="refused", http_status=status, error_type="said_no")
        return PublicationEnded(outcome="unknown", http_status=status, error_type="failed")

    def _broken(self, what: str) -> PublicationEnded:
        return PublicationEnded(outcome="unknown" if self._deadline.sent else "refused", error_type=what)


def told(ended: PublicationEnded) -> str:
    """Why it was not published, or nobody knows, in words."""
    why = WHY.get(ended.error_type or "", "it is not known why")
    return why if ended.http_status is None else f"{why} ({ended.http_status})"


def _what(fault: Exception, *, sent: bool) -> str:
    import httpcore2  # noqa: PLC0415 - see above

    if isinstance(fault, httpcore2.TimeoutException | TimeoutError):
        return "timeout"
    if untrusted(fault):
        return "certificate"
    return "broken_off" if sent else "not_connected"


def _read(reply: Response) -> bytes | None:
    """The answer; None for one that is too large."""
    chunks = []
    size = 0
    for chunk in reply.iter_stream():
        size += len(chunk)
        if size > REPLY_BYTES:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _accepted(status: int, answer: bytes | None, key: str) -> PublicationEnded:
    if answer is None:
        return PublicationEnded(outcome="unknown", http_status=status, error_type="too_large")
    post_id = _post_id(answer)
    if post_id is None or key in post_id:
        return PublicationEnded(outcome="unknown", http_status=status, error_type="no_post")
    return PublicationEnded(outcome="published", http_status=status, post_id=post_id)


def _post_id(answer: bytes) -> str | None:
    """The id in `{"post": {"id": ...}}`, as text; None where the answer is no such thing."""
    try:
        found: Any = json.loads(answer)["post"]["id"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    if type(found) is int:
        found = str(found)
    return found if isinstance(found, str) and name_fault(found) is None else None
