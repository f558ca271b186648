"""Asking the person at the client whether a note is to be kept, in the way of either protocol era.

A yes is the client program's word for its person: it is kept as `host_confirmed` and never as a reviewer's approval.
Where nobody can be asked, or nobody answers, the note waits for a reviewer instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import anyio
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from pydantic import ValidationError

from store.admission import ConfirmationNeeded
from store.canonical import canonical
from store.render import cut_text

ASK_SECONDS: Final = 300.0
MODERN: Final = "2026-07-28"
_KEY: Final = "keep"
_SHOWN_CHARS: Final = 2_000
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {_KEY: {"type": "boolean", "title": "Keep it in memory", "default": True}},
    "required": [_KEY],
}

Answer: TypeAlias = Literal["confirmed", "declined", "none"]
Host: TypeAlias = Literal["none", "asks", "confirmed", "declined"]


class Asking:
    """What one call's client can be asked, and what it answered on an earlier round of the same call."""

    def __init__(self, context: Context[Any, Any] | None, name: str, arguments: Mapping[str, Any]) -> None:
        self._context = context
        self._call = [name, dict(arguments)]

    def standing(self) -> Host:
        """Whether the person has answered about this very call, else whether they can be asked."""
        if self._context is None or not self._can_ask(self._context):
            return "none"
        if not self._is_modern(self._context):
            return "asks"
        answers = self._context.input_responses or {}
        answer = answers.get(_KEY)
        # An answer counts only for the question that was put: the state is sealed, and names tool and arguments.
        if answer is None or self._context.request_state != self._digest():
            return "asks"
        return _answer(answer)

    async def ask(self, wanted: ConfirmationNeeded) -> Answer | InputRequiredResult:
        """Put the question: the answer, or the reply that has the client ask and call again."""
        context = self._context
        if context is None:
            return "none"
        params = ElicitRequestFormParams(message=_question(wanted), requested_schema=_SCHEMA)
        if self._is_modern(context):
            requests: Any = {_KEY: ElicitRequest(params=params)}
            return InputRequiredResult(input_requests=requests, request_state=self._digest())
        with anyio.move_on_after(ASK_SECONDS):
            try:
                return _answer(
                    await context.session.elicit_form(
                        params.message, params.requested_schema, context.request_context.request_id
                    )
                )
            except (MCPError, ValidationError):  # it cannot, its end is gone, or what it says is no answer
                return "none"
        return "none"

    def _digest(self) -> str:
        """What names this very call; asked for only once its arguments were read, as odd ones have no digest."""
        return hashlib.sha256(canonical(self._call)).hexdigest()

    @staticmethod
    def _is_modern(context: Context[Any, Any]) -> bool:
        return (context.protocol_version or "") >= MODERN

    def _can_ask(self, context: Context[Any, Any]) -> bool:
        capabilities = context.client_capabilities
        elicitation = None if capabilities is None else capabilities.elicitation
        if elicitation is None or (elicitation.form is None and elicitation.url is not None):
            return False
        return self._is_modern(context) or context.session.can_send_request


def _answer(given: object) -> Answer:
    if not isinstance(given, ElicitResult) or given.action == "cancel":
        return "none"
    if given.action == "decline":
        return "declined"
    return "confirmed" if (given.content or {}).get(_KEY, True) is True else "declined"


def _question(wanted: ConfirmationNeeded) -> str:
    about = f" about {wanted.symbol}" if wanted.symbol else ""
    text = "\n".join(f"> {line}" for line in cut_text(wanted.text, _SHOWN_CHARS).split("\n"))
    return (
        f"An agent wants to keep this {wanted.kind.replace('_', ' ')}{about} in the desk's memory:\n\n{text}"
    )
