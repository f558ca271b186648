"""Embedded from any OpenAI-compatible address, on this machine or elsewhere.

One request takes at most `timeout` seconds and is made once: whoever asks may ask again where the error says so.
Redirects, cookies and the proxies that the environment names are not followed; SSL_CERT_FILE is. What the endpoint
answers is checked and never repeated, as it may hold the key or the text.
"""

from __future__ import annotations

import json
import math
import re
import threading
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from ipaddress import IPv4Address, ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

from ..deadlines import Deadline, timed_pool, untrusted
from ..errors import ConfigError, EmbeddingFailed
from ..limits import IDENTIFIER_CHARS

if TYPE_CHECKING:  # both take a tenth of a second to import, which only a desk with an endpoint should pay
    from httpcore2 import ConnectionPool, Response
    from numpy import float32
    from numpy.typing import NDArray

    from .base import Embedded

KEY_VARIABLE: Final = "DESKBOOK_EMBEDDING_KEY"
PIECE_CHARS: Final = 1_000
REQUEST_TEXTS, REQUEST_BYTES = 64, 256 * 1024
MOST_DIMENSIONS: Final = 8_192
REPLY_BYTES: Final = 64 * 2**20

_CONNECTIONS: Final = 8
_IDLE_SECONDS: Final = 30.0
_BLANK: Final = "."
_SENTENCE_END: Final = re.compile(r"[.!?…][\"'”’)\]]*(?=\s)|[。！？]|\n")
_CHECK: Final = "Check that embedding.url is an OpenAI-compatible endpoint with the model of embedding.model."
_AGAIN: Final = "then start the server again."
_WAIT: Final = "Try again in a moment; if it stays so, look at the endpoint's own log."


class Endpoint:
    """An Embedder behind HTTP. The first reply fixes how many numbers a vector has.

    Whether a text's vector is the same in any company is up to the endpoint's model.
    """

    def __init__(self, url: str, model: str, *, key: str | None = None, timeout: float = 20.0) -> None:
        """Check the address, without calling it; raises ConfigError where it or the key cannot be used.

        `url` is what comes before /embeddings; its query, if any, is sent along. `timeout` is in seconds and bounds
        a whole request. A key that is blank is none.
        """
        if not 0 < timeout < math.inf:
            raise ValueError("timeout is a finite number of seconds above 0")
        if not 0 < len(model.strip()) <= len(model) <= IDENTIFIER_CHARS:
            message = f"embedding.model has to be a name of 1 to {IDENTIFIER_CHARS} characters."
            raise ConfigError(message, field="embedding.model", hint="Name the model as the endpoint does.")
        self._model = model
        self._timeout = timeout
        self._url, host = _address(url)
        self._headers: dict[str | bytes, str | bytes] = {
            "Host": host,
            "User-Agent": "deskbook",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
        }
        if key and key.strip():
            self._headers["Authorization"] = f"Bearer {_sound(key.strip())}"
        self._deadline = Deadline()
        self._lock = threading.Lock()
        self._pool: ConnectionPool | None = None
        self._in_use = 0
        self._closed = False
        self._dimensions: int | None = None

    @property
    def model(self) -> str:
        """The configured name, whatever the endpoint calls it in its replies."""
        return self._model

    def pieces(self, text: str) -> list[str]:
        """The text in pieces of at most 1,000 characters, cut where a sentence ends or else at white space.

        White space at a cut is left out, and nothing else. A word is cut only where it is longer than a piece. There
        are as many pieces as the text needs: at most 201 for the 100,000 characters that a ledger takes. Blank text
        is one blank piece.
        """
        whole = text.strip()
        if not whole:
            return [text[:PIECE_CHARS]]
        found = []
        start = 0
        while start < len(whole):
            cut = _cut(whole, start)
            found.append(whole[start:cut].rstrip())
            start = cut
            while start < len(whole) and whole[start].isspace():
                start += 1
        return found

    def embed(self, texts: Sequence[str]) -> Embedded:
        """One row a text, in the order given; several requests where there are many texts.

        Endpoints refuse empty text, so a full stop is sent in place of blank text.
        """
        import numpy as np  # noqa: PLC0415 - see above

        rows: list[NDArray[float32]] = []
        for batch in _batches([_json(text if text.strip() else _BLANK) for text in texts]):
            body = b'{"model":%b,"encoding_format":"float","input":[%b]}'
            made = _vectors(self._ask(body % (_json(self._model), b",".join(batch))), len(batch))
            self._check_dimensions(made[0].size)
            rows.extend(made)
        return np.stack(rows) if rows else np.empty((0, self._dimensions or 0), dtype=np.float32)

    def close(self) -> None:
        """Let requests under way end, and take no more. May be called twice."""
        with self._lock:
            self._closed = True
            self._close_unused()

    def _ask(self, body: bytes) -> bytes:
        """The reply to one request; raises EmbeddingFailed, which holds neither address, key nor text."""
        import httpcore2  # noqa: PLC0415 - see above

        self._deadline.begin(self._timeout)
        try:
            with self._connections() as pool, self._post(pool, body) as reply:
                if not 200 <= reply.status < 300:
                    raise _refusal(reply.status)
                return _read(reply)
        except (httpcore2.TimeoutException, TimeoutError):
            message = f"The embedding endpoint did not answer within {self._timeout:g} s."
            raise EmbeddingFailed(message, hint=_WAIT) from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError, ValueError) as fault:
            raise _unreachable(fault) from None

    def _post(self, pool: ConnectionPool, body: bytes) -> AbstractContextManager[Response]:
        limits = {"timeout": {"pool": self._timeout}}  # the deadline sees to the other steps
        return pool.stream("POST", self._url, headers=self._headers, content=body, extensions=limits)

    @contextmanager
    def _connections(self) -> Iterator[ConnectionPool]:
        """The connections, kept open while anyone uses them; a socket closed under a reader may hit another one."""
        with self._lock:
            if self._closed:
                raise _lasting("was closed", "Start the server again.")
            if self._pool is None:
                self._pool = timed_pool(
                    self._deadline,
                    tls=self._url.startswith("https:"),
                    most=_CONNECTIONS,
                    idle_seconds=_IDLE_SECONDS,
                )
            pool = self._pool
            self._in_use += 1
        try:
            yield pool
        finally:
            with self._lock:
                self._in_use -= 1
                self._close_unused()

    def _close_unused(self) -> None:
        if self._closed and not self._in_use and self._pool is not None:
            self._pool.close()
            self._pool = None

    def _check_dimensions(self, size: int) -> None:
        if size > MOST_DIMENSIONS:
            raise _lasting(f"answered vectors of {size:,} numbers", f"At most {MOST_DIMENSIONS:,} are taken.")
        with self._lock:
            self._dimensions = self._dimensions or size
        if size != self._dimensions:
            what = f"answered vectors of {size:,} numbers, and of {self._dimensions:,} before"
            raise _lasting(what, f"Another model may have taken the name: see to the endpoint, {_AGAIN}")


