"""Frames of the line transport: bytes to JSON-RPC messages and back, pure and without any I/O.

Whatever arrives on a line becomes either a message or a `Refusal`, never an exception, and whatever a
handler returned becomes one line of strict JSON (RFC 8259, UTF-8) or an error that can be answered.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import ValidationError

__all__ = ["Frame", "LineSplitter", "Oversize", "Refusal", "encode", "error_body", "read_line", "scrub"]

MAX_DEPTH: Final = 100
"""Levels of nesting a frame may have; Python's own limit is ten times that, but handlers recurse too."""

EDGE_BYTES: Final = 4096
"""How much of each end of an unreadable frame is kept and searched for the request's id."""

_MAX_DIGITS: Final = 4000  # Python refuses to convert integers of more than 4,300 digits
_BOM: Final = b"\xef\xbb\xbf"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_BRACKET: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s"{}\[\],:]++', re.DOTALL)
_ID_AT_END: Final = re.compile(
    rb'[{,]\s*"id"\s*:\s*(-?[0-9]{1,400}|"(?:[^"\\]++|\\.)*+")\s*'
    rb'(?:,\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*)*\}\s*$'
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A frame that is answered with a JSON-RPC error and goes no further; `id` is None when unreadable."""

    code: int
    message: str
    id: int | float | str | None = None
    data: dict[str, Any] | None = None


Frame: TypeAlias = JSONRPCMessage | Refusal


@dataclass(frozen=True, slots=True)
class Oversize:
    """A line longer than the cap, skipped; `size` is in bytes, `head` and `tail` are its two ends."""

    size: int
    head: bytes
    tail: bytes


@dataclass(slots=True)
class LineSplitter:
    """Cut a byte stream into lines, holding at most `limit` bytes however long a line is.

    A byte order mark before the first line is dropped; `finish` gives what stands after the last newline.
    """

    limit: int
    _parts: list[bytes] = field(default_factory=list)
    _held: int = 0
    _skipped: Oversize | None = None
    _at_start: bool = True

    def feed(self, chunk: bytes) -> Iterator[bytes | Oversize]:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._add(chunk[start:end])
            yield from self.finish()
            start = end + 1
        self._add(chunk[start:])

    def finish(self) -> Iterator[bytes | Oversize]:
        line: bytes | Oversize = self._skipped or b"".join(self._parts)
        self._parts.clear()
        self._held, self._skipped = 0, None
        if isinstance(line, bytes):
            if self._at_start:
                line = line.removeprefix(_BOM)
            line = line.strip()
        self._at_start = False
        if line:
            yield line

    def _add(self, part: bytes) -> None:
        if self._skipped is not None:
            known = self._skipped
            self._skipped = Oversize(known.size + len(part), known.head, (known.tail + part)[-EDGE_BYTES:])
            return
        self._parts.append(part)
        self._held += len(part)
        if self._held > self.limit:
            whole = b"".join(self._parts)
            self._parts.clear()
            self._skipped = Oversize(len(whole), whole[:EDGE_BYTES], whole[-EDGE_BYTES:])


def read_line(line: bytes | Oversize, limit: int) -> Frame | None:
    """Read one line; None stands for a malformed notification or an answer to nobody, which JSON-RPC never answers.

    Lone surrogates, NaN and infinities pass through inside `params`, as do integers too long to convert
    (as infinities), so that the code that knows the fields can refuse them by name. `limit` is the cap in
    bytes that an oversize line went over.
    """
    if isinstance(line, Oversize):
        message = f"message of {line.size} bytes is over the limit of {limit} bytes; it was not read"
        sizes = {"received": line.size, "limit": limit, "stored": "no"}
        return Refusal(INVALID_REQUEST, message, find_id(line.head, line.tail), sizes)
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return Refusal(PARSE_ERROR, f"not valid UTF-8 at byte {error.start}", _id_of_line(line))
    if _too_deep(text):
        message = f"nested too deeply: at most {MAX_DEPTH} levels are read"
        return Refusal(INVALID_REQUEST, message, _id_of_line(line))
    try:
        value = _parse(text)
    except json.JSONDecodeError as error:
        # The position only: the text itself may be private and is not echoed.
        message = f"not valid JSON at character {error.pos}: {error.msg}"
        return Refusal(PARSE_ERROR, message, _id_of_line(line))
    return _as_message(value)


def find_id(head: bytes, tail: bytes) -> int | str | None:
    """Find a request's id near either end of a frame that cannot be parsed; None when it is not certain.

    Only an `id` of the outermost object counts: an `id` among the arguments would answer another request.
    """
    depth, key, expects = 0, b"", b"key"
    for match in _TOKEN.finditer(head):
        token = match.group()
        if token in (b"{", b"["):
            depth, expects = depth + 1, b"key" if token == b"{" and depth == 0 else b""
        elif token in (b"}", b"]"):
            depth, expects = depth - 1, b""
        elif depth != 1:
            continue
        elif token == b",":
            expects = b"key"
        elif token == b":":
            expects = b"value" if key == b'"id"' else b""
        elif expects == b"key":
            key, expects = token, b""
        elif expects == b"value" and match.end() < len(head):
            return _plain_id(token)
    if (found := _ID_AT_END.search(tail)) is not None:
        return _plain_id(found.group(1))
    return None


def error_body(refusal: Refusal) -> dict[str, Any]:
    """The JSON-RPC error object that answers a refused frame."""
    error: dict[str, Any] = {"code": refusal.code, "message": refusal.message}
    if refusal.data is not None:
        error["data"] = refusal.data
    return {"jsonrpc": "2.0", "id": refusal.id, "error": error}


def encode(body: JSONRPCMessage | dict[str, Any]) -> bytes:
    """One line of strict JSON with its newline; what JSON cannot carry is scrubbed.

    Raises TypeError, ValueError or RecursionError for a value that is no JSON at all.
    """
    plain = body if isinstance(body, dict) else _as_dict(body)
    try:
        return _dump(plain)
    except ValueError:
        return _dump(scrub(plain))


def scrub(value: Any) -> Any:
    """A copy with lone surrogates as U+FFFD and with NaN, infinities and endless integers as null."""
    if isinstance(value, str):
        if _SURROGATE.search(value) is None:
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if value.bit_length() <= 3 * _MAX_DIGITS else None
    if isinstance(value, dict):
        return {scrub(key): scrub(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [scrub(item) for item in value]
    return value


def _dump(plain: Any) -> bytes:
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8") + b"\n"


def _as_dict(message: JSONRPCMessage) -> dict[str, Any]:
    if isinstance(message, JSONRPCResponse):  # by far the most common, and its result is plain already
        return {"jsonrpc": "2.0", "id": message.id, "result": message.result}
    return message.model_dump(by_alias=True, exclude_unset=True)


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, parse_int=_long_int)


def _long_int(digits: str) -> int | float:
    if len(digits) <= _MAX_DIGITS:
        return int(digits)
    return -math.inf if digits.startswith("-") else math.inf


def _too_deep(text: str) -> bool:
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return False
    depth = 0
    for match in _BRACKET.finditer(text):
        mark = match.group()[0]
        if mark in "{[":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif mark in "}]":
            depth -= 1
    return False


def _as_message(value: Any) -> JSONRPCMessage | Refusal | None:
    if isinstance(value, list):
        return Refusal(INVALID_REQUEST, "a batch is not part of this protocol: send one object per line")
    if not isinstance(value, dict):
        return Refusal(INVALID_REQUEST, "a message must be a JSON object")
    request_id = _echoable(value.get("id"))
    if value.get("jsonrpc") != "2.0":
        return Refusal(INVALID_REQUEST, 'not a JSON-RPC message: "jsonrpc" must be "2.0"', request_id)
    if "method" in value:
        return _as_call(value, request_id)
    if "result" in value or "error" in value:
        return _as_reply(value, request_id)
    return Refusal(INVALID_REQUEST, 'not a JSON-RPC message: it has no "method"', request_id)


def _as_call(value: dict[str, Any], request_id: float | str | None) -> JSONRPCMessage | Refusal | None:
    method, params = value["method"], value.get("params")
    if not isinstance(method, str):
        return Refusal(INVALID_REQUEST, '"method" must be a string', request_id)
    fields: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if "params" in value:
        fields["params"] = params
    if "id" not in value:
        return JSONRPCNotification(**fields) if params is None or isinstance(params, dict) else None
    if request_id is None or isinstance(request_id, float):
        return Refusal(INVALID_REQUEST, '"id" must be a string or an integer', request_id)
    if params is not None and not isinstance(params, dict):
        return Refusal(INVALID_PARAMS, '"params" must be an object', request_id)
    return JSONRPCRequest(id=request_id, **fields)


def _as_reply(value: dict[str, Any], request_id: float | str | None) -> JSONRPCMessage | None:
    """What a client answers; where that is malformed, the error that lets whoever asked wait no longer."""
    model = JSONRPCResponse if "result" in value else JSONRPCError
    try:
        return model.model_validate(value, by_name=False)
    except ValidationError:
        if request_id is None or isinstance(request_id, float):
            return None
        error = ErrorData(code=INVALID_REQUEST, message="the answer is not one that JSON-RPC knows")
        return JSONRPCError(jsonrpc="2.0", id=request_id, error=error)


def _echoable(raw: object) -> int | float | str | None:
    """The id as it may be sent back: no booleans, no NaN, nothing that UTF-8 cannot carry."""
    if isinstance(raw, str):
        return raw if _SURROGATE.search(raw) is None else None
    if isinstance(raw, bool):
        return None
    if isinstance(raw, int):
        return raw
    if isinstance(raw, float):
        return raw if math.isfinite(raw) else None
    return None


def _plain_id(token: bytes) -> int | str | None:
    try:
        found = _echoable(json.loads(token))
    except ValueError:
        return None
    return None if isinstance(found, float) else found


def _id_of_line(line: bytes) -> int | str | None:
    return find_id(line[:EDGE_BYTES], line[-EDGE_BYTES:])
