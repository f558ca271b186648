"""How an error looks to a client: one shape, one table.

A tool answers with a result marked as an error whose text is the JSON of `describe`; a resource or prompt has
no such result, so there the same JSON rides in a protocol error with the table's code.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from store.errors import (
    ClockError,
    ConfigError,
    Conflict,
    DeskbookError,
    InvalidInput,
    NotFound,
    PermissionDenied,
)

logger = logging.getLogger(__name__)

# The protocol code where a client cannot be given a tool result; the nearest ancestor counts.
PROTOCOL_CODES: Final[Mapping[type, int]] = MappingProxyType(
    {
        InvalidInput: INVALID_PARAMS,
        NotFound: INVALID_PARAMS,
        Conflict: INVALID_PARAMS,
        ClockError: INVALID_PARAMS,
        PermissionDenied: INVALID_PARAMS,
        ConfigError: INVALID_PARAMS,
        DeskbookError: INTERNAL_ERROR,
    }
)

INTERNAL: Final = "internal_error"
_UNEXPECTED: Final = MappingProxyType(
    {
        "code": INTERNAL,
        "message": "The server failed in a way it should not; the operator finds the cause in its log.",
        "stored": "unknown",
        "retryable": False,
        "hint": "Read the memory back before sending the call again.",
    }
)


def describe(fault: BaseException) -> dict[str, Any]:
    """What a client is told: code, message, stored, retryable, hint and, where known, the field.

    An error outside our tree is logged whole and told as `internal_error` without any of its text.
    """
    if not isinstance(fault, DeskbookError):
        logger.error("unexpected error", exc_info=fault)
        return dict(_UNEXPECTED)
    if fault.where is not None:
        logger.warning("%s (%s)", fault.message, fault.where)
    told: dict[str, Any] = {
        "code": fault.code,
        "message": fault.message,
        "stored": fault.stored,
        "retryable": fault.retryable,
        "hint": fault.hint or "",
    }
    if fault.field is not None:
        told["field"] = fault.field
    return told


def error_text(told: dict[str, Any]) -> str:
    """The JSON text of a described error."""
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def protocol_code(fault: BaseException) -> int:
    """The JSON-RPC error code of the nearest class in the table."""
    nearest = (PROTOCOL_CODES[kind] for kind in type(fault).__mro__ if kind in PROTOCOL_CODES)
    return next(nearest, INTERNAL_ERROR)