def _address(url: str) -> tuple[str, str]:
    """The address to post to, and the Host header for it; raises ConfigError, which never shows it."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        sound = parts.scheme in {"http", "https"} and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        parts, host, sound = urlsplit(""), None, False
    if not (host and sound and re.fullmatch(r"[!-~]+", url)):
        raise ConfigError(
            "embedding.url has to be an http or https address in ASCII, without a user name or password.",
            field="embedding.url",
            hint="Give what comes before /embeddings, such as https://api.openai.com/v1.",
        )
    if parts.scheme == "http" and not _is_loopback(host):
        raise ConfigError(
            "embedding.url is plain http to another machine, which would send every memory unencrypted.",
            field="embedding.url",
            hint="Use https; plain http is for 127.0.0.1, [::1] and localhost.",
        )
    path = parts.path.rstrip("/") + "/embeddings"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, "")), parts.netloc


def _is_loopback(host: str) -> bool:
    try:
        numeric = ip_address(host)
    except ValueError:
        return host == "localhost"
    return numeric.is_loopback if isinstance(numeric, IPv4Address) else str(numeric) == "::1"


def _sound(key: str) -> str:
    if re.fullmatch(r"[!-~]+", key):
        return key
    raise ConfigError(
        "The key for the embedding endpoint holds blanks or other characters that no key has.",
        hint=f"Put the key alone into {KEY_VARIABLE}.",
    )


def _cut(text: str, start: int) -> int:
    """Where the piece that begins at `start` ends."""
    stop = start + PIECE_CHARS
    if stop >= len(text):
        return len(text)
    found = _SENTENCE_END.finditer(text, start + PIECE_CHARS // 2, stop + 1)
    ends = [end.end() for end in found if end.end() <= stop]
    if ends:
        return ends[-1]
    return next((at for at in range(stop, start, -1) if text[at].isspace()), stop)


def _json(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")


def _batches(inputs: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """At most 64 inputs and 256 KiB each; an input larger than that goes alone."""
    start = size = 0
    for at, each in enumerate(inputs):
        if at > start and (at - start == REQUEST_TEXTS or size + len(each) > REQUEST_BYTES):
            yield inputs[start:at]
            start, size = at, 0
        size += len(each)
    if inputs:
        yield inputs[start:]


def _read(reply: Response) -> bytes:
    chunks = []
    size = 0
    for chunk in reply.iter_stream():
        size += len(chunk)
        if size > REPLY_BYTES:
            raise _lasting("answered more than 64 MiB")
        chunks.append(chunk)
    return b"".join(chunks)


def _vectors(body: bytes, count: int) -> list[NDArray[float32]]:
    """The vectors of a reply, by their index; all of one size. Raises EmbeddingFailed when it is no such reply."""
    try:
        reply = json.loads(body)
        data = reply["data"]
        places = [each.get("index") for each in data]
        found = [each["embedding"] for each in data]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise _lasting("answered what is no list of vectors") from None
    if len(found) != count:
        raise _lasting(f"answered {len(found):,} vectors to {count:,} texts")
    if any(place is not None for place in places):  # endpoints that leave all of them out keep the order
        if any(type(place) is not int for place in places) or sorted(places) != list(range(count)):
            raise _lasting("does not say which vector is whose")
        found = [vector for _, vector in sorted(zip(places, found, strict=True), key=lambda pair: pair[0])]
    rows = [_unit(vector) for vector in found]
    if len({row.size for row in rows}) != 1:
        raise _lasting("answered vectors of different sizes")
    return rows


def _unit(given: object) -> NDArray[float32]:
    """A vector of length 1, from a list of numbers or from base64 of little-endian float32."""
    import numpy as np  # noqa: PLC0415 - see above

    try:
        if isinstance(given, str):
            raw = np.frombuffer(b64decode(given, validate=True), dtype="<f4")
        else:
            raw = np.array(given)
    except ValueError:
        raw = np.array(None)
    if raw.ndim != 1 or not raw.size or raw.dtype.kind not in "fiu":
        raise _lasting("answered a vector that is no list of numbers")
    if not np.isfinite(raw).all():
        raise _lasting("answered a vector with a number that is not finite")
    vector = raw.astype(np.float64)
    largest = np.abs(vector).max()
    if largest == 0:
        raise _lasting("answered a vector of zeros")
    vector /= largest  # so that no square overflows
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def _lasting(what: str, hint: str = _CHECK) -> EmbeddingFailed:
    """A failure that asking again does not mend."""
    fault = EmbeddingFailed(f"The embedding endpoint {what}.", hint=hint)
    fault.retryable = False
    return fault


def _refusal(status: int) -> EmbeddingFailed:
    """What a status other than success means."""
    known = status if status in _REFUSALS else status // 100
    said, hint = _REFUSALS.get(known, ("refuses the request", _CHECK))
    fault = _lasting(f"{said} ({status})", hint)
    fault.retryable = status in {408, 429} or status >= 500
    return fault


_REFUSALS: Final = {
    3: ("answers with a redirect, which is not followed", "Put where it leads to into embedding.url."),
    5: ("failed", _WAIT),
    400: ("does not take the request", _CHECK),
    401: ("asks for a key, or for another one", f"Set {KEY_VARIABLE} to a key of the endpoint, {_AGAIN}"),
    403: ("does not allow this", f"Set {KEY_VARIABLE} to a key that may use embedding.model, {_AGAIN}"),
    404: (
        "knows no such address or model",
        "embedding.url is what comes before /embeddings, as in http://127.0.0.1:11434/v1; check embedding.model.",
    ),
    408: ("waited too long for the request", _WAIT),
    413: ("finds the request too large", f"Let it take {REQUEST_BYTES // 1024} KiB in one request."),
    429: ("is asked too often, or its quota is used up", f"Wait; check the quota of {KEY_VARIABLE}."),
}


def _unreachable(fault: BaseException) -> EmbeddingFailed:
    """What a connection that failed means; nothing of the fault's own words is shown."""
    if untrusted(fault):
        return EmbeddingFailed(
            "The embedding endpoint's certificate is not one that this machine trusts.",
            hint="Name the file of its authority in SSL_CERT_FILE, or check the name and the date in it.",
        )
    return EmbeddingFailed(
        "The embedding endpoint cannot be reached, or broke off.",
        hint="Check embedding.url, and that the endpoint is running.",
    )
