"""One HTTP server as a client meets it: raw answers, nothing followed, bounded in size and time."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx2

from .seen import Reply, RequestRefused

SECONDS: Final = 10.0
"""How long any one answer may take."""

_MOST_BYTES: Final = 2**20
_ACCEPT: Final = "application/json, text/event-stream"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is called: scheme, host, port, and the whole URL."""

    url: str
    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Address:
        """Take an http or https URL apart."""
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return cls(url, parts.scheme, parts.hostname or "", port)

    def with_scheme(self, scheme: str) -> str:
        """The same place by another scheme, to be shown: without what may hold a secret."""
        return f"{scheme}://{self._place}{urlsplit(self.url).path}"

    def at(self, path: str) -> str:
        """Another path of the same server."""
        return f"{self.scheme}://{self._place}{path}"

    @property
    def _place(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if urlsplit(self.url).port is None else f"{host}:{self.port}"

    def beside(self, name: str) -> str:
        """The path with its last part replaced."""
        return self.at(urlsplit(self.url).path.rstrip("/").rpartition("/")[0] + "/" + name)


@dataclass(frozen=True, slots=True)
class Credential:
    """A bearer token and where it comes from, such as a variable's name; None for none, or one that is not set."""

    source: str | None
    value: str | None = field(default=None, repr=False)

    @classmethod
    def from_variable(cls, variable: str | None, environ: Mapping[str, str]) -> Credential:
        """The token in a variable; None names no variable."""
        return cls(variable, (environ.get(variable) or None) if variable is not None else None)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it came: status, headers by small name, and the beginning of its text."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def message(self) -> Mapping[str, Any] | None:
        """The JSON object that it carries, be it as a body or as the data of an event; None where there is none."""
        for text in (self.text, *self._events()):
            try:
                found = json.loads(text)
            except ValueError:
                continue
            if isinstance(found, dict) and (found.keys() & {"result", "error", "status"}):
                return found
        return None

    @property
    def told(self) -> Mapping[str, str]:
        """What one of ours says of a refusal: code, message and hint; empty for anybody else's."""
        error = (self.message or {}).get("error")
        told = error.get("data") if isinstance(error, Mapping) else None
        if not isinstance(told, Mapping):
            return {}
        return {key: str(told[key]) for key in ("code", "message", "hint") if told.get(key)}

    def _events(self) -> list[str]:
        return [line.removeprefix("data:") for line in self.text.splitlines() if line.startswith("data:")]


class Web:
    """A client of one server; `token` is sent with every request to it and to nobody else."""

    def __init__(self, address: Address, token: str | None) -> None:
        self._url = address.url
        self._headers = {"Accept": _ACCEPT, "Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._asked = 0
        # Neither proxies nor anything else of the environment but OpenSSL's own variables for certificates.
        self._http = httpx2.Client(
            timeout=SECONDS, trust_env=False, follow_redirects=False, verify=ssl.create_default_context()
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._http.close()

    def get(self, url: str, *, with_token: bool = False) -> Answer:
        """Ask for an address; raises httpx2.HTTPError."""
        headers = self._headers if with_token else {"Accept": _ACCEPT}
        return self._answer("GET", url, headers, None)

    def post(self, method: str, parameters: Mapping[str, Any], *, note: bool = False) -> Answer:
        """Post one message; raises httpx2.HTTPError."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if not note:
            self._asked += 1
            message |= {"id": self._asked, "params": dict(parameters)}
        return self._answer("POST", self._url, self._headers, json.dumps(message).encode())

    def begin(self, session: str | None, protocol: str) -> None:
        """From now on every request is one of this session."""
        self._headers["MCP-Protocol-Version"] = protocol
        if session is not None:
            self._headers["Mcp-Session-Id"] = session

    def ask(self, method: str, parameters: Mapping[str, Any]) -> Reply:
        """Send a request of the session; raises RequestRefused and httpx2.HTTPError."""
        answer = self.post(method, parameters)
        message = answer.message or {}
        result = message.get("result")
        if isinstance(result, Mapping):
            return result
        error = message.get("error")
        told = error.get("message") if isinstance(error, Mapping) else None
        raise RequestRefused(str(told or f"HTTP {answer.status}"))

    def leave(self) -> None:
        """End the session; a server that cannot any more ends it by itself."""
        if "Mcp-Session-Id" in self._headers:
            with suppress(httpx2.HTTPError):
                self._answer("DELETE", self._url, self._headers, None)

    def _answer(self, method: str, url: str, headers: Mapping[str, str], content: bytes | None) -> Answer:
        deadline = time.monotonic() + SECONDS
        read = b""
        with self._http.stream(method, url, headers=dict(headers), content=content) as response:
            for part in response.iter_bytes():
                read += part
                if len(read) > _MOST_BYTES or time.monotonic() > deadline or _is_whole(response, read):
                    break
        told = {name.lower(): value for name, value in response.headers.items()}
        return Answer(response.status_code, told, read[:_MOST_BYTES].decode("utf-8", "replace"))


def _is_whole(response: httpx2.Response, read: bytes) -> bool:
    """Whether a stream of events has brought an answer: it may go on for ever after it."""
    streamed = response.headers.get("content-type", "").startswith("text/event-stream")
    return streamed and (b'"result"' in read or b'"error"' in read) and read.endswith(b"\n\n")
